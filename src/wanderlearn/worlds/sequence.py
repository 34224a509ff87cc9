"""The data types of the benchmark: one sequence of meetings, and a batch of them for a learner."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wanderlearn.worlds.frames import Frames

__all__ = ["NEW", "UNLABELED", "Background", "Batch", "Ints", "Meetings", "stack", "target_of"]

UNLABELED: Final = -1  # in `given`: the name was not told
NEW: Final = -2  # in `target`: no labelled item of this class has been met before

Ints = npt.NDArray[np.int64]


class Background(NamedTuple):
    """What lies behind the pictures of one sequence, in worlds that have a spatial cue."""

    texture: Ints  # [T] row in the textures
    corner: Ints  # [T, 2] top-left corner (row, column) of the piece that is shown
    noise: Ints  # [T] the key that fixes the noise on it


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
    background: Background | None = None
    mask_crop: Ints | None = None  # [T, 2] as `crop`, of the mask that says which thing is met (rooms)

    def __len__(self) -> int:
        return len(self.picture)


class Batch(NamedTuple):
    """B sequences padded to a common T. Learners are shown `images` and `given`, never the rest."""

    images: Float[Tensor, "B T C H W"]  # in [-1, 1]; no channels where there are `frames`
    given: Int[Tensor, "B T"]  # slot, or UNLABELED (also where padded)
    truth: Int[Tensor, "B T"]  # slot (0 where padded)
    target: Int[Tensor, "B T"]  # slot, or NEW (also where padded)
    valid: Bool[Tensor, "B T"]  # False where padded, always at the tail
    environment: Int[Tensor, "B T"]  # 0 where padded
    frames: Frames | None = None  # what is seen instead of images, where one frame shows several things

    @property
    def seen(self) -> Tensor | Frames:
        """What a model is shown."""
        return self.images if self.frames is None else self.frames

    @property
    def pictures(self) -> Tensor | Frames:
        """What an encoder is shown: real pictures only, one after the other."""
        return self.images[self.valid] if self.frames is None else self.frames


def stack(meetings: Sequence[Meetings], images: Tensor, frames: Frames | None = None) -> Batch:
    """A batch of sequences, padded to the longest, with these pixels."""
    shape = (len(meetings), max(len(m) for m in meetings))
    fields = {"given": UNLABELED, "truth": 0, "target": NEW, "environment": 0}
    columns = {name: np.full(shape, padding) for name, padding in fields.items()}
    valid = np.zeros(shape, dtype=bool)
    for row, m in enumerate(meetings):
        for name, column in columns.items():
            column[row, : len(m)] = getattr(m, name)
        valid[row, : len(m)] = True
    given, truth, target, environment = (torch.from_numpy(column) for column in columns.values())
    return Batch(images, given, truth, target, torch.from_numpy(valid), environment, frames)


def target_of(truth: Ints, given: Ints) -> Ints:
    """The right answer of every meeting: the slot, or NEW while its class has had no labelled item.

    Slots are numbered by first labelled appearance, so a class is known exactly when its slot is at
    most the highest slot told before.
    """
    told = np.concatenate(([UNLABELED], np.maximum.accumulate(given)[:-1]))
    return np.where(truth <= told, truth, NEW)
