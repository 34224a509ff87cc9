"""Single pictures of a world, each cropped and partly hidden in its own way: what pretraining shows."""

from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor

from wanderlearn.errors import WanderError
from wanderlearn.pictures.collection import Pictures
from wanderlearn.pictures.warp import DRAWS, warped
from wanderlearn.worlds.draws import Purpose, uniforms
from wanderlearn.worlds.frames import Frames
from wanderlearn.worlds.roaming import Roaming, RoamingConfig
from wanderlearn.worlds.world import World

__all__ = ["SinglePictures", "Singles", "singles_of"]


class Singles(Protocol):
    """Batches of single things of a world: pictures, or frames with all that is met in them."""

    @property
    def count(self) -> int:
        """How many there are of what the size of a batch counts."""

    @property
    def classes(self) -> int:
        """How many classes they are of."""

    def batch(
        self, step: int, share: range | None = None
    ) -> tuple[Float[Tensor, "N C H W"] | Frames, Int[Tensor, " N"]]:
        """What is seen at a step, and its classes; with `share` only those of the batch."""

    def whole(self, step: int) -> int:
        """How many are seen in the whole batch of a step."""

    def shown(
        self, chosen: npt.NDArray[np.int64], stream: str, index: int, share: range | None = None
    ) -> Float[Tensor, "N C H W"] | Frames:
        """These, cropped and hidden by the random numbers of a stream at an index."""


def singles_of(
    world: World,
    seed: int,
    batch_size: int,
    warp: float = 0.0,
    flip: bool = False,
    mirror: bool = False,
    crop: bool = True,
) -> Singles:
    """The single things of a world; with `crop` as its training sequences are cropped."""
    if isinstance(world, Roaming):
        config = world.config if crop else replace(world.config, crop="none")
        return SinglePictures(world.pictures, config, seed, batch_size, warp, flip, mirror)
    from wanderlearn.rooms.singles import SingleFrames
    from wanderlearn.rooms.world import Rooms

    assert isinstance(world, Rooms)
    if warp:
        raise WanderError("Frames of rooms are not bent in pretraining: leave --pretrain.warp at 0.")
    if not crop:
        raise WanderError("Frames of rooms are always cropped in training: leave `crop` on.")
    if mirror:
        raise WanderError("Mirrored things are the same things: take --pretrain.flip, not --pretrain.mirror.")
    return SingleFrames(world, seed, batch_size, flip)


