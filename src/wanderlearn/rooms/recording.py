"""Record walks through a home: h5 files of pictures and JSON files of what is met, each whole or not there.

A frame is a function of home, walk and step, so a recording that was killed goes on where its last whole
file ends, and the files are the same however often it was killed and however many processes worked on it.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from wanderlearn._version import __version__
from wanderlearn.configs import to_json
from wanderlearn.errors import WanderError
from wanderlearn.files import read_json, write_json, writing
from wanderlearn.rooms.annotate import EDGE, annotate, object_list, scene_name, viewing_order
from wanderlearn.rooms.home import Home, build_home
from wanderlearn.rooms.render import Camera, Renderer
from wanderlearn.rooms.streams import encode_colours, encode_ids, pack
from wanderlearn.rooms.walk import WalkConfig, walk

__all__ = ["RecordConfig", "Walked", "begin", "build_world", "record_world", "sweep"]

TELL_EVERY: Final = 20  # steps between two words to the bar


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
        for name in ("frames", "walks", "width", "height", "per_file"):
            if getattr(self, name) < 1:
                raise WanderError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if not 0 <= self.edge < 0.5:
            raise WanderError(f"edge must be from 0 to below 0.5, not {self.edge}.")

    @property
    def least(self) -> int:
        """Fewest frames in a file: half of the most there can be, 100 as in the authors' files."""
        return (min(self.per_file, self.frames) + 1) // 2


class Walked(NamedTuple):
    """What came of one walk."""

    steps: int
    frames: int  # in files
    empty: int  # with no object
    left_out: int  # at the end, too few for a file
    files: list[str]


World = Callable[[int, RecordConfig], tuple[Home, Renderer]]


def build_world(seed: int, config: RecordConfig) -> tuple[Home, Renderer]:
    """The home of a seed and what draws it."""
    home = build_home(seed)
    return home, Renderer(home, config.width, config.height, reduced=config.reduced, light=config.light)


def begin(folder: Path, config: RecordConfig) -> None:
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
    made: list[tuple[Home, Renderer]] = []

    def get() -> tuple[Home, Renderer]:
        if not made:
            made.append(world(seed, config))
        return made[0]

    return [_record_walk(seed, number, folder, config, tell, get) for number in range(config.walks)]


class _Group:
    """Frames that will be one file."""

    def __init__(self) -> None:
        self.colours: list[bytes] = []
        self.ids: list[bytes] = []
        self.annotations: list[dict[str, Any]] = []
        self.history: list[tuple[str, int, float, float, int]] = []

    def __len__(self) -> int:
        return len(self.colours)

    def write(self, base: Path, objects: list[dict[str, Any]]) -> None:
        """The picture file last: where it is, the others are."""
        viewpoints, locations, headings, elevations, steps = (
            list(column) for column in zip(*self.history, strict=True)
        )
        both = {"heading": headings, "elevation": elevations}
        history = {
            "history": {"image_id": viewpoints, "location": locations},
            **{name: {"matterport": values, "habitat": values} for name, values in both.items()},
            "walk": {"step": steps},
        }
        for what, value in (("sim_history", history), ("annotations", self.annotations)):
            with writing(base.with_name(f"{base.name}__{what}.json")) as part:
                part.write_text(json.dumps(value), encoding="utf-8")
        packed = pack(self.colours, self.ids, objects)
        with writing(base.with_name(f"{base.name}__imgs.h5")) as part:
            part.write_bytes(packed)


def _record_walk(
    seed: int,
    number: int,
    folder: Path,
    config: RecordConfig,
    tell: Callable[[int], None],
    get: Callable[[], tuple[Home, Renderer]],
) -> Walked:
    start = f"episode_{number:06d}__scene_{scene_name(seed)}"
    ended = folder / f"{start}__walk.json"
    if (known := _ended(ended)) is not None:
        tell(known.steps)
        return known
    bases = (folder / f"{start}__group_{group}__v001" for group in count())
    files, frames, next_step = list[str](), 0, 0
    for base in bases:
        steps = _steps_in(base)
        if not steps:
            break
        files.append(f"{base.name}__imgs.h5")
        frames, next_step = frames + len(steps), steps[-1] + 1
    tell(next_step)
    group, shown = _Group(), next_step
    home, renderer = get()
    objects, order = object_list(home), viewing_order(home, number)
    for step, camera, location in _cameras(home, number, config):
        if step < next_step:
            continue
        frame = renderer.draw(camera)
        r = np.random.default_rng([home.seed, number, step])
        rules = {"any_room": config.any_room, "capped": config.capped}
        met = annotate(home, camera, frame.ids, order, r, edge=config.edge, **rules)
        if met:
            group.colours.append(encode_colours(frame.rgb))
            group.ids.append(encode_ids(frame.ids))
            group.annotations.append(met)
            group.history.append(
                (
                    f"{scene_name(seed)}-{camera.viewpoint}",
                    location,
                    round(float(np.rad2deg(camera.yaw)), 6),
                    round(float(np.rad2deg(camera.pitch)), 6),
                    step,
                )
            )
        if len(group) == config.per_file or (step == config.frames - 1 and len(group) >= config.least):
            base = folder / f"{start}__group_{len(files)}__v001"
            group.write(base, objects)
            files.append(f"{base.name}__imgs.h5")
            frames, group = frames + len(group), _Group()
        if step + 1 - shown == TELL_EVERY or step == config.frames - 1:
            tell(step + 1 - shown)
            shown = step + 1
    walked = Walked(config.frames, frames, config.frames - frames - len(group), len(group), files)
    write_json(ended, walked._asdict())
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


def _steps_in(base: Path) -> list[int]:
    """The steps in a file of a recording, none if it is not there."""
    if not base.with_name(f"{base.name}__imgs.h5").exists():
        return []
    history = base.with_name(f"{base.name}__sim_history.json")
    told = read_json(history)
    try:
        steps = [int(step) for step in told["walk"]["step"]]
    except (KeyError, TypeError, ValueError) as error:
        raise WanderError(
            f"{history} does not say which steps of the walk were recorded. Remove the files of "
            f"{base.name.split('__group')[0]}, and the walk is recorded again."
        ) from error
    return steps
