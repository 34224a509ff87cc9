"""The guesses of a live memory at which classes live in one environment: `learners/guesses.py`, in place."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.agent.memory import Floats, with_room
from wanderlearn.learners.guesses import UNLIKELY
from wanderlearn.learners.guessing import (
    CONCENTRATION,
    DISCOUNT,
    ENVIRONMENTS,
    NOBODY,
    Guessing,
    follow,
    hear,
    no_guessing,
    take_seats,
)
from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["LiveGuesses", "LiveHeard"]

Ints = npt.NDArray[np.int64]
NAME = "guess_"  # what the names of arrays begin with


class LiveHeard(NamedTuple):
    """What n classes hear, as long as nothing changes."""

    moment: object
    here: Floats  # [n] how surely each lives in this environment
    next: Floats  # [n] log of how likely each is met next, as a multiple of one in n
    crowd: Floats  # [3] meetings and classes of this environment, and how often it would open a new one


class LiveGuesses:
    """Guesses that change in place. After a change by hand they are those that the window alone leads to."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.now = no_guessing(0, most)
        self.ready: LiveHeard | None = None

    def heard(self, moment: object, told: Floats, recent: npt.NDArray[np.bool_]) -> LiveHeard:
        """What is heard by classes told so often; that it is here only by the recent."""
        if self.ready is not None and self.ready.moment is moment:
            return self.ready
        found = np.zeros((2, len(told)))
        self._make_room(len(told))
        hear(self.now, np.arange(len(told)), *found)
        here, chance = found.astype(np.float32)  # [n] each
        here *= recent
        guests, tables = float(here @ told), float(here.sum())
        opens = (CONCENTRATION + DISCOUNT * tables) / (CONCENTRATION + guests)
        crowd = np.array([np.log1p(guests), np.log1p(tables), np.log(opens)], np.float32)
        chance *= np.count_nonzero(chance)
        self.ready = LiveHeard(moment, here, np.log(chance + np.float32(UNLIKELY)), crowd)
        return self.ready

    def met(self, slot: int) -> None:
        """A meeting was told to be of a class, or UNLABELED."""
        self._make_room(slot + 1)
        follow(self.now, np.array([slot]))

    def begin_again(self, slots: Ints) -> None:
        """Names have changed: live through these meetings again, oldest first (negative: not told)."""
        self.now = no_guessing(int(slots.max(initial=UNLABELED)) + 1, self.most)
        follow(self.now, slots)

    def _make_room(self, classes: int) -> None:
        room = len(self.now.told)
        if room < classes:
            lives, told = with_room(self.now.lives, room), with_room(self.now.told, room)
            self.now = self.now._replace(lives=lives, told=told)
            self._make_room(classes)

    def arrays(self, classes: int) -> dict[str, npt.NDArray[Any]]:
        """All that is kept."""
        self._make_room(classes)
        parts = self.now._asdict() | {"lives": self.now.lives[:classes], "told": self.now.told[:classes]}
        return {NAME + name: part for name, part in parts.items() if name != "seats"}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what `arrays` gave."""
        parts = {name: arrays[NAME + name] for name in Guessing._fields if name != "seats"}
        now = Guessing(seats=np.zeros_like(self.now.seats), **parts)
        used, last, _ = now.numbers
        if not (0 < used <= self.most and NOBODY <= last < len(now.told)) or len(now.lives) != len(now.told):
            raise ValueError(f"its guesses are {used} of {self.most}, about {len(now.told)} classes")
        if not ((now.lives >= 0) & (now.lives < ENVIRONMENTS)).all():
            raise ValueError(f"its classes do not live in {ENVIRONMENTS} environments")
        take_seats(now)
        self.now = now
        self.ready = None
