"""How far to trust a figure, or a difference of two: percentile intervals over resampled sequences."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from wanderlearn.errors import WanderError
from wanderlearn.metrics.precision import ap
from wanderlearn.metrics.record import Floats, Record

__all__ = ["LEVEL", "Interval", "ap_interval", "bootstrap", "paired_bootstrap"]

LEVEL: Final = 0.95
"""How sure an interval is."""


@dataclass(frozen=True)
class Interval:
    """A figure, or the difference of two (first minus second), with its 95 % interval."""

    value: float
    low: float
    high: float
    reason: str = ""  # why something is NaN, or how many resamples had to be left out


def bootstrap(
    record: Record, metric: Callable[[Record], float], resamples: int = 1000, seed: int = 0
) -> Interval:
    """The metric of a record, with the 95 % percentile interval over resampled sequences."""
    return _interval([record], metric, resamples, seed, lambda values: values[0])


def paired_bootstrap(
    a: Record | Sequence[Record],
    b: Record | Sequence[Record],
    metric: Callable[[Record], float],
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """metric(a) - metric(b) of two learners on the same sequences, with its 95 % percentile interval.

    Every resample draws the same sequences for both, so what makes a sequence hard cancels out. `metric` is
    any function of a record, such as `ap` or `lambda record: shot_accuracy(record)[0].mean`. Of several
    records of each, of as many trainings, it is the difference of the means.
    """
    ours, theirs = ([x] if isinstance(x, Record) else list(x) for x in (a, b))
    if not (ours and theirs):
        raise WanderError("A paired bootstrap needs a record of each at least.")
    for other in [*ours, *theirs]:
        _refuse_other_sequences(ours[0], other)
    return _interval(
        [*ours, *theirs],
        metric,
        resamples,
        seed,
        lambda values: _mean(values[: len(ours)]) - _mean(values[len(ours) :]),
    )


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _refuse_other_sequences(a: Record, b: Record) -> None:
    if a.valid.shape != b.valid.shape:
        raise WanderError(
            f"A paired bootstrap needs two records of the same sequences, but their shapes are "
            f"{a.valid.shape} and {b.valid.shape}. Evaluate both on one manifest."
        )
    for name in ("valid", "truth", "given", "target"):
        differs = (getattr(a, name) != getattr(b, name)) & (a.valid | b.valid)
        if differs.any():
            sequence, step = np.argwhere(differs)[0]
            raise WanderError(
                f"A paired bootstrap needs two records of the same sequences, but {name} differs at "
                f"sequence {sequence}, step {step}. Evaluate both on one manifest."
            )


def ap_interval(record: Record, resamples: int = 1000, seed: int = 0, bins: int = 1000) -> Interval:
    """`bootstrap(record, ap)` of the same resamples in a fraction of the time: all in one product.

    Every sequence is a histogram over the steps ranked by novelty, and a resample a sum of histograms. Up to
    `bins` different novelties this is exact; beyond, the curve has one point per bin, which moves the ends of
    the interval by far less than the interval is wide.
    """
    if resamples < 1:
        raise WanderError(f"A bootstrap needs at least one resample, not {resamples}.")
    sequences, value = len(record), ap(record)
    if sequences < 2:
        return Interval(value, math.nan, math.nan, "an interval over sequences needs at least two")
    if math.isnan(value):
        return Interval(value, math.nan, math.nan, "the metric is NaN on the whole record")
    sequence, _ = np.nonzero(record.valid)  # [M]
    rank = record.novelty_rank[record.valid].astype(np.int64) - 1  # [M]
    bins = min(bins, last := int(rank.max()) + 1)
    cell = sequence * bins + rank * bins // last  # [M]
    right = cell[record.correct[record.valid]]
    met, hit = (  # [N, B]
        np.bincount(some, minlength=sequences * bins).reshape(sequences, bins).astype(np.float64)
        for some in (cell, right)
    )
    generator = np.random.default_rng(seed)
    drawn = (generator.integers(sequences, size=sequences) for _ in range(resamples))
    times = np.stack([np.bincount(some, minlength=sequences) for some in drawn]).astype(np.float64)  # [R, N]
    met, hit, known = times @ met, times @ hit, times @ record.known.sum(axis=1)  # [R, B], [R, B], [R]
    # The curve starts at a precision of 1, which bins before the first step of a resample repeat.
    count = np.cumsum(met, axis=1)
    precision = np.divide(np.cumsum(hit, axis=1), count, out=np.ones_like(count), where=count > 0)
    before = np.concatenate((np.ones((resamples, 1)), precision[:, :-1]), axis=1)
    area = np.sum(hit * (precision + before), axis=1)
    draws = np.divide(area, 2 * known, out=np.full(resamples, math.nan), where=known > 0)
    return _percentiles(value, draws)


def _interval(
    records: list[Record],
    metric: Callable[[Record], float],
    resamples: int,
    seed: int,
    combine: Callable[[list[float]], float],
) -> Interval:
    sequences = len(records[0])
    if resamples < 1:
        raise WanderError(f"A bootstrap needs at least one resample, not {resamples}.")
    if sequences == 0:
        raise WanderError("A bootstrap needs at least one sequence, but the record is empty.")
    # First the figure itself: the records then hold what `take` can hand on to every resample.
    value = combine([metric(record) for record in records])
    if math.isnan(value):
        return Interval(value, math.nan, math.nan, "the metric is NaN on the whole record")
    generator = np.random.default_rng(seed)
    draws = np.empty(resamples)
    for i in range(resamples):
        drawn = generator.integers(sequences, size=sequences)
        draws[i] = combine([metric(record.take(drawn)) for record in records])
    return _percentiles(value, draws)


def _percentiles(value: float, draws: Floats) -> Interval:
    usable = draws[~np.isnan(draws)]
    if len(usable) == 0:
        return Interval(value, math.nan, math.nan, "the metric is NaN on every resample")
    low, high = np.percentile(usable, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    left_out = len(draws) - len(usable)
    reason = f"{left_out} of {len(draws)} resamples left out: the metric is NaN on them" if left_out else ""
    return Interval(value, float(low), float(high), reason)