class SinglePictures:
    """Batches of single pictures, cropped and partly hidden as in a sequence, but each in its own way.

    Batch n of a seed is always the same. Every epoch is a new order; its incomplete last batch is left out.
    """

    def __init__(
        self,
        pictures: Pictures,
        config: RoamingConfig,
        seed: int,
        batch_size: int,
        warp: float = 0.0,
        flip: bool = False,
        mirror: bool = False,
    ) -> None:
        self.count = len(pictures.images)
        if self.count < batch_size:
            raise WanderError(
                f"{pictures.name} has {self.count} training pictures, fewer than a batch of {batch_size}. "
                "Lower --pretrain.batch-size."
            )
        self.seed, self.batch_size, self.warp, self.flip = seed, batch_size, warp, flip
        self.mirror, self.real = mirror, pictures.classes
        self.class_of = pictures.class_of
        self.margin = config.crop_padding if config.crop != "none" else 0
        self.side = int(config.occlusion * pictures.images.shape[2])
        self.vectors = pictures.images.dtype == np.float32
        around = (self.margin, self.margin)
        padded = pictures.images  # if nothing is to be cropped it stays where it is, perhaps in a file
        if self.margin:
            padded = np.pad(padded, ((0, 0), (0, 0), around, around))  # [N, C, H + 2m, W + 2m]
        self.windows = sliding_window_view(
            padded, pictures.images.shape[2:], axis=(2, 3)
        )  # [N, C, 2m+1, 2m+1, H, W]
        self._epoch = -1
        self._order: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)

    @property
    def classes(self) -> int:
        """How many classes they are of: the mirrored ones come after the real ones."""
        return 2 * self.real if self.mirror else self.real

    def batch(
        self, step: int, share: range | None = None
    ) -> tuple[Float[Tensor, "N C H W"], Int[Tensor, " N"]]:
        """The pictures of a step in [-1, 1], and their classes; with `share` only those of the batch."""
        share = range(self.batch_size) if share is None else share
        chosen, mirrored = self.drawn(step, share)
        classes = self.class_of[chosen] + self.real * mirrored
        return self.shown(self._chosen(step), "pretrain", step, share), torch.from_numpy(classes)

    def drawn(self, step: int, share: range) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """A share of the pictures of a step; 1 for those that are mirrored and so of another class."""
        own = slice(share.start, share.stop)
        chosen = self._chosen(step)[own]
        if not self.mirror:
            return chosen, np.zeros_like(chosen)
        return chosen, self._mirrored("pretrain", step, self.batch_size)[own].astype(np.int64)

    def _chosen(self, step: int) -> npt.NDArray[np.int64]:
        """The pictures of a step."""
        size = self.batch_size
        epoch, at = divmod(step, self.count // size)
        if epoch != self._epoch:
            draws = uniforms(self.seed, "pretrain", epoch, Purpose.ORDER, self.count)
            self._epoch, self._order = epoch, np.argsort(draws, kind="stable")
        return self._order[at * size : (at + 1) * size]

    def whole(self, step: int) -> int:
        """How many pictures the whole batch of a step has."""
        return self.batch_size

    def shown(
        self, chosen: npt.NDArray[np.int64], stream: str, index: int, share: range | None = None
    ) -> Float[Tensor, "N C H W"]:
        """These pictures in [-1, 1], cropped and hidden by the random numbers of a stream at an index.

        Of a `share` the pictures are the same as in the whole.
        """
        size, shifts = len(chosen), 2 * self.margin + 1
        own = slice(0, size) if share is None else slice(share.start, share.stop)
        chosen = chosen[own]
        if self.vectors:  # nothing to crop, to bend or to hide
            return torch.from_numpy(self.windows[chosen, :, self.margin, self.margin])
        places = uniforms(self.seed, stream, index, Purpose.PIXELS, 4 * size).reshape(4, size)
        down, right, top, left = places[:, own]
        row, column = (down * shifts).astype(int), (right * shifts).astype(int)
        cropped = self.windows[chosen, :, row, column]  # [N, C, H, W]
        images = np.multiply(cropped, np.float32(1 / 127.5), dtype=np.float32)
        images -= 1
        shown = torch.from_numpy(images)
        if self.flip or self.mirror:
            mirrored = self._mirrored(stream, index, size)[own]
            shown[mirrored] = shown[mirrored].flip(3)
        if self.warp:  # before the box: that is in front of the picture, not on it
            # Half of the pictures, so that strokes as sharp as those of a sequence stay in sight.
            half = size // 2
            draws = uniforms(self.seed, stream, index, Purpose.WARP, half * DRAWS).reshape(half, DRAWS)
            first = draws[own]  # those of our own that are in the first half
            if len(first):
                shown[: len(first)] = warped(shown[: len(first)], first, self.warp)
        if self.side:
            rows, columns = self._within(top, images.shape[2]), self._within(left, images.shape[3])
            hidden = torch.from_numpy(rows[:, None, :, None] & columns[:, None, None, :])
            shown.masked_fill_(hidden, 0)  # mid-grey
        return shown

    def unhidden(
        self, chosen: npt.NDArray[np.int64], down: int = 0, right: int = 0
    ) -> Float[Tensor, "N C H W"]:
        """These pictures in [-1, 1] with nothing hidden, cropped so far off the middle."""
        cropped = self.windows[chosen, :, self.margin + down, self.margin + right]  # [N, C, H, W]
        if self.vectors:
            return torch.from_numpy(cropped)
        return torch.from_numpy(np.multiply(cropped, np.float32(1 / 127.5), dtype=np.float32) - 1)

    def _mirrored(self, stream: str, index: int, size: int) -> npt.NDArray[np.bool_]:
        """Which of so many pictures are mirrored."""
        return uniforms(self.seed, stream, index, Purpose.FLIP, size) < 0.5

    def _within(self, draw: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.bool_]:
        """Which of `size` places lie in a box of our side that starts at a random place, [N, size]."""
        start = (draw * (size - self.side)).astype(int)[:, None]
        place = np.arange(size)
        return (place >= start) & (place < start + self.side)
