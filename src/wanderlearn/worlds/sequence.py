"""The data types of the benchmark: one sequence of meetings, and a batch of them for a learner."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["NEW", "UNLABELED", "Batch", "Ints", "Meetings", "target_of"]

UNLABELED: Final = -1  # in `given`: the name was not told
NEW: Final = -2  # in `target`: no labelled item of this class has been met before

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Meetings:
    """One sequence without its pixels: which picture is met when, and what is told about it.

    Classes are slots, numbered by first *labelled* appearance. Together with the collection the ids
    point into, this fixes a sequence exactly.
    """

    index: int  # which sequence of the world this is
    picture: Ints  # [T] row in Pictures.images
    truth: Ints  # [T] slot of the true class
    given: Ints  # [T] slot, or UNLABELED
    target: Ints  # [T] slot, or NEW
    environment: Ints  # [T] numbered by first appearance
    crop: Ints  # [T, 2] top-left corner (row, column) in the zero-padded picture
    occlusion: Ints  # [T, 2] top-left corner (row, column) of the grey box, or -1 for none

    def __len__(self) -> int:
        return len(self.picture)


class Batch(NamedTuple):
    """B sequences padded to a common T. Learners are shown `images` and `given`, never the rest."""

    images: Float[Tensor, "B T C H W"]  # in [-1, 1]
    given: Int[Tensor, "B T"]  # slot, or UNLABELED (also where padded)
    truth: Int[Tensor, "B T"]  # slot (0 where padded)
    target: Int[Tensor, "B T"]  # slot, or NEW (also where padded)
    valid: Bool[Tensor, "B T"]  # False where padded, always at the tail
    environment: Int[Tensor, "B T"]  # 0 where padded


def target_of(truth: Ints, given: Ints) -> Ints:
    """The right answer of every meeting: the slot, or NEW while its class has had no labelled item.

    Slots are numbered by first labelled appearance, so a class is known exactly when its slot is at
    most the highest slot told before.
    """
    told = np.concatenate(([UNLABELED], np.maximum.accumulate(given)[:-1]))
    return np.where(truth <= told, truth, NEW)
