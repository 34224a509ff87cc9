"""Read recordings of rooms, ours or the authors': frames, what is met in them, and where.

for path in recorded_files("my/rooms"):
    file = RoomsFile(path)
    for frame in file:
        for seen in frame.objects:
            frame.rgb, frame.mask(seen), file.scene, seen.id, seen.category
"""

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.files import read_json
from wanderlearn.rooms.annotate import FULL, Box
from wanderlearn.rooms.streams import COLOURS, IDS, decode_colours, decode_ids, h5_library

__all__ = ["RoomsFile", "RoomsFrame", "Seen", "read_annotations", "recorded_files", "scene_of"]

ENDING: Final = "__imgs.h5"
NAME: Final = re.compile(r"episode_(\d+)__scene_([^_]+)__group_(\d+)__v(\d+)__imgs\.h5")


class Seen(NamedTuple):
    """An object that is met in a frame."""

    id: int  # what the ids of the frame are where it is
    category: str
    region: str  # the room it is in, "" where it is not known
    region_name: str
    viewpoint: str
    boxes: tuple[Box, ...]  # from far to near, in a frame of 600 x 800

    @property
    def box(self) -> Box:
        """The box right around it: top, bottom, left, right of a frame of 600 x 800, all inside."""
        return self.boxes[-1]


class RoomsFrame(NamedTuple):
    """A frame of a walk."""

    rgb: npt.NDArray[np.uint8]  # [H, W, 3]
    ids: npt.NDArray[np.int32]  # [H, W]
    objects: tuple[Seen, ...]

    @property
    def black(self) -> bool:
        """Is there nothing in it? The authors' simulator gave such frames now and then."""
        return not self.rgb.any()

    def box(self, seen: Seen) -> Box:
        """The box right around an object in this frame: rows [top, bottom), columns [left, right)."""
        high, wide = self.ids.shape[0] / FULL[0], self.ids.shape[1] / FULL[1]
        top, bottom, left, right = seen.box
        return int(top * high), int(bottom * high) + 1, int(left * wide), int(right * wide) + 1

    def mask(self, seen: Seen) -> npt.NDArray[np.bool_]:
        """Where an object is [H, W]; its box, where the ids have lost it."""
        mask: npt.NDArray[np.bool_] = self.ids == seen.id
        if not mask.any():
            top, bottom, left, right = self.box(seen)
            mask[top:bottom, left:right] = True
        return mask


def recorded_files(folder: Path | str, scenes: Collection[str] | None = None) -> list[Path]:
    """The picture files in a folder and in the folders right under it, sorted; of these scenes only."""
    folder = Path(folder)
    if not folder.is_dir():
        raise WanderError(f"There is no folder {folder}. `wander rooms record --out {folder}` makes one.")
    found = sorted([*folder.glob(f"*{ENDING}"), *folder.glob(f"*/*{ENDING}")])
    if not found:
        raise WanderError(
            f"No recording of rooms is in {folder}: no file there, or in a folder right under it, ends in "
            f"{ENDING}. `wander rooms record` makes some."
        )
    if scenes is not None:
        found = [path for path in found if scene_of(path) in scenes]
        if not found:
            raise WanderError(f"No file in {folder} is of one of the {len(scenes)} scenes asked for.")
    return found


