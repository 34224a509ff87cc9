"""What is met in recorded walks: `rooms:PATH`, ours or the authors' files, decoded once.

A sighting is a thing in a frame. Frames (reduced, if that is asked for) and the masks of all sightings lie in
the user's cache and are mapped into memory, under a key of what lies in the folder (names, sizes, times of
change) and of how it is read.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.files import cache_dir, read_json, write_json
from wanderlearn.pictures.address import Address
from wanderlearn.pictures.collection import SPLITS, Split
from wanderlearn.pictures.kept import new_folder, room_for
from wanderlearn.progress import bar
from wanderlearn.rooms.reading import RoomsFile, RoomsFrame, Seen, read_annotations, recorded_files, scene_of

__all__ = ["Sightings", "files_of", "sightings"]

VERSION: Final = 1  # a change of any pixel or of any rule is a change of version
MANIFEST: Final = "manifest.json"
SHARES: Final = {"val": 1 / 9, "test": 2 / 9}  # of the homes, as 10 and 20 of 90

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sightings:
    """All sightings of one split, by walk and in the order of time. A sighting's row is its id.

    Those of walk w (a file of a recording) are rows `first[w]` to `first[w + 1]`; those of one frame follow
    each other. A class is one thing of one home, its family the category.
    """

    name: str
    split: Split
    frames: Bytes = field(repr=False)  # [F, 3, H, W]
    masks: Bytes = field(repr=False)  # [N, H * W / 8] packed bits
    first: Ints  # [walks + 1]
    frame: Ints = field(repr=False)  # [N], rising
    class_of: Ints = field(repr=False)  # [N]
    room: Ints = field(repr=False)  # [N] numbered within a walk
    family: Ints = field(repr=False)  # [classes], index into family_names
    class_names: Sequence[str] = field(repr=False)
    family_names: Sequence[str] = field(repr=False)
    walks: Sequence[str] = field(repr=False)  # names of the files
    digest: str

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of what is met: the frame and the mask."""
        _, channels, height, width = self.frames.shape
        return channels + 1, height, width

    @property
    def classes(self) -> int:
        """How many things there are in all homes."""
        return len(self.class_names)

    @cached_property
    def first_of_frame(self) -> Ints:
        """The sightings of frame f are rows `first_of_frame[f]` to `first_of_frame[f + 1]`, [F + 1]."""
        return np.searchsorted(self.frame, np.arange(len(self.frames) + 1))

    def mask(self, rows: Ints) -> Bools:
        """Where these things are in their frames, [N, H, W]."""
        _, height, width = self.shape
        bits = np.unpackbits(self.masks[rows], axis=-1, count=height * width)
        return bits.reshape(len(rows), height, width).astype(bool)


