"""The live memory of Online IMP: clusters, named and unnamed."""

from collections.abc import Mapping
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
from wanderlearn.learners.imp import OnlineIMP
from wanderlearn.learners.matchingnet import FLOOR
from wanderlearn.learners.self_writing import LENGTH_EPS
from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["LiveClusters"]


class LiveClusters(LiveRows[OnlineIMP]):
    """Means, how many joined them, and their slots (UNLABELED where a cluster has no name yet).

    Forgetting a class drops its clusters. Merging gives the clusters of one class to the other. A label told
    late lets the meeting join once more, now by name; the cluster it joined without a name stays as it is.
    """

    def __init__(self, learner: OnlineIMP) -> None:
        super().__init__(learner)
        self.mean = np.zeros((0, learner.feature_dim), np.float32)  # [room, D]
        self.items = np.zeros(0, np.float32)  # [room]

    def read(self, trace: Floats) -> Reading:
        """What is to be said now of a meeting."""
        feature = trace
        learner, slots = self.learner, self.slots[: self.kept]
        threshold, scale = float(learner.beta.detach()), float(learner.gamma.detach())
        if not self.classes:
            nothing = np.zeros(0, np.float32)
            return Reading(nothing, nothing, CERTAINLY_NEW, np.inf, threshold, feature, self.moment)
        distance = self._distances(feature)  # [N]
        # p(c) = sum_j softmax_j(-d_j / 2 sigma_j^2) 1[label_j = c]; the unnamed ones are counted last
        weight = softmax(self._closeness(distance, slots))  # [N]
        home = np.where(slots == UNLABELED, self.classes, slots)  # [N]
        p = np.bincount(home, weight, self.classes + 1).astype(np.float32)  # [n + 1]
        scores = np.log(np.maximum(p, FLOOR))  # [n + 1]
        nearest = float(distance.min())
        # u = max(log p(unnamed), (d_min - beta) / gamma)
        novelty = max(float(scores[-1]), (nearest - threshold) / scale)
        distances = nearest_of_each(distance, home, self.classes + 1)
        return Reading(scores[:-1], distances[:-1], novelty, nearest, threshold, feature, self.moment)

    def _distances(self, feature: Floats) -> Floats:
        """To all clusters."""
        mean = self.mean[: self.kept]  # [N, D]
        if self.learner.config.similarity == "cosine":
            lengths = np.linalg.norm(mean, axis=1, keepdims=True)  # [N, 1]
            mean = mean * (np.linalg.norm(feature) / np.maximum(lengths, LENGTH_EPS))
        return squared_distances(mean, feature)

    def _closeness(self, distance: Floats, slots: npt.NDArray[np.int64]) -> Floats:
        of_each = self.learner.closeness(
            torch.from_numpy(distance)[None, None], torch.from_numpy(slots)[None]
        )  # [1, 1, N]
        closeness: Floats = of_each[0, 0].numpy()
        return closeness

    def meet(self, trace: Floats, slot: int | None, reading: Reading | None = None) -> None:
        """Join a cluster or open one, as the learner chooses."""
        del reading
        n = self.kept
        slots, given = self.slots[:n], torch.tensor([UNLABELED if slot is None else slot])
        distance = self._distances(trace)  # [N]
        used = torch.ones(1, n, dtype=torch.bool)
        of_each, names = torch.from_numpy(distance)[None], torch.from_numpy(slots)[None]  # [1, N]
        home = int(self.learner.choose(of_each, used, names, given))
        if home == n:
            self._open()
        self.items[home] += 1
        self.mean[home] += (trace - self.mean[home]) / self.items[home]
        if slot is not None:
            self.slots[home] = slot
            self.classes = max(self.classes, slot + 1)
        self.moment = object()

    def name(self, trace: Floats, slot: int) -> None:
        """Join once more, now by name."""
        self.meet(trace, slot)

    def _open(self) -> None:
        n = self.kept
        self.mean, self.items = with_room(self.mean, n), with_room(self.items, n)
        self.slots = with_room(self.slots, n)
        self.mean[n], self.items[n], self.slots[n] = 0, 0, UNLABELED
        self.kept += 1

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The clusters."""
        n = self.kept
        return {"mean": self.mean[:n], "items": self.items[:n], "slots": self.slots[:n]}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], classes: int) -> None:
        """Take over what `arrays` gave."""
        fitting(arrays, self.arrays())
        mean, items, slots = arrays["mean"], arrays["items"], arrays["slots"]
        named = np.unique(slots[slots != UNLABELED])
        if not len(mean) == len(items) == len(slots) or not np.array_equal(named, np.arange(classes)):
            raise ValueError(f"its {len(slots)} clusters are not of its {classes} labels")
        self.mean, self.items, self.slots = mean, items, slots
        self.kept, self.classes = len(slots), classes
        self.moment = object()
