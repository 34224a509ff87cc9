"""The verbs of furnishing: stand, hang, put on, put around. What does not fit is written down."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from wanderlearn.rooms.furniture import MAKERS, OTHERS, Maker, cloth, clutter
from wanderlearn.rooms.home import Dropped, Lamp, Thing
from wanderlearn.rooms.looks import LEAST, Look, difference, look_of
from wanderlearn.rooms.patterns import hsv
from wanderlearn.rooms.placing import YAWS, Pose, Space
from wanderlearn.rooms.plan import SIDES, Rect
from wanderlearn.rooms.shapes import bounds, moved
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = ["Household", "Placed", "Placer"]

HEADROOM: Final = 1.9  # metres below what hangs from a ceiling
AGAIN: Final = 3  # how often something else is tried where the first does not fit
REDRAWN: Final = 30  # how often a look is drawn again that is too like another


@dataclass
class Placed:
    """A thing with its model and pose, so that others can be put on or around it."""

    thing: Thing
    model: Model
    pose: Pose
    side: str | None = None
    along: float = 0.0
    used: list[Rect] = field(default_factory=list)  # of its top, in its own frame


class Household:
    """Everything a home has so far."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop
        self.things: list[Thing] = []
        self.dropped: list[Dropped] = []
        self.lamps: list[Lamp] = []
        self._looks: dict[str, list[Look]] = {}
        self._last: tuple[Model, Look] | None = None  # made last, perhaps not placed yet

    def make(self, category: str, maker: Maker) -> Model | None:
        """A thing unlike all others of its category in this home, or None."""
        known = self._looks.get(category, [])
        for _ in range(REDRAWN):
            model = maker(self.workshop)
            look = look_of(model)
            if all(difference(look, other) >= LEAST for other in known):
                self._last = model, look
                return model
        return None

    def add(self, category: str, model: Model, room: int, pose: Pose, on_floor: bool) -> Thing:
        """Put a thing into the home for good."""
        parts = moved(model.parts, *pose)
        low, high = bounds(parts)
        thing = Thing(len(self.things) + 1, category, model.kind, room, parts, low, high, pose.yaw, on_floor)
        self.things.append(thing)
        look = self._last[1] if self._last is not None and self._last[0] is model else look_of(model)
        self._looks.setdefault(category, []).append(look)
        if model.light is not None:
            power, height = model.light
            w = self.workshop
            warm = hsv(w.one(0.07, 0.13), w.one(0.05, 0.3), 1.0) * power * w.one(0.75, 1.25) * 1.7
            at = (pose.x, pose.y, pose.z + height)
            self.lamps.append(
                Lamp(room, at, (float(warm[0]), float(warm[1]), float(warm[2])), (0.16, 0.16, 0.08), 1.2)
            )
        return thing