def sightings(address: Address, split: Split) -> Sightings:
    """The sightings of one split of a recording, of frames with `size` rows (default: as recorded).

    The first call decodes them.
    """
    paths, rule = files_of(address, split)
    height = address.options.size
    files = [file for path in paths for file in (path, _beside(path)) if file.exists()]
    stamps = [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    key = hashlib.sha256(json.dumps([VERSION, height, split, stamps]).encode()).hexdigest()
    place = cache_dir() / "pictures" / f"{address.name}-{split}-{key[:24]}"
    if not (place / MANIFEST).exists():
        with new_folder(place) as part:
            _fill(part, paths, height, {"name": address.name, "split": split, "rule": rule})
    return _load(place)


def files_of(address: Address, split: Split) -> tuple[list[Path], str]:
    """The files of a split, and by which rule they are its.

    A folder `train`, `val` or `test` is that split. Where there is none, homes are shared out by chance: two
    ninths of them for testing, one ninth for validation, as the authors' 20 and 10 of 90.
    """
    root = Path(address.path)
    named = [s for s in SPLITS if (root / s).is_dir()]
    if named:
        if split not in named:
            raise WanderError(
                f"{root} has no recording for the split {split}, only for {', '.join(named)}. Record one: "
                f"wander rooms record --split {split} --out {root}"
            )
        return recorded_files(root / split), f"the folder {split}"
    found = recorded_files(root)
    scenes = sorted({scene_of(path) for path in found})
    if len(scenes) < len(SPLITS):
        raise WanderError(
            f"{root} has walks through {len(scenes)} homes, but training, validation and testing need "
            "homes of their own. Add homes, or put the files into folders train, val and test."
        )
    seed = address.options.seed
    by_chance = sorted(scenes, key=lambda scene: hashlib.sha256(f"{seed}/{scene}".encode()).hexdigest())
    counts = {name: max(1, round(share * len(scenes))) for name, share in SHARES.items()}
    shares: dict[Split, list[str]] = {
        "val": by_chance[: counts["val"]],
        "test": by_chance[counts["val"] :][: counts["test"]],
        "train": by_chance[counts["val"] + counts["test"] :],
    }
    rule = f"homes in the order of SHA-256 of '{seed}/HOME': first val, then test, then train"
    return [path for path in found if scene_of(path) in set(shares[split])], rule


def _beside(path: Path) -> Path:
    return path.with_name(path.name.replace("__imgs.h5", "__annotations.json"))


def _fill(part: Path, paths: Sequence[Path], height: int | None, about: dict[str, Any]) -> None:
    """Decode all files into a folder."""
    met = [read_annotations(path) for path in paths]  # without pictures, to know how much there is
    most_frames, most = sum(bool(f) for walk in met for f in walk), sum(len(f) for walk in met for f in walk)
    if not most:
        raise WanderError(f"Nothing is met in the {len(paths)} files of {paths[0].parent}.")
    seen = hashlib.sha256()
    classes: dict[tuple[str, int], int] = {}
    categories: list[str] = []
    rows: list[tuple[int, int, int]] = []
    first, frame = [0], 0
    frames = masks = None
    with bar(f"decoding {about['name']} {about['split']}", most_frames) as shown:
        for path in paths:
            file, rooms = RoomsFile(path), dict[str, int]()
            for n, objects in enumerate(file.annotations):
                if not objects:
                    continue
                shown.advance()
                read = file.frame(n)
                if read.black:
                    continue
                rgb, ids = _reduced(read, height, path)
                if frames is None or masks is None:
                    shape = rgb.shape
                    frames = _array(part / "frames.npy", (most_frames, *shape))
                    masks = _array(part / "masks.npy", (most, -(-shape[1] * shape[2] // 8)))
                if rgb.shape != shape:
                    raise WanderError(
                        f"Frame {n} of {path} has another size than those before it. Record all homes with "
                        "the same options."
                    )
                frames[frame] = rgb
                for thing in objects:
                    class_ = classes.setdefault((file.scene, thing.id), len(classes))
                    if class_ == len(categories):
                        categories.append(thing.category)
                    masks[len(rows)] = np.packbits(_mask(read, thing, ids))
                    rows.append((frame, class_, rooms.setdefault(thing.region, len(rooms))))
                seen.update(frames[frame].tobytes())
                frame += 1
            first.append(len(rows))
    if frames is None or masks is None:
        raise WanderError(f"All frames of the {len(paths)} files in {paths[0].parent} are black.")
    table = np.array(rows, dtype=np.int64)
    for array in (masks[: len(rows)], table, np.array(first)):
        seen.update(f"{array.dtype}{array.shape}".encode())
        seen.update(np.ascontiguousarray(array).data)
    named = [
        [f"{scene}/{category} {id}", category]
        for (scene, id), category in zip(classes, categories, strict=True)
    ]
    seen.update(json.dumps(named).encode())
    frames.flush()
    masks.flush()
    np.save(part / "sightings.npy", table, allow_pickle=False)
    told = about | {"version": VERSION, "digest": seen.hexdigest(), "shape": [frame, *frames.shape[1:]]}
    told |= {"files": [path.name for path in paths], "first": first, "classes": named}
    write_json(part / MANIFEST, told)
    homes = len({scene for scene, _ in classes})
    print(
        f"{about['name']} {about['split']}: {len(rows):,} sightings of {len(classes):,} things in "
        f"{frame:,} frames of {homes} homes.",
        file=sys.stderr,
    )


def _array(path: Path, shape: tuple[int, ...]) -> "np.memmap[Any, np.dtype[np.uint8]]":
    """A new array of bytes in a file, mapped into memory."""
    offset = room_for(path, shape)
    return np.memmap(path, np.uint8, "r+", offset, shape)


def _reduced(frame: RoomsFrame, height: int | None, path: Path) -> tuple[Bytes, npt.NDArray[np.int32]]:
    """Colours [3, h, w], each the mean of a square of pixels, and the ids at the middles of the squares."""
    rows, columns = frame.ids.shape
    height = height or rows
    by, rest = divmod(rows, height)
    if by < 1 or rest or columns % by:
        raise WanderError(
            f"Frames of {path} have {rows} x {columns} pixels, which cannot be reduced to {height} rows. "
            f"Choose a size that divides {rows}, as in 'rooms:PATH?size={rows}'."
        )
    if by == 1:
        return np.ascontiguousarray(frame.rgb.transpose(2, 0, 1)), frame.ids
    squares = frame.rgb.reshape(height, by, columns // by, by, 3).astype(np.uint32)
    mean = (squares.sum((1, 3)) + by * by // 2) // (by * by)
    small = np.ascontiguousarray(mean.astype(np.uint8).transpose(2, 0, 1))
    return small, frame.ids[by // 2 :: by, by // 2 :: by]


def _mask(frame: RoomsFrame, thing: Seen, ids: npt.NDArray[np.int32]) -> Bools:
    """Where a thing is; its box, where the ids have lost it."""
    return RoomsFrame(frame.rgb, ids, frame.objects).mask(thing)


def _load(place: Path) -> Sightings:
    told = read_json(place / MANIFEST)
    try:
        table = np.load(place / "sightings.npy", allow_pickle=False)
        count, *shape = told["shape"]
        frames = np.load(place / "frames.npy", mmap_mode="r", allow_pickle=False)[:count]
        masks = np.load(place / "masks.npy", mmap_mode="r", allow_pickle=False)[: len(table)]
        whole = list(frames.shape) == [count, *shape] and len(masks) == len(table) == told["first"][-1]
    except (OSError, ValueError, EOFError, KeyError):
        whole = False
    if not whole:
        raise WanderError(f"{place} was damaged. Remove that folder: it is made again from the recording.")
    families = sorted({category for _, category in told["classes"]})
    number = {name: n for n, name in enumerate(families)}
    return Sightings(
        name=told["name"],
        split=told["split"],
        frames=frames,
        masks=masks,
        first=np.array(told["first"], dtype=np.int64),
        frame=table[:, 0],
        class_of=table[:, 1],
        room=table[:, 2],
        family=np.array([number[category] for _, category in told["classes"]], dtype=np.int64),
        class_names=[name for name, _ in told["classes"]],
        family_names=families,
        walks=told["files"],
        digest=told["digest"],
    )
