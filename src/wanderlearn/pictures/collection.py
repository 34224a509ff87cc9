"""Pictures with their classes and families: what a world draws from."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

__all__ = ["SPLITS", "Pictures", "Split"]

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


@dataclass(frozen=True, eq=False)
class Pictures:
    """All pictures of one split, grouped by class.

    Pictures of class c are rows `first[c]` to `first[c + 1]` of `images`. A picture's row is its id.
    """

    name: str
    split: Split
    images: npt.NDArray[np.uint8 | np.float32]  # [N, C, H, W]; vectors are float32, [N, D, 1, 1]
    first: npt.NDArray[np.int64]  # [classes + 1]
    family: npt.NDArray[np.int64]  # [classes], index into family_names
    class_names: Sequence[str] = field(repr=False)
    family_names: Sequence[str] = field(repr=False)
    drawn: bool = True  # strokes bright on black, which a reader is shown dark on white

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of a picture."""
        _, channels, height, width = self.images.shape
        return channels, height, width

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    @property
    def families(self) -> int:
        """How many families there are."""
        return len(self.family_names)

    @cached_property
    def class_of(self) -> npt.NDArray[np.int64]:
        """The class of every picture, [N]."""
        return np.repeat(np.arange(self.classes), np.diff(self.first))

    @cached_property
    def digest(self) -> str:
        """SHA-256 over pixels, classes and families: two collections with one digest are the same."""
        seen = hashlib.sha256()
        for array in (self.images, self.first, self.family):
            seen.update(f"{array.dtype}{array.shape}".encode())
            seen.update(np.ascontiguousarray(array).data)
        return seen.hexdigest()
