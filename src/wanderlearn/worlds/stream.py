"""Batches of sequences without end, drawn ahead by background workers."""

import signal
from collections.abc import Iterator
from typing import Any, cast

from torch.utils.data import DataLoader, Dataset

from wanderlearn.errors import WanderError
from wanderlearn.worlds.sequence import Batch
from wanderlearn.worlds.world import World

__all__ = ["batches"]


class _Numbered(Dataset[Batch]):
    """Batch n of a world: sequences n * size to (n + 1) * size, cut at `end`; of them those of a share."""

    def __init__(self, world: World, seed: int, size: int, end: int | None, share: range) -> None:
        self.world, self.seed, self.size, self.end, self.share = world, seed, size, end, share

    def __getitem__(self, n: int) -> Batch:
        start, stop = (n * self.size + place for place in (self.share.start, self.share.stop))
        stop = stop if self.end is None else min(stop, self.end)
        return self.world.batch([self.world.meetings(self.seed, i) for i in range(start, stop)])


def batches(
    world: World,
    seed: int,
    size: int,
    *,
    start: int = 0,
    count: int | None = None,
    workers: int = 0,
    share: range | None = None,
) -> Iterator[Batch]:
    """Batches of `size` sequences from batch number `start` on: `count` sequences in all, or without end.

    What comes out depends on neither `workers` (background processes) nor on where the iteration started.
    With `share`, only those places of every batch are drawn.
    """
    if size < 1 or (count is not None and count < 1):
        raise WanderError(f"A stream needs at least one sequence: batch size {size}, count {count}.")
    end = None if count is None else start * size + count
    last = 2**62 if end is None else -(-end // size)
    numbered = _Numbered(world, seed, size, end, range(size) if share is None else share)
    if workers == 0:
        return (numbered[n] for n in range(start, last))
    loader = DataLoader(
        numbered,
        batch_size=None,
        sampler=range(start, last),
        num_workers=workers,
        collate_fn=_as_it_is,
        worker_init_fn=_steadfast,
    )
    return cast(Iterator[Batch], iter(loader))


def _steadfast(_: int) -> None:
    """Signals come to the whole group, from a terminal or a service manager: the main process decides."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _as_it_is(batch: Any) -> Any:
    return batch
