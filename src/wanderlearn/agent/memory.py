"""What an agent needs of a learner's memory: to look without a trace, to write in place, to grow.

A learner's `step` returns a whole new state, which is right for training and costs a copy of everything.
A live memory holds the same numbers, changes only what a meeting touches, has one row per class (or example,
or cluster) in use and room for more, which doubles when it is full. That it answers as `step` does is tested.

What crosses this border is numpy's: for a few dozen numbers its calls cost a fraction of torch's, and a live
meeting feels every call.
"""

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from wanderlearn.learners.recurrent import LSTMState

__all__ = [
    "CHUNK",
    "Floats",
    "LiveMemory",
    "Reading",
    "fitting",
    "nearest_of_each",
    "sigmoid",
    "sigmoid_of",
    "softmax",
    "squared_distances",
    "with_room",
]

Floats = npt.NDArray[np.float32]

ROOM: Final = 64  # rows a memory begins with
CHUNK: Final = 1024  # rows compared at a time, to stay inside the cache


class Reading(NamedTuple):
    """What a memory makes of one meeting, and all it needs to write it later."""

    scores: Floats  # [n] one logit per class
    distances: Floats | None  # [n] to the nearest thing kept of each class; None: minus the scores
    novelty: float  # above 0: new
    distance: float  # to the nearest thing kept: what the threshold is for
    threshold: float  # where "known" ends
    trace: Floats  # [w] the meeting as it was met, in one row: feature, context and the like
    moment: object  # the memory's moment when it was read: the same object means nothing has changed since
    after: LSTMState | None = None  # the context once this has been met, where there is a context


class LiveMemory(Protocol):
    """A memory of `classes` classes, in slots 0 to `classes` - 1; writing to the next slot opens it."""

    classes: int

    def look(self, feature: Floats, afresh: bool = False) -> Reading:
        """Read without changing anything; `afresh`: as if nothing had been met before (memory is kept)."""
        ...

    def read(self, trace: Floats) -> Reading:
        """What is to be said now of a meeting as it was met, in its own context."""
        ...

    def feature_of(self, trace: Floats) -> Floats:
        """The encoder's feature of a meeting."""
        ...

    def meet(self, trace: Floats, slot: int | None, reading: Reading | None = None) -> None:
        """Write a meeting, with its class or without, and move the context on.

        `reading`, if it is at hand, saves work when nothing has changed since.
        """
        ...

    def name(self, trace: Floats, slot: int) -> None:
        """Write the class of a meeting that was written without one. The context stays."""
        ...

    def forget(self, slot: int) -> None:
        """Drop a class. The last class moves into its slot."""
        ...

    def merge(self, kept: int, gone: int) -> None:
        """Put what is kept of class `gone` into class `kept`. The last class moves into the free slot."""
        ...

    def copy(self) -> Self:
        """A copy that shares nothing that changes."""
        ...

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All that must be saved. Not copies."""
        ...

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], classes: int) -> None:
        """Take over what `arrays` gave. Raises ValueError if it does not fit."""
        ...


def with_room(rows: npt.NDArray[Any], used: int) -> npt.NDArray[Any]:
    """The rows, moved to twice the room if all of it is used."""
    if used < len(rows):
        return rows
    bigger = np.zeros((max(ROOM, 2 * len(rows)), *rows.shape[1:]), rows.dtype)
    bigger[:used] = rows[:used]
    return bigger


def fitting(arrays: Mapping[str, npt.NDArray[Any]], like: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise ValueError unless these arrays have the names, types and row shapes of `like`."""
    if arrays.keys() != like.keys():
        raise ValueError(f"it holds {', '.join(arrays) or 'nothing'} instead of {', '.join(like)}")
    for name, array in arrays.items():
        wanted = like[name]
        if array.dtype != wanted.dtype or array.shape[1:] != wanted.shape[1:]:
            raise ValueError(f"its {name} is {array.dtype} {list(array.shape)}")


def squared_distances(rows: Floats, x: Floats) -> Floats:
    """||row - x||^2 of every row, some rows at a time."""
    out = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), CHUNK):
        away = rows[start : start + CHUNK] - x
        np.einsum("nd,nd->n", away, away, out=out[start : start + CHUNK])
    return out


def softmax(scores: Floats) -> Floats:
    """exp(scores) as shares of their sum."""
    e: Floats = np.exp(scores - scores.max())
    e /= e.sum()
    return e


def sigmoid(z: Floats) -> Floats:
    """1 / (1 + exp(-z)), exact also near 0."""
    e: Floats = np.exp(np.minimum(-z, np.float32(80)))  # exp(90) would overflow, and the quotient is 0 anyway
    e += 1
    np.reciprocal(e, out=e)
    return e


def sigmoid_of(z: float) -> float:
    """The same for one number."""
    return 1 / (1 + math.exp(min(-z, 700.0)))


def nearest_of_each(distance: Floats, slots: npt.NDArray[np.int64], classes: int) -> Floats:
    """The least distance of the rows of each class."""
    far = np.full(classes, np.inf, np.float32)
    np.minimum.at(far, slots, distance)
    return far
