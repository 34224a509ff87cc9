"""What a met picture looks like: cropped (in training), partly hidden by a grey box, scaled to [-1, 1]."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from wanderlearn.worlds.sequence import Ints, Meetings

__all__ = ["cropped", "draw_pictures", "hide"]


class _PixelConfig(Protocol):
    @property
    def crop_padding(self) -> int: ...
    @property
    def occlusion(self) -> float: ...


def draw_pictures(
    images: npt.NDArray[np.uint8 | np.float32],
    meetings: Meetings,
    config: _PixelConfig,
    out: npt.NDArray[np.float32],
) -> None:
    """Write the pictures of one sequence, [T, C, H, W], into `out`. Vectors go there as they are."""
    if images.dtype == np.float32:
        out[:] = images[meetings.picture]
        return
    moved = cropped(images[meetings.picture], meetings.crop - config.crop_padding)
    np.multiply(moved, np.float32(1 / 127.5), out=out)
    out -= 1
    hide(out, meetings.occlusion, config.occlusion)


def hide(out: npt.NDArray[np.float32], corners: Ints, part: float) -> None:
    """Put a grey box over every picture, all its channels; its side is this part of the picture's height."""
    side = int(part * out.shape[2])
    for picture, (row, column) in zip(out, corners.tolist(), strict=True):
        if row >= 0:
            picture[:, row : row + side, column : column + side] = 0  # mid-grey


def cropped(pictures: npt.NDArray[Any], offset: Ints) -> npt.NDArray[Any]:
    """Move every picture by minus its offset, black where nothing comes in: a crop of the padded picture."""
    if not offset.any():
        return pictures
    moved = np.zeros_like(pictures)
    for dy, dx in np.unique(offset, axis=0).tolist():
        rows = (
            slice(None) if (offset == offset[0]).all() else np.flatnonzero((offset == (dy, dx)).all(axis=1))
        )
        down, right = slice(max(dy, 0), min(dy, 0) or None), slice(max(dx, 0), min(dx, 0) or None)
        to_down, to_right = slice(max(-dy, 0), min(-dy, 0) or None), slice(max(-dx, 0), min(-dx, 0) or None)
        moved[rows, :, to_down, to_right] = pictures[rows, :, down, right]
    return moved
