"""Textures: what lies behind the pictures of an environment (the paper's spatial cue), in grey.

    procedural        drawn by the program (`surfaces.py`): nothing to download
    photos            photographs in WANDERLEARN_DATA or the cache: textures.zip, or a folder textures
    PATH              any folder or .zip with a folder of pictures per class

The layout is that of the Kylberg texture dataset "without rotations": class/*.png, where a class may also be
called CLASS-without-rotations. Folders train, val and test above the classes say what belongs where; without
them 28 Kylberg names are split as in the paper, and others by chance, by a rule that anybody can repeat.
`?seed=N` after a source gives other chance: another split, or other procedural textures.
"""

import hashlib
import io
import json
import struct
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, UnidentifiedImageError
from torch.nn import functional as F

from wanderlearn.errors import WanderError
from wanderlearn.files import cache_dir, data_dir
from wanderlearn.pictures.cached import load_or_build
from wanderlearn.pictures.collection import SPLITS, Pictures, Split
from wanderlearn.pictures.decode import SUFFIXES
from wanderlearn.pictures.kept import Class, Contents, Filling, load_or_decode
from wanderlearn.pictures.surfaces import KINDS, draw_surface
from wanderlearn.pictures.tree import SPLIT_NAMES, scan
from wanderlearn.progress import bar, track

__all__ = ["KYLBERG", "PER_CLASS", "PROCEDURAL", "open_textures"]

VERSION: Final = 1  # a change of any pixel or of any rule is a change of version
FAMILY: Final = "textures"
SIDE: Final = 256  # of a photograph; drawn ones are smaller
SUFFIX: Final = "-without-rotations"  # as the published folders are called
NAMES: Final = ("textures.zip", "textures", "kylberg.zip", "kylberg", "uppsala-texture")
FORMATS: Final = ("PNG", "JPEG", "BMP", "GIF", "PPM", "TIFF", "WEBP")
MOST_PIXELS: Final = 50_000_000
LISTED: Final = 10

KYLBERG: Final[dict[Split, tuple[str, ...]]] = {
    "train": ("blanket2", "ceiling2", "floor2", "grass1", "linseeds1", "pearlsugar1", "rice2", "scarf2",
              "screen1", "seat2", "sesameseeds1", "stone1", "stoneslab1"),
    "val": ("blanket1", "canvas1", "ceiling1", "floor1", "rice1", "scarf1", "stone2"),
    "test": ("cushion1", "lentils1", "oatmeal1", "rug1", "sand1", "seat1", "stone3", "wall1"),
}  # fmt: skip
"""The classes of the Kylberg dataset by split, as in the paper's table."""
PROCEDURAL: Final[dict[Split, int]] = {split: len(names) for split, names in KYLBERG.items()}
"""How many procedural classes a split has: as many as Kylberg's."""
PER_CLASS: Final = 20  # pictures of a procedural class

Bytes = npt.NDArray[np.uint8]


def open_textures(source: str, split: Split) -> Pictures:
    """The textures of one split, from `procedural`, `photos`, or the path of a folder or .zip.

    The first call draws or decodes all splits and keeps them in the cache.
    """
    if split not in SPLITS:
        raise WanderError(f"There is no split {split!r}. Choose one of {', '.join(SPLITS)}.")
    place, seed = _seeded(source)
    if place == "procedural":
        return _procedural(split, seed)
    if place == "photos":
        return _photographed(_find(), split, seed)
    if not Path(place).exists():
        raise WanderError(
            f"There are no textures {place!r}. Choose procedural, photos, or the path of a folder or .zip "
            "with a folder of pictures per class."
        )
    return _photographed(Path(place), split, seed)


def _seeded(source: str) -> tuple[str, int]:
    place, mark, told = source.rpartition("?seed=")
    if not mark or Path(source).exists():
        return source, 0
    if not told.isdecimal() or int(told) >= 2**63:
        raise WanderError(f"The seed of textures must be a whole number from 0 on, not {told!r}.")
    return place, int(told)


def _procedural(split: Split, seed: int) -> Pictures:
    path = cache_dir() / "textures" / f"surfaces-v{VERSION}-seed{seed}.npy"
    images = load_or_build(path, str(VERSION), lambda: _draw_all(seed))
    names = _procedural_names()
    before = sum(PROCEDURAL[other] for other in SPLITS[: SPLITS.index(split)])
    own = names[before : before + PROCEDURAL[split]]
    return _collection(
        "surfaces",
        split,
        images[before * PER_CLASS : (before + len(own)) * PER_CLASS],
        [(name, PER_CLASS) for name in own],
    )


def _procedural_names() -> list[str]:
    """Kinds come round in turn, so that the classes of a split are of as many kinds as can be."""
    kinds = list(KINDS)
    return [f"{kinds[n % len(kinds)]}{n // len(kinds) + 1}" for n in range(sum(PROCEDURAL.values()))]


