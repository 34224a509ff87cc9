"""Walks through Matterport3D by the paper's two stages: walk in MatterSim, retrace in Habitat-Sim, align.

First an agent walks from viewpoint to viewpoint and takes photographs. Then the same way is gone again
through the mesh, which knows the instances. Each picture of the mesh is laid over its photograph, and the ids
go with it. What comes of it are files like those of our own homes.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.pictures.collection import SPLITS, Split
from wanderlearn.progress import bar
from wanderlearn.rooms.alignment import Unaligned, align, moved_ids, opencv
from wanderlearn.rooms.annotate import Known, met_in
from wanderlearn.rooms.recorder import alone, make_folder
from wanderlearn.rooms.recording import Extent, Shot, Walked, begin, check_wishes, record_walk
from wanderlearn.rooms.render import means, middles
from wanderlearn.rooms.simulators import Scanned, Simulators, Viewer, Walker
from wanderlearn.rooms.streams import decode_colours, encode_colours, h5_library
from wanderlearn.rooms.walk import WalkConfig, wander

__all__ = ["LEFT_OUT", "MatterportConfig", "is_counted", "published_scans", "record_scans"]

LEFT_OUT: Final = frozenset({
    "ceiling", "floor", "cabinet", "misc", "objects", "shelving", "stairs", "void", "wall", "window",
    "shower", "seating", "door", "curtain", "mirror", "counter", "sink", "beam", "column", "railing",
})  # fmt: skip
"""The authors' list. Of Matterport3D's 40 categories it leaves the paper's 21."""
NAMELESS: Final = frozenset({"", "unlabeled"})


@dataclass(frozen=True)
class MatterportConfig:
    """What is recorded of every scan; the defaults are those of the authors' program."""

    frames: int = 600  # steps of a walk; those with no object are left out
    walks: int = 1  # through every scan
    width: int = 160  # pictures are shrunk to this size
    height: int = 120
    per_file: int = 200  # most frames in one file
    edge: float = 0.15  # of the frame, at each side, where the middle of what is met may not lie
    any_room: bool = False  # what is seen through a door is met too
    capped: bool = True  # at most 1 to 9 objects of a frame are met, drawn for every frame
    unaligned: Literal["drop", "keep"] = "drop"
    """What becomes of a frame that cannot be aligned. keep: its ids stay as they are, as with the authors."""
    walk: WalkConfig = field(default_factory=WalkConfig)

    def __post_init__(self) -> None:
        check_wishes(self)


