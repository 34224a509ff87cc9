"""How a process finds its group: by what torchrun (or SLURM's srun, see docs/scaling.md) put into the
environment."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Final

from wanderlearn.distributed.group import ALONE, Group
from wanderlearn.errors import WanderError

__all__ = ["joined", "launched", "rank_here", "restarted"]

# How long a process waits for the others. A process that has died is noticed at once; this is for machines
# that cannot be reached, and is longer than anything that one process does while the others wait.
TIMEOUT: Final = timedelta(minutes=30)
_TIMES: Final = count()  # that this process has joined
NEEDED: Final = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def rank_here() -> int:
    """The rank of this process, 0 if it was started alone."""
    return _number("RANK", 0) if "WORLD_SIZE" in os.environ else 0


def restarted() -> bool:
    """Whether torchrun has started this again, because a process had ended."""
    return _number("TORCHELASTIC_RESTART_COUNT", 0) > 0


def launched() -> str:
    """What tells one launch from another, and stays the same when torchrun starts its processes again."""
    name = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    return f"{name} {os.getppid()}" if name == "none" else name  # "none": torchrun was given no --rdzv-id


@contextmanager
def joined(backend: str = "gloo") -> Iterator[Group]:
    """The group this process belongs to, while the block runs.

    `backend` carries what they say to each other: gloo between processors; cpu:gloo,cuda:nccl where tensors
    are on GPUs.
    """
    size = _number("WORLD_SIZE", 1)
    if size <= 1:
        yield ALONE
        return
    missing = [name for name in NEEDED if name not in os.environ]
    if missing:
        raise WanderError(
            f"WORLD_SIZE says that there are {size} processes, but {', '.join(missing)} is not set. Start "
            "them with torchrun, which sets all of it (docs/scaling.md)."
        )
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    rank, here = _number("RANK", 0), _number("LOCAL_RANK", 0)
    # The store where they find each other outlives them: torchrun keeps it when it starts all again. So every
    # time has a name of its own, and nobody calls the dead.
    name = f"wander/{_number('TORCHELASTIC_RESTART_COUNT', 0)}/{size}/{next(_TIMES)}"
    try:
        store, _, _ = next(rendezvous("env://", timeout=TIMEOUT))
        dist.init_process_group(
            backend, store=PrefixStore(name, store), rank=rank, world_size=size, timeout=TIMEOUT
        )
    except (RuntimeError, ValueError) as error:
        raise WanderError(
            f"Process {rank} of {size} could not join the others at {os.environ['MASTER_ADDR']}, port "
            f"{os.environ['MASTER_PORT']} ({str(error).strip().splitlines()[0]}). Can that machine be "
            "reached from here, and was the same command started on all of them?"
        ) from error
    group = Group(rank, size, here)
    yield group
    # Only where all is well: who was left by the others should not wait for them once more.
    group.barrier()
    dist.destroy_process_group()


def _number(name: str, otherwise: int) -> int:
    text = os.environ.get(name, str(otherwise))
    try:
        return int(text)
    except ValueError as error:
        raise WanderError(f"{name} must be a whole number, not {text!r}.") from error
