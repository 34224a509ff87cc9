"""A home: its plan, its shell, the things in it, its light and the sensor that looks at it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from wanderlearn.errors import WanderError
from wanderlearn.pictures.collection import SPLITS, Split
from wanderlearn.rooms.furniture import CATEGORIES
from wanderlearn.rooms.patterns import Chance, hsv
from wanderlearn.rooms.plan import Plan
from wanderlearn.rooms.shapes import Floats, Part
from wanderlearn.rooms.shell import Piece
from wanderlearn.rooms.viewpoints import Viewpoint, draw_viewpoints

__all__ = ["WORLDS", "Dropped", "Home", "Lamp", "Sensor", "Thing", "build_home", "world_seeds"]

WORLDS: Final[dict[Split, int]] = {"train": 60, "val": 10, "test": 20}


@dataclass(frozen=True)
class Thing:
    """One thing in a home. Its id is what the renderer writes where it is seen."""

    id: int
    category: str
    kind: str  # what a person would call it
    room: int
    parts: list[Part]  # where it stands
    low: Floats
    high: Floats
    yaw: float
    on_floor: bool

    @property
    def counted(self) -> bool:
        """Is it one of the paper's 21 categories?"""
        return self.category in CATEGORIES

    @property
    def centre(self) -> Floats:
        """The middle of its bounding box."""
        return (self.low + self.high) / 2

    @property
    def size(self) -> Floats:
        """The sides of its bounding box."""
        return self.high - self.low


class Dropped(NamedTuple):
    """Something that was wanted and is not there, and why."""

    category: str
    kind: str
    room: int
    reason: str


class Lamp(NamedTuple):
    """Something that gives light to a room."""

    room: int
    position: tuple[float, float, float]
    colour: tuple[float, float, float]
    spread: tuple[float, float, float]  # half its size
    soft: float  # larger: no hot spot near it


class Sensor(NamedTuple):
    """The camera of one world."""

    exposure: float
    balance: tuple[float, float, float]
    contrast: float
    noise: float  # of 255
    vignette: float

    @classmethod
    def draw(cls, r: Chance) -> "Sensor":
        """A camera with its own exposure, white balance, contrast, noise and dark corners."""
        warm, green = float(r.normal(0, 0.05)), float(r.normal(0, 0.015))
        return cls(
            float(np.exp(r.normal(0.0, 0.13))), (1 + warm, 1 + green, 1 - warm), float(r.uniform(0.92, 1.1)),
            float(r.uniform(1.5, 5.0)), float(r.uniform(0.0, 0.1)),
        )  # fmt: skip


@dataclass(frozen=True)
class Home:
    """A furnished home, a function of its seed."""

    seed: int
    plan: Plan
    shell: list[Piece]
    things: list[Thing]
    dropped: list[Dropped]
    lamps: list[Lamp]
    ambient: tuple[float, float, float]
    sensor: Sensor
    viewpoints: list[Viewpoint] = field(default_factory=list)

    @cached_property
    def counted(self) -> list[Thing]:
        """The things of the paper's 21 categories."""
        return [thing for thing in self.things if thing.counted]

    def thing(self, id: int) -> Thing:
        """The thing with this id."""
        if not 1 <= id <= len(self.things):
            raise WanderError(f"There is no thing {id} in this home: ids go from 1 to {len(self.things)}.")
        return self.things[id - 1]


def build_home(seed: int) -> Home:
    """The home of this seed: plan, shell, furniture, light, sensor and viewpoints."""
    if not 0 <= seed < 2**63:
        raise WanderError(f"The seed of a home must be a whole number from 0 on, not {seed}.")
    from wanderlearn.rooms.furnish import furnish

    places, materials, r = (
        np.random.Generator(np.random.Philox(key=[seed, purpose])) for purpose in range(3)
    )
    plan, shell, things, dropped, lamps = furnish(places, materials)
    day = float(r.uniform(0.15, 1.0))
    tint = hsv(float(r.uniform(0.08, 0.13)), float(r.uniform(0.0, 0.2)), 1.0)
    ambient = tuple(float(c) for c in (0.2 + 0.12 * day) * tint)
    lamps = lamps + _daylight(plan, day, r)
    home = Home(
        seed, plan, shell, things, dropped, lamps, (ambient[0], ambient[1], ambient[2]), Sensor.draw(r)
    )
    home.viewpoints.extend(draw_viewpoints(home.plan, things, r))
    reached = {v.room for v in home.viewpoints}
    for room in plan.rooms:
        if room.number not in reached:
            dropped.append(Dropped("viewpoint", "viewpoint", room.number, "one cannot walk there"))
    return home


def world_seeds(split: Split, seed: int = 0) -> list[int]:
    """The seeds of the 60, 10 or 20 homes of a split; another `seed` gives another ninety."""
    if split not in SPLITS:
        raise WanderError(f"There is no split {split!r}. Choose one of {', '.join(SPLITS)}.")
    first = seed * sum(WORLDS.values()) + sum(WORLDS[s] for s in SPLITS[: SPLITS.index(split)])
    return list(range(first, first + WORLDS[split]))


def _daylight(plan: Plan, day: float, r: Chance) -> list[Lamp]:
    """What comes through the windows."""
    sky = hsv(float(r.uniform(0.55, 0.6)), float(r.uniform(0.05, 0.18)), 1.0)
    lamps = []
    for w in plan.windows:
        inside = plan.rooms[w.room].inside
        along, half, z = (w.start + w.end) / 2, (w.end - w.start) / 2, (w.sill + w.top) / 2
        x, y, sx, sy = {
            "south": (along, inside.y0 + 0.06, half, 0.0), "north": (along, inside.y1 - 0.06, half, 0.0),
            "east": (inside.x1 - 0.06, along, 0.0, half), "west": (inside.x0 + 0.06, along, 0.0, half),
        }[w.side]  # fmt: skip
        power = 1.1 * day * 2 * half * (w.top - w.sill)
        colour = tuple(float(c) * power for c in sky)
        lamps.append(
            Lamp(w.room, (x, y, z), (colour[0], colour[1], colour[2]), (sx, sy, (w.top - w.sill) / 2), 1.0)
        )
    return lamps
