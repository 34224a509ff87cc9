"""How far to trust a figure, or a difference of two: percentile intervals over resampled sequences."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wanderlearn.errors import WanderError
from wanderlearn.metrics.record import Record

__all__ = ["Interval", "bootstrap", "paired_bootstrap"]


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
    a: Record, b: Record, metric: Callable[[Record], float], resamples: int = 1000, seed: int = 0
) -> Interval:
    """metric(a) - metric(b) of two learners on the same sequences, with its 95 % percentile interval.

    Every resample draws the same sequences for both, so what makes a sequence hard cancels out. `metric` is
    any function of a record, such as `ap` or `lambda record: shot_accuracy(record)[0].mean`.
    """
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
    return _interval([a, b], metric, resamples, seed, lambda values: values[0] - values[1])


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
    usable = draws[~np.isnan(draws)]
    if len(usable) == 0:
        return Interval(value, math.nan, math.nan, "the metric is NaN on every resample")
    low, high = np.percentile(usable, [2.5, 97.5])
    left_out = resamples - len(usable)
    reason = f"{left_out} of {resamples} resamples left out: the metric is NaN on them" if left_out else ""
    return Interval(value, float(low), float(high), reason)