def _draw_all(seed: int) -> Bytes:
    kinds = list(KINDS)
    pieces = [(n, p) for n in range(sum(PROCEDURAL.values())) for p in range(PER_CLASS)]
    drawn = track(pieces, "drawing textures", len(pieces))
    return np.stack([draw_surface(kinds[n % len(kinds)], n, p, seed) for n, p in drawn])[:, None]


def _collection(name: str, split: Split, images: Bytes, classes: list[tuple[str, int]]) -> Pictures:
    return Pictures(
        name=name,
        split=split,
        images=images,
        first=np.cumsum([0, *(count for _, count in classes)]),
        family=np.zeros(len(classes), dtype=np.int64),
        class_names=[each for each, _ in classes],
        family_names=[FAMILY],
        drawn=False,
    )


def _find() -> Path:
    """Where the photographs are: beside the user's other data, or in the cache."""
    folders = [folder for folder in (data_dir(), cache_dir()) if folder]
    for folder in folders:
        for name in NAMES:
            if (folder / name).is_file() or _has_folders(folder / name):
                return folder / name
    looked = " and ".join(str(folder) for folder in folders)
    raise WanderError(
        f"There are no photographs of textures in {looked}. Put {NAMES[0]} or a folder {NAMES[1]} there, "
        "with a folder of pictures per class, name another place, or use textures that are drawn: "
        "--textures procedural."
    )


def _has_folders(place: Path) -> bool:
    """Our own cache of drawn textures is called textures too, but it holds no folders of classes."""
    return place.is_dir() and any(inner.is_dir() for inner in place.iterdir())


# Folders and archives --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """What lies in a place: files by class with what a change of them would change, and how to read one."""

    files: dict[tuple[Split | None, str], list[str]]
    stamps: list[list[object]]


def _photographed(place: Path, split: Split, seed: int) -> Pictures:
    found = _in_zip(place) if place.is_file() else _in_folder(place)
    splits, rule = _shared_out(found, place, seed)
    stamped = json.dumps([VERSION, found.stamps, rule, sorted(map(str, splits.items()))], sort_keys=True)
    key = hashlib.sha256(stamped.encode(errors="surrogateescape")).hexdigest()
    return load_or_decode(f"textures-{key[:24]}", split, lambda: _plan(found, place, splits, rule))


def _in_folder(place: Path) -> _Found:
    seen = scan(place, "class")
    files = {(group.split, _plain(group.name)): list(group.files) for group in seen.groups}
    return _Found(files, [[file.name, file.size, file.changed] for file in seen.stamps])


def _in_zip(place: Path) -> _Found:
    files: dict[tuple[Split | None, str], list[str]] = {}
    stamps: list[list[object]] = []
    with _archive(place) as archive:
        for entry in sorted(archive.infolist(), key=lambda entry: entry.filename):
            path = PurePosixPath(entry.filename)
            hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
            if entry.is_dir() or hidden or path.suffix.lower() not in SUFFIXES or len(path.parts) < 2:
                continue
            above = path.parts[-3].lower() if len(path.parts) > 2 else ""
            files.setdefault((SPLIT_NAMES.get(above), _plain(path.parts[-2])), []).append(entry.filename)
            stamps.append([entry.filename, entry.file_size, entry.CRC])
    return _Found(files, stamps)


