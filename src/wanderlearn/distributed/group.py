"""The processes that work on one run, as one of them sees it: who it is, its share, and how they talk.

All processes of a group must make the same calls in the same order. A group of one answers them all itself,
at once, and does not even import torch.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from wanderlearn.errors import WanderError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ALONE", "FAILED", "Group"]

FAILED: Final = 2  # how `wander` ends where it could not do what was asked

T = TypeVar("T")


@dataclass(frozen=True)
class Group:
    """One of `size` processes. Made by `joined`; the default is the only one."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    """Its number on its own machine."""

    @property
    def first(self) -> bool:
        """Whether this is the process that speaks and writes."""
        return self.rank == 0

    @property
    def first_here(self) -> bool:
        """Whether this is the first process on its machine."""
        return self.local_rank == 0

    def share(self, count: int) -> range:
        """Which of `count` things in a row are this process's: sizes differ by one at most, none is left.

        >>> [Group(rank, 3).share(7) for rank in range(3)]
        [range(0, 3), range(3, 5), range(5, 7)]
        """
        each, more = divmod(count, self.size)
        start = self.rank * each + min(self.rank, more)
        return range(start, start + each + (self.rank < more))

    def sum(self, tensor: "Tensor") -> "Tensor":
        """The sum over all processes, with the same bits in each of them. No gradient passes."""
        if self.size == 1:
            return tensor.detach()
        import torch.distributed as dist

        total = tensor.detach().clone()
        with self._talking():
            dist.all_reduce(total)
        return total

    def spread(self, tensor: "Tensor") -> None:
        """Fill a tensor with what the first process has in it, in place."""
        if self.size == 1:
            return
        import torch.distributed as dist

        whole = tensor.detach().contiguous()
        with self._talking():
            dist.broadcast(whole, 0)
        tensor.detach().copy_(whole)

    def numbers(self, *values: float) -> list[float]:
        """The sums of a few numbers over all processes."""
        if self.size == 1:
            return list(values)
        import torch

        summed: list[float] = self.sum(torch.tensor(values, dtype=torch.float64)).tolist()
        return summed

    def any(self, said: bool) -> bool:
        """Whether any process says so."""
        return self.numbers(float(said))[0] > 0

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """What every process gives, in the order of their ranks, in all of them."""
        if self.size == 1:
            return [data]
        import torch
        import torch.distributed as dist

        length = torch.zeros(self.size, dtype=torch.int64)
        length[self.rank] = len(data)
        lengths: list[int] = self.sum(length).tolist()
        mine = torch.zeros(max(1, *lengths), dtype=torch.uint8)
        mine[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else mine[:0]
        found = [torch.empty_like(mine) for _ in range(self.size)]
        with self._talking():
            dist.all_gather(found, mine)
        return [each.numpy()[:size].tobytes() for each, size in zip(found, lengths, strict=True)]

    def gather(self, value: Any) -> list[Any]:
        """As `gather_bytes`, for whatever JSON can say."""
        if self.size == 1:
            return [value]
        return [json.loads(data) for data in self.gather_bytes(json.dumps(value).encode())]

    def from_first(self, value: Any) -> Any:
        """What the first process says (in JSON's words), in all of them."""
        return self.gather(value if self.first else None)[0]

    def by_first(self, work: Callable[[], T]) -> T | None:
        """Let the first process do something while all others wait; None in those.

        If it cannot be done, the first says why and all end.
        """
        if self.size == 1:
            return work()
        done, problem = None, None
        if self.first:
            try:
                done = work()
            except WanderError as error:
                problem = error
        if self.any(problem is not None):
            self.fail(problem)
        return done

    def fail(self, problem: WanderError | None) -> NoReturn:
        """End in all processes for a reason that all of them know: only the first one says it."""
        if self.first and problem is not None:
            raise problem
        raise SystemExit(FAILED)

    @contextmanager
    def first_here_before(self) -> Iterator[None]:
        """Let the first process on every machine go through the block before the others there do."""
        if not self.first_here:
            self.barrier()
        yield
        if self.first_here:
            self.barrier()

    def barrier(self) -> None:
        """Wait until all processes are here."""
        self.numbers(0.0)

    @contextmanager
    def _talking(self) -> Iterator[None]:
        """Whatever goes wrong between processes, as a sentence."""
        try:
            yield
        except RuntimeError as error:
            # Without the place in somebody's source that stands before it, and without advice after it.
            reason = re.sub(r"^\[[^\]]*\]\s*", "", str(error).strip() or type(error).__name__).splitlines()[0]
            raise WanderError(
                f"Process {self.rank} of {self.size} lost touch with the others: one of them has ended or "
                f"cannot be reached, see what it said ({reason.split('. ')[0]}). Training goes on from its "
                "last checkpoint: by --resume, or by itself under torchrun --max-restarts."
            ) from error


ALONE: Final = Group()
