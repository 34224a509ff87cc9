"""Guesses at which classes live in one environment: a particle filter over what was told (a sketch).

The world has E environments. After every meeting it stays in one with chance s, or else chooses any; every
class lives in one of them, and there classes are met as in a Chinese restaurant with discount a and
concentration c. A guess says where every class lives. A meeting of class k, told before n_k times, where
the guess has n_e meetings of K_e classes in its environment e:

    chance    = T(here, e) (n_k - a) / (n_e + c)                known
                sum_e T(here, e) (c + a K_e) / (n_e + c)        new; e is drawn by the terms of the sum
    T(e, e')  = s^g [e = e'] + (1 - s^g) / E                    g meetings after the last that was told

Guesses weigh by the chances of all that was met. When few of them weigh much they are drawn anew by weight.
After every meeting each reconsiders where some classes live, given where all others do (Gibbs): those met
last, which later meetings tell more of, and some others.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import numpy.typing as npt

from wanderlearn.learners.company import CONCENTRATION, DISCOUNT

__all__ = ["guessed"]

F = TypeVar("F", bound=Callable[..., Any])
Array = npt.NDArray[Any]
ENVIRONMENTS: Final = 5
STAY: Final = 0.8
LEAST: Final = 1e-12


def _compiled(function: F) -> F:
    return cast(F, numba.njit(cache=True)(function))


def guessed(
    label: npt.NDArray[np.int64], classes: int, guesses: int = 64, moves: int = 8, seed: int = 0
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Before every meeting of `label` [B, T] (negative: not told), of every class, by what was told before.

    How surely it lives where we are [B, T, K], how likely it is met next [B, T, K], and how likely something
    new is [B, T].
    """
    (B, T), K = label.shape, classes
    here, chance, new = np.zeros((B, T, K)), np.zeros((B, T, K)), np.ones((B, T))
    size = _arrangements(T + 2, K + 2)
    for row in range(B):
        _guess(label[row], guesses, moves, seed, size, here[row], chance[row], new[row])
    return here.astype(np.float32), chance.astype(np.float32), new.astype(np.float32)


def _arrangements(meetings: int, classes: int) -> npt.NDArray[np.float64]:
    """Log of the chance of 0, 1, ... meetings of 0, 1, ... classes, but for how often each of them is met."""
    seats = np.log(CONCENTRATION + np.maximum(np.arange(meetings) - 1, 0)).cumsum()  # [meetings]
    opened = np.log(CONCENTRATION + DISCOUNT * np.maximum(np.arange(classes) - 1, 0)).cumsum()  # [classes]
    arrangements: npt.NDArray[np.float64] = opened - seats[:, None]  # [meetings, classes]
    return arrangements


@_compiled
def _drawn(weight: Array) -> int:
    """One place, by weight."""
    left = np.random.random() * weight.sum()
    for place in range(len(weight) - 1):
        left -= weight[place]
        if left < 0:
            return place
    return len(weight) - 1


@_compiled
def _guess(
    label: Array, guesses: int, moves: int, seed: int, size: Array, here: Array, chance: Array, new: Array
) -> None:
    T, (K, E) = len(label), (here.shape[1], ENVIRONMENTS)
    np.random.seed(seed)
    lives = np.zeros((guesses, K), np.int64)
    meetings, tables = np.zeros((guesses, E), np.int64), np.zeros((guesses, E), np.int64)
    weight, part = np.full(guesses, 1.0 / guesses), np.zeros(E)
    told, known = np.zeros(K, np.int64), np.zeros(K, np.int64)  # how often; the slots in order of naming
    met, links, at = np.zeros(T, np.int64), np.zeros(T), np.zeros((K, T), np.int64)  # of what was told
    opened = count = gap = 0
    for t in range(T):
        gap += 1
        stays = STAY**gap
        leaves = (1 - stays) / E
        if count:
            new[t] = 0
            for h in range(guesses):
                now = lives[h, met[count - 1]]
                for n in range(opened):
                    k = known[n]
                    e = lives[h, k]
                    here[t, k] += weight[h] * (e == now)
                    share = (told[k] - DISCOUNT) / (meetings[h, e] + CONCENTRATION)
                    chance[t, k] += weight[h] * (leaves + stays * (e == now)) * share
                for e in range(E):
                    opens = (CONCENTRATION + DISCOUNT * tables[h, e]) / (meetings[h, e] + CONCENTRATION)
                    new[t] += weight[h] * (leaves + stays * (e == now)) * opens
        k = label[t]
        if k < 0:
            continue
        for h in range(guesses):  # what was told: how likely was that, and where does it live?
            e = lives[h, k]
            if count:
                now = lives[h, met[count - 1]]
                if told[k]:
                    weight[h] *= (leaves + stays * (e == now)) / (meetings[h, e] + CONCENTRATION)
                else:
                    for e in range(E):
                        opens = (CONCENTRATION + DISCOUNT * tables[h, e]) / (meetings[h, e] + CONCENTRATION)
                        part[e] = (leaves + stays * (e == now)) * opens
                    weight[h] *= part.sum()
                    e = _drawn(part)
            lives[h, k] = e
            meetings[h, e] += 1
            tables[h, e] += told[k] == 0
        if not told[k]:
            known[opened] = k
            opened += 1
        met[count], links[count], at[k, told[k]] = k, np.log(1 + stays / leaves), count
        told[k] += 1
        count += 1
        gap = 0
        weight /= max(weight.sum(), LEAST)
        if guesses * (weight * weight).sum() > 2:  # half of them could as well not be there
            chosen, total, place = np.zeros(guesses, np.int64), weight[0], 0
            mark = np.random.random() / guesses
            for h in range(guesses):
                while mark > total and place < guesses - 1:
                    place += 1
                    total += weight[place]
                chosen[h] = place
                mark += 1.0 / guesses
            lives, meetings, tables = lives[chosen], meetings[chosen], tables[chosen]
            weight[:] = 1.0 / guesses
        for h in range(guesses):
            for move in range(moves):
                k = known[np.random.randint(opened)]
                if move < 2 and count > move:
                    k = met[count - 1 - move]
                elif move == 2:
                    k = met[np.random.randint(count)]
                e = lives[h, k]
                meetings[h, e] -= told[k]
                tables[h, e] -= 1
                for e in range(E):
                    n, guests = tables[h, e], meetings[h, e]
                    part[e] = size[guests + told[k], n + 1] - size[guests, n]
                for n in range(told[k]):
                    i = at[k, n]
                    if i > 0 and met[i - 1] != k:
                        part[lives[h, met[i - 1]]] += links[i]
                    if i + 1 < count and met[i + 1] != k:
                        part[lives[h, met[i + 1]]] += links[i + 1]
                e = _drawn(np.exp(part - part.max()))
                lives[h, k] = e
                meetings[h, e] += told[k]
                tables[h, e] += 1
