"""What lies behind the pictures: one texture for every environment, the paper's spatial cue.

Each environment of a sequence has a class of textures of its own; every meeting there gets a piece of some
picture of that class, with noise. It comes as one more channel, or as one picture with the drawing on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from wanderlearn.errors import WanderError
from wanderlearn.pictures.collection import Pictures, Split
from wanderlearn.worlds.draws import Purpose, uniforms
from wanderlearn.worlds.pixels import cropped, draw_pictures, hide
from wanderlearn.worlds.sequence import Background, Ints, Meetings

__all__ = ["BackgroundConfig", "Backgrounds", "finished", "overlaid"]

Floats = npt.NDArray[np.float32]
INK: Final = 0.1  # a pixel that is brighter, near it, belongs to the drawing
SCALE: Final = 3  # drawings are widened at so many times their size
ROOM, WIDER = 5, 3  # sides of the squares by which a drawing is widened: its surroundings, and itself


@dataclass(frozen=True)
class BackgroundConfig:
    """The spatial cue, with the paper's values as defaults."""

    how: Literal["channel", "overlay"] = "channel"
    """A channel of its own (for the double encoder), or one picture with the drawing on the texture."""
    textures: str = "procedural"
    """Where textures come from: procedural, photos, or the path of a folder or .zip (docs/context.md)."""
    noise: float = 0.1
    """Standard deviation of the noise on a texture, whose greys are from 0 to 1."""

    def __post_init__(self) -> None:
        if not 0 <= self.noise <= 1:
            raise WanderError(f"The noise of backgrounds must lie between 0 and 1, not {self.noise}.")


class _Config(Protocol):
    """What is needed of the process."""

    @property
    def environments(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def crop_padding(self) -> int: ...
    @property
    def occlusion(self) -> float: ...


class Backgrounds:
    """The textures behind a world's pictures."""

    def __init__(self, textures: Pictures, config: BackgroundConfig, size: tuple[int, int]) -> None:
        self.textures, self.config, self.size = textures, config, size
        height, width = textures.images.shape[2:]
        if height < size[0] or width < size[1]:
            raise WanderError(
                f"The textures of {textures.name} have {height} x {width} pixels, less than the "
                f"pictures, which have {size[0]} x {size[1]}. Take smaller pictures or larger textures."
            )

    def draw(self, seed: int, split: Split, index: int, environment: Ints, process: _Config) -> Background:
        """The textures of one sequence. Environments share none if there are enough classes for that."""
        classes, wanted = self.textures.classes, process.environments
        u = uniforms(seed, split, index, Purpose.BACKGROUND, max(classes, wanted) + 2 + 2 * process.length)
        first, rest = u[: max(classes, wanted)], u[max(classes, wanted) :]
        if classes >= wanted:
            chosen = np.argsort(first[:classes], kind="stable")[:wanted]
        else:
            chosen = (first[:wanted] * classes).astype(np.int64)
        of = chosen[environment]  # [T]
        low, high = self.textures.first[of], self.textures.first[of + 1]
        count = len(environment)
        spare = np.array(self.textures.images.shape[2:], dtype=np.int64) - np.array(self.size)
        corner: Ints = (rest[:2] * (spare + 1)).astype(np.int64) if split == "train" else spare // 2
        return Background(
            texture=low + (rest[2 : 2 + count] * (high - low)).astype(np.int64),
            corner=np.broadcast_to(corner, (count, 2)).copy(),
            noise=(rest[2 + process.length :][:count] * 2**31).astype(np.int64),
        )

    def pieces(self, background: Background) -> Floats:
        """The pieces of texture of a sequence, [T, 1, H, W] from 0 to 1: noisy, clipped and inverted."""
        height, width = self.size
        values = np.empty((len(background.texture), 1, height, width), dtype=np.float32)
        rows = zip(background.texture.tolist(), background.corner.tolist(), strict=True)
        for piece, (texture, (top, left)) in zip(values, rows, strict=True):
            piece[:] = self.textures.images[texture, :1, top : top + height, left : left + width]
        values *= np.float32(1 / 255)
        if self.config.noise:
            values += np.float32(self.config.noise) * _noise(background.noise.tolist(), height, width)
        np.clip(values, 0, 1, out=values)
        return np.subtract(1, values, out=values)

    def draw_pictures(
        self, images: npt.NDArray[np.uint8 | np.float32], m: Meetings, process: _Config, out: Floats
    ) -> None:
        """Write the pictures of one sequence with their backgrounds, [T, C, H, W], into `out`."""
        assert m.background is not None
        behind = self.pieces(m.background)
        if self.config.how == "channel":
            draw_pictures(images, m, process, out[:, :-1])
            shown = out[:, -1:]
        else:
            drawn = np.multiply(images[m.picture], np.float32(1 / 255), dtype=np.float32)
            behind, shown = overlaid(drawn, behind), out
        finished(behind, m.crop - process.crop_padding, m.occlusion, process.occlusion, shown)


def finished(values: Floats, offset: Ints, corners: Ints, part: float, out: Floats) -> None:
    """What is done to pictures and backgrounds alike: from values in [0, 1], cropped, in [-1, 1], hidden."""
    np.multiply(cropped(values, offset), np.float32(2), out=out)
    out -= 1
    hide(out, corners, part)


def _noise(keys: Sequence[int], height: int, width: int) -> Floats:
    """Bell-shaped numbers of deviation 1, [T, 1, H, W]: those of a meeting are a function of its key."""
    noise = np.empty((len(keys), 1, height, width), dtype=np.float32)
    for values, key in zip(noise, keys, strict=True):
        bits = np.random.Philox(key=np.array([key, 0], dtype=np.uint64))
        np.random.Generator(bits).standard_normal(out=values, dtype=np.float32)
    return noise


def overlaid(drawings: Floats, behind: Floats) -> Floats:
    """Drawings [T, 1, H, W], bright on black, from 0 to 1, on textures of the same size.

    The drawing is widened a little; around it stays a rim without texture, so that it can be read.
    """
    large = F.interpolate(
        torch.from_numpy(drawings), scale_factor=SCALE, mode="bilinear", align_corners=False
    )
    # Squares around the middle one of every three pixels, which is the nearest when going back.
    near, ink = (
        F.max_pool2d(large, side, stride=SCALE, padding=side // 2 - SCALE // 2).numpy()
        for side in (ROOM, WIDER)
    )
    return np.where(near > INK, ink, behind)
