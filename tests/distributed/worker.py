"""One process of a group: `python -m tests.distributed.worker JOB FOLDER ...`, started by a test."""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.distributed.jobs import everything, whole_run
from wanderlearn import cli
from wanderlearn.distributed import Group, joined, restarted
from wanderlearn.errors import WanderError
from wanderlearn.optimiser import Optimiser


def at_step(number: int, act: Callable[[], None]) -> Any:
    """A patch: in the middle of the so-manieth step of this process, act."""
    taken, count = Optimiser.step, iter(range(1, 10**6))

    def step(self: Optimiser, loss: Tensor, factor: float) -> float:
        if next(count) == number:
            act()
        return taken(self, loss, factor)

    return mock.patch.object(Optimiser, "step", step)


def me(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def parts(group: Group, folder: Path, begun: str) -> None:
    """All of `jobs.everything`; how they talk; runs by one clock; and what happens if one cannot begin.

    Then the run in `begun` is begun or gone on with; two processes are stopped, by a signal to the second.
    """
    save_file(everything(group), folder / f"parts-{group.rank}.safetensors")
    told: dict[str, Any] = {
        "gathered": group.gather({"rank": group.rank, "words": "x" * 5 * group.rank}),
        "bytes": [len(data) for data in group.gather_bytes(b"y" * group.rank)],
        "first": group.from_first([group.rank, 0.1]),
        "any": [group.any(False), group.any(group.rank == 1)],
        "sums": group.numbers(group.rank, 0.5),
    }
    tensor = torch.full((2, 3), float(group.rank))
    group.spread(tensor)
    told["spread"] = tensor.tolist()
    whole_run(folder / "whole", group)
    whole_run(folder / "own", group, sync_batch_norm=False)

    ticks, pace = iter(range(10**6)), 1.0 if group.first else 50.0  # clocks that do not agree
    with mock.patch("wanderlearn.train.time.monotonic", side_effect=lambda: pace * next(ticks)):
        told["clock"] = whole_run(folder / "clock", group, steps=None, minutes=0.25).step
    try:
        whole_run(folder / "whole", group)  # it is there already
    except (WanderError, SystemExit) as error:
        told["refused"] = [type(error).__name__, str(error)]
    with at_step(2, me(signal.SIGTERM)) if (group.rank, group.size) == (1, 2) else nullcontext():
        outcome = whole_run(Path(begun), group, resume=Path(begun).exists())
    told["run"] = [outcome.status, outcome.step, outcome.best_ap]
    (folder / f"told-{group.rank}.json").write_text(json.dumps(told))


def killed(group: Group, folder: Path) -> None:
    """A run in which the last process is killed in its fifth step, once."""
    dies = group.rank == group.size - 1 and not restarted()
    with at_step(5, me(signal.SIGKILL)) if dies else nullcontext():
        whole_run(folder / "run", group, workers=1)


def main(job: str, folder: str, *more: str) -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    try:
        with joined() as group:
            if job == "parts":
                parts(group, Path(folder), more[0])
            else:
                killed(group, Path(folder))
    except WanderError as error:
        sys.exit(str(error))
    if job == "parts":  # a command joins the group by itself
        cli.main(json.loads(more[-1]))


if __name__ == "__main__":
    main(*sys.argv[1:])
