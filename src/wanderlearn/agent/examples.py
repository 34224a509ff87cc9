"""The live memory of Online MatchingNet: every labelled example."""

from collections.abc import Mapping
from math import log
from typing import Any

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
from wanderlearn.agent.rows import LiveRows
from wanderlearn.learners.answer import CERTAINLY_NEW
from wanderlearn.learners.matchingnet import FLOOR, OnlineMatchingNet

__all__ = ["LiveExamples"]


class LiveExamples(LiveRows[OnlineMatchingNet]):
    """The features that were told, with their slots. What is told without a label leaves nothing behind.

    Forgetting a class drops its examples. Merging gives the examples of one class to the other.
    """

    def __init__(self, learner: OnlineMatchingNet) -> None:
        super().__init__(learner)
        self.features = np.zeros((0, learner.feature_dim), np.float32)  # [room, D]

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
