"""One picture file of any common kind to a small array of bytes; and the work of one process that does many.

A worker (`serve`) reads one JSON line per piece of work from its standard input and answers with one. It
writes pixels into the file it is told, imports little, so that it starts soon, and ends when its input does.
"""

import hashlib
import io
import json
import signal
import struct
import sys
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from wanderlearn.pictures.address import Crop

__all__ = ["SUFFIXES", "Done", "Look", "Piece", "UnreadableError", "decode", "do", "serve", "square"]

Bytes = npt.NDArray[np.uint8]

# By what is in the file, not by its name. Nothing here starts another program (as EPS would).
COMMON: Final = ("JPEG", "PNG", "GIF", "BMP", "PPM")  # those that Pillow has at hand without looking for them
OTHERS: Final = ("TIFF", "WEBP", "AVIF", "JPEG2000", "MPO")
SUFFIXES: Final = frozenset(
    (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".gif", ".bmp", ".dib", ".tif", ".tiff",
     ".webp", ".ppm", ".pgm", ".pbm", ".pnm", ".avif", ".jp2")
)  # fmt: skip
ORIENTATION: Final = 0x0112  # the EXIF tag
REDUCE: Final = 2  # a JPEG may be decoded at a lower scale, but not below this many times what is wanted


@dataclass(frozen=True)
class Look:
    """What every picture is brought to."""

    size: int
    channels: int
    crop: Crop = "center"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the array of one picture."""
        return self.channels, self.size, self.size


class UnreadableError(Exception):
    """Why a file cannot be used as a picture, in a few words."""


class Piece(NamedTuple):
    """Pictures that follow each other in one file of pixels."""

    target: Path
    offset: int  # of the first one, in bytes
    sources: Sequence[str]


def decode(data: bytes, look: Look) -> Bytes:
    """The picture in these bytes, [C, size, size]: upright, on white where it is transparent, first frame."""
    if not data:
        raise UnreadableError("the file is empty")
    try:
        with _opened(data) as picture:
            picture.draft(None, (REDUCE * look.size, REDUCE * look.size))
            upright = _upright(picture)
            return square(_plain(upright, look.channels), look)
    except UnidentifiedImageError as error:
        raise UnreadableError("not a picture of a known kind") from error
    except Image.DecompressionBombError as error:
        raise UnreadableError("too many pixels") from error
    except (
        OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, OverflowError, EOFError,
        AttributeError, ZeroDivisionError, MemoryError, struct.error, zlib.error,
    ) as error:  # fmt: skip
        raise UnreadableError(str(error).strip() or type(error).__name__) from error


def _opened(data: bytes) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data), formats=COMMON)
    except UnidentifiedImageError:
        return Image.open(io.BytesIO(data), formats=_others())


@cache
def _others() -> tuple[str, ...]:
    Image.init()
    return tuple(name for name in OTHERS if name in Image.OPEN)


def _upright(picture: Image.Image) -> Image.Image:
    """As the camera was held."""
    if picture.format == "JPEG" and "exif" not in picture.info:
        return picture
    if picture.getexif().get(ORIENTATION, 1) == 1:
        return picture
    return ImageOps.exif_transpose(picture)


def _plain(picture: Image.Image, channels: int) -> Image.Image:
    """In grey or in colour, with eight bits each."""
    wanted = "L" if channels == 1 else "RGB"
    if picture.mode == wanted and "transparency" not in picture.info:
        return picture
    if picture.mode.startswith("I") or picture.mode == "F":
        picture = _eight_bits(picture)
    elif picture.has_transparency_data:
        clear = picture.convert("RGBA")
        paper = Image.new("RGBA", clear.size, "white")
        picture = Image.alpha_composite(paper, clear)
    return picture.convert("RGB").convert(wanted) if picture.mode == "RGBA" else picture.convert(wanted)


def _eight_bits(picture: Image.Image) -> Image.Image:
    """From 16 bits (whole numbers) or from 0 to 1 (fractions)."""
    deep = np.asarray(picture)
    if deep.dtype.kind == "f":
        scaled = np.nan_to_num(deep.astype(np.float64)) * (255 if deep.max(initial=0) <= 1 else 1)
    else:
        scaled = deep.astype(np.float64) / 257
    return Image.fromarray(np.rint(np.clip(scaled, 0, 255)).astype(np.uint8))


def square(picture: Image.Image, look: Look) -> Bytes:
    """A picture in the right mode as an array [C, size, size]."""
    width, height = picture.size
    if min(width, height) < 1:
        raise UnreadableError("the picture has no pixels")
    size, side = look.size, min(width, height)
    if look.crop == "pad":
        longest = max(width, height)
        inner = max(1, round(width * size / longest)), max(1, round(height * size / longest))
        black = Image.new(picture.mode, (size, size))
        at = (size - inner[0]) // 2, (size - inner[1]) // 2
        black.paste(picture.resize(inner, Image.Resampling.BICUBIC) if inner != picture.size else picture, at)
        picture = black
    elif picture.size != (size, size):
        left, top = (width - side) / 2, (height - side) / 2
        box = None if look.crop == "squash" else (left, top, left + side, top + side)
        picture = picture.resize((size, size), Image.Resampling.BICUBIC, box=box)
    pixels = np.asarray(picture)
    result: Bytes = pixels[None] if look.channels == 1 else pixels.transpose(2, 0, 1)
    return result


class Done(NamedTuple):
    """What became of a piece."""

    broken: list[tuple[int, str]]  # place in the piece, and why
    digests: list[str]  # SHA-256 of every file


def do(piece: Piece, look: Look) -> Done:
    """Decode a piece of work. What cannot be read is left black and named."""
    pixels = np.zeros((len(piece.sources), *look.shape), dtype=np.uint8)
    broken, digests = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd metadata and of large pictures, at every one of them
        for n, source in enumerate(piece.sources):
            data = b""
            try:
                with open(source, "rb") as file:
                    data = file.read()
                pixels[n] = decode(data, look)
            except (UnreadableError, OSError) as error:
                broken.append((n, getattr(error, "strerror", None) or str(error)))
            digests.append(hashlib.sha256(data).hexdigest())
    with piece.target.open("rb+") as file:
        file.seek(piece.offset)
        file.write(pixels.data)
    return Done(broken, digests)


def serve() -> None:
    """What a worker does until its input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # comes to the whole group: the main process decides
    for line in sys.stdin:
        asked = json.loads(line)
        piece = Piece(Path(asked["target"]), asked["offset"], asked["sources"])
        try:
            answer: dict[str, Any] = do(piece, Look(**asked["look"]))._asdict()
        except OSError as error:
            answer = {"error": error.strerror or str(error)}
        print(json.dumps(answer), flush=True)
