"""Accuracy by number of shots, over time, and by how long ago a class was met."""

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from wanderlearn.metrics.record import Bools, Floats, Ints, Record
from wanderlearn.worlds.sequence import NEW

__all__ = [
    "BINS",
    "SHOTS",
    "Counting",
    "Forgetting",
    "OverTime",
    "Shot",
    "Since",
    "Variant",
    "accuracy_over_time",
    "forgetting",
    "forgotten",
    "known_accuracy",
    "novelty_accuracy",
    "shot_accuracy",
]

SHOTS: Final = (1, 2, 3, 4, 5)
BINS: Final = ((1, 2), (3, 5), (6, 10), (11, 20), (21, 50), (51, 100))  # steps, both ends included

Counting = Literal["labelled", "appearances"]
Variant = Literal["known", "all"]
Since = Literal["appearance", "label"]


@dataclass(frozen=True)
class Shot:
    """Accuracy on classes met exactly `shots` times before."""

    shots: int
    mean: float  # pooled over all queries of all sequences: the figure in the paper's tables
    macro: float  # mean of the sequences' own means
    standard_error: float  # population deviation of the sequences' means / sqrt(sequences)
    queries: int
    sequences: int  # with at least one such query
    reason: str = ""  # why the figures are NaN


@dataclass(frozen=True, eq=False)
class OverTime:
    """Accuracy at every step of a sequence."""

    accuracy: Floats  # [T], NaN where no sequence has such a step
    sequences: Ints  # [T], how many the mean is over
    reason: str = ""  # why there are NaNs


@dataclass(frozen=True)
class Forgetting:
    """Accuracy on classes labelled `shots` times before and last met `first` to `last` steps ago."""

    first: int
    last: int
    shots: int
    accuracy: float
    queries: int
    reason: str = ""  # why the accuracy is NaN


def shot_accuracy(record: Record, counting: Counting = "labelled") -> list[Shot]:
    """N-shot accuracy for N = 1 to 5: known steps whose class was met exactly N times before.

    `counting` says which meetings are counted: those with a label (the paper's tables), or all appearances.
    With every item labelled the two agree. Only the class scores count, not the novelty.
    """
    if counting == "labelled":
        count = record.labels
    elif counting == "appearances":
        count = record.appearances
    else:
        raise ValueError(f"counting must be 'labelled' or 'appearances', not {counting!r}")
    return [_shot(n, record.known & (count == n), record.correct, counting) for n in SHOTS]


def _shot(shots: int, asked: Bools, correct: Bools, counting: Counting) -> Shot:
    queries = asked.sum(axis=1)  # [N]
    some = queries > 0
    if not some.any():
        met = "labelled" if counting == "labelled" else "met"
        reason = f"no known step has a class {met} exactly {shots} time{'s' * (shots > 1)} before"
        return Shot(shots, math.nan, math.nan, math.nan, 0, 0, reason)
    hits = (asked & correct).sum(axis=1)
    means = hits[some] / queries[some]
    return Shot(
        shots=shots,
        mean=float(hits.sum() / queries.sum()),
        macro=float(means.mean()),
        standard_error=float(means.std() / math.sqrt(len(means))),
        queries=int(queries.sum()),
        sequences=len(means),
    )


def accuracy_over_time(record: Record, variant: Variant = "known") -> OverTime:
    """Mean accuracy over sequences at every step.

    "known": known steps only, by the highest class score. "all": every valid step, where the answer is NEW
    if the novelty is above 0.
    """
    if variant == "known":
        asked, right = record.known, record.correct
    elif variant == "all":
        asked, right = record.valid, record.right
    else:
        raise ValueError(f"variant must be 'known' or 'all', not {variant!r}")
    sequences = asked.sum(axis=0)
    accuracy = np.full(len(sequences), math.nan)
    np.divide(right.sum(axis=0), sequences, out=accuracy, where=sequences > 0)
    empty = np.flatnonzero(sequences == 0)
    what = "known" if variant == "known" else "valid"
    reason = f"no sequence has a {what} step at t = {', '.join(map(str, empty))}" if len(empty) else ""
    return OverTime(accuracy, sequences.astype(np.int32), reason)


def forgetting(record: Record, since: Since = "appearance") -> list[Forgetting]:
    """Accuracy on known steps by interval and number of labelled shots, every bin with N = 1 to 5.

    The interval runs from the last appearance of the class, labelled or not (the authors' code), or from its
    last label (the paper's words). Intervals above 100 steps are in no bin.
    """
    return [forgotten(record, first, last, shots, since) for first, last in BINS for shots in SHOTS]


def forgotten(record: Record, first: int, last: int, shots: int, since: Since = "appearance") -> Forgetting:
    """One cell of `forgetting`."""
    if since == "appearance":
        interval = record.since_appearance
    elif since == "label":
        interval = record.since_label
    else:
        raise ValueError(f"since must be 'appearance' or 'label', not {since!r}")
    asked = record.known & (record.labels == shots) & (interval >= first) & (interval <= last)
    queries = int(asked.sum())
    if not queries:
        reason = f"no known step with {shots} labelled before has an interval of {first} to {last} steps"
        return Forgetting(first, last, shots, math.nan, 0, reason)
    return Forgetting(first, last, shots, int((asked & record.correct).sum()) / queries, queries)


def known_accuracy(record: Record) -> float:
    """How often the highest class score is right on known steps; NaN when there are none."""
    known = int(record.known.sum())
    return int(record.correct.sum()) / known if known else math.nan


def novelty_accuracy(record: Record) -> float:
    """How often "new" (novelty above 0) or "known" is said rightly, on all valid steps; NaN with none."""
    said, wanted = record.novelty > 0, record.target == NEW
    steps = record.steps
    return int((record.valid & (said == wanted)).sum()) / steps if steps else math.nan
