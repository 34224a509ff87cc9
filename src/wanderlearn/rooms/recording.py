"""Record walks: h5 files of pictures and JSON files of what is met, each whole or not there.

A frame is a function of home, walk and step, so a recording that was killed goes on where its last whole
file ends, and the files are the same however often it was killed and however many processes worked on it.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from wanderlearn._version import __version__
from wanderlearn.configs import to_json
from wanderlearn.errors import WanderError
from wanderlearn.files import read_json, write_json, writing
from wanderlearn.rooms.alignment import Unaligned
from wanderlearn.rooms.annotate import EDGE, annotate, object_list, scene_name, viewing_order
from wanderlearn.rooms.home import Home, build_home
from wanderlearn.rooms.render import Camera, Renderer
from wanderlearn.rooms.streams import encode_colours, encode_ids, pack
from wanderlearn.rooms.walk import WalkConfig, walk

__all__ = [
    "Extent",
    "RecordConfig",
    "Shot",
    "Source",
    "Walked",
    "begin",
    "build_world",
    "check_wishes",
    "counted",
    "record_walk",
    "record_world",
    "sweep",
]

TELL_EVERY: Final = 20  # steps between two words to the bar


def check_wishes(config: Any) -> None:
    """Refuse what no recording can be, of our homes or of scans."""
    for name in ("frames", "walks", "width", "height", "per_file"):
        if getattr(config, name) < 1:
            raise WanderError(f"{name} must be at least 1, not {getattr(config, name)}.")
    if not 0 <= config.edge < 0.5:
        raise WanderError(f"edge must be from 0 to below 0.5, not {config.edge}.")


@dataclass(frozen=True)
class RecordConfig:
    """What is recorded of every home."""

    frames: int = 600  # steps of a walk; those with no object are left out
    walks: int = 1  # through every home
    width: int = 160
    height: int = 120
    reduced: bool = False  # draw at five times the size and shrink
    light: bool = True  # without it a home is ready some seconds sooner, and flat
    per_file: int = 200  # most frames in one file
    edge: float = EDGE  # of the frame, at each side, where the middle of what is met may not lie
    any_room: bool = False  # what is seen through a door is met too
    capped: bool = False  # at most 1 to 9 objects of a frame are met, drawn for every frame
    walk: WalkConfig = field(default_factory=WalkConfig)

    def __post_init__(self) -> None:
        check_wishes(self)


class Extent(NamedTuple):
    """How long a walk is, and how many frames a file has at most."""

    frames: int
    per_file: int

    @property
    def least(self) -> int:
        """Fewest frames in a file: half of the most there can be, 100 as in the authors' files."""
        return (min(self.per_file, self.frames) + 1) // 2


class Shot(NamedTuple):
    """What is seen at one step of a walk; where nothing is met, the step is left out."""

    rgb: npt.NDArray[np.uint8]  # [H, W, 3]
    ids: npt.NDArray[np.int32]  # [H, W]
    met: dict[str, Any]
    viewpoint: str
    location: int  # which of the ways was taken to get here: 0 for none, else 1 and on
    heading: float  # degrees, as the history of a walk tells them
    elevation: float
    unaligned: str = ""  # why its ids may lie beside its colours, where they may


class Source(Protocol):
    """A place that is walked through."""

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Every thing there, as the `objects` of a file tell it."""
        ...

    def shots(self, walk: int, first: int) -> Iterator[Shot | Unaligned]:
        """The steps of a walk, from the step `first` on."""
        ...


class Walked(NamedTuple):
    """What came of one walk."""

    steps: int
    frames: int  # in files
    empty: int  # with no object
    left_out: int  # at the end, too few for a file
    files: list[str]
    unaligned: dict[str, int] | None = None  # steps by the reason; None where nothing is to be aligned

    def told(self) -> dict[str, Any]:
        """As a file tells it."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def counted(walks: Sequence[Walked]) -> dict[str, int]:
    """What came of walks, together."""
    return {
        "walks": len(walks),
        "steps": sum(w.steps for w in walks),
        "files": sum(len(w.files) for w in walks),
        "frames": sum(w.frames for w in walks),
        "empty": sum(w.empty for w in walks),
        "left_out": sum(w.left_out for w in walks),
    }


World = Callable[[int, RecordConfig], tuple[Home, Renderer]]


