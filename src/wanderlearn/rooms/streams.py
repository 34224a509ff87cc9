"""The h5 file of a recording: pictures as PNG streams one after the other, with their lengths."""

import importlib
import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from wanderlearn.errors import WanderError

__all__ = [
    "COLOURS",
    "IDS",
    "decode_colours",
    "decode_ids",
    "encode_colours",
    "encode_ids",
    "h5_library",
    "pack",
]

COLOURS, IDS = "matterport_RGB", "instance_segmentation"
COMPRESSION = 1  # of 9, as OpenCV writes; more costs as much time as drawing does


def h5_library() -> Any:
    """The module h5py, or a sentence that says how to get it."""
    try:
        return importlib.import_module("h5py")
    except ModuleNotFoundError as error:
        if error.name != "h5py":
            raise
        raise WanderError(
            "Recordings of rooms are h5 files, which need h5py. "
            "Install the extra: pip install 'wanderlearn[rooms]'."
        ) from error


def encode_colours(rgb: npt.NDArray[np.uint8]) -> bytes:
    """A PNG with red and blue changed over: the authors gave RGB to OpenCV, which takes it for BGR."""
    return _png(Image.fromarray(np.ascontiguousarray(rgb[..., ::-1])))


def encode_ids(ids: npt.NDArray[np.int32]) -> bytes:
    """A PNG of one channel of 16 bits."""
    if ids.min() < 0 or ids.max() >= 2**16 - 1:
        raise WanderError(f"Ids must be between 0 and {2**16 - 2} to be recorded, not {ids.max()}.")
    return _png(Image.fromarray(ids.astype(np.uint16)))


def decode_colours(png: bytes) -> npt.NDArray[np.uint8]:
    """The RGB [H, W, 3] that `encode_colours` was given. ValueError where it is no whole picture."""
    image = _open(png)
    if image.mode not in ("RGB", "RGBA"):
        raise ValueError(f"it has no three colours but the mode {image.mode}")
    return np.ascontiguousarray(np.asarray(image)[..., 2::-1])


def decode_ids(png: bytes) -> npt.NDArray[np.int32]:
    """The ids [H, W] that `encode_ids` was given. ValueError where it is no whole picture."""
    image = _open(png)
    if image.mode not in ("I;16", "I;16B", "I", "L"):
        raise ValueError(f"ids are one channel, and it has the mode {image.mode}")
    return np.asarray(image).astype(np.int32)


def pack(colours: Sequence[bytes], ids: Sequence[bytes], objects: Sequence[dict[str, Any]]) -> bytes:
    """The whole h5 file. It is made in memory, so that a full disk is met by one plain write."""
    buffer = io.BytesIO()
    with h5_library().File(buffer, "w") as file:
        for name, pictures in ((COLOURS, colours), (IDS, ids)):
            file.create_dataset(name, data=np.frombuffer(b"".join(pictures), np.uint8))
            file.create_dataset(f"{name}_len", data=np.array([len(p) for p in pictures], np.int64))
        file.create_dataset("objects", data=np.bytes_(json.dumps(list(objects)).encode()))
    return buffer.getvalue()


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", compress_level=COMPRESSION)
    return buffer.getvalue()


def _open(png: bytes) -> Image.Image:
    try:
        image = Image.open(io.BytesIO(png), formats=("PNG",))
        image.load()
    except UnidentifiedImageError as error:
        raise ValueError("it is no PNG") from error
    except (OSError, SyntaxError, EOFError) as error:
        raise ValueError(str(error)) from error
    return image
