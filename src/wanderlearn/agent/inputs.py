"""From whatever a user has (a file, a PIL picture, an array, a tensor) to what an encoder was trained on.

That is a square of a given size and number of channels, from -1 (black) to 1 (white). Drawings, which is all
that encoders of one channel were trained on, are bright strokes on black.
"""

import os
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image, ImageOps
from torch import Tensor
from torch.nn import functional as F

from wanderlearn.agent.memory import Floats
from wanderlearn.errors import WanderError

__all__ = ["MOST_PIXELS", "Ink", "feature_or_pixels"]

Ink = Literal["auto", "bright", "dark"]

MOST_PIXELS: Final = 50_000_000  # of a picture from a file or from PIL: a decompression bomb has more
FULL: Final = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0, np.dtype(np.bool_): 1.0}
LARGEST: Final = 1e9  # of a number in a feature vector
SIDES: Final = (1, 3, 4)  # channels: grey, colour, colour with transparency
BESIDE: Final = 2  # a drawing, and a background in a channel of its own


def feature_or_pixels(
    picture: Any, size: int, channels: int, features: int, ink: Ink = "auto"
) -> tuple[Floats | None, Float[Tensor, "C H W"] | None]:
    """A feature vector as it is, or else the pixels for the encoder; the other of the two is None.

    Raises `WanderError` at what is neither.
    """
    if isinstance(picture, str | os.PathLike):
        path = Path(picture)
        return None, _square(_of_file(path, size), size, channels, ink, f"The picture {path}")
    if isinstance(picture, Image.Image):
        _refuse_bomb(picture, "The picture")
        return None, _square(_of_pil(picture, size), size, channels, ink, "The picture")
    if isinstance(picture, Tensor):
        array, channels_first = picture.detach().cpu(), True
        values = array.float().numpy() if array.dtype in (torch.float16, torch.bfloat16) else array.numpy()
    elif isinstance(picture, np.ndarray):
        values, channels_first = picture, False
    else:
        raise WanderError(
            f"Cannot look at a {type(picture).__name__}. Give a file, a PIL picture, a numpy array, "
            "a torch tensor, or a feature vector."
        )
    if values.ndim == 1:
        return _feature(values, features), None
    in_order = _in_order(values, channels_first, (*SIDES, channels))
    return None, _square(in_order, size, channels, ink, "The picture")


def _feature(values: Any, features: int) -> Floats:
    if values.shape != (features,) or values.dtype.kind != "f":
        raise WanderError(
            f"A feature vector has {features} float numbers here, not {len(values)} of {values.dtype}."
        )
    vector = _float32(values)
    if not (np.abs(vector) < LARGEST).all():
        raise WanderError("The feature vector has numbers that are not finite, or too large to be squared.")
    return vector


def _float32(values: Any) -> Floats:
    """A copy; what is too large for single precision becomes infinite."""
    with np.errstate(over="ignore"):
        return np.array(values, dtype=np.float32)


def _of_file(path: Path, size: int) -> Any:
    try:
        with Image.open(path) as picture:
            _refuse_bomb(picture, f"The picture {path}")
            return _of_pil(ImageOps.exif_transpose(picture), size)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise WanderError(f"The picture {path} is too large to be decoded safely ({error}).") from error
    except WanderError:
        raise
    except FileNotFoundError as error:
        raise WanderError(f"There is no picture {path}.") from error
    except Exception as error:  # a hostile file can make a decoder fail in any way
        raise WanderError(f"{path} cannot be read as a picture ({error}).") from error


def _refuse_bomb(picture: Image.Image, what: str) -> None:
    if picture.width * picture.height > MOST_PIXELS:
        raise WanderError(
            f"{what} has {picture.width} x {picture.height} pixels, more than the {MOST_PIXELS:,} that are "
            "decoded. Scale it down first."
        )


