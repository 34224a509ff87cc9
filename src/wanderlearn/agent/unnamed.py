"""What was met before, but never named, live: the signs of `learners/unnamed.py`."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.agent.memory import Floats, sigmoid
from wanderlearn.learners.unnamed import SIGNS, Unnamed
from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["LiveUnnamed"]


class _Free(NamedTuple):
    """The meetings that were told nothing, as long as nothing changes."""

    moment: object
    keys: Floats  # [U, V D]
    unnamed: Floats  # [U] how surely nobody has named its class


class LiveUnnamed:
    """How alike two meetings of one class are. Who is named already depends on memory alone."""

    def __init__(self, unnamed: Unnamed) -> None:
        a, b, c, d = unnamed.likeness.detach().numpy()
        self.of_told, self.of_now = (a, b), (c, d)
        self.ready: _Free | None = None

    def signs(self, moment: object, keys: Floats, slots: npt.NDArray[np.int64], met: Floats) -> Floats:
        """What they say of a meeting with the keys `met` [V, D]; `keys` [N, V, D] are those remembered."""
        ready = self.ready
        if ready is None or ready.moment is not moment:
            ready = self.ready = self._free(moment, keys, slots)
        if not len(ready.unnamed):
            return np.zeros(SIGNS, np.float32)
        slope, threshold = self.of_now
        like = sigmoid(slope * (ready.keys @ met.ravel() / len(met) - threshold))  # [U]
        unnamed = like * ready.unnamed  # [U]
        return np.array([np.log1p(unnamed.sum()), unnamed.max(), np.log1p(like.sum())], np.float32)

    def _free(self, moment: object, keys: Floats, slots: npt.NDArray[np.int64]) -> _Free:
        flat, views = keys.reshape(len(keys), -1), keys.shape[1]
        free, told = flat[slots == UNLABELED], flat[slots >= 0]  # [U, V D], [L, V D]
        if not (len(free) and len(told)):
            return _Free(moment, free, np.ones(len(free), np.float32))
        slope, threshold = self.of_told
        named = sigmoid((slope * (free @ told.T / views - threshold)).max(1))  # [U]
        return _Free(moment, free, 1 - named)
