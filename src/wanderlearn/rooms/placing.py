"""Where things may stand and hang in a room: nothing overlaps, doors stay free, one can walk about."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.rooms.patterns import Chance
from wanderlearn.rooms.plan import SIDES, Plan, Rect, Room
from wanderlearn.rooms.shell import holes_of, wall_frame
from wanderlearn.rooms.workshop import Model

__all__ = ["YAWS", "Pose", "Space"]

YAWS: Final = {"north": 0.0, "west": np.pi / 2, "south": np.pi, "east": -np.pi / 2}  # back to this wall
BODY: Final = 0.25  # metres a walker needs to each side, a little more than it takes
GRID: Final = 0.1
GAP: Final = 0.02


class Pose(NamedTuple):
    """A place in the plan, a height and a turn."""

    x: float
    y: float
    z: float
    yaw: float


@dataclass
class Space:
    """One room while it is being furnished."""

    plan: Plan
    room: Room
    chance: Chance
    standing: list[tuple[Rect, float, float]] = field(default_factory=list)  # footprint, from, to
    free: list[Rect] = field(default_factory=list)  # floor that must stay free
    hanging: dict[str, list[tuple[float, float, float, float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        number = self.room.number
        self.doors = [d for d in self.plan.doors if number in d.rooms]
        self.free += [d.zone(0.75) for d in self.doors]
        for side in SIDES:
            self.hanging[side] = [
                (a - 0.09, b + 0.09, low - 0.08, high + 0.1)
                for a, b, low, high in holes_of(self.plan, self.room, side)
            ]
        if self.plan.entrance is not None and self.plan.entrance[0] == number:
            _, side, middle = self.plan.entrance
            start, way, _ = wall_frame(self.room, side)
            axis = 0 if side in ("south", "north") else 1
            u = float((middle - start[axis]) * way[axis])
            self.hanging[side].append((u - 0.56, u + 0.56, 0.0, 2.2))
            inward = np.array([way[1], -way[0]])
            a, b = start[:2] + (u - 0.4) * way[:2], start[:2] + (u + 0.4) * way[:2] + 0.8 * inward
            self.free.append(Rect(min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1])))

    def footprint(self, model: Model, pose: Pose) -> Rect:
        """The floor a model covers at this pose."""
        c, s = np.cos(pose.yaw), np.sin(pose.yaw)
        xs = [c * x - s * y for x in (model.low[0], model.high[0]) for y in (model.low[1], model.high[1])]
        ys = [s * x + c * y for x in (model.low[0], model.high[0]) for y in (model.low[1], model.high[1])]
        return Rect(pose.x + min(xs), pose.y + min(ys), pose.x + max(xs), pose.y + max(ys))

    def fits(self, at: Rect, low: float, high: float) -> bool:
        """Is this box inside the room, clear of things and, on the floor, of doors?"""
        i = self.room.inside
        if at.x0 < i.x0 + 0.005 or at.y0 < i.y0 + 0.005 or at.x1 > i.x1 - 0.005 or at.y1 > i.y1 - 0.005:
            return False
        if low < 1.8 and any(at.meets(zone) for zone in self.free):
            return False
        return not any(at.meets(other.grown(0.02)) and low < b and a < high for other, a, b in self.standing)

    def take(self, at: Rect, low: float, high: float) -> None:
        """This box is now full."""
        self.standing.append((at, low, high))

    def along_wall(
        self, model: Model, sides: tuple[str, ...] = SIDES, *,
        clear: float = 0.35, middle: bool = False, near: tuple[float, float] | None = None, tries: int = 10,
    ) -> tuple[Pose, str, float] | None:  # fmt: skip
        """A place with the back to a wall: the pose, the wall and how far along it."""
        poses = [
            (self.at_wall(model, side, u), side, u)
            for side in sides
            for u in self._tries(model, side, middle, tries)
        ]
        order = self.chance.permutation(len(poses))
        if near is not None:
            order = np.argsort([np.hypot(p.x - near[0], p.y - near[1]) for p, _, _ in poses])
        for n in order:
            pose, side, u = poses[int(n)]
            at = self.footprint(model, pose)
            if not self.fits(at, 0.0, float(model.high[2])) or not self._wall_free(model, side, u):
                continue
            front = self.footprint(model, pose).grown(-0.05)
            reach = {
                "north": (0, -clear, 0, 0),
                "south": (0, 0, 0, clear),
                "east": (-clear, 0, 0, 0),
                "west": (0, 0, clear, 0),
            }[side]
            zone = Rect(front.x0 + reach[0], front.y0 + reach[1], front.x1 + reach[2], front.y1 + reach[3])
            if any(zone.meets(other) and a < 1.5 for other, a, _ in self.standing) or not self.walkable(at):
                continue
            return pose, side, u
        return None

    def at_wall(self, model: Model, side: str, u: float, gap: float = GAP) -> Pose:
        """The pose with the back to this wall, u metres along it."""
        start, way, _ = wall_frame(self.room, side)
        inward = np.array([way[1], -way[0]])
        spot = start[:2] + u * way[:2] + (float(model.high[1]) + gap) * inward
        return Pose(float(spot[0]), float(spot[1]), 0.0, YAWS[side])

    def taken_wall(self, model: Model, side: str, u: float, z: float = 0.0) -> None:
        """This part of the wall is now hidden."""
        self.hanging[side].append(
            (
                u + float(model.low[0]),
                u + float(model.high[0]),
                z + float(model.low[2]),
                z + float(model.high[2]),
            )
        )

    def hang(
        self, model: Model, heights: tuple[float, float], sides: tuple[str, ...] = SIDES, *,
        tries: int = 14, near: tuple[float, float] | None = None,
    ) -> tuple[Pose, str, float] | None:  # fmt: skip
        """A free place on a wall with the origin of the model at a height between the two."""
        poses = []
        for side in sides:
            start, way, _ = wall_frame(self.room, side)
            for u in self._tries(model, side, False, tries):
                spot = start[:2] + u * way[:2]
                z = float(self.chance.uniform(*heights))
                poses.append((Pose(float(spot[0]), float(spot[1]), z, YAWS[side]), side, u))
        order = self.chance.permutation(len(poses))
        if near is not None:
            order = np.argsort([np.hypot(p.x - near[0], p.y - near[1]) for p, _, _ in poses])
        for n in order:
            pose, side, u = poses[int(n)]
            if pose.z + model.high[2] > self.plan.height - 0.05 or pose.z + model.low[2] < 0.02:
                continue
            at = self.footprint(model, pose).grown(-0.001)
            inside = self.room.inside.grown(0.01)
            if not (inside.x0 <= at.x0 and at.x1 <= inside.x1 and inside.y0 <= at.y0 and at.y1 <= inside.y1):
                continue
            box = (pose.z + float(model.low[2]), pose.z + float(model.high[2]))
            if any(at.meets(other) and box[0] < b and a < box[1] for other, a, b in self.standing):
                continue
            stands_out = box[0] < 1.8 and model.size[1] > 0.1  # a walker must get past it
            if self._wall_free(model, side, u, pose.z, 0.05) and not (stands_out and not self.walkable(at)):
                return pose, side, u
        return None

    def anywhere(
        self, model: Model, *, spread: float = 0.3, tries: int = 40, yaw: float | None = None
    ) -> Pose | None:
        """A free place on the floor with `spread` metres around it."""
        i = self.room.inside
        for _ in range(tries):
            turn = float(self.chance.choice(list(YAWS.values()))) if yaw is None else yaw
            x, y = float(self.chance.uniform(i.x0, i.x1)), float(self.chance.uniform(i.y0, i.y1))
            pose = Pose(x, y, 0.0, turn)
            at = self.footprint(model, pose)
            if self.fits(at.grown(spread), 0.0, float(model.high[2])) and self.walkable(at):
                return pose
        return None

    def corner(self, model: Model) -> Pose | None:
        """A place in or near a corner."""
        i = self.room.inside
        half = max(float(np.abs(model.low[:2]).max()), float(np.abs(model.high[:2]).max())) + 0.03
        spots = [(x, y) for x in (i.x0 + half, i.x1 - half) for y in (i.y0 + half, i.y1 - half)]
        spots += [
            (float(self.chance.uniform(i.x0 + half, i.x1 - half)), y)
            for y in (i.y0 + half, i.y1 - half)
            for _ in range(4)
        ]
        spots += [
            (x, float(self.chance.uniform(i.y0 + half, i.y1 - half)))
            for x in (i.x0 + half, i.x1 - half)
            for _ in range(4)
        ]
        order = [*self.chance.permutation(4), *(4 + self.chance.permutation(len(spots) - 4))]
        for n in order:
            pose = Pose(*spots[int(n)], 0.0, float(self.chance.uniform(0, 2 * np.pi)))
            at = self.footprint(model, pose)
            if self.fits(at, 0.0, float(model.high[2])) and self.walkable(at):
                return pose
        return None

    def walkable(self, added: Rect | None = None) -> bool:
        """Can one still walk from every door to every other, and stand somewhere, with this added?"""
        open_floor = self.open_floor(added)
        if not self.doors:
            return bool(open_floor.sum() * GRID * GRID > 1.0)
        seeds = [self._cell(d.middle, d.across) for d in self.doors]
        reached = np.zeros_like(open_floor)
        reached[seeds[0]] = True
        open_floor[tuple(np.array(seeds).T)] = True
        count = 1
        while True:
            grown = reached.copy()
            grown[1:] |= reached[:-1]
            grown[:-1] |= reached[1:]
            grown[:, 1:] |= reached[:, :-1]
            grown[:, :-1] |= reached[:, 1:]
            reached = grown & open_floor
            if (now := int(reached.sum())) == count:
                break
            count = now
        return all(reached[s] for s in seeds) and count * GRID * GRID > 0.9

    def open_floor(self, added: Rect | None = None) -> npt.NDArray[np.bool_]:
        """Cells of the floor where the middle of a walker may be."""
        i = self.room.inside
        x = np.arange(i.x0 + GRID / 2, i.x1, GRID)[:, None]
        y = np.arange(i.y0 + GRID / 2, i.y1, GRID)[None, :]
        clear = (x > i.x0 + BODY) & (x < i.x1 - BODY) & (y > i.y0 + BODY) & (y < i.y1 - BODY)
        boxes = [at for at, low, high in self.standing if low < 1.8 and high > 0.05]
        for at in boxes + ([added] if added is not None else []):
            clear &= ~((x > at.x0 - BODY) & (x < at.x1 + BODY) & (y > at.y0 - BODY) & (y < at.y1 + BODY))
        return clear

    def _cell(self, middle: tuple[float, float], across: int) -> tuple[int, int]:
        """The cell just inside a door."""
        i = self.room.inside
        x, y = min(max(middle[0], i.x0), i.x1), min(max(middle[1], i.y0), i.y1)
        if across == 0:
            x = i.x0 + 0.3 if abs(x - i.x0) < abs(x - i.x1) else i.x1 - 0.3
        else:
            y = i.y0 + 0.3 if abs(y - i.y0) < abs(y - i.y1) else i.y1 - 0.3
        return int((x - i.x0) / GRID), int((y - i.y0) / GRID)

    def _tries(self, model: Model, side: str, middle: bool, tries: int) -> list[float]:
        """Places along a wall where the model is not over its ends."""
        _, _, long = wall_frame(self.room, side)
        first, last = 0.03 - float(model.low[0]), long - 0.03 - float(model.high[0])
        if last < first:
            return []
        if middle:
            return [(first + last) / 2, *(float(x) for x in self.chance.uniform(first, last, tries // 2))]
        return [first, last, *(float(x) for x in self.chance.uniform(first, last, tries))]

    def _wall_free(self, model: Model, side: str, u: float, z: float = 0.0, gap: float = 0.0) -> bool:
        a, b = u + float(model.low[0]) - gap, u + float(model.high[0]) + gap
        low, high = z + float(model.low[2]), z + float(model.high[2])
        return not any(
            a < q and p < b and low < top and bottom < high for p, q, bottom, top in self.hanging[side]
        )
