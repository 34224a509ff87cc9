"""A curve over the meetings of a sequence: a mean over sequences, and how far it spreads."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wanderlearn.metrics.record import Bools, Floats, Ints

__all__ = ["Curve", "mean_curve", "to_lists"]

KEPT = 0.1  # the part of all sequences that a point must rest on to be drawn


class Curve(NamedTuple):
    """Figures at P points of time; NaN where no sequence has anything to say."""

    t: Floats  # [P] meeting, from 1; the middle of a window
    mean: Floats  # [P]
    low: Floats  # [P] where the band begins
    high: Floats  # [P] and where it ends
    sequences: Ints  # [P] how many sequences the point rests on

    def drawn(self) -> "Curve":
        """Without the points that rest on less than a tenth of the sequences: the few longest ones."""
        kept = self.sequences >= max(1, math.ceil(KEPT * self.sequences.max(initial=0)))
        return Curve(*(column[kept] for column in self))


def mean_curve(values: Floats, valid: Bools) -> Curve:
    """Mean over sequences at every meeting, from [N, T]; a sequence counts as long as it goes on.

    The band is one standard deviation over sequences either way.
    """
    count = valid.sum(axis=0)  # [T]
    some = count > 0
    kept = np.where(valid, values, 0.0)
    mean, spread = np.full((2, len(count)), math.nan)
    mean[some] = kept.sum(axis=0)[some] / count[some]
    away = np.where(valid, kept - np.nan_to_num(mean), 0.0)
    spread[some] = np.sqrt((away**2).sum(axis=0)[some] / count[some])
    t = np.arange(1.0, len(count) + 1)
    return Curve(t, mean, mean - spread, mean + spread, count.astype(np.int32))


def to_lists(curve: Curve, digits: int = 6) -> dict[str, list[Any]]:
    """A curve as JSON holds it; what cannot be measured is null."""
    return {name: _numbers(column.tolist(), digits) for name, column in curve._asdict().items()}


def _numbers(column: Sequence[float], digits: int) -> list[float | None]:
    return [None if math.isnan(x) else round(x, digits) for x in column]
