"""Does a probability mean what it says: expected calibration error, for naming and for "new"."""

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.metrics.record import Bools, Floats, Ints, Record
from wanderlearn.worlds.sequence import NEW

__all__ = ["BINS", "Reliability", "naming_confidence", "naming_reliability", "new_reliability", "reliability"]

BINS: Final = 15


class Reliability(NamedTuple):
    """What was promised beside what came true, in bins of equal mass from the least sure to the surest."""

    promised: Floats  # [B] mean probability
    came_true: Floats  # [B] how often it was so
    meetings: Ints  # [B]

    @property
    def error(self) -> float:
        """The expected calibration error: |promised - came true|, averaged over meetings; NaN with none."""
        if not len(self.meetings):
            return math.nan
        return float(np.average(np.abs(self.promised - self.came_true), weights=self.meetings))


def reliability(probability: npt.ArrayLike, came_true: npt.ArrayLike, bins: int = BINS) -> Reliability:
    """Flat arrays of probabilities and of what came true, in bins that hold the same number of meetings.

    Meetings of equal probability that fall into two bins share their outcomes evenly, so their order among
    themselves cannot matter. Even of a perfect probability the error is not 0 but about the noise of a bin's
    mean, sqrt(bins / meetings) / 2 or less.

    >>> reliability([0.2, 0.2, 0.2, 0.2, 0.2], [0, 0, 1, 0, 0], bins=1).error
    0.0
    """
    p, truth = np.asarray(probability, dtype=np.float64), np.asarray(came_true, dtype=np.float64)
    if p.ndim != 1 or p.shape != truth.shape:
        raise WanderError(f"Give flat arrays of one length; got shapes {p.shape} and {truth.shape}.")
    if bins < 1:
        raise WanderError(f"There must be at least 1 bin, not {bins}.")
    if not ((p >= 0) & (p <= 1)).all():
        raise WanderError("A probability lies between 0 and 1; one of these does not.")
    values, place, count = np.unique(p, return_inverse=True, return_counts=True)
    share = np.bincount(place.reshape(-1), weights=truth, minlength=len(values)) / np.maximum(count, 1)
    p, truth = np.repeat(values, count), np.repeat(share, count)  # in ascending order
    cuts = [part for part in np.array_split(np.arange(len(p)), bins) if len(part)]
    return Reliability(
        np.array([p[part].mean() for part in cuts]),
        np.array([truth[part].mean() for part in cuts]),
        np.array([len(part) for part in cuts], dtype=np.int64),
    )


def naming_confidence(record: Record) -> Floats:
    """P(known) x P(class) of the most probable label, [N, T]: what `Answer.confidence` is in a live agent.

    0 where padded.
    """
    confidence = np.zeros(record.valid.shape)
    novelty, chosen = record.novelty[record.valid], record.confidence[record.valid]
    confidence[record.valid] = np.exp(np.minimum(chosen - np.logaddexp(0.0, novelty), 0.0))
    return confidence


def naming_reliability(record: Record, bins: int = BINS) -> Reliability:
    """The probability of the most probable label against how often that label is right, on all meetings.

    On a meeting that is new no label is right.
    """
    valid: Bools = record.valid
    return reliability(naming_confidence(record)[valid], record.correct[valid], bins)


def new_reliability(record: Record, bins: int = BINS) -> Reliability:
    """The probability of "new" against how often it is new, on all meetings."""
    p_new = np.exp(-np.logaddexp(0.0, -record.novelty[record.valid]))
    return reliability(p_new, record.target[record.valid] == NEW, bins)