def build_world(seed: int, config: RecordConfig) -> tuple[Home, Renderer]:
    """The home of a seed and what draws it."""
    home = build_home(seed)
    return home, Renderer(home, config.width, config.height, reduced=config.reduced, light=config.light)


def begin(folder: Path, config: Any) -> None:
    """Make the folder, write down what is recorded in it, refuse to mix two kinds; sweep up half files."""
    told = to_json(config) | {"wanderlearn": __version__}
    del told["walks"]  # one may ask for more of them later
    written = folder / "recording.json"
    if written.exists():
        before = read_json(written)
        changed = [n for n in told if not isinstance(before, dict) or before.get(n) != told[n]]
        if changed:
            was = ", ".join(f"{n} {before.get(n) if isinstance(before, dict) else '?'}" for n in changed)
            raise WanderError(
                f"{folder} was begun with {was}, and now it is "
                f"{', '.join(f'{n} {told[n]}' for n in changed)}. "
                "Give the same options as before to go on, or choose another folder."
            )
    else:
        write_json(written, told)
    sweep(folder)


def sweep(folder: Path) -> None:
    """Remove what a killed recording left half-written."""
    for part in folder.glob(".*.part"):
        part.unlink(missing_ok=True)


def record_world(
    seed: int,
    folder: Path,
    config: RecordConfig,
    tell: Callable[[int], None] = lambda steps: None,
    world: World = build_world,
) -> list[Walked]:
    """Record all walks through one home, or what is still missing of them; `tell` hears of steps done."""
    made: list[Source] = []

    def get() -> Source:
        if not made:
            made.append(_HomeSource(*world(seed, config), config))
        return made[0]

    scene, extent = scene_name(seed), Extent(config.frames, config.per_file)
    return [record_walk(scene, number, folder, extent, get, tell) for number in range(config.walks)]


class _HomeSource:
    """One of our homes, drawn."""

    def __init__(self, home: Home, renderer: Renderer, config: RecordConfig) -> None:
        self.home, self.renderer, self.config = home, renderer, config
        self.objects = object_list(home)

    def shots(self, walk: int, first: int) -> Iterator[Shot | Unaligned]:
        """The steps of a walk, from the step `first` on."""
        home, config, order = self.home, self.config, viewing_order(self.home, walk)
        for step, camera, location in _cameras(home, walk, config):
            if step < first:
                continue
            frame = self.renderer.draw(camera)
            r = np.random.default_rng([home.seed, walk, step])
            rules = {"any_room": config.any_room, "capped": config.capped}
            yield Shot(
                frame.rgb,
                frame.ids,
                annotate(home, camera, frame.ids, order, r, edge=config.edge, **rules),
                f"{scene_name(home.seed)}-{camera.viewpoint}",
                location,
                round(float(np.rad2deg(camera.yaw)), 6),
                round(float(np.rad2deg(camera.pitch)), 6),
            )


class _Group:
    """Frames that will be one file."""

    def __init__(self) -> None:
        self.colours: list[bytes] = []
        self.ids: list[bytes] = []
        self.annotations: list[dict[str, Any]] = []
        self.history: list[tuple[str, int, float, float, int]] = []
        self.unaligned: list[tuple[int, str]] = []  # steps, and why

    def __len__(self) -> int:
        return len(self.colours)

    def add(self, step: int, shot: Shot | Unaligned) -> None:
        """One more step, if anything is met in it."""
        if isinstance(shot, Unaligned):
            self.unaligned.append((step, shot.reason))
        elif shot.met:
            self.colours.append(encode_colours(shot.rgb))
            self.ids.append(encode_ids(shot.ids))
            self.annotations.append(shot.met)
            self.history.append((shot.viewpoint, shot.location, shot.heading, shot.elevation, step))
            if shot.unaligned:
                self.unaligned.append((step, shot.unaligned))

    @property
    def dropped(self) -> int:
        """How many steps are not in it because they could not be aligned."""
        return len({step for step, _ in self.unaligned} - {step for *_, step in self.history})

    def write(self, base: Path, objects: list[dict[str, Any]], *, aligning: bool) -> None:
        """The picture file last: where it is, the others are."""
        viewpoints, locations, headings, elevations, steps = (
            list(column) for column in zip(*self.history, strict=True)
        )
        both = {"heading": headings, "elevation": elevations}
        history = {
            "history": {"image_id": viewpoints, "location": locations},
            **{name: {"matterport": values, "habitat": values} for name, values in both.items()},
            "walk": {"step": steps} | ({"unaligned": self.unaligned} if aligning else {}),
        }
        for what, value in (("sim_history", history), ("annotations", self.annotations)):
            with writing(base.with_name(f"{base.name}__{what}.json")) as part:
                part.write_text(json.dumps(value), encoding="utf-8")
        packed = pack(self.colours, self.ids, objects)
        with writing(base.with_name(f"{base.name}__imgs.h5")) as part:
            part.write_bytes(packed)


