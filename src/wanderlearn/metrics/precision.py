"""Average precision: is it known, and if so which one, in a single figure."""

import math

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.metrics.record import Bools, Ints, Record, ranks
from wanderlearn.worlds.sequence import NEW

__all__ = ["ap", "ap_joint", "average_precision", "average_precision_joint"]


def average_precision(novelty: npt.ArrayLike, predicted: npt.ArrayLike, target: npt.ArrayLike) -> float:
    """The paper's AP, on flat arrays over all valid steps of all sequences.

    Steps are ranked from the least novel. Of the first n, c(n) were given the right class (never true of
    a NEW target): precision c(n) / n, recall c(n) / #known. AP is the trapezoidal area over recall, from the
    point (0, 1). Errors of class lower it even when the ranking is perfect.

    Steps of equal novelty come as one block, a single point of the curve: their order among themselves
    means nothing, so it cannot matter. NaN when no target is known.

    >>> average_precision([-2.0, -1.0, 0.5], [0, 1, 0], [0, 1, NEW])
    1.0
    """
    return _flat(np.asarray(novelty, dtype=np.float64), predicted, target)


def average_precision_joint(
    novelty: npt.ArrayLike, confidence: npt.ArrayLike, predicted: npt.ArrayLike, target: npt.ArrayLike
) -> float:
    """AP with steps ranked by P(known) x P(class) instead of P(known) alone; else as `average_precision`.

    `confidence` is the log-probability of the predicted class. The product is taken as a sum of logarithms,
    log sigmoid(-novelty) + confidence, so far-out logits keep their order.
    """
    known = np.asarray(novelty, dtype=np.float64)
    chosen = np.asarray(confidence, dtype=np.float64)
    if known.shape != chosen.shape:
        raise WanderError(f"novelty has shape {known.shape}, but confidence has {chosen.shape}.")
    return _flat(np.logaddexp(0.0, known) - chosen, predicted, target)


def ap(record: Record) -> float:
    """`average_precision` of all valid steps of a record."""
    return _area(record.novelty_rank, record.correct, int(record.known.sum()))


def ap_joint(record: Record) -> float:
    """`average_precision_joint` of all valid steps of a record."""
    return _area(record.joint_rank, record.correct, int(record.known.sum()))


def _flat(doubt: npt.NDArray[np.float64], predicted: npt.ArrayLike, target: npt.ArrayLike) -> float:
    slots, wanted = np.asarray(predicted), np.asarray(target)
    if doubt.ndim != 1 or not doubt.shape == slots.shape == wanted.shape:
        raise WanderError(
            "Average precision needs flat arrays of one length; "
            f"got shapes {doubt.shape}, {slots.shape} and {wanted.shape}."
        )
    if (broken := np.isnan(doubt)).any():
        raise WanderError(f"The novelty or confidence of step {broken.argmax()} is NaN: it cannot be ranked.")
    known = wanted != NEW
    return _area(ranks(doubt), known & (slots == wanted), int(known.sum()))


def _area(rank: Ints, correct: Bools, known: int) -> float:
    """Area under the curve of precision over recall. Rank 0 is padding.

    A rank nobody has (a resample lacks some) repeats the point before it, which adds no area; only those
    before the first point have nothing to repeat and are cut off.
    """
    if known == 0:
        return math.nan
    rank = rank.reshape(-1)
    met = np.bincount(rank)[1:]
    hit = np.bincount(rank, weights=correct.reshape(-1))[1:]
    start = int(np.argmax(met > 0))
    met, hit = met[start:], hit[start:]
    precision = np.cumsum(hit) / np.cumsum(met)
    # A block widens recall by hit / known, and is as high as the mean of the precisions at its two ends.
    ends = np.sum(hit * precision) + np.sum(hit[1:] * precision[:-1]) + hit[0]
    return float(ends / (2 * known))
