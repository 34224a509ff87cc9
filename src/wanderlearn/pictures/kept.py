"""Pictures decoded once: a folder in the user's cache with one file of pixels per split and a manifest.

The folder is made beside its place and moved there in one step when it is whole, so whatever interrupts
decoding leaves no half of it. What a killed process left is removed by the next one.
"""

import contextlib
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.files import cache_dir, read_json, write_json
from wanderlearn.pictures.collection import SPLITS, Pictures, Split

if sys.platform != "win32":
    import fcntl

__all__ = ["Class", "Contents", "Filling", "load_or_decode", "new_folder", "room_for"]

MANIFEST: Final = "manifest.json"
PART: Final = ".part-"
BLOCK: Final = 1024  # pictures copied at a time

Bytes = npt.NDArray[np.uint8]


@dataclass
class Class:
    """One class of a split, with how many pictures it has."""

    name: str
    family: str
    pictures: int


@dataclass
class Contents:
    """What a cache holds, without the pixels."""

    name: str
    classes: dict[Split, list[Class]]
    shape: tuple[int, int, int]
    about: dict[str, Any] = field(default_factory=dict)  # where it came from, for the reader of the manifest


Filling = Callable[[dict[Split, tuple[Path, int]]], dict[Split, dict[int, str]]]
"""Writes the pixels of every split into its file, from a byte on; gives the rows it could not read."""


def load_or_decode(
    key: str, split: Split, plan: Callable[[], tuple[Contents, Filling, Callable[[Contents], None]]]
) -> Pictures:
    """The pictures of a split from the cache with this key, which is made first if it is not there.

    `plan` gives what the cache is to hold, how it is filled, and a last word on what came out.
    """
    place = cache_dir() / "pictures" / key
    if not (place / MANIFEST).exists():
        contents, fill, finish = plan()
        _make(place, contents, fill, finish)
    return _load(place, split)


def _make(place: Path, contents: Contents, fill: Filling, finish: Callable[[Contents], None]) -> None:
    with new_folder(place) as part:
        files: dict[Split, tuple[Path, int]] = {}
        for split, classes in contents.classes.items():
            if wanted := sum(each.pictures for each in classes):
                path = part / f"{split}.npy"
                files[split] = path, room_for(path, (wanted, *contents.shape))
        for split, broken in fill(files).items():
            if broken:
                _squeeze(files[split][0], contents.classes[split], sorted(broken))
        finish(contents)  # may say that too little is left; may take classes out
        for split in SPLITS:
            _without_dropped(part / f"{split}.npy", contents.classes[split])
        for path in part.glob("*.npy"):
            with path.open("rb+") as file:
                os.fsync(file.fileno())
        write_json(part / MANIFEST, _manifest(contents))


def _manifest(contents: Contents) -> dict[str, Any]:
    splits = {
        split: {
            "pictures": sum(each.pictures for each in classes),
            "classes": [[each.name, each.family, each.pictures] for each in classes],
        }
        for split, classes in contents.classes.items()
    }
    return {"name": contents.name, "shape": list(contents.shape)} | contents.about | {"splits": splits}


@contextlib.contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """A new folder that becomes `place` if all goes well, and is gone if not."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _sweep(place.parent)
        part = Path(tempfile.mkdtemp(dir=place.parent, prefix=f"{PART}{place.name[:40]}-"))
    except OSError as error:
        raise WanderError(_cannot(place, error)) from error
    try:
        with (part / ".lock").open("w") as lock:
            if sys.platform != "win32":
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield part
        (part / ".lock").unlink()
        part.chmod(0o755)  # as any folder: a temporary one is its maker's alone
        if not place.exists():  # else another process was quicker
            part.rename(place)
    except OSError as error:
        if not (place / MANIFEST).exists():
            raise WanderError(_cannot(place, error)) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove what processes left that are no more: nobody holds its lock."""
    if sys.platform == "win32":
        return
    for left in folder.glob(f"{PART}*"):
        with contextlib.suppress(OSError), (left / ".lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)


def _cannot(place: Path, error: OSError) -> str:
    return (
        f"Cannot keep decoded pictures in {place.parent}: {error.strerror or error}. "
        "Free some space or choose a folder you may write to with WANDERLEARN_CACHE."
    )


def room_for(path: Path, shape: tuple[int, ...]) -> int:
    """Make a file for an array of bytes, with all its room; gives where the array begins."""
    with path.open("wb") as file:
        np.lib.format.write_array_header_2_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        offset, size = file.tell(), int(np.prod(shape))
        try:  # a full disk is an error now, not in the middle
            os.posix_fallocate(file.fileno(), 0, offset + size)
        except (AttributeError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
            file.truncate(offset + size)  # where room cannot be taken ahead
    return offset


def _squeeze(path: Path, classes: Sequence[Class], broken: Sequence[int]) -> None:
    """Take the broken rows out."""
    row = 0
    bad = np.array(broken)
    for each in classes:
        end = row + each.pictures
        each.pictures -= int(((bad >= row) & (bad < end)).sum())
        row = end
    keep = np.ones(row, dtype=bool)
    keep[bad] = False
    _keep_rows(path, np.flatnonzero(keep))


def _without_dropped(path: Path, classes: list[Class]) -> None:
    """Take the classes out that `finish` gave a negative number of pictures: they had so many."""
    if all(each.pictures >= 0 for each in classes):
        return
    keep = np.concatenate([np.full(abs(each.pictures), each.pictures > 0) for each in classes])
    classes[:] = [each for each in classes if each.pictures > 0]
    _keep_rows(path, np.flatnonzero(keep))


def _keep_rows(path: Path, rows: npt.NDArray[np.int64]) -> None:
    old = np.load(path, mmap_mode="r")
    packed = path.with_name(f"{path.name}.packed")
    offset = room_for(packed, (len(rows), *old.shape[1:]))
    with packed.open("rb+") as file:
        file.seek(offset)
        for start in range(0, len(rows), BLOCK):
            file.write(np.ascontiguousarray(old[rows[start : start + BLOCK]]).data)
    packed.replace(path)


def _load(place: Path, split: Split) -> Pictures:
    """The pictures of a split, as a map of the file: only what is looked at is read."""
    told = read_json(place / MANIFEST)
    classes = [Class(*each) for each in told["splits"][split]["classes"]]
    if not classes:
        there = ", ".join(s for s in SPLITS if told["splits"][s]["classes"])
        raise WanderError(
            f"{told['name']} has no pictures for the split {split}, only for {there}. Add a folder {split} "
            "with classes of its own, or leave the folders of splits away: then chance shares classes out."
        )
    path = place / f"{split}.npy"
    count = sum(each.pictures for each in classes)
    try:
        images = np.load(path, mmap_mode="r", allow_pickle=False)
        whole = images.shape == (count, *told["shape"])
    except (OSError, ValueError, EOFError):
        whole = False
    if not whole:
        raise WanderError(
            f"{path} was damaged. Remove the folder {place}: it is made again from the pictures."
        )
    families = sorted({each.family for each in classes})
    number = {name: n for n, name in enumerate(families)}
    return Pictures(
        name=told["name"],
        split=split,
        images=images,
        first=np.cumsum([0, *(each.pictures for each in classes)]),
        family=np.array([number[each.family] for each in classes], dtype=np.int64),
        class_names=[each.name for each in classes],
        family_names=families,
        drawn=False,
    )
