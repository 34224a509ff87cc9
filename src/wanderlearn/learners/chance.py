"""Random numbers for a batch that may be a part of a larger one: a sequence draws the same either way."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import torch
from torch import Tensor

__all__ = ["drawn", "part_of"]

_PART: Final[ContextVar[tuple[int, int] | None]] = ContextVar("part", default=None)


@contextmanager
def part_of(first: int, total: int) -> Iterator[None]:
    """In this block a batch is only a part of one with `total` sequences, from number `first` on."""
    before = _PART.set((first, total))
    try:
        yield
    finally:
        _PART.reset(before)


def drawn(like: Tensor, draw: Callable[[Tensor], Tensor], dim: int = 0) -> Tensor:
    """A tensor of this shape, type and device filled by `draw` in place; sequences lie along `dim`.

    For a part the numbers of all sequences are drawn, and all but its own thrown away.
    """
    part, shape = _PART.get(), list(like.shape)
    if part is None:
        return draw(torch.empty(shape, dtype=like.dtype, device=like.device))
    first, total = part
    count, shape[dim] = shape[dim], total
    return draw(torch.empty(shape, dtype=like.dtype, device=like.device)).narrow(dim, first, count)
