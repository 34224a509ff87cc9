"""The arithmetic of `guesses.py` for one sequence, in place and compiled: whole sequences and live memories.

It is in the order of the steps of `guesses.py`, so that both keep the same guesses, to the bit.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.compiling import compiled

__all__ = [
    "CONCENTRATION",
    "DISCOUNT",
    "ENVIRONMENTS",
    "FIRST",
    "NOBODY",
    "STAY",
    "Guessing",
    "follow",
    "guess_along",
    "hear",
    "no_guessing",
    "tell",
]

Array = npt.NDArray[Any]

ENVIRONMENTS: Final = 5  # E; to guess with 6 or 8 where there are 5 is hardly worse
STAY: Final = 0.8  # s; from 0.7 to 0.9 it hardly matters
DISCOUNT, CONCENTRATION = 0.2, 1.0  # a, c
NOBODY: Final = -1
FIRST: Final = 0.6180339887498949  # of a step: equal weights never end just where the next is to be kept
USED, LAST, SILENT = 0, 1, 2  # places in `numbers`


class Guessing(NamedTuple):
    """N guesses and what was told so far; all of it changes in place."""

    lives: npt.NDArray[np.int8]  # [K, N] the environment of each class
    weight: npt.NDArray[np.float64]  # [N] the likeliest has 1
    guests: npt.NDArray[np.float64]  # [E, N] meetings told of each environment
    tables: npt.NDArray[np.float64]  # [E, N] classes told of each environment
    told: npt.NDArray[np.float64]  # [K] how often each class was told
    rates: npt.NDArray[np.float64]  # [E, N] of the next meeting, once it was asked what is heard
    numbers: npt.NDArray[np.int64]  # guesses of any weight, the class told as the last, meetings since that


def no_guessing(slots: int, most: int) -> Guessing:
    """Before anything was told there is one guess, of nothing; later there are so many at most."""
    weight = np.zeros(most)
    weight[0] = 1
    guests, tables, rates = np.zeros((3, ENVIRONMENTS, most))
    numbers = np.array([1, NOBODY, 0])
    return Guessing(np.zeros((slots, most), np.int8), weight, guests, tables, np.zeros(slots), rates, numbers)


@compiled
def hear(g: Guessing, classes: Array, here: Array, chance: Array) -> None:
    """What these classes hear before the next meeting, one number each; `tell` needs the rates it leaves."""
    used, last, silent = g.numbers
    E, total = len(g.guests), 0.0
    now = g.lives[last] if last >= 0 else np.zeros(g.lives.shape[1], np.int8)
    stays = STAY ** (silent + 1)
    leaves = (1 - stays) / E
    for i in range(used):
        total += g.weight[i]
    for e in range(E):
        for i in range(used):
            move = leaves + stays if now[i] == e else leaves
            g.rates[e, i] = g.weight[i] * move / (g.guests[e, i] + CONCENTRATION)
    for n in range(len(classes)):
        k = classes[n]
        home, beside, comes = g.lives[k], 0.0, 0.0
        for i in range(used):
            if home[i] == now[i]:
                beside += g.weight[i]
            comes += g.rates[home[i], i]
        known = g.told[k] > 0
        here[n] = beside / total if known else 0
        chance[n] = comes * (g.told[k] - DISCOUNT) / total if known else 0


@compiled
def tell(g: Guessing, k: int) -> None:
    """The next meeting was told to be of class k, or not told, if that is negative."""
    if k < 0:
        g.numbers[SILENT] += 1
        return
    if g.told[k]:
        home, used, likeliest = g.lives[k], g.numbers[USED], 0.0
        for i in range(used):
            g.weight[i] = g.rates[home[i], i]
            g.guests[home[i], i] += 1
            likeliest = max(likeliest, g.weight[i])
        for i in range(used):
            g.weight[i] /= likeliest
    else:
        _divide(g, k)
    g.told[k] += 1
    g.numbers[LAST], g.numbers[SILENT] = k, 0


@compiled
def _divide(g: Guessing, k: int) -> None:
    """Every guess is divided by where the new class may live, and then they are thinned."""
    (E, N), used = g.guests.shape, g.numbers[USED]
    part, whose, where = np.empty(N * E), np.empty(N * E, np.int64), np.empty(N * E, np.int8)
    parts, likeliest = 0, 0.0
    for i in range(used):
        homes = 0  # where nobody lives yet
        for e in range(E):
            homes += g.tables[e, i] == 0
        for e in range(E):
            opens = g.rates[e, i] * (CONCENTRATION + DISCOUNT * g.tables[e, i])
            if g.tables[e, i] == 0:
                opens *= homes
                homes = 0  # the first stands for all
            if opens > 0:
                part[parts], whose[parts], where[parts] = opens, i, e
                likeliest = max(likeliest, opens)
                parts += 1
    part = part[:parts] / likeliest
    step, whole, before = 0.0, 0, -1
    if parts > N:  # find c, from above
        step = part.sum() / N
        while whole != before:
            before, whole, rest = whole, 0, 0.0
            for n in range(parts):
                if part[n] >= step:
                    whole += 1
                else:
                    rest += part[n]
            step = rest / max(N - whole, 1)
    kept, passed, used = np.empty(N, np.int64), 0.0, 0
    until = FIRST * step
    for n in range(parts):
        weighs = part[n]
        if weighs < step:
            passed += weighs
            if passed <= until:
                continue
            until, weighs = until + step, step
        if used < N:
            kept[used], g.weight[used] = n, weighs
            used += 1
    g.weight[used:] = 0
    came, homes_now = whose[kept[:used]], where[kept[:used]]
    row = np.empty(N)
    for table in (g.guests, g.tables):
        for e in range(E):
            row[:] = table[e]
            for i in range(used):
                table[e, i] = row[came[i]] + (homes_now[i] == e)
    lived = np.empty(N, np.int8)
    for other in range(len(g.lives)):
        if g.told[other]:
            lived[:] = g.lives[other]
            for i in range(used):
                g.lives[other, i] = lived[came[i]]
    g.lives[k, :used] = homes_now
    g.numbers[USED] = used


@compiled
def follow(g: Guessing, given: Array) -> None:
    """Live through a sequence of labels [T]."""
    nobody, nothing = np.empty(0, np.int64), np.empty(0)
    for k in given:
        hear(g, nobody, nothing, nothing)  # for the rates
        tell(g, k)


@compiled
def guess_along(g: Guessing, given: Array, here: Array, chance: Array) -> None:
    """Live through a sequence of labels [T], and fill in what all classes hear before each, [T, K]."""
    opened = np.empty(len(g.lives), np.int64)
    heard = np.empty((2, len(g.lives)))
    classes = 0
    for t in range(len(given)):
        hear(g, opened[:classes], heard[0], heard[1])
        for n in range(classes):
            here[t, opened[n]], chance[t, opened[n]] = heard[0, n], heard[1, n]
        k = given[t]
        if k >= 0 and not g.told[k]:
            opened[classes] = k
            classes += 1
        tell(g, k)