def record_walk(
    scene: str,
    number: int,
    folder: Path,
    extent: Extent,
    get: Callable[[], Source],
    tell: Callable[[int], None] = lambda steps: None,
    *,
    aligning: bool = False,
) -> Walked:
    """Record one walk, or what is still missing of it.

    `get` is called only where something is missing. With `aligning`, the files also tell at which steps ids
    could not be aligned with colours.
    """
    start = f"episode_{number:06d}__scene_{scene}"
    ended = folder / f"{start}__walk.json"
    if (known := _ended(ended)) is not None:
        tell(known.steps)
        return known
    bases = (folder / f"{start}__group_{group}__v001" for group in count())
    files, frames, next_step = list[str](), 0, 0
    unaligned, dropped = Counter[str](), 0
    for base in bases:
        steps, reasons = _steps_in(base)
        if not steps:
            break
        files.append(f"{base.name}__imgs.h5")
        frames, next_step = frames + len(steps), steps[-1] + 1
        unaligned.update(reasons.values())
        dropped += len(reasons.keys() - set(steps))
    tell(next_step)
    group, shown = _Group(), next_step
    source = get()
    for step, shot in enumerate(source.shots(number, next_step), next_step):
        group.add(step, shot)
        last = step == extent.frames - 1
        if len(group) == extent.per_file or (last and len(group) >= extent.least):
            base = folder / f"{start}__group_{len(files)}__v001"
            group.write(base, source.objects, aligning=aligning)
            files.append(f"{base.name}__imgs.h5")
            unaligned.update(reason for _, reason in group.unaligned)
            frames, dropped, group = frames + len(group), dropped + group.dropped, _Group()
        if step + 1 - shown == TELL_EVERY or last:
            tell(step + 1 - shown)
            shown = step + 1
    unaligned.update(reason for _, reason in group.unaligned)
    empty = extent.frames - frames - len(group) - dropped - group.dropped
    counts = dict(sorted(unaligned.items())) if aligning else None
    walked = Walked(extent.frames, frames, empty, len(group), files, counts)
    write_json(ended, walked.told())
    return walked


def _cameras(home: Home, number: int, config: RecordConfig) -> Iterator[tuple[int, Camera, int]]:
    """The steps of a walk, and which of the ways was taken to get there: 0 for none, else 1 and on."""
    before: int | None = None
    for step, camera in enumerate(walk(home, number, config.frames, config.walk)):
        moved = before is not None and before != camera.viewpoint
        location = (
            home.viewpoints[before].ways.index(camera.viewpoint) + 1 if moved and before is not None else 0
        )
        before = camera.viewpoint
        yield step, camera, location


def _ended(path: Path) -> Walked | None:
    """What came of a walk that was recorded to its end, if all its files are still there."""
    if not path.exists():
        return None
    told = read_json(path)
    try:
        walked = Walked(**told)
        whole = all((path.parent / name).exists() for name in walked.files)
    except TypeError as error:
        raise WanderError(
            f"{path} does not say what came of a walk. Remove it, and the walk is recorded again."
        ) from error
    return walked if whole else None


def _steps_in(base: Path) -> tuple[list[int], dict[int, str]]:
    """The steps in a file of a recording, none if it is not there; and which were not aligned, and why."""
    if not base.with_name(f"{base.name}__imgs.h5").exists():
        return [], {}
    history = base.with_name(f"{base.name}__sim_history.json")
    told = read_json(history)
    try:
        steps = [int(step) for step in told["walk"]["step"]]
        reasons = {int(step): str(reason) for step, reason in told["walk"].get("unaligned", [])}
    except (KeyError, TypeError, ValueError) as error:
        raise WanderError(
            f"{history} does not say which steps of the walk were recorded. Remove the files of "
            f"{base.name.split('__group')[0]}, and the walk is recorded again."
        ) from error
    return steps, reasons
