"""What live memories have in common whose every row (an example, a cluster) belongs to a class or to none."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from wanderlearn.agent.memory import Floats, Reading

__all__ = ["LiveRows"]

LearnerT = TypeVar("LearnerT")


class LiveRows(ABC, Generic[LearnerT]):
    """Rows with the slots of their classes. There is no context: a meeting is its feature."""

    def __init__(self, learner: LearnerT) -> None:
        self.learner = learner
        self.classes = 0
        self.kept = 0  # rows in use
        self.moment = object()
        self.slots: npt.NDArray[np.int64] = np.zeros(0, np.int64)  # [room]

    def look(self, feature: Floats, afresh: bool = False) -> Reading:
        """Compare with every row."""
        del afresh  # there is no context
        return self.read(feature)

    @abstractmethod
    def read(self, trace: Floats) -> Reading:
        """What is to be said now of a meeting."""

    def feature_of(self, trace: Floats) -> Floats:
        """The encoder's feature of a meeting."""
        return trace

    def forget(self, slot: int) -> None:
        """Drop the rows of a class. The last class moves into its slot."""
        stays = self.slots[: self.kept] != slot  # [N]
        left = {name: part[stays] for name, part in self.arrays().items()}
        last = self.classes - 1
        left["slots"][left["slots"] == last] = slot
        self.restore(left, last)

    def merge(self, kept: int, gone: int) -> None:
        """Give the rows of one class to the other. The last class moves into the free slot."""
        slots = self.slots[: self.kept]
        slots[slots == gone] = kept
        self.classes -= 1
        slots[slots == self.classes] = gone
        self.moment = object()

    def copy(self) -> Self:
        """A copy that shares nothing that changes."""
        twin = type(self)(self.learner)
        twin.restore({name: part.copy() for name, part in self.arrays().items()}, self.classes)
        return twin

    @abstractmethod
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All that must be saved. Not copies."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], classes: int) -> None:
        """Take over what `arrays` gave. Raises ValueError if it does not fit."""
