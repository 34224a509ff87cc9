"""What a set of sequences is like, in the numbers that facts and paper give."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from wanderlearn.worlds.sequence import NEW, UNLABELED, Meetings
from wanderlearn.worlds.world import Collection

__all__ = ["labelled_before", "statistics"]

SHOTS = 5


def labelled_before(meetings: Meetings) -> list[int]:
    """How many labelled items of its class came before each meeting."""
    told: dict[int, int] = {}
    before = []
    for true, given in zip(meetings.truth.tolist(), meetings.given.tolist(), strict=True):
        before.append(told.get(true, 0))
        if given != UNLABELED:
            told[true] = told.get(true, 0) + 1
    return before


def statistics(sequences: Iterable[Meetings], pictures: Collection) -> dict[str, Any]:
    """Means over sequences, fractions of all meetings; `queries_per_shot[n - 1]`: asked after n labels."""
    family_of = pictures.family[pictures.class_of]
    lengths, classes, families, changes, steps = [], [], [], 0, 0
    new = labelled = 0
    queries = np.zeros(SHOTS)
    for m in sequences:
        lengths.append(len(m))
        classes.append(int(m.truth.max()) + 1)
        families.append(len(np.unique(family_of[m.picture])))
        changes += int((np.diff(m.environment) != 0).sum())
        steps += len(m) - 1
        new += int((m.target == NEW).sum())
        labelled += int((m.given != UNLABELED).sum())
        queries += np.bincount(labelled_before(m), minlength=SHOTS + 1)[1 : SHOTS + 1]
    count, meetings = len(lengths), sum(lengths)
    return {
        "sequences": count,
        "mean_length": meetings / count,
        "shortest": min(lengths),
        "longest": max(lengths),
        "classes": sum(classes) / count,
        "fewest_classes": min(classes),
        "most_classes": max(classes),
        "new_fraction": new / meetings,
        "labelled_fraction": labelled / meetings,
        "environment_change_rate": changes / max(steps, 1),
        "families": sum(families) / count,
        "queries_per_shot": (queries / count).tolist(),
    }