@contextmanager
def _archive(place: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(place) as archive:
            yield archive
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise WanderError(
            f"{place} is not a whole .zip of textures ({error}). Replace it by a fresh copy, or unpack it "
            "and name the folder."
        ) from error


def _plain(name: str) -> str:
    return name.removesuffix(SUFFIX)


def _shared_out(found: _Found, place: Path, seed: int) -> tuple[dict[tuple[Split | None, str], Split], str]:
    """The split of every class, and the rule that says so."""
    empty = sorted(name for (_, name), files in found.files.items() if not files)
    if not found.files or len(empty) == len(found.files):
        raise WanderError(
            f"{place} has no class with pictures. It should hold a folder of pictures per class: "
            "class/*.png, perhaps inside train, val and test."
        )
    if empty:
        raise WanderError(f"{place}: {', '.join(empty[:5])} have no pictures. Fill or remove them.")
    told = {key: key[0] for key in found.files if key[0] is not None}
    if len(told) == len(found.files):
        return told, "folders"
    names = sorted({name for _, name in found.files})
    of = {name: split for split, own in KYLBERG.items() for name in own}
    rule = "kylberg" if all(name in of for name in names) else f"chance, seed {seed}"
    if rule != "kylberg":
        of = _by_chance(names, seed)
    return {key: key[0] or of[key[1]] for key in found.files}, rule


def _by_chance(names: list[str], seed: int) -> dict[str, Split]:
    """Names in the order of a hash, cut in the proportions of Kylberg's split; every split gets one."""
    if len(names) < len(SPLITS):
        raise WanderError(f"Textures of {len(names)} classes cannot be shared out among three splits.")
    order = sorted(
        names, key=lambda name: hashlib.sha256(f"{seed}/{name}".encode("utf-8", "replace")).digest()
    )
    whole = sum(PROCEDURAL.values())
    val = max(1, round(len(names) * PROCEDURAL["val"] / whole))
    test = max(1, round(len(names) * PROCEDURAL["test"] / whole))
    train = len(names) - val - test
    return {n: "train" if i < train else "val" if i < train + val else "test" for i, n in enumerate(order)}


def _plan(
    found: _Found, place: Path, splits: Mapping[tuple[Split | None, str], Split], rule: str
) -> tuple[Contents, Filling, Callable[[Contents], None]]:
    keys = {s: sorted((k for k in splits if splits[k] == s), key=lambda key: key[1]) for s in SPLITS}
    contents = Contents(
        name=FAMILY,
        classes={s: [Class(key[1], FAMILY, len(found.files[key])) for key in keys[s]] for s in SPLITS},
        shape=(1, SIDE, SIDE),
        about={"version": VERSION, "split_rule": rule},
    )
    unread: dict[str, str] = {}

    def fill(files: dict[Split, tuple[Path, int]]) -> dict[Split, dict[int, str]]:
        broken: dict[Split, dict[int, str]] = {}
        names = {s: [name for key in keys[s] for name in found.files[key]] for s in files}
        with _reading(place) as read, bar("decoding textures", sum(map(len, names.values()))) as shown:
            for split, (path, offset) in files.items():
                broken[split] = {}
                with path.open("rb+") as file:
                    file.seek(offset)
                    for row, name in enumerate(names[split]):
                        try:
                            pixels = _decoded(read(name))
                        except _UnreadableError as error:
                            unread[name] = broken[split][row] = str(error)
                            pixels = np.zeros((SIDE, SIDE), dtype=np.uint8)
                        file.write(pixels.tobytes())
                        shown.advance()
        return broken

    def finish(result: Contents) -> None:
        for split in SPLITS:
            for each in result.classes[split]:
                if each.pictures < 1:
                    raise WanderError(
                        f"{place}: no picture of the texture {each.name} can be read. Put good files there "
                        "or remove the folder."
                    )
        result.about |= {"unreadable": unread}
        _tell(result, rule, unread)

    return contents, fill, finish


def _tell(result: Contents, rule: str, unread: Mapping[str, str]) -> None:
    """Say on standard error, once, what was made of the place."""
    counts = ", ".join(f"{split} {len(result.classes[split])}" for split in SPLITS)
    words = {"folders": "as the folders say", "kylberg": "as in the paper"}.get(rule, f"by {rule}")
    lines = [f"textures: classes by split {words}: {counts}."]
    if unread:
        lines.append(f"Left out, because they could not be read: {len(unread)}")
        lines += [f"  {name}: {why}" for name, why in list(unread.items())[:LISTED]]
    print("\n".join(lines).encode("utf-8", "replace").decode("utf-8"), file=sys.stderr)


class _UnreadableError(Exception):
    """Why a file is no texture, in a few words."""


@contextmanager
def _reading(place: Path) -> Iterator[Callable[[str], bytes]]:
    """How to read a file of the place by its name."""
    if not place.is_file():
        yield lambda name: _bytes((place / name).read_bytes)
        return
    with _archive(place) as archive:
        yield lambda name: _bytes(lambda: archive.read(name))


def _bytes(read: Callable[[], bytes]) -> bytes:
    try:
        return read()
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _UnreadableError(str(error) or type(error).__name__) from error


def _decoded(data: bytes) -> Bytes:
    """The picture in these bytes: grey is the mean of the colours; bicubic to 256 x 256, no antialiasing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
                if picture.width * picture.height > MOST_PIXELS:
                    raise _UnreadableError("too many pixels")
                grey = _grey(picture)
    except UnidentifiedImageError as error:
        raise _UnreadableError(
            "the file is empty" if not data else "not a picture of a known kind"
        ) from error
    except Image.DecompressionBombError as error:
        raise _UnreadableError("too many pixels") from error
    except (
        OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, OverflowError, EOFError,
        AttributeError, ZeroDivisionError, MemoryError, struct.error, zlib.error,
    ) as error:  # fmt: skip
        raise _UnreadableError(str(error).strip() or type(error).__name__) from error
    if grey.shape != (SIDE, SIDE):
        grey = F.interpolate(
            torch.from_numpy(grey)[None, None], (SIDE, SIDE), mode="bicubic", align_corners=False
        )[0, 0].numpy()
    return np.floor(np.clip(grey, 0, 255) + 0.5).astype(np.uint8)


def _grey(picture: Image.Image) -> npt.NDArray[np.float64]:
    if picture.mode.startswith("I"):  # 16 bits
        return np.asarray(picture).astype(np.float64) / 257
    if picture.mode != "L":
        picture = picture.convert("RGB")
    values = np.asarray(picture, dtype=np.float64)
    return values if values.ndim == 2 else values.mean(-1)