def _of_pil(picture: Image.Image, size: int) -> Any:
    """The pixels [H, W, C] in grey, colour or colour with transparency, not many times larger than needed."""
    if picture.mode.startswith("I;16"):
        return np.asarray(picture).astype(np.uint16)[..., None]
    if picture.mode in ("I", "F"):  # no fixed range: stretch what is there
        values = np.asarray(picture, dtype=np.float32)[..., None]
        low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
        return (values - low) / (high - low) if high > low else np.zeros_like(values)
    transparent = "A" in picture.getbands() or "transparency" in picture.info
    grey = picture.mode in ("1", "L", "LA")
    if transparent:
        picture = picture.convert("RGBA")
    elif picture.mode not in ("L", "RGB"):
        picture = picture.convert("L" if grey else "RGB")
    if (factor := min(picture.size) // (4 * size)) > 1:
        picture = picture.reduce(factor)  # floats of a large photograph would take gigabytes
    values = np.asarray(picture)
    return values if values.ndim == 3 else values[..., None]


def _in_order(values: Any, channels_first: bool, sides: tuple[int, ...] = SIDES) -> Any:
    """[H, W, C] from [H, W], [H, W, C] or [C, H, W]; for three ways to read it, by what is usual."""
    if values.ndim == 2:
        return values[..., None]
    if values.ndim == 3:
        first, last = values.shape[0] in sides, values.shape[2] in sides
        if first and (channels_first or not last):
            return np.moveaxis(values, 0, 2)
        if last:
            return values
    raise WanderError(
        f"An array of shape {list(values.shape)} is no picture. "
        "Give [H, W], [H, W, C] or [C, H, W] with 1, 3 or 4 channels."
    )


def _square(values: Any, size: int, channels: int, ink: Ink, what: str) -> Float[Tensor, "C H W"]:
    """Checked, with the right channels, polarity and size, from -1 to 1."""
    if 0 in values.shape:
        raise WanderError(f"{what} is empty: its shape is {list(values.shape)}.")
    full = FULL.get(values.dtype)
    if full is None and values.dtype.kind != "f":
        raise WanderError(f"{what} is of {values.dtype}. Give uint8, uint16, or floats from 0 to 1.")
    values = _float32(values)  # [H, W, C]
    if full is not None:
        values /= full
    elif not np.isfinite(values).all():
        raise WanderError(f"{what} has pixels that are not finite.")
    elif values.min() < 0 or values.max() > 1:
        raise WanderError(
            f"{what} has float pixels from {values.min():.4g} to {values.max():.4g}. "
            "Floats must lie between 0 (black) and 1 (white); for 0 to 255 use uint8."
        )
    values = _with_channels(values, channels)
    if channels == 1 and (ink == "dark" or (ink == "auto" and _on_light(values[..., 0]))):
        np.subtract(1, values, out=values)
    pixels = torch.from_numpy(values).permute(2, 0, 1)  # [C, H, W]
    if pixels.shape[1:] != (size, size):
        pixels = _resized(pixels, size, crop=channels != 1)
    return pixels.mul_(2).sub_(1)


def _with_channels(values: Floats, channels: int) -> Floats:
    if values.shape[2] == channels:
        return values
    if channels == BESIDE:
        raise WanderError(
            "This learner looks at two channels, a drawing and what lies behind it. Give an array [H, W, 2] "
            "or [2, H, W]: bright strokes on black, and the background inverted, as in its world."
        )
    if values.shape[2] == 4:  # what is transparent is paper: white
        colour, opaque = values[..., :3], values[..., 3:]
        values = colour * opaque + (1 - opaque)
    if values.shape[2] == channels:
        return values
    if channels == 1:  # the usual weights of red, green and blue (BT.601)
        return (values @ np.array([[0.299], [0.587], [0.114]], np.float32)).astype(np.float32, copy=False)
    return np.repeat(values, channels, axis=2)


def _on_light(grey: Floats) -> bool:
    """Whether a drawing's paper is light: more than half of the pixels at its edges are."""
    edge = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    return bool(2 * np.count_nonzero(edge > 0.5) > len(edge))


def _resized(pixels: Float[Tensor, "C H W"], size: int, crop: bool) -> Float[Tensor, "C s s"]:
    """Scaled to a square: a drawing is padded with black to a square first, a photograph is cropped."""
    height, width = pixels.shape[1:]
    side = min(height, width) if crop else max(height, width)
    down, right = side - height, side - width  # below 0: crop
    pixels = F.pad(pixels, (right // 2, right - right // 2, down // 2, down - down // 2))
    return F.interpolate(pixels[None], (size, size), mode="bilinear", antialias=True)[0].clamp_(0, 1)
