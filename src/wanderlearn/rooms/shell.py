"""The home itself: floors, ceilings, walls with openings, door frames, windows and what is outside."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from wanderlearn.rooms.art import view
from wanderlearn.rooms.patterns import Chance, hsv, pattern
from wanderlearn.rooms.plan import DOOR_HIGH, SIDES, WALL, Door, Plan, Rect, Room, Window
from wanderlearn.rooms.shapes import Floats, Paint, Part, box, plain, quad, soft
from wanderlearn.rooms.workshop import Workshop

__all__ = ["Piece", "build_shell", "holes_of", "wall_frame"]

Hole = tuple[float, float, float, float]  # along from, to; height from, to


class Piece(NamedTuple):
    """Parts of the shell that are seen from these rooms."""

    rooms: tuple[int, ...]
    parts: list[Part]


def wall_frame(room: Room, side: str) -> tuple[Floats, Floats, float]:
    """A wall as seen from inside: where it begins on the left, the way to the right, its length."""
    i = room.inside
    start, way, long = {
        "south": ((i.x1, i.y0), (-1, 0), i.width),
        "east": ((i.x1, i.y1), (0, -1), i.depth),
        "north": ((i.x0, i.y1), (1, 0), i.width),
        "west": ((i.x0, i.y0), (0, 1), i.depth),
    }[side]
    return np.array([*start, 0.0]), np.array([*way, 0.0]), long


def holes_of(plan: Plan, room: Room, side: str) -> list[Hole]:
    """The openings of a wall, along it from its left end."""
    start, way, _ = wall_frame(room, side)
    axis = 0 if side in ("south", "north") else 1
    holes = []

    def add(a: float, b: float, low: float, high: float) -> None:
        ends = sorted(((a - start[axis]) * way[axis], (b - start[axis]) * way[axis]))
        holes.append((float(ends[0]), float(ends[1]), low, high))

    i = room.inside
    at = {"south": i.y0, "east": i.x1, "north": i.y1, "west": i.x0}[side]
    for d in plan.doors:
        if room.number in d.rooms and d.across == 1 - axis and abs(d.wall - at) < WALL:
            add(d.start, d.end, 0.0, d.high)
    for w in plan.windows:
        if w.room == room.number and w.side == side:
            add(w.start, w.end, w.sill, w.top)
    return holes


def build_shell(plan: Plan, w: Workshop) -> list[Piece]:
    """All pieces of the shell."""
    trim = plain(0.93) if w.maybe(0.6) else w.wood()
    pieces = []
    for room in plan.rooms:
        pieces += _room(plan, room, w, trim)
    pieces += [Piece(door.rooms, _frame(door, trim)) for door in plan.doors]
    if plan.entrance is not None:
        number, side, middle = plan.entrance
        pieces.append(Piece((number,), _front_door(plan.rooms[number], side, middle, w, trim)))
    looking = tuple(sorted({window.room for window in plan.windows}))
    return [*pieces, *(Piece(looking, [part]) for part in _outside(plan, w.chance))]


def _wall_paint(w: Workshop, kind: str) -> Paint:
    r = w.chance
    if kind in ("bathroom", "kitchen", "laundry") and r.random() < 0.6:
        base = hsv(r.random(), r.uniform(0.02, 0.3), r.uniform(0.8, 0.95))
        name = str(r.choice(["tiles", "mosaic", "bricks"], p=[0.7, 0.15, 0.15]))
        return Paint(texture=pattern(name, r, base, base * 0.8), size=float(r.uniform(0.5, 0.8)))
    base = hsv(r.random(), r.uniform(0.02, 0.4), r.uniform(0.72, 0.97))
    if r.random() < 0.3:
        name = str(r.choice(["stripes", "flowers", "leaves", "diamonds", "waves", "dots"]))
        return Paint(
            texture=pattern(name, r, base, np.clip(base * r.uniform(0.86, 0.95), 0, 1)),
            size=float(r.uniform(0.5, 0.9)),
        )
    return Paint(texture=pattern("plaster", r, base, base * 0.95), size=1.2)


def _floor_paint(w: Workshop, kind: str) -> Paint:
    r = w.chance
    if kind in ("bathroom", "kitchen", "laundry"):
        base = hsv(r.random(), r.uniform(0.02, 0.3), r.uniform(0.45, 0.9))
        name = str(r.choice(["tiles", "chessboard", "mosaic", "marble"], p=[0.5, 0.25, 0.1, 0.15]))
        return Paint(
            texture=pattern(name, r, base, base * r.uniform(0.55, 0.8)), size=float(r.uniform(0.7, 1.3))
        )
    if kind == "gym" or r.random() < 0.2:
        base = hsv(r.random(), r.uniform(0.05, 0.5), r.uniform(0.3, 0.75))
        return Paint(texture=pattern("speckle", r, base, base * 0.7), size=0.6)
    base = hsv(r.uniform(0.05, 0.1), r.uniform(0.25, 0.65), r.uniform(0.35, 0.8))
    name = str(r.choice(["planks", "herringbone"], p=[0.75, 0.25]))
    return Paint(texture=pattern(name, r, base, base * r.uniform(0.45, 0.7)), size=float(r.uniform(0.9, 1.4)))


def _room(plan: Plan, room: Room, w: Workshop, trim: Paint) -> list[Piece]:
    i, high = room.inside, plan.height
    here, walls = (room.number,), _wall_paint(w, room.kind)
    floor = quad((i.x0, i.y0, 0), (i.width, 0, 0), (0, i.depth, 0), _floor_paint(w, room.kind), cell=0.3)
    ceiling = quad((i.x0, i.y1, high), (i.width, 0, 0), (0, -i.depth, 0), plain(0.95), cell=0.6)
    pieces = [Piece(here, floor), Piece(here, ceiling)]
    accent = _wall_paint(w, room.kind) if w.maybe(0.25) else walls
    accented = int(w.chance.integers(4))
    for n, side in enumerate(SIDES):
        start, way, long = wall_frame(room, side)
        holes = holes_of(plan, room, side)
        parts = _wall(start, way, long, high, holes, accent if n == accented else walls)
        parts += _skirting(start, way, long, holes, trim)
        for window in plan.windows:
            if window.room == room.number and window.side == side:
                parts += _window(plan, room, window, trim)
        pieces.append(Piece(here, parts))
    return pieces


def _lines(end: float, marks: list[float], cell: float) -> Floats:
    """Where a grid has its lines: at the marks and, between them, at least every `cell` metres."""
    fixed = sorted({0.0, end, *(min(max(m, 0.0), end) for m in marks)})
    lines = [0.0]
    for a, b in pairwise(fixed):
        lines += list(np.linspace(a, b, max(1, int(np.ceil((b - a) / cell))) + 1)[1:])
    return np.array(lines)


def _wall(
    start: Floats, way: Floats, long: float, high: float, holes: list[Hole], paint: Paint
) -> list[Part]:
    """A wall in one grid without seams, with the cells of its openings left out."""
    u = _lines(long, [x for h in holes for x in h[:2]], 0.4)
    z = _lines(high, [x for h in holes for x in h[2:]], 0.45)
    points = start + u[None, :, None] * way + z[:, None, None] * np.array([0.0, 0.0, 1.0])
    middle_u, middle_z = np.meshgrid((u[1:] + u[:-1]) / 2, (z[1:] + z[:-1]) / 2)
    kept = np.ones(middle_u.shape, bool)
    for a, b, low, top in holes:
        kept &= ~((middle_u > a) & (middle_u < b) & (middle_z > low) & (middle_z < top))
    rows, columns = np.nonzero(kept)
    corner = rows * len(u) + columns
    faces = np.concatenate(
        [
            np.stack([corner, corner + 1, corner + len(u) + 1], -1),
            np.stack([corner, corner + len(u) + 1, corner + len(u)], -1),
        ]
    )
    inward = np.array([way[1], -way[0], 0.0])
    uv = np.stack(np.broadcast_arrays(u[None, :], -z[:, None]), -1).reshape(-1, 2) / paint.size
    return [Part(points.reshape(-1, 3), np.tile(inward, (points.size // 3, 1)), uv, faces, paint)]


def _skirting(start: Floats, way: Floats, long: float, holes: list[Hole], trim: Paint) -> list[Part]:
    """A low board along the wall, broken by doors."""
    parts, at = list[Part](), 0.0
    inward = np.array([way[1], -way[0], 0.0])
    up = np.array([0.0, 0.0, 0.08])
    for a, b, *_ in [*sorted(h for h in holes if h[2] == 0), (long, long, 0, 0)]:
        if a - 0.05 > at + 0.02:
            o, run = start + at * way + 0.012 * inward, (a - 0.05 - at if b > a else a - at) * way
            parts += quad(o, run, up, trim, cell=0.8) + quad(o + up, run, -0.012 * inward, trim, cell=0.8)
        at = b + 0.05
    return parts


def _frame(door: Door, trim: Paint) -> list[Part]:
    """What lines a door: jambs, lintel, threshold and a frame on both sides."""
    half, parts = WALL / 2, list[Part]()
    a, b, high = door.start, door.end, door.high
    swap = door.across == 0

    def at(along: float, across: float, z: float) -> Floats:
        return np.array([door.wall + across, along, z]) if swap else np.array([along, door.wall + across, z])

    def plate(along: float, across: float, z: float, sizes: tuple[float, float, float]) -> list[Part]:
        h = (sizes[1], sizes[0], sizes[2]) if swap else sizes
        return box(at(along, across, z), h, trim, cell=0.7)

    parts += plate((a + b) / 2, 0, 0.003, ((b - a) / 2, half, 0.003))
    for along, sign in ((a, -1), (b, 1)):
        parts += plate(along - sign * 0.01, 0, high / 2, (0.01, half + 0.004, high / 2))
    parts += plate((a + b) / 2, 0, high - 0.01, ((b - a) / 2, half + 0.004, 0.01))
    for across in (-half - 0.008, half + 0.008):
        for along, sign in ((a, -1), (b, 1)):
            parts += plate(along + sign * 0.03, across, high / 2 + 0.015, (0.035, 0.012, high / 2 + 0.015))
        parts += plate((a + b) / 2, across, high + 0.03, ((b - a) / 2 + 0.065, 0.012, 0.035))
    return parts


def _window(plan: Plan, room: Room, window: Window, trim: Paint) -> list[Part]:
    """The lining, the sill and the bars of a window."""
    start, way, _ = wall_frame(room, window.side)
    axis = 0 if window.side in ("south", "north") else 1
    a, b = sorted(((window.start - start[axis]) * way[axis], (window.end - start[axis]) * way[axis]))
    out, low, top = np.array([-way[1], way[0], 0.0]), window.sill, window.top
    half = np.array([abs(way[0]), abs(way[1]), 0.0])

    def bar(along: float, outward: float, z: float, wide: float, deep: float, high: float) -> list[Part]:
        centre = start + along * way + outward * out + np.array([0, 0, z])
        sizes = half * wide + np.abs(out) * deep + np.array([0, 0, high])
        return box(centre, sizes, trim, cell=0.7)

    m, deep = (a + b) / 2, WALL
    parts = bar(m, deep / 2 - 0.03, low, (b - a) / 2 + 0.05, deep / 2 + 0.06, 0.018)  # the sill
    parts += bar(m, deep / 2, top, (b - a) / 2 + 0.02, deep / 2 + 0.004, 0.02)
    for along in (a, b):
        parts += bar(along, deep / 2, (low + top) / 2, 0.02, deep / 2 + 0.004, (top - low) / 2)
    count = 2 if b - a > 1.2 else 1
    for k in range(count + 1):
        along = a + 0.04 + (b - a - 0.08) * k / count
        parts += bar(along, deep * 0.7, (low + top) / 2, 0.022, 0.02, (top - low) / 2)
    for z in (low + 0.04, top - 0.04):
        parts += bar(m, deep * 0.7, z, (b - a) / 2, 0.02, 0.025)
    return parts


def _front_door(room: Room, side: str, middle: float, w: Workshop, trim: Paint) -> list[Part]:
    """A closed door to the outside."""
    start, way, _ = wall_frame(room, side)
    axis = 0 if side in ("south", "north") else 1
    along, inward = (middle - start[axis]) * way[axis], np.array([way[1], -way[0], 0.0])
    leaf, metal = w.wood(), w.metal()

    def plate(
        u: float, z: float, wide: float, high: float, thick: float, paint: Paint, lift: float = 0.0
    ) -> list[Part]:
        centre = start + (along + u) * way + (lift + thick) * inward + np.array([0, 0, z])
        return box(
            centre, np.abs(way) * wide + np.abs(inward) * thick + np.array([0, 0, high]), paint, cell=0.7
        )

    parts = plate(0, DOOR_HIGH / 2, 0.43, DOOR_HIGH / 2, 0.012, leaf)
    for u in (-0.2, 0.2):
        for z, high in ((0.5, 0.33), (1.45, 0.4)):
            parts += plate(u, z, 0.14, high, 0.006, leaf.shaded(0.8), 0.024)
    for u in (-0.47, 0.47):
        parts += plate(u, DOOR_HIGH / 2 + 0.02, 0.04, DOOR_HIGH / 2 + 0.02, 0.018, trim)
    parts += plate(0, DOOR_HIGH + 0.04, 0.51, 0.04, 0.018, trim)
    knob = start + (along + 0.36) * way + 0.06 * inward + np.array([0, 0, 1.0])
    return parts + soft(knob, (0.03, 0.03, 0.03), metal, round=1.0, rings=4)


def _outside(plan: Plan, r: Chance) -> list[Part]:
    """The world beyond the windows: four views and a meadow, bright by themselves."""
    far = plan.outline.grown(9.0)
    low, high = -3.0, 9.0
    horizon = (high - 1.5) / (high - low)
    corners = [(far.x0, far.y1), (far.x1, far.y1), (far.x1, far.y0), (far.x0, far.y0)]
    parts = []
    bright = float(r.uniform(0.8, 1.25))
    for k in range(4):
        (ax, ay), (bx, by) = corners[k], corners[(k + 1) % 4]
        sky = Paint(texture=view(r, horizon))
        parts += quad(
            (ax, ay, low), (bx - ax, by - ay, 0), (0, 0, high - low), sky, fit=True, cell=40, glow=bright
        )
    grass = plain(*(float(c) for c in hsv(float(r.uniform(0.22, 0.32)), 0.45, 0.5)))
    meadow = Rect(far.x0, far.y0, far.x1, far.y1)
    parts += quad(
        (meadow.x0, meadow.y0, -0.6),
        (meadow.width, 0, 0),
        (0, meadow.depth, 0),
        grass,
        cell=40,
        glow=bright * 0.8,
    )
    return parts
