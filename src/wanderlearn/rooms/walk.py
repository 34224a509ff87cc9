"""The walk: an agent that looks around, goes where it can see a way, and looks around again."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from wanderlearn.errors import WanderError
from wanderlearn.rooms.home import Home
from wanderlearn.rooms.render import Camera

__all__ = ["Ground", "Pose", "WalkConfig", "in_view", "walk", "wander"]


@dataclass(frozen=True)
class WalkConfig:
    """How the agent walks; the defaults are those of the authors' program."""

    dwell: float = 5.0  # steps at one viewpoint, mean and standard deviation
    dwell_spread: float = 1.0
    turn: float = 12.5  # degrees a step
    nod: float = 5.0  # degrees up or down
    nod_chance: float = 0.95
    nod_limit: float = 2.5
    ahead: float = 25.0  # a viewpoint is in view within so many degrees
    patience: int = 28  # steps after which the way of turning is drawn again
    choice: Literal["near", "uniform"] = "near"
    """near: softmax of (10 - distance), as in the authors' program; uniform: as in the paper."""


class Pose(NamedTuple):
    """Where a walker stands (the number of a viewpoint) and looks, in radians."""

    viewpoint: int
    yaw: float
    pitch: float


class Ground(Protocol):
    """What a walk needs of a place: how many viewpoints there are, and where one can go from each."""

    def __len__(self) -> int: ...

    def ahead(self, here: int, yaw: float, degrees: float) -> list[tuple[int, float]]:
        """The viewpoints one can go to within so many degrees of straight ahead, and how far off they are."""
        ...


def walk(home: Home, seed: int, frames: int = 600, config: WalkConfig | None = None) -> Iterator[Camera]:
    """The cameras of a walk through a home, one for every frame.

    At a viewpoint the agent turns 12.5 degrees a step, always the same way round, and nods 5 degrees up or
    down with probability 0.95. After a time drawn from N(5, 1) it goes to a viewpoint it sees ahead, if any,
    else it turns on until it sees one.
    """
    poses = wander(_Floor(home), home.seed, seed, frames, config)
    return (Camera(p.viewpoint, home.viewpoints[p.viewpoint].position, p.yaw, p.pitch) for p in poses)


def wander(
    ground: Ground, place: int, seed: int, frames: int = 600, config: WalkConfig | None = None
) -> Iterator[Pose]:
    """The walk through any place, of which `place` is the seed: where the walker is at every step."""
    if frames < 1:
        raise WanderError(f"A walk has at least 1 frame, not {frames}.")
    if not 0 <= seed < 2**63:
        raise WanderError(f"The seed of a walk must be a whole number from 0 on, not {seed}.")
    r = np.random.Generator(np.random.Philox(key=[place, seed]))
    return _wander(ground, r, frames, config or WalkConfig())


def _wander(ground: Ground, r: np.random.Generator, frames: int, c: WalkConfig) -> Iterator[Pose]:
    here = int(r.integers(len(ground)))
    yaw, pitch = float(r.uniform(0, 2 * np.pi)), 0.0
    limit = np.deg2rad(c.nod_limit)
    way, dwell, steps = _begin(r, c)
    for _ in range(frames):
        yield Pose(here, yaw, pitch)
        steps += 1
        ahead = ground.ahead(here, yaw, c.ahead) if steps >= dwell else []
        if ahead:
            here = _choose(ahead, r, c)
            way, dwell, steps = _begin(r, c)
            continue
        if steps % c.patience == 0:
            way = 1 if r.random() < 0.5 else -1
        yaw = (yaw + way * np.deg2rad(c.turn)) % (2 * np.pi)
        if r.random() < c.nod_chance:
            pitch = float(np.clip(pitch + np.deg2rad(c.nod) * (1 if r.random() < 0.5 else -1), -limit, limit))


def in_view(home: Home, here: int, yaw: float, degrees: float) -> list[int]:
    """The viewpoints one can go to that lie within so many degrees of straight ahead."""
    x, y, _ = home.viewpoints[here].position
    seen = []
    for n in home.viewpoints[here].ways:
        to_x, to_y, _ = home.viewpoints[n].position
        off = (np.arctan2(to_y - y, to_x - x) - yaw + np.pi) % (2 * np.pi) - np.pi
        if abs(off) <= np.deg2rad(degrees):
            seen.append(n)
    return seen


class _Floor:
    """The viewpoints of one of our homes."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def __len__(self) -> int:
        return len(self.home.viewpoints)

    def ahead(self, here: int, yaw: float, degrees: float) -> list[tuple[int, float]]:
        points = self.home.viewpoints
        start = np.array(points[here].position)
        seen = in_view(self.home, here, yaw, degrees)
        return [(n, float(np.linalg.norm(np.array(points[n].position) - start))) for n in seen]


def _begin(r: np.random.Generator, c: WalkConfig) -> tuple[int, int, int]:
    """On arriving: a way to turn, how long to stay, no steps yet."""
    way = 1 if r.random() < 0.5 else -1
    return way, max(0, int(r.normal(c.dwell, c.dwell_spread))), 0


def _choose(ahead: list[tuple[int, float]], r: np.random.Generator, c: WalkConfig) -> int:
    if c.choice == "uniform":
        return ahead[int(r.integers(len(ahead)))][0]
    far = np.array([distance for _, distance in ahead])
    weight = np.exp(far.min() - far)  # softmax of 10 - distance
    return ahead[int(r.choice(len(ahead), p=weight / weight.sum()))][0]
