"""The company classes keep, live: the walk of `learners/company.py` over the meetings of a ring.

Meeting t is in row t modulo the window. How alike two meetings are and how long apart they were never
changes, so a meeting adds one row and one column to what is kept of all pairs. Names do change: then the
pairs of those meetings are asked anew. The walk sees memory and not what is looked at, so it is taken once
per change.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.agent.memory import ROOM, Floats, sigmoid
from wanderlearn.learners.company import FLOOR, HOPS, NOBODY_LIKE_IT, QUICKER, TINY, Company
from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["LiveCompany", "Walked"]

Ints = npt.NDArray[np.int64]


class Walked(NamedTuple):
    """What the walk says of n classes, as long as nothing changes."""

    moment: object
    walks: Floats  # [H, n] log of the shares after each hop


class LiveCompany:
    """Pairs of the last meetings: are they of one class, and how near in time were they?

    Meetings whose class was forgotten stay of one class, so that the walk leads others where it led before.
    """

    def __init__(self, company: Company, window: int) -> None:
        pace, likeness = (part.detach().double().numpy() for part in (company.pace, company.likeness))
        self.window = window
        self.begin, self.on = (float(log) for log in -np.log1p(np.exp(-QUICKER * pace)))
        self.sharpness, self.threshold = float(likeness[0]), float(likeness[1])
        self.perhaps = self.same = self.near = np.zeros((0, 0), np.float32)  # [room, room]
        self.ready: Walked | None = None

    def restore(self) -> None:
        """Memory is another now. Its pairs are compared when somebody asks: a copy is often for nobody."""
        self.perhaps = self.same = self.near = np.zeros((0, 0), np.float32)
        self.ready = None

    def met(self, rows: Ints, keys: Floats, slots: Ints, time: int) -> None:
        """These rows were written, and there were `time` meetings; `keys` and `slots` are of all N rows."""
        (N, V, _), room = keys.shape, len(self.same)
        if not room:
            rows = np.arange(N)  # nothing is known of the others either
        if room < N:
            room = min(self.window, max(ROOM, N, 2 * room))
            self.perhaps, self.same, self.near = (
                _wider(square, room) for square in (self.perhaps, self.same, self.near)
            )
        flat = keys.reshape(N, -1)  # [N, V D]
        alike = flat[rows] @ flat.T  # [r, N]
        alike /= V
        ago = self._ago(N, time)  # [N]
        apart = np.abs(ago[rows, None] - ago)  # [r, N]
        _write(self.perhaps, rows, sigmoid(self.sharpness * (alike - np.float32(self.threshold))))
        _write(self.near, rows, _power(self.on, apart))
        self.named(rows, slots)

    def named(self, rows: Ints, slots: Ints) -> None:
        """The classes of these rows are others now."""
        if not len(self.same):
            return
        told = slots != UNLABELED  # [N]
        equal = slots[rows, None] == slots  # [r, N]
        same = np.where(told[rows, None] & told, equal, self.perhaps[rows, : len(slots)])  # [r, N]
        _write(self.same, rows, same)

    def walked(self, moment: object, keys: Floats, slots: Ints, classes: int, time: int) -> Walked:
        """The company of so many classes now."""
        if self.ready is not None and self.ready.moment is moment:
            return self.ready
        if not len(self.same):
            self.met(np.arange(len(slots)), keys, slots, time)
        N, n = len(slots), classes
        same, near = self.same[:N, :N], self.near[:N, :N]  # both are symmetric
        named = np.flatnonzero(slots >= 0)  # [L]
        names = slots[named]  # [L]
        likes: Floats = np.maximum(same @ np.ones(N, np.float32), np.float32(NOBODY_LIKE_IT))  # [N]
        at = _scaled(_power(self.begin, self._ago(N, time) + 1))  # [N]
        shares = np.empty((HOPS + 1, n), np.float32)
        for hop in range(HOPS + 1):
            by_name = same @ (at / likes)  # [N]
            shares[hop] = np.bincount(names, by_name[named], n)
            if hop < HOPS:
                at = _scaled(near @ by_name)
        self.ready = Walked(moment, np.log(shares + np.float32(FLOOR)))
        return self.ready

    def _ago(self, rows: int, time: int) -> Ints:
        """How many meetings came after that of each row."""
        return (time - 1 - np.arange(rows)) % self.window


def _power(log: float, steps: Ints) -> Floats:
    chances: Floats = np.exp(np.float32(log) * steps.astype(np.float32))
    return chances


def _scaled(at: Floats) -> Floats:
    scaled: Floats = at / (at.sum() + np.float32(TINY))
    return scaled


def _wider(square: Floats, room: int) -> Floats:
    wider = np.zeros((room, room), np.float32)
    wider[: len(square), : len(square)] = square
    return wider


def _write(square: Floats, rows: Ints, values: Floats) -> None:
    """Rows and columns of a symmetric square."""
    square[rows, : values.shape[1]] = values
    square[: values.shape[1], rows] = values.T
