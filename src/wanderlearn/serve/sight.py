"""Pictures decoded safely and to a bounded size, for the agent and for the page."""

import io
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, Generic, NamedTuple, TypeVar

from PIL import Image, ImageOps

from wanderlearn.errors import WanderError
from wanderlearn.serve.listing import open_inside
from wanderlearn.serve.store import FOLDER, Picture

__all__ = ["Encoded", "MissingError", "NotAPictureError", "Sight", "TooLargeError", "decode", "encode"]

FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000")
MOST_PIXELS: Final = 50_000_000  # a decompression bomb has more
VIEW: Final = 1024  # pixels of the longer side: what the agent looks at and the page shows
THUMB: Final = 160
SMALL: Final = 256  # pixels: below, a picture is sent without loss

T = TypeVar("T")


class NotAPictureError(WanderError):
    """What cannot be decoded as a picture."""


class TooLargeError(NotAPictureError):
    """A picture with too many pixels to be decoded."""


class MissingError(WanderError):
    """A picture whose file is not there."""


class Encoded(NamedTuple):
    """A picture as it is sent."""

    data: bytes
    type: str


class _Kept(Generic[T]):
    """The latest few of something."""

    def __init__(self, most: int) -> None:
        self.most, self.items, self.lock = most, OrderedDict[int, T](), threading.Lock()

    def get(self, key: int, make: Callable[[], T]) -> T:
        with self.lock:
            if key in self.items:
                self.items.move_to_end(key)
                return self.items[key]
        made = make()
        with self.lock:
            self.items[key] = made
            while len(self.items) > self.most:
                self.items.popitem(last=False)
        return made


class Sight:
    """Reads the pictures of a session: those of the folder and those that were drawn."""

    def __init__(self, folder: Path | None, drawings: Path) -> None:
        self.folder = None if folder is None else os.path.realpath(os.fsencode(folder))
        self.drawings = os.path.realpath(os.fsencode(drawings))
        self._pictures = _Kept[Image.Image](12)
        self._thumbs = _Kept[Encoded](400)

    def root(self, picture: Picture) -> bytes:
        """The folder in which a picture is."""
        root = self.folder if picture.source == FOLDER else self.drawings
        if root is None:
            raise MissingError("That picture is in a folder that was not given this time.")
        return root

    def read(self, picture: Picture) -> Image.Image:
        """A picture in grey or colour, at most `VIEW` wide and high."""
        return self._pictures.get(picture.id, lambda: self._read(picture, VIEW))

    def view(self, picture: Picture) -> Encoded:
        """As the page shows it."""
        return encode(self.read(picture))

    def thumb(self, picture: Picture) -> Encoded:
        """As a small example."""

        def make() -> Encoded:
            small = self._pictures.items.get(picture.id)
            return encode(_bounded(small, THUMB) if small is not None else self._read(picture, THUMB))

        return self._thumbs.get(picture.id, make)

    def _read(self, picture: Picture, most: int) -> Image.Image:
        try:
            with open_inside(self.root(picture), picture.path) as file:
                return decode(file, most)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise MissingError("The file is not there any more.") from error
        except OSError as error:
            raise NotAPictureError(f"It cannot be read ({error.strerror or error}).") from error


def decode(file: BinaryIO, most: int = VIEW, formats: tuple[str, ...] = FORMATS) -> Image.Image:
    """A picture of a file, upright, in grey ("L") or colour ("RGB"), no side longer than `most`.

    Transparency becomes white paper. Raises `NotAPictureError`; `TooLargeError` before anything is decoded.
    """
    try:
        with Image.open(file, formats=formats) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise TooLargeError(
                    f"It has {picture.width} x {picture.height} pixels, more than the {MOST_PIXELS:,} that "
                    "are decoded."
                )
            picture.draft(None, (2 * most, 2 * most))
            return _bounded(_plain(ImageOps.exif_transpose(picture)), most)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise TooLargeError("It has too many pixels to be decoded.") from error
    except NotAPictureError:
        raise
    except Exception as error:  # a hostile file can make a decoder fail in any way
        raise NotAPictureError("It cannot be read as a picture.") from error


def _plain(picture: Image.Image) -> Image.Image:
    if picture.mode in ("I", "F") or picture.mode.startswith("I;16"):
        return _of_wide_range(picture)
    if "A" in picture.getbands() or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        paper = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(paper, picture).convert("RGB")
    return picture.convert("L" if picture.mode in ("1", "L") else "RGB")


def _of_wide_range(picture: Image.Image) -> Image.Image:
    """More than 256 shades of grey: 16 bits are scaled down, what has no fixed range is stretched."""
    import numpy as np  # here, because few pictures need it, and the page is to come first

    if picture.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(picture).astype(np.uint16) >> 8).astype(np.uint8))
    values = np.nan_to_num(np.asarray(picture, dtype=np.float64))
    low, high = float(values.min()), float(values.max())
    return Image.fromarray(((values - low) * (255 / (high - low or 1))).astype(np.uint8))


def _bounded(picture: Image.Image, most: int) -> Image.Image:
    longer = max(picture.size)
    if longer <= most:
        return picture
    size = tuple(max(1, round(side * most / longer)) for side in picture.size)
    return picture.resize(size, Image.Resampling.LANCZOS)  # type: ignore[arg-type]


def encode(picture: Image.Image) -> Encoded:
    """PNG for what is small or grey, JPEG for photographs. Nothing but pixels is in it."""
    out = io.BytesIO()
    if picture.mode == "L" or max(picture.size) <= SMALL:
        picture.save(out, "PNG")
        return Encoded(out.getvalue(), "image/png")
    picture.save(out, "JPEG", quality=88)
    return Encoded(out.getvalue(), "image/jpeg")