def published_scans(split: Split) -> list[str]:
    """The scans of a split as published, in the paper's order: 60, 10 or 20."""
    if split not in SPLITS:
        raise WanderError(f"There is no split {split!r}. Choose one of {', '.join(SPLITS)}.")
    text = resources.files("wanderlearn.rooms").joinpath("matterport.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return [scan for of, scan in lines if of == split]


def is_counted(category: str) -> bool:
    """May a thing of this category of Matterport3D be met?"""
    return category.lower() not in LEFT_OUT | NAMELESS


def record_scans(
    scans: Sequence[str], folder: Path, config: MatterportConfig, simulators: Simulators
) -> dict[str, list[Walked]]:
    """Record walks through scans into a folder, or what is still missing there; by scan what came of it."""
    h5_library()
    opencv()
    make_folder(folder)
    done: dict[str, list[Walked]] = {}
    total = len(scans) * config.walks * config.frames
    with alone(folder), bar("recording", total) as shown:
        begin(folder, config)
        for scan in scans:
            done[scan] = _record_scan(_Scan(scan, simulators, config), folder, config, shown.advance)
    return done


def _record_scan(
    source: "_Scan", folder: Path, config: MatterportConfig, tell: Callable[[int], None]
) -> list[Walked]:
    extent = Extent(config.frames, config.per_file)
    return [
        record_walk(source.scan, number, folder, extent, lambda: source, tell, aligning=True)
        for number in range(config.walks)
    ]


class _Step(NamedTuple):
    """A step of a walk through a scan."""

    viewpoint: str
    position: tuple[float, float, float]
    heading: float
    elevation: float
    location: int


class _Scan:
    """A scan that is walked through."""

    def __init__(self, scan: str, simulators: Simulators, config: MatterportConfig) -> None:
        self.scan, self.simulators, self.config = scan, simulators, config
        self.seed = int.from_bytes(hashlib.sha256(scan.encode()).digest()[:7])
        self.objects: list[dict[str, Any]] = []

    def shots(self, walk: int, first: int) -> Iterator[Shot | Unaligned]:
        """The steps of a walk, from the step `first` on: both stages, one after the other."""
        with contextlib.closing(self.simulators.walker(self.scan)) as walker:
            steps = self._path(walker, walk)[first:]
            pictures = [encode_colours(walker.picture(s.viewpoint, s.heading, s.elevation)) for s in steps]
        with contextlib.closing(self.simulators.viewer(self.scan)) as viewer:
            eye = _Eye(viewer, self.config, np.random.default_rng([self.seed, walk]))
            self.objects = [_told(thing) for thing in eye.things]
            for number, (step, picture) in enumerate(zip(steps, pictures, strict=True), first):
                r = np.random.default_rng([self.seed, walk, number])
                yield eye.shot(step, decode_colours(picture), r)

    def _path(self, walker: Walker, walk: int) -> list[_Step]:
        """All steps of a walk. Nothing is drawn for it."""
        ground = _Graph(walker)
        steps: list[_Step] = []
        before = None
        for pose in wander(ground, self.seed, walk, self.config.frames, self.config.walk):
            name, location = ground.names[pose.viewpoint], 0
            if before is not None and before.viewpoint != pose.viewpoint:
                ways = walker.stand(ground.names[before.viewpoint], before.yaw).ways
                location = [way.viewpoint for way in ways].index(name) + 1
            position = walker.stand(name, pose.yaw).position
            steps.append(_Step(name, position, pose.yaw, pose.pitch, location))
            before = pose
        return steps


class _Graph:
    """The viewpoints of a scan, to wander on. What a walk calls yaw is the heading here."""

    def __init__(self, walker: Walker) -> None:
        self.walker, self.names = walker, walker.viewpoints()
        if not self.names:
            raise WanderError("This scan has no viewpoints to walk on. Fetch its graph again.")
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def ahead(self, here: int, yaw: float, degrees: float) -> list[tuple[int, float]]:
        ways = self.walker.stand(self.names[here], yaw).ways
        near = [
            way for way in ways if abs(way.turn) <= np.deg2rad(degrees) and way.viewpoint in self._numbers
        ]
        return [(self._numbers[way.viewpoint], way.distance) for way in near]


class _Eye:
    """Retraces a walk: sees the instances, lays them over the photographs, says what is met."""

    def __init__(self, viewer: Viewer, config: MatterportConfig, r: np.random.Generator) -> None:
        self.viewer, self.config, self.things = viewer, config, viewer.things()
        # Habitat also writes 0 where the mesh has a hole, so the thing with that id is never met.
        self.known = {
            t.id: Known(t.category, t.region, t.region_name)
            for t in self.things
            if t.id != 0 and is_counted(t.category)
        }
        self.listed = np.zeros(max((t.id for t in self.things), default=0) + 1, bool)
        self.listed[[t.id for t in self.things]] = True
        self.order = r.permutation(len(self.listed))
        self.rooms = [t for t in self.things if t.region]
        self.centres = np.array([t.centre for t in self.rooms]).reshape(-1, 3)

    def shot(
        self, step: _Step, photograph: npt.NDArray[np.uint8], r: np.random.Generator
    ) -> Shot | Unaligned:
        """What is met at a step."""
        k, why = self._shrink(photograph), ""
        if not photograph.any():
            return Unaligned("black picture")
        rgb, seen = self.viewer.look(step.position, step.heading, step.elevation)
        inside = (seen >= 0) & (seen < len(self.listed))
        ids = np.where(inside & self.listed[np.where(inside, seen, 0)], seen, 0).astype(np.int32)
        if self.known.keys() & set(np.unique(ids).tolist()):
            found = align(photograph, rgb)
            if isinstance(found, Unaligned):
                if self.config.unaligned == "drop":
                    return found
                why = found.reason
            else:
                ids = moved_ids(ids, found.matrix)
        ids = middles(ids, k)
        met = met_in(
            ids,
            self.known,
            self.order,
            r,
            viewpoint=step.viewpoint,
            room=None if self.config.any_room else self._room(step.position),
            edge=self.config.edge,
            capped=self.config.capped,
        )
        heading, elevation = (round(float(np.rad2deg(a)), 6) for a in (step.heading, step.elevation))
        return Shot(
            means(photograph, k), ids, met, step.viewpoint, step.location, heading, elevation, unaligned=why
        )

    def _room(self, position: tuple[float, float, float]) -> str:
        """The region one stands in: as with the authors, that of the thing whose middle is nearest."""
        if not self.rooms:
            return ""
        away = np.linalg.norm(self.centres - np.array(position), axis=1)
        return self.rooms[int(away.argmin())].region

    def _shrink(self, picture: npt.NDArray[np.uint8]) -> int:
        height, width = picture.shape[:2]
        k = int(width // self.config.width)
        if k < 1 or (width, height) != (k * self.config.width, k * self.config.height):
            raise WanderError(
                f"Pictures of {width} x {height} cannot be shrunk to {self.config.width} x "
                f"{self.config.height}: the size must be a whole multiple of it."
            )
        return k


def _told(thing: Scanned) -> dict[str, Any]:
    """A thing as the `objects` of a file tell it."""
    return {
        "sizes": [round(side, 4) for side in thing.size],
        "center": [round(at, 4) for at in thing.centre],
        "id": thing.name,
        "category": thing.category,
        "region_id": thing.region,
        "region_name": thing.region_name,
    }
