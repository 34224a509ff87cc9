"""The arithmetic of `guesses.py` for one sequence, in place and compiled: whole sequences and live memories.

It is in the order of the steps of `guesses.py`, so that both keep the same guesses, to the bit.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.compiling import compiled, summing

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
    "take_seats",
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
    seats: npt.NDArray[np.float64]  # [E, N] weight / (guests + c)
    numbers: npt.NDArray[np.int64]  # guesses of any weight, the class told as the last, meetings since that


def no_guessing(slots: int, most: int) -> Guessing:
    """Before anything was told there is one guess, of nothing; later there are so many at most."""
    weight = np.zeros(most)
    weight[0] = 1
    guests, tables, seats = np.zeros((3, ENVIRONMENTS, most))
    numbers = np.array([1, NOBODY, 0])
    g = Guessing(np.zeros((slots, most), np.int8), weight, guests, tables, np.zeros(slots), seats, numbers)
    take_seats(g)
    return g


@compiled
def take_seats(g: Guessing) -> None:
    """Fill `seats` in, once weights or guests have changed."""
    for e in range(len(g.guests)):
        for i in range(len(g.weight)):
            g.seats[e, i] = g.weight[i] / (g.guests[e, i] + CONCENTRATION)


@compiled
def _moves(g: Guessing) -> tuple[float, float]:
    """The chance of coming to any one environment, and what is added to it where the last one told lives."""
    stays = STAY ** (g.numbers[SILENT] + 1)
    return (1 - stays) / len(g.guests), stays


@summing
def _sums(home: Array, now: Array, weight: Array, seats: Array) -> tuple[float, float, float]:
    """Of one class: its seats, those where the last one told lives, and the weight of guesses that say so."""
    seated, beside, here = 0.0, 0.0, 0.0
    one, two, three, four, five = seats[0], seats[1], seats[2], seats[3], seats[4]
    for i in range(len(weight)):  # without a branch, so that several are done at once
        e = home[i]
        seat = one[i] * (e == 0) + two[i] * (e == 1) + three[i] * (e == 2) + four[i] * (e == 3)
        seat += five[i] * (e == 4)
        same = np.float64(e == now[i])
        seated += seat
        beside += seat * same
        here += weight[i] * same
    return seated, beside, here


@compiled
def _sum(g: Guessing, classes: Array, sums: Array) -> None:
    """What these classes will hear until something is told again, as sums over all guesses, [n, 3]."""
    used, last = g.numbers[USED], max(g.numbers[LAST], 0)
    now = g.lives[last, :used]
    for n in range(len(classes)):
        sums[n] = _sums(g.lives[classes[n], :used], now, g.weight[:used], g.seats)


@compiled
def hear(g: Guessing, classes: Array, here: Array, chance: Array) -> None:
    """What these classes hear before the next meeting, one number each."""
    sums = np.empty((len(classes), 3))
    _sum(g, classes, sums)
    _heard(g, classes, sums, here, chance)


@compiled
def _heard(g: Guessing, classes: Array, sums: Array, here: Array, chance: Array) -> None:
    (leaves, stays), total = _moves(g), g.weight.sum()
    for n in range(len(classes)):
        told = g.told[classes[n]]
        seated, beside, same = sums[n]
        here[n] = same / total if told else 0
        chance[n] = (leaves * seated + stays * beside) * (told - DISCOUNT) / total if told else 0


@compiled
def tell(g: Guessing, k: int) -> None:
    """The next meeting was told to be of class k, or not told, if that is negative."""
    if k < 0:
        g.numbers[SILENT] += 1
        return
    if g.told[k]:
        (leaves, stays), home, used = _moves(g), g.lives[k], g.numbers[USED]
        now = g.lives[g.numbers[LAST]]
        for i in range(used):
            g.weight[i] = g.seats[home[i], i] * (leaves + stays * (home[i] == now[i]))
            g.guests[home[i], i] += 1
        g.weight[:used] /= _most(g.weight[:used])
    else:
        _divide(g, k)
    g.told[k] += 1
    g.numbers[LAST], g.numbers[SILENT] = k, 0
    take_seats(g)


@compiled
def _divide(g: Guessing, k: int) -> None:
    """Every guess is divided by where the new class may live, and then they are thinned."""
    (E, N), used = g.guests.shape, g.numbers[USED]
    part, step = _parts(g), 0.0
    if np.count_nonzero(part) > N:  # find c, from above
        whole, before, step = 0.0, -1.0, part.sum() / N
        while whole != before:
            before = whole
            whole, rest = _split(part.reshape(-1), step)
            step = rest / max(N - whole, 1)
    came, home, n = np.empty(N, np.uint64), np.empty(N, np.int8), 0
    passed, until = 0.0, FIRST * step
    for i in range(used):
        for e in range(E):
            weighs = part[i, e]
            if weighs < step:
                passed += weighs
                if passed <= until:
                    continue
                until, weighs = until + step, step
            if n < N and weighs:
                came[n], home[n], g.weight[n] = i, e, weighs
                n += 1
    g.weight[n:] = 0
    came, home = came[:n], home[:n]
    for table in (g.guests, g.tables):
        for e in range(E):
            _follow_those(table[e], came)
            for i in range(n):
                table[e, i] += home[i] == e
    for other in range(len(g.lives)):
        if g.told[other]:
            _follow_those(g.lives[other], came)
    g.lives[k, :n] = home
    g.numbers[USED] = n


@compiled
def _follow_those(row: Array, came: Array) -> None:
    """Every guess takes over what the one that it came from has in this row."""
    before = row.copy()
    for i in range(len(came)):
        row[i] = before[came[i]]


@compiled
def _parts(g: Guessing) -> Array:
    """How likely each guess with each home for a new class is, [n, E]; the likeliest has 1."""
    E, used = len(g.guests), g.numbers[USED]
    (leaves, stays), last = _moves(g), max(g.numbers[LAST], 0)
    now, part, homes = g.lives[last], np.empty((used, E)), np.zeros(used)
    for e in range(E):  # where nobody lives yet
        for i in range(used):
            homes[i] += g.tables[e, i] == 0
    for e in range(E):
        for i in range(used):  # without a branch, as above
            tables = g.tables[e, i]
            empty = tables == 0
            share = CONCENTRATION + DISCOUNT * tables
            opens = g.seats[e, i] * (leaves + stays * (now[i] == e)) * share
            part[i, e] = opens * (homes[i] * empty + (not empty))
            homes[i] *= not empty  # the first stands for all
    part /= _most(part.reshape(-1))
    return part


@summing
def _most(part: Array) -> float:
    most = 0.0
    for weighs in part:
        most = max(most, weighs)
    return most


@summing
def _split(part: Array, step: float) -> tuple[float, float]:
    """How many weigh so much, and what all others weigh together."""
    whole, rest = 0.0, 0.0
    for weighs in part:
        heavy = np.float64(weighs >= step)
        whole += heavy
        rest += weighs * (1 - heavy)
    return whole, rest


@compiled
def follow(g: Guessing, given: Array) -> None:
    """Live through a sequence of labels [T]."""
    for k in given:
        tell(g, k)


@compiled
def guess_along(g: Guessing, given: Array, here: Array, chance: Array) -> None:
    """Live through a sequence of labels [T], and fill in what all classes hear before each, [T, K]."""
    slots, classes = len(g.lives), 0
    opened, sums, heard = np.empty(slots, np.int64), np.empty((slots, 3)), np.empty((2, slots))
    for t in range(len(given)):
        if t and given[t - 1] >= 0:
            _sum(g, opened[:classes], sums)
        _heard(g, opened[:classes], sums, heard[0], heard[1])
        for n in range(classes):
            here[t, opened[n]], chance[t, opened[n]] = heard[0, n], heard[1, n]
        k = given[t]
        if k >= 0 and not g.told[k]:
            opened[classes] = k
            classes += 1
        tell(g, k)
