"""Which names are told, and the slots that classes get by them."""

from collections import Counter
from collections.abc import Sequence
from math import exp

import numpy as np

from wanderlearn.worlds.sequence import UNLABELED, Ints

__all__ = ["in_slots", "labels_told"]


def labels_told(concrete: Sequence[int], u: Sequence[float], ratio: float) -> list[bool]:
    """Which meetings come with their name, by the classes met and twice as many random numbers or more.

    A class that is met often keeps `ratio` of its labels; every class is told at least once.
    """
    often, length = Counter(concrete), len(u) // 2
    chance = {c: (1 - ratio) * exp(-0.5 * (m - 1)) + ratio for c, m in often.items()}
    labelled = [draw < chance[c] for c, draw in zip(concrete, u, strict=False)]
    told = {c for c, yes in zip(concrete, labelled, strict=True) if yes}
    for n, c in enumerate(often):
        if c not in told:
            at = [t for t, other in enumerate(concrete) if other == c]
            labelled[at[int(u[length + n] * len(at))]] = True
    return labelled


def in_slots(concrete: Sequence[int], labelled: Sequence[bool]) -> tuple[Ints, Ints]:
    """The true slot of every meeting, numbered by first labelled appearance, and the slot that is told."""
    slot: dict[int, int] = {}
    for c, told in zip(concrete, labelled, strict=True):
        if told:
            slot.setdefault(c, len(slot))
    truth = np.array([slot[c] for c in concrete])
    return truth, np.where(labelled, truth, UNLABELED)
