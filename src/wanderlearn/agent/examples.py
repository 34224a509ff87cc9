"""The live memory of Online MatchingNet: every labelled example."""

from collections.abc import Mapping
from math import log
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from wanderlearn.agent.memory import (
    Floats,
    Reading,
    fitting,
    nearest_of_each,
    softmax,
    squared_distances,
    with_room,
)
from wanderlearn.learners.answer import CERTAINLY_NEW
from wanderlearn.learners.matchingnet import FLOOR, OnlineMatchingNet

__all__ = ["LiveExamples"]


class LiveExamples:
    """The features that were told, with their slots. What is told without a label leaves nothing behind.

    Forgetting a class drops its examples. Merging gives the examples of one class to the other.
    """

    def __init__(self, learner: OnlineMatchingNet) -> None:
        self.learner = learner
        self.classes = 0
        self.kept = 0
        self.moment = object()
        self.features = np.zeros((0, learner.feature_dim), np.float32)  # [room, D]
        self.slots = np.zeros(0, np.int64)  # [room]

    def look(self, feature: Floats, afresh: bool = False) -> Reading:
        """Compare with every example."""
        del afresh  # there is no context
        return self.read(feature)

    def read(self, trace: Floats) -> Reading:
        """What is to be said now of a meeting."""
        feature = trace
        learner, slots = self.learner, self.slots[: self.kept]
        threshold, scale = float(learner.beta.detach()), float(learner.gamma.detach())
        if not self.classes:
            nothing = np.zeros(0, np.float32)
            return Reading(nothing, nothing, CERTAINLY_NEW, np.inf, threshold, feature, self.moment)
        if learner.config.similarity == "euclidean":
            distance = squared_distances(self.features[: self.kept], feature)  # [N]
        else:
            kept = torch.from_numpy(self.features[: self.kept])[None]  # [1, N, D]
            distance = learner.distance(torch.from_numpy(feature)[None, None], kept)[0, 0].numpy()  # [N]
        # p(c) = sum_i softmax_i(-d_i) 1[label_i = c]
        p = np.bincount(slots, softmax(-distance), self.classes).astype(np.float32)  # [n]
        nearest = float(distance.min())
        novelty = max(log(FLOOR), (nearest - threshold) / scale)
        distances = nearest_of_each(distance, slots, self.classes)
        scores = np.log(np.maximum(p, FLOOR))
        return Reading(scores, distances, novelty, nearest, threshold, feature, self.moment)

    def feature_of(self, trace: Floats) -> Floats:
        """The encoder's feature of a meeting."""
        return trace

    def meet(self, trace: Floats, slot: int | None, reading: Reading | None = None) -> None:
        """Keep the example, if its class is told."""
        del reading
        if slot is not None:
            self.name(trace, slot)

    def name(self, trace: Floats, slot: int) -> None:
        """Keep the example."""
        self.features, self.slots = with_room(self.features, self.kept), with_room(self.slots, self.kept)
        self.features[self.kept], self.slots[self.kept] = trace, slot
        self.kept += 1
        self.classes = max(self.classes, slot + 1)
        self.moment = object()

    def forget(self, slot: int) -> None:
        """Drop the examples of a class. The last class moves into its slot."""
        stays = self.slots[: self.kept] != slot  # [N]
        self.features, self.slots = self.features[: self.kept][stays], self.slots[: self.kept][stays]
        self.kept, self.classes = len(self.slots), self.classes - 1
        self.slots[self.slots == self.classes] = slot
        self.moment = object()

    def merge(self, kept: int, gone: int) -> None:
        """Give the examples of one class to the other."""
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

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The examples."""
        return {"features": self.features[: self.kept], "slots": self.slots[: self.kept]}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], classes: int) -> None:
        """Take over what `arrays` gave."""
        fitting(arrays, self.arrays())
        features, slots = arrays["features"], arrays["slots"]
        if len(features) != len(slots) or not np.array_equal(np.unique(slots), np.arange(classes)):
            raise ValueError(f"its {len(slots)} examples are not of its {classes} labels")
        self.features, self.slots, self.kept, self.classes = features, slots, len(slots), classes
        self.moment = object()
