"""Floor plans: rooms as rectangles that fill a rectangular home, doors that join them, windows."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from wanderlearn.rooms.patterns import Chance

__all__ = ["SIDES", "WALL", "Door", "Plan", "Rect", "Room", "Window", "draw_plan"]

WALL: Final = 0.14  # metres from room to room
DOOR_HIGH: Final = 2.05
SIDES: Final = ("south", "east", "north", "west")

# Square metres that rooms of a kind have, before they are fitted together.
AREAS: Final[dict[str, tuple[float, float]]] = {
    "living room": (18, 27), "bedroom": (12, 17), "bathroom": (7, 10), "kitchen": (11, 16),
    "dining room": (11, 16), "study": (9.5, 13), "gym": (12, 17), "child's room": (10, 14),
    "laundry": (6.5, 9), "hall": (7, 10),
}  # fmt: skip
EXTRAS: Final = ("kitchen", "study", "dining room", "child's room", "bedroom", "gym", "laundry", "bathroom")
PRIVATE: Final = ("bathroom", "laundry")  # nobody walks through these


class Rect(NamedTuple):
    """A rectangle in the plan."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        """Along x."""
        return self.x1 - self.x0

    @property
    def depth(self) -> float:
        """Along y."""
        return self.y1 - self.y0

    def grown(self, by: float) -> "Rect":
        """Larger on every side, or smaller when negative."""
        return Rect(self.x0 - by, self.y0 - by, self.x1 + by, self.y1 + by)

    def meets(self, other: "Rect") -> bool:
        """Do the two overlap?"""
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1

    def holds(self, x: float, y: float) -> bool:
        """Is the point inside?"""
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1


@dataclass(frozen=True)
class Room:
    """A room: its number, its kind, and the floor between its walls."""

    number: int
    kind: str
    inside: Rect

    @property
    def cell(self) -> Rect:
        """Up to the middle of its walls."""
        return self.inside.grown(WALL / 2)


@dataclass(frozen=True)
class Door:
    """An opening between two rooms. `across` is the axis one walks along: 0 for x, 1 for y."""

    rooms: tuple[int, int]
    across: int
    wall: float  # where the middle of the wall is, on that axis
    start: float  # the opening, on the other axis
    end: float
    high: float = DOOR_HIGH

    @property
    def middle(self) -> tuple[float, float]:
        """The middle of the opening in the plan."""
        along = (self.start + self.end) / 2
        return (self.wall, along) if self.across == 0 else (along, self.wall)

    def zone(self, reach: float) -> Rect:
        """The floor in the opening and `reach` metres before it on both sides."""
        if self.across == 0:
            return Rect(self.wall - reach, self.start, self.wall + reach, self.end)
        return Rect(self.start, self.wall - reach, self.end, self.wall + reach)


@dataclass(frozen=True)
class Window:
    """A window in an outer wall of a room; `start` and `end` along the wall."""

    room: int
    side: str
    start: float
    end: float
    sill: float
    top: float


@dataclass(frozen=True)
class Plan:
    """The rooms of a home and how they are joined."""

    outline: Rect
    height: float
    rooms: tuple[Room, ...]
    doors: tuple[Door, ...]
    windows: tuple[Window, ...]
    entrance: tuple[int, str, float] | None  # room, side and middle of the front door

    def room_at(self, x: float, y: float) -> int:
        """The number of the room at this point, or -1."""
        return next((r.number for r in self.rooms if r.cell.holds(x, y)), -1)


def draw_plan(chance: Chance) -> Plan:
    """A plan of three to eight rooms."""
    while True:
        kinds = _kinds(chance)
        cells = _cells(chance, kinds)
        if cells is None:
            continue
        doors = _doors(chance, kinds, cells)
        if doors is None:
            continue
        outline = Rect(
            min(c.x0 for c in cells),
            min(c.y0 for c in cells),
            max(c.x1 for c in cells),
            max(c.y1 for c in cells),
        )
        height = float(chance.uniform(2.45, 2.8))
        rooms = tuple(
            Room(n, k, c.grown(-WALL / 2)) for n, (k, c) in enumerate(zip(kinds, cells, strict=True))
        )
        entrance = _entrance(chance, rooms, outline)
        return Plan(
            outline, height, rooms, doors, _windows(chance, rooms, outline, height, entrance), entrance
        )


def _kinds(r: Chance) -> list[str]:
    """Which rooms: the main ones always, then others, and a hall in most larger homes."""
    count = int(r.choice([3, 4, 5, 6, 7, 8], p=[0.05, 0.1, 0.2, 0.27, 0.23, 0.15]))
    kinds = ["living room", "bedroom", "bathroom"]
    extras = list(r.permutation(EXTRAS[1:]))
    if count > 3:
        kinds.append("kitchen")
    with_hall = count >= 5 and r.random() < 0.75
    while len(kinds) < count - with_hall:
        kinds.append(str(extras.pop()))
    return kinds + ["hall"] * with_hall


def _cells(r: Chance, kinds: list[str]) -> list[Rect] | None:
    areas = {n: float(r.uniform(*AREAS[kind])) for n, kind in enumerate(kinds)}
    cells = _rows(r, kinds, areas) if "hall" in kinds else _splits(r, areas)
    if cells is None:
        return None
    if r.random() < 0.5:  # turned by a quarter
        cells = {n: Rect(c.y0, c.x0, c.y1, c.x1) for n, c in cells.items()}
    for n, kind in enumerate(kinds):
        short, long = sorted((cells[n].width, cells[n].depth))
        least = {"hall": 1.5, "laundry": 2.2, "bathroom": 2.4, "living room": 3.5}.get(kind, 2.9)
        if short < least or (long > 2.1 * short and kind != "hall"):
            return None
    return [cells[n] for n in range(len(kinds))]


def _rows(r: Chance, kinds: list[str], areas: dict[int, float]) -> dict[int, Rect] | None:
    """Two rows of rooms with a hall between them."""
    rooms = [int(n) for n in r.permutation([n for n, kind in enumerate(kinds) if kind != "hall"])]
    total, upper, filled = sum(areas[n] for n in rooms), list[int](), 0.0
    while rooms and filled + areas[rooms[0]] / 2 < total / 2:
        filled += areas[rooms[0]]
        upper.append(rooms.pop(0))
    if not upper or not rooms:
        return None
    length, hall = total / 2 / float(r.uniform(3.3, 4.2)), float(r.uniform(1.6, 2.0))
    cells = {kinds.index("hall"): Rect(0, 0, length, hall)}
    for row, side in ((upper, 1), (rooms, -1)):
        area = sum(areas[n] for n in row)
        deep, x = area / length, 0.0
        for n in row:
            wide = areas[n] / area * length
            cells[n] = Rect(x, hall, x + wide, hall + deep) if side > 0 else Rect(x, -deep, x + wide, 0)
            x += wide
    return cells


def _splits(r: Chance, areas: dict[int, float]) -> dict[int, Rect]:
    """A rectangle cut in two again and again."""
    total = sum(areas.values())
    wide = float(np.sqrt(total) * r.uniform(1.0, 1.45))
    cells: dict[int, Rect] = {}

    def cut(rooms: list[int], at: Rect) -> None:
        if len(rooms) == 1:
            cells[rooms[0]] = at
            return
        half = max(1, min(len(rooms) - 1, round(len(rooms) / 2 + r.uniform(-0.6, 0.6))))
        share = sum(areas[n] for n in rooms[:half]) / sum(areas[n] for n in rooms)
        if at.width > at.depth:
            x = at.x0 + share * at.width
            first, second = Rect(at.x0, at.y0, x, at.y1), Rect(x, at.y0, at.x1, at.y1)
        else:
            y = at.y0 + share * at.depth
            first, second = Rect(at.x0, at.y0, at.x1, y), Rect(at.x0, y, at.x1, at.y1)
        cut(rooms[:half], first)
        cut(rooms[half:], second)

    cut([int(n) for n in r.permutation(list(areas))], Rect(0, 0, wide, total / wide))
    return cells


def _shared(a: Rect, b: Rect) -> tuple[int, float, float, float] | None:
    """The wall two cells share: axis across it, where it is, from, to."""
    for axis, (p, q) in ((0, (a, b)), (0, (b, a)), (1, (a, b)), (1, (b, a))):
        if abs(p[axis + 2] - q[axis]) < 1e-6:
            other = 1 - axis
            low, high = max(p[other], q[other]), min(p[other + 2], q[other + 2])
            if high - low > 1.35:
                return axis, p[axis + 2], low, high
    return None


def _doors(r: Chance, kinds: list[str], cells: list[Rect]) -> tuple[Door, ...] | None:
    """Doors that make every room reachable, not through a bathroom; some more to make rounds."""
    n = len(kinds)
    walls = {(a, b): w for a in range(n) for b in range(a) if (w := _shared(cells[a], cells[b]))}
    hub = kinds.index("hall") if "hall" in kinds else 0
    inside, doors = {hub}, list[Door]()
    while len(inside) < n:
        ways = [
            pair for pair in walls
            if (pair[0] in inside) != (pair[1] in inside)
            and not any(room in inside and kinds[room] in PRIVATE for room in pair)
        ]  # fmt: skip
        if not ways:
            return None
        weight = np.array([4.0 if hub in pair else 1.0 if 0 in pair else 0.4 for pair in ways])
        pair = ways[int(r.choice(len(ways), p=weight / weight.sum()))]
        doors.append(_door(r, kinds, pair, walls[pair]))
        inside |= set(pair)
    used = {tuple(sorted(d.rooms)) for d in doors}
    for pair, wall in walls.items():
        names = {kinds[pair[0]], kinds[pair[1]]}
        social = names <= {"living room", "kitchen", "dining room", "hall", "study"}
        if social and tuple(sorted(pair)) not in used and r.random() < 0.35:
            doors.append(_door(r, kinds, pair, wall))
    return tuple(doors)


def _door(r: Chance, kinds: list[str], pair: tuple[int, int], wall: tuple[int, float, float, float]) -> Door:
    across, at, low, high = wall
    names = {kinds[pair[0]], kinds[pair[1]]}
    wide = 0.86
    if names <= {"living room", "kitchen", "dining room", "hall"} and high - low > 2.2 and r.random() < 0.5:
        wide = float(r.uniform(1.2, 1.6))
    room = high - low - wide - 2 * (WALL / 2 + 0.16)
    start = low + WALL / 2 + 0.16 + room * float(r.choice([0.0, 1.0, r.random()]))
    return Door(pair, across, at, start, start + wide)


def _outer(room: Room, outline: Rect) -> dict[str, tuple[float, float]]:
    """The outer walls of a room, with their ends."""
    c, inside = room.cell, room.inside
    out = {}
    for side, mine, edge in zip(
        SIDES, (c.y0, c.x1, c.y1, c.x0), (outline.y0, outline.x1, outline.y1, outline.x0), strict=True
    ):
        if abs(mine - edge) < 1e-6:
            out[side] = (inside.x0, inside.x1) if side in ("south", "north") else (inside.y0, inside.y1)
    return out


def _entrance(r: Chance, rooms: tuple[Room, ...], outline: Rect) -> tuple[int, str, float] | None:
    """A front door in the hall or the living room."""
    for kind in ("hall", "living room"):
        for room in rooms:
            if room.kind == kind:
                walls = [(s, a, b) for s, (a, b) in _outer(room, outline).items() if b - a > 1.3]
                if walls:
                    side, a, b = walls[int(r.integers(len(walls)))]
                    return room.number, side, float(r.uniform(a + 0.6, b - 0.6))
    return None


def _windows(
    r: Chance, rooms: tuple[Room, ...], outline: Rect, height: float, entrance: tuple[int, str, float] | None
) -> tuple[Window, ...]:
    """One or two windows in outer walls of every room that has one."""
    windows = []
    for room in rooms:
        for k, (side, (a, b)) in enumerate(_outer(room, outline).items()):
            if b - a < 1.5 or (k > 0 and r.random() < 0.35):
                continue
            if entrance is not None and (room.number, side) == entrance[:2]:
                continue
            small = room.kind in PRIVATE
            wide = min(float(r.uniform(0.6, 0.9) if small else r.uniform(1.0, 1.9)), b - a - 0.7)
            count = 2 if b - a > 2 * wide + 1.4 and not small and r.random() < 0.45 else 1
            sill = float(r.uniform(1.15, 1.3) if small else r.uniform(0.75, 0.95))
            top = min(height - 0.25, sill + float(r.uniform(0.7, 0.9) if small else r.uniform(1.1, 1.35)))
            for n in range(count):
                part = (b - a) / count
                middle = a + part * (n + 0.5) + float(r.uniform(-0.5, 0.5)) * max(0.0, part - wide - 0.7)
                windows.append(Window(room.number, side, middle - wide / 2, middle + wide / 2, sill, top))
    return tuple(windows)