class RoomsFile:
    """One file of a recording with its JSON: up to 200 frames of one walk in order.

    All but the pictures is checked on opening; a picture is decoded, and checked, when it is asked for.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.scene, self.group = _named(self.path)
        self.annotations = read_annotations(self.path)
        try:
            with h5_library().File(self.path, "r") as file:
                self._colours, self._ids = (_stream(self.path, file, name) for name in (COLOURS, IDS))
                self.things = _things(self.path, file)
        except (OSError, RuntimeError) as error:
            raise WanderError(
                f"{self.path} cannot be read as an h5 file ({_first_line(error)}). It is missing or was cut "
                "off: fetch or record it again."
            ) from error
        counts = {"pictures": len(self._colours), "pictures of ids": len(self._ids), "lists": len(self)}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{n} {what}" for what, n in counts.items())
            raise WanderError(
                f"{self.path} and its JSON do not belong together: {told}. Fetch or record both again."
            )

    def __len__(self) -> int:
        return len(self.annotations)

    def __iter__(self) -> Iterator[RoomsFrame]:
        return (self.frame(n) for n in range(len(self)))

    def frame(self, n: int) -> RoomsFrame:
        """Frame n, from 0."""
        if not 0 <= n < len(self):
            raise WanderError(f"There is no frame {n} in {self.path}: it has frames 0 to {len(self) - 1}.")
        what = COLOURS
        try:
            rgb = decode_colours(self._colours[n])
            what = IDS
            ids = decode_ids(self._ids[n])
        except ValueError as error:
            raise WanderError(
                f"Picture {n} of {what} in {self.path} is broken: {error}. Fetch or record the file again."
            ) from error
        if rgb.shape[:2] != ids.shape:
            raise WanderError(
                f"Frame {n} of {self.path} is {_size(rgb.shape)}, its ids are {_size(ids.shape)}. "
                "Fetch or record the file again."
            )
        return RoomsFrame(rgb, ids, self.annotations[n])


def read_annotations(path: Path) -> list[tuple[Seen, ...]]:
    """What is met in every frame of a picture file, from the JSON beside it; no pictures are read."""
    beside = path.with_name(path.name.removesuffix(ENDING) + "__annotations.json")
    if not beside.exists():
        raise WanderError(f"{path} has no {beside.name} beside it. Fetch or record both again.")
    frames = read_json(beside)
    if not isinstance(frames, list):
        raise WanderError(f"{beside} is not a list of frames.")
    read = []
    for n, frame in enumerate(frames):
        try:
            if not isinstance(frame, dict):
                raise TypeError("it is not an object of JSON")
            named = sorted(frame.items(), key=lambda item: int(item[0].removeprefix("object_")))
            read.append(tuple(_seen(told) for _, told in named))
        except (KeyError, TypeError, ValueError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise WanderError(f"Frame {n} of {beside} cannot be understood: {why}.") from error
    return read


def scene_of(path: Path) -> str:
    """The home a file was recorded in, from its name."""
    return _named(path)[0]


def _named(path: Path) -> tuple[str, int]:
    """The scene and the number of the group, from a file's name."""
    if (match := NAME.fullmatch(path.name)) is None:
        raise WanderError(
            f"{path.name} is not named as a file of a recording is: "
            f"episode_000000__scene_NAME__group_0__v001{ENDING}."
        )
    return match[2], int(match[3])


def _seen(told: Any) -> Seen:
    if not isinstance(told, dict):
        raise TypeError("an object is not an object of JSON")
    id, category, boxes = told["instance_id"], told["category"], told["zoom_bboxes"]
    if not isinstance(id, int) or isinstance(id, bool) or id < 0:
        raise ValueError(f"instance_id is {id!r}, not a whole number")
    if not isinstance(category, str) or not category:
        raise ValueError(f"category is {category!r}")
    if not isinstance(boxes, list) or not boxes:
        raise ValueError(f"object {id} has no zoom_bboxes")
    region, name = told.get("region_id"), told.get("region_name")
    return Seen(
        id,
        category,
        "" if region is None else str(region),
        "" if name is None else str(name),
        str(told.get("viewpoint", "")),
        tuple(_box(id, box) for box in boxes),
    )


def _box(id: int, box: Any) -> Box:
    if not isinstance(box, list) or len(box) != 4 or not all(isinstance(at, int) for at in box):
        raise ValueError(f"a box of object {id} is {box!r}, not four whole numbers")
    top, bottom, left, right = box
    if not (0 <= top <= bottom <= FULL[0] and 0 <= left <= right <= FULL[1]):
        raise ValueError(f"a box of object {id} is {box}, not inside {FULL[0]} x {FULL[1]}")
    return top, bottom, left, right


def _stream(path: Path, file: Any, name: str) -> list[bytes]:
    """The PNG files of one stream."""
    for wanted in (name, f"{name}_len"):
        if wanted not in file:
            raise WanderError(
                f"{path} has no {wanted!r}: it is not a recording of rooms, or not a whole one."
            )
    stream, lengths = np.asarray(file[name][()]).ravel(), np.asarray(file[f"{name}_len"][()]).ravel()
    if stream.dtype != np.uint8 or not np.issubdtype(lengths.dtype, np.integer):
        raise WanderError(
            f"{name} in {path} has {stream.dtype} bytes and {lengths.dtype} lengths, not uint8 and int64."
        )
    if (lengths <= 0).any() or int(lengths.sum()) != len(stream):
        raise WanderError(
            f"The lengths of {name} in {path} do not add up: {len(lengths)} pictures of {int(lengths.sum())} "
            f"bytes in all, and {len(stream)} bytes are there. Fetch or record the file again."
        )
    ends = np.cumsum(lengths)
    whole = stream.tobytes()
    return [whole[end - length : end] for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]


def _things(path: Path, file: Any) -> list[dict[str, Any]]:
    """Everything there is in the home, met or not: sizes, center, id, category, region_id, region_name."""
    if "objects" not in file:
        return []
    told = file["objects"][()]
    try:
        things = json.loads(told if isinstance(told, bytes | str) else bytes(told))
    except (TypeError, ValueError) as error:
        raise WanderError(f"The list of objects in {path} is not JSON: {error}.") from error
    if not isinstance(things, list):
        raise WanderError(f"The list of objects in {path} is not a list.")
    return things


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} x {shape[1]}"