class Placer:
    """Furnishes one room."""

    def __init__(self, household: Household, space: Space) -> None:
        self.household, self.space = household, space
        self.workshop = household.workshop
        self.room = space.room.number

    def drop(self, category: str, kind: str, reason: str) -> None:
        """Write down what is not there."""
        self.household.dropped.append(Dropped(category, kind, self.room, reason))

    def wall(
        self, category: str, kind: str, *, sides: tuple[str, ...] = SIDES, clear: float = 0.35,
        middle: bool = False, near: tuple[float, float] | None = None, maker: Maker | None = None,
    ) -> Placed | None:  # fmt: skip
        """Stand something with its back to a wall."""
        for _ in range(AGAIN):
            model = self._make(category, kind, maker)
            if model is None:
                return None
            found = self.space.along_wall(model, sides, clear=clear, middle=middle, near=near)
            if found is not None:
                pose, side, along = found
                self.space.taken_wall(model, side, along)
                return self._stand(category, model, pose, side, along)
        self.drop(category, kind, "no free wall")
        return None

    def floor(self, category: str, kind: str, *, spread: float = 0.3) -> Placed | None:
        """Stand something anywhere on the floor."""
        for _ in range(AGAIN):
            model = self._make(category, kind)
            if model is None:
                return None
            pose = self.space.anywhere(model, spread=spread)
            if pose is not None:
                return self._stand(category, model, pose)
        self.drop(category, kind, "no free floor")
        return None

    def corner(self, category: str, kind: str) -> Placed | None:
        """Stand something in a corner or else by a wall."""
        for _ in range(AGAIN):
            model = self._make(category, kind)
            if model is None:
                return None
            pose = self.space.corner(model)
            if pose is not None:
                return self._stand(category, model, pose)
        self.drop(category, kind, "no free corner")
        return None

    def hang(
        self, category: str, kind: str, heights: tuple[float, float], *,
        sides: tuple[str, ...] = SIDES, near: tuple[float, float] | None = None, maker: Maker | None = None,
    ) -> Placed | None:  # fmt: skip
        """Hang something on a wall with its origin at a height between the two."""
        for _ in range(AGAIN):
            model = self._make(category, kind, maker)
            if model is None:
                return None
            found = self.space.hang(model, heights, sides, near=near)
            if found is not None:
                pose, side, along = found
                self.space.taken_wall(model, side, along, pose.z)
                if pose.z + model.low[2] < 1.8 and model.size[1] > 0.1:  # keep the air before it free
                    self.space.take(
                        self.space.footprint(model, pose),
                        pose.z + float(model.low[2]),
                        pose.z + float(model.high[2]),
                    )
                return Placed(
                    self.household.add(category, model, self.room, pose, False), model, pose, side, along
                )
        self.drop(category, kind, "no free place on a wall")
        return None

    def ceiling(self, kind: str = "ceiling lamp") -> Placed | None:
        """Hang a lamp from the ceiling, so high that one can walk below it."""
        i, height = self.space.room.inside, self.space.plan.height
        for _ in range(20):
            model = self._make("lighting", kind)
            if model is None:
                return None
            x = (i.x0 + i.x1) / 2 + self.workshop.one(-0.25, 0.25) * i.width
            y = (i.y0 + i.y1) / 2 + self.workshop.one(-0.25, 0.25) * i.depth
            pose = Pose(x, y, height, 0.0)
            at, low = self.space.footprint(model, pose), height + float(model.low[2])
            if low > HEADROOM and self.space.fits(at, low, height):
                self.space.take(at, low, height)
                return Placed(self.household.add("lighting", model, self.room, pose, False), model, pose)
        self.drop("lighting", kind, "no free ceiling high enough")
        return None

    def on(self, under: Placed | None, category: str, kind: str, *, turned: bool = False) -> Placed | None:
        """Put something on top of a thing."""
        if under is None:
            self.drop(category, kind, "what it would stand on is not there")
            return None
        for _ in range(AGAIN):
            model = self._make(category, kind)
            if model is None:
                return None
            spot = self._on_top(under, model)
            if spot is not None:
                c, s = np.cos(under.pose.yaw), np.sin(under.pose.yaw)
                top = under.model.top[2] if under.model.top else 0.0
                yaw = under.pose.yaw + (self.workshop.one(-0.5, 0.5) if turned else 0.0)
                pose = Pose(
                    under.pose.x + c * spot[0] - s * spot[1],
                    under.pose.y + s * spot[0] + c * spot[1],
                    under.pose.z + top,
                    yaw,
                )
                return Placed(self.household.add(category, model, self.room, pose, False), model, pose)
        self.drop(category, kind, f"no room on the {under.thing.kind}")
        return None

    def cushions(self, under: Placed | None, count: int) -> None:
        """Lean cushions on a sofa or a bed."""
        if under is None or under.model.seat is None:
            for _ in range(count):
                self.drop("cushion", "cushion", "what it would lie on is not there")
            return
        half, y, z = under.model.seat
        c, s = np.cos(under.pose.yaw), np.sin(under.pose.yaw)
        room = max(1, int(2 * half / 0.4))
        for k in range(count):
            model = self._make("cushion", "cushion")
            if model is None:
                continue
            if k >= room:
                self.drop("cushion", "cushion", f"no room on the {under.thing.kind}")
                continue
            slot = -half + (k + 0.5) * 2 * half / min(count, room)
            x, deep = slot + self.workshop.one(-0.03, 0.03), y + self.workshop.one(-0.04, 0.02)
            pose = Pose(
                under.pose.x + c * x - s * deep,
                under.pose.y + s * x + c * deep,
                z,
                under.pose.yaw + self.workshop.one(-0.25, 0.25),
            )
            self.household.add("cushion", model, self.room, pose, False)

    def around(self, table: Placed | None, category: str, kind: str, count: int) -> None:
        """Stand chairs around a table, facing it."""
        if table is None:
            for _ in range(count):
                self.drop(category, kind, "the table is not there")
            return
        at = self.space.footprint(table.model, table.pose)
        for _ in range(count):
            model = self._make(category, kind)
            if model is None:
                continue
            pose = self._seat(at, model)
            if pose is None:
                self.drop(category, kind, "no room at the table")
            else:
                self._stand(category, model, pose)

    def blinds(self, chance: float = 0.85) -> None:
        """Blinds or curtains for the windows."""
        for window in self.space.plan.windows:
            if window.room != self.room or not self.workshop.maybe(chance):
                continue
            wide, high = window.end - window.start, window.top - window.sill
            model = self._make("blinds", "blinds", lambda w, a=wide, b=high: cloth.blinds(w, a, b))  # type: ignore[misc]
            if model is None:
                continue
            i, along = self.space.room.inside, (window.start + window.end) / 2
            x, y = {
                "south": (along, i.y0),
                "north": (along, i.y1),
                "east": (i.x1, along),
                "west": (i.x0, along),
            }[window.side]
            pose = Pose(x, y, (window.sill + window.top) / 2, YAWS[window.side])
            at, low, top = (
                self.space.footprint(model, pose).grown(-0.002),
                pose.z + float(model.low[2]),
                pose.z + float(model.high[2]),
            )
            if top > self.space.plan.height - 0.01 or any(
                at.meets(o) and low < b and a < top for o, a, b in self.space.standing
            ):
                self.drop("blinds", "blinds", "something stands before the window")
                continue
            self.space.take(at, low, top)
            self.household.add("blinds", model, self.room, pose, False)

    def rug(self, at: Rect | None = None) -> None:
        """A rug on the floor, under everything."""
        i = self.space.room.inside
        if at is None:
            wide, deep = min(i.width * 0.55, 2.4), min(i.depth * 0.5, 1.7)
            x, y = (i.x0 + i.x1) / 2, (i.y0 + i.y1) / 2
        else:
            wide, deep = min(at.width + 0.9, i.width - 0.3), min(at.depth + 0.9, i.depth - 0.3)
            x = min(max((at.x0 + at.x1) / 2, i.x0 + wide / 2 + 0.05), i.x1 - wide / 2 - 0.05)
            y = min(max((at.y0 + at.y1) / 2, i.y0 + deep / 2 + 0.05), i.y1 - deep / 2 - 0.05)
        self.household.add(
            "objects", clutter.carpet(self.workshop, wide, deep), self.room, Pose(x, y, 0, 0), True
        )

    def _make(self, category: str, kind: str, maker: Maker | None = None) -> Model | None:
        known = MAKERS.get(category) or OTHERS.get(category, {})
        model = self.household.make(category, maker or known[kind])
        if model is None:
            self.drop(category, kind, "everything drawn looked too much like another one in this home")
        return model

    def _stand(
        self, category: str, model: Model, pose: Pose, side: str | None = None, along: float = 0.0
    ) -> Placed:
        self.space.take(self.space.footprint(model, pose), float(model.low[2]), float(model.high[2]))
        return Placed(self.household.add(category, model, self.room, pose, True), model, pose, side, along)

    def _on_top(self, under: Placed, model: Model) -> tuple[float, float] | None:
        if under.model.top is None:
            return None
        half_x, half_y, _ = under.model.top
        for _ in range(25):
            x, y = self.workshop.one(-half_x, half_x), self.workshop.one(-half_y, half_y)
            at = Rect(x + model.low[0], y + model.low[1], x + model.high[0], y + model.high[1])
            wide, deep = under.model.size[0] / 2 + 0.04, under.model.size[1] / 2 + 0.12
            if at.x0 < -wide or at.x1 > wide or at.y0 < -deep or at.y1 > deep - 0.1:
                continue
            if not any(at.meets(other) for other in under.used):
                under.used.append(at.grown(0.015))
                return x, y
        return None

    def _seat(self, at: Rect, model: Model) -> Pose | None:
        """A place at a table: in front of one of its sides."""
        sides: Sequence[str] = [str(s) for s in self.workshop.chance.permutation(SIDES)]
        for tucked in (0.22, 0.05, -0.05):
            for side in sides:
                for _ in range(4):
                    t, reach = self.workshop.one(0.12, 0.88), -float(model.low[1]) - tucked
                    x, y = at.x0 + t * at.width, at.y0 + t * at.depth
                    pose = {
                        "north": Pose(x, at.y1 + reach, 0, 0.0),
                        "south": Pose(x, at.y0 - reach, 0, np.pi),
                        "east": Pose(at.x1 + reach, y, 0, -np.pi / 2),
                        "west": Pose(at.x0 - reach, y, 0, np.pi / 2),
                    }[side]
                    foot = self.space.footprint(model, pose)
                    if self._clear_but(foot, at) and self.space.walkable(foot):
                        return pose._replace(yaw=pose.yaw + self.workshop.one(-0.15, 0.15))
        return None

    def _clear_but(self, foot: Rect, table: Rect) -> bool:
        """Free of everything but the table, under which a chair may be pushed."""
        i = self.space.room.inside
        if foot.x0 < i.x0 + 0.02 or foot.y0 < i.y0 + 0.02 or foot.x1 > i.x1 - 0.02 or foot.y1 > i.y1 - 0.02:
            return False
        if any(foot.meets(zone) for zone in self.space.free):
            return False
        return not any(foot.meets(o.grown(0.02)) and a < 1.0 for o, a, _ in self.space.standing if o != table)
