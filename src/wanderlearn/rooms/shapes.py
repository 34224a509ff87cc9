"""The solids that furniture is made of: triangles with normals, texture coordinates and a paint.

Metres, x and y in the plan, z up. Every function gives a list of parts, so that things are sums of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "Floats", "Paint", "Part", "Texture", "bounds", "box", "lathe", "moved", "plain", "quad", "rotation",
    "rounded", "scaled", "sheet", "soft", "tube", "turned",
]  # fmt: skip

Floats = npt.NDArray[np.float64]
Texture = npt.NDArray[np.uint8]  # [n, n, 3], sRGB, repeats without a seam unless it is a picture
Vector = Sequence[float] | Floats


class Paint(NamedTuple):
    """What a surface looks like: a colour, times a texture that repeats every `size` metres."""

    colour: tuple[float, float, float] = (1.0, 1.0, 1.0)
    texture: Texture | None = None
    size: float = 0.5

    def shaded(self, factor: float) -> "Paint":
        """The same paint, darker or lighter."""
        r, g, b = self.colour
        return self._replace(colour=(r * factor, g * factor, b * factor))


@dataclass(frozen=True)
class Part:
    """Triangles of one paint."""

    vertices: Floats  # [n, 3]
    normals: Floats  # [n, 3]
    uv: Floats  # [n, 2]
    faces: npt.NDArray[np.int64]  # [m, 3]
    paint: Paint
    glow: float = 0.0  # light it gives by itself
    solid: bool = False  # closed: what faces away from the eye is hidden by what does not


def plain(red: float, green: float | None = None, blue: float | None = None) -> Paint:
    """A paint of one colour; one number is a grey."""
    return Paint((red, red if green is None else green, red if blue is None else blue))


def rotation(yaw: float, tilt: float = 0.0) -> Floats:
    """Tilt about the x axis, then yaw about the z axis."""
    c, s, ct, st = np.cos(yaw), np.sin(yaw), np.cos(tilt), np.sin(tilt)
    spin, lean = (
        np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]),
        np.array([[1, 0, 0], [0, ct, -st], [0, st, ct]]),
    )
    return np.asarray(spin @ lean)


def moved(parts: Sequence[Part], x: float, y: float, z: float = 0.0, yaw: float = 0.0) -> list[Part]:
    """The parts turned about the z axis, then moved."""
    return turned(parts, rotation(yaw), (x, y, z))


def turned(parts: Sequence[Part], matrix: Floats, to: Vector = (0, 0, 0)) -> list[Part]:
    """The parts under a rotation matrix, then moved."""
    return [
        replace(p, vertices=p.vertices @ matrix.T + np.asarray(to, float), normals=p.normals @ matrix.T)
        for p in parts
    ]


def scaled(parts: Sequence[Part], factor: float) -> list[Part]:
    """The parts larger or smaller."""
    return [replace(p, vertices=p.vertices * factor) for p in parts]


def bounds(parts: Sequence[Part]) -> tuple[Floats, Floats]:
    """The lowest and the highest corner of the parts."""
    low = np.min([p.vertices.min(0) for p in parts], axis=0)
    high = np.max([p.vertices.max(0) for p in parts], axis=0)
    return low, high


def quad(
    origin: Vector, u: Vector, v: Vector, paint: Paint, *,
    cell: float = 0.45, fit: bool = False, glow: float = 0.0,
) -> list[Part]:  # fmt: skip
    """A parallelogram in cells, seen from the side that u x v points to; `fit` shows the texture once."""
    o, a, b = (np.asarray(w, float) for w in (origin, u, v))
    across, up = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    columns, rows = max(1, int(np.ceil(across / cell))), max(1, int(np.ceil(up / cell)))
    s, t, faces = _grid(columns, rows)
    vertices = o + s[:, None] * a + t[:, None] * b
    uv = np.stack([s, 1 - t], -1) if fit else np.stack([s * across, t * up], -1) / paint.size
    normal = np.cross(a, b)
    normal /= np.linalg.norm(normal) + 1e-12
    return [Part(vertices, np.tile(normal, (len(vertices), 1)), uv, faces, paint, glow)]


def box(
    centre: Vector, half: Vector, paint: Paint, *,
    yaw: float = 0.0, tilt: float = 0.0, cell: float = 0.45, glow: float = 0.0,
) -> list[Part]:  # fmt: skip
    """A box with half its width, depth and height."""
    h, turn = np.asarray(half, float), rotation(yaw, tilt)
    counts = tuple(max(1, int(np.ceil(2 * x / cell))) for x in h)
    unit, normals, axes, faces = _unit_box(*counts)
    uv = np.take_along_axis((unit + 1) * h, axes, 1) / paint.size
    return [
        Part(
            (unit * h) @ turn.T + np.asarray(centre, float),
            normals @ turn.T,
            uv,
            faces,
            paint,
            glow,
            solid=True,
        )
    ]


@cache
def _unit_box(
    nx: int, ny: int, nz: int
) -> tuple[Floats, Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A box from -1 to 1 in cells: vertices, normals, which axes u and v follow, faces."""
    counts, white, sides, axes = (nx, ny, nz), Paint(size=1.0), [], []
    for axis, (a, b) in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
        for sign in (-1.0, 1.0):
            n, u, v = np.zeros(3), np.zeros(3), np.zeros(3)
            n[axis], u[a], v[b] = sign, 1, 1
            if np.cross(u, v)[axis] * sign < 0:
                u = -u
            grid = _grid(counts[a], counts[b])
            points = n - u - v + 2 * grid[0][:, None] * u + 2 * grid[1][:, None] * v
            sides.append(Part(points, np.tile(n, (len(points), 1)), points[:, :2], grid[2], white))
            axes.append(np.tile([a, b], (len(points), 1)))
    whole = _joined(sides)
    return whole.vertices, whole.normals, np.concatenate(axes), whole.faces


@cache
def _grid(columns: int, rows: int) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """The points of a grid from 0 to 1, and its triangles."""
    s, t = np.meshgrid(np.linspace(0, 1, columns + 1), np.linspace(0, 1, rows + 1))
    return s.ravel(), t.ravel(), _cells(rows, columns)


def lathe(
    profile: Sequence[tuple[float, float]], paint: Paint, *,
    sides: int = 16, centre: Vector = (0, 0, 0), squash: tuple[float, float] = (1.0, 1.0), glow: float = 0.0,
) -> list[Part]:  # fmt: skip
    """A profile of (radius, height), from the bottom outside upwards, turned about the z axis."""
    points: list[tuple[float, float]] = []
    for i, p in enumerate(profile):  # a sharp corner has two normals, so two points
        points.append(p)
        if 0 < i < len(profile) - 1:
            before, after = np.subtract(p, profile[i - 1]), np.subtract(profile[i + 1], p)
            if before @ after < 0.7 * np.linalg.norm(before) * np.linalg.norm(after):
                points.append(p)
    line = np.array(points, float)
    steps = np.diff(line, axis=0)
    length = np.linalg.norm(steps, axis=1)
    ahead = np.where(length[:, None] > 1e-9, steps / np.maximum(length, 1e-9)[:, None], 0)
    slope = np.vstack([ahead, np.zeros(2)]) + np.vstack([np.zeros(2), ahead])
    angle = np.linspace(0, 2 * np.pi, sides + 1)
    cos, sin = np.cos(angle), np.sin(angle)
    sx, sy = squash
    ring = np.stack([np.outer(line[:, 0], cos) * sx, np.outer(line[:, 0], sin) * sy], -1)
    grid = np.concatenate([ring, np.broadcast_to(line[:, 1, None, None], (*ring.shape[:2], 1))], -1)
    normals = np.stack(
        [
            np.outer(slope[:, 1], cos) / sx,
            np.outer(slope[:, 1], sin) / sy,
            -np.outer(slope[:, 0], 0 * cos + 1),
        ],
        -1,
    )
    around = max(1, round(2 * np.pi * float(line[:, 0].max()) / paint.size))
    run = np.concatenate([[0], np.cumsum(length)])
    uv = np.stack(
        np.broadcast_arrays(angle[None] / (2 * np.pi) * around, -run[:, None] / paint.size), -1
    ).reshape(-1, 2)
    faces = _cells(len(line) - 1, sides).reshape(2, len(line) - 1, sides, 3)[:, length > 1e-9].reshape(-1, 3)
    vertices = grid.reshape(-1, 3) + np.asarray(centre, float)
    closed = max(line[0, 0], line[-1, 0]) < 0.002
    return [Part(vertices, _unit(normals.reshape(-1, 3)), uv, faces, paint, glow, solid=closed)]


def soft(
    centre: Vector, half: Vector, paint: Paint, *,
    round: float = 0.35, rings: int = 6, yaw: float = 0.0, tilt: float = 0.0, glow: float = 0.0,
) -> list[Part]:  # fmt: skip
    """A cushion: 0.2 is nearly a box with soft edges, 1 is an ellipsoid."""
    h, turn = np.asarray(half, float), rotation(yaw, tilt)
    unit, normals = _superball(round, rings), _superball(2 - round, rings) / h
    uv = np.stack([unit[:, 0] * h[0], unit[:, 1] * h[1] + unit[:, 2] * h[2]], -1) / paint.size
    vertices = (unit * h) @ turn.T + np.asarray(centre, float)
    return [Part(vertices, _unit(normals) @ turn.T, uv, _cells(rings, 4 * rings), paint, glow, solid=True)]


@lru_cache(256)
def _superball(power: float, rings: int) -> Floats:
    theta, phi = np.meshgrid(
        np.linspace(-np.pi / 2, np.pi / 2, rings + 1),
        np.linspace(-np.pi, np.pi, 4 * rings + 1),
        indexing="ij",
    )
    ct, st, cp, sp = (_power(w, power) for w in (np.cos(theta), np.sin(theta), np.cos(phi), np.sin(phi)))
    return np.stack([ct * cp, ct * sp, st], -1).reshape(-1, 3)


def rounded(centre: Vector, half: Vector, paint: Paint, *, yaw: float = 0.0, tilt: float = 0.0) -> list[Part]:
    """A box with gently rounded edges."""
    return soft(centre, half, paint, round=0.16, rings=6, yaw=yaw, tilt=tilt)


def tube(
    path: Sequence[Vector], radius: float | Sequence[float], paint: Paint, *,
    sides: int = 7, closed: bool = True, glow: float = 0.0,
) -> list[Part]:  # fmt: skip
    """A round bar along a path, with closed ends."""
    line = np.array([np.asarray(p, float) for p in path])
    radii = np.broadcast_to(np.asarray(radius, float), (len(line),))
    ahead = np.gradient(line, axis=0)
    ahead = _unit(ahead)
    side = np.cross(ahead, [0, 0, 1])
    lying = np.linalg.norm(side, axis=1) < 0.2  # nearly upright: any other helper
    side[lying] = np.cross(ahead[lying], [1, 0, 0])
    side = _unit(side)
    if lying.any() and not lying.all():  # one helper for the whole path, so that the tube does not twist
        helper = np.array([1.0, 0.37, 0.0])
        side = _unit(np.cross(ahead, helper))
    other = np.cross(ahead, side)
    angle = np.linspace(0, 2 * np.pi, sides + 1)
    out = np.cos(angle)[None, :, None] * side[:, None] - np.sin(angle)[None, :, None] * other[:, None]
    grid = line[:, None] + out * radii[:, None, None]
    run = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    uv = np.stack(np.broadcast_arrays(angle[None] / (2 * np.pi), run[:, None] / paint.size), -1)
    parts = [
        Part(grid.reshape(-1, 3), out.reshape(-1, 3), uv.reshape(-1, 2),
             _cells(len(line) - 1, sides)[:, ::-1], paint, glow)
    ]  # fmt: skip
    if closed:
        for end, sign in ((0, -1.0), (-1, 1.0)):
            if radii[end] > 0.004:
                parts.append(_cap(grid[end, :-1], line[end], sign * ahead[end], paint, glow))
    return [replace(_joined(parts), solid=closed)]


def sheet(
    grid: Floats, paint: Paint, *, flip: bool = False, fit: bool = False, glow: float = 0.0
) -> list[Part]:
    """A cloth through a grid of points [rows, columns, 3]; its front is where columns x rows points."""
    rows, columns = grid.shape[:2]
    normals = np.cross(np.gradient(grid, axis=1), np.gradient(grid, axis=0)).reshape(-1, 3)
    if fit:
        s, t = np.meshgrid(np.linspace(0, 1, columns), np.linspace(0, 1, rows))
    else:
        s = np.concatenate([np.zeros((rows, 1)), np.cumsum(_steps(grid, 1), 1)], 1) / paint.size
        t = np.concatenate([np.zeros((1, columns)), np.cumsum(_steps(grid, 0), 0)], 0) / paint.size
    uv = np.stack([s, t], -1).reshape(-1, 2)
    faces = _cells(rows - 1, columns - 1)
    if flip:
        normals, faces = -normals, faces[:, ::-1]
    return [Part(grid.reshape(-1, 3), _unit(normals), uv, faces, paint, glow)]


def _cap(ring: Floats, centre: Floats, normal: Floats, paint: Paint, glow: float) -> Part:
    n = len(ring)
    vertices = np.vstack([ring, centre])
    faces = np.stack([np.arange(n), (np.arange(n) + 1) % n, np.full(n, n)], -1)
    first = vertices[faces[0]]
    if np.cross(first[1] - first[0], first[2] - first[0]) @ normal < 0:
        faces = faces[:, ::-1]
    return Part(vertices, np.tile(normal, (n + 1, 1)), np.zeros((n + 1, 2)), faces, paint, glow)


@cache
def _cells(rows: int, columns: int) -> npt.NDArray[np.int64]:
    """Two triangles for every cell of a grid of points."""
    corner = (np.arange(rows)[:, None] * (columns + 1) + np.arange(columns)).ravel()
    right, above = corner + 1, corner + columns + 1
    lower = np.stack([corner, right, above + 1], -1)
    return np.concatenate([lower, np.stack([corner, above + 1, above], -1)])


def _joined(parts: Sequence[Part]) -> Part:
    start = np.cumsum([0] + [len(p.vertices) for p in parts[:-1]])
    return Part(
        np.concatenate([p.vertices for p in parts]),
        np.concatenate([p.normals for p in parts]),
        np.concatenate([p.uv for p in parts]),
        np.concatenate([p.faces + s for p, s in zip(parts, start, strict=True)]),
        parts[0].paint,
        parts[0].glow,
    )


def _steps(grid: Floats, axis: int) -> Floats:
    return np.asarray(np.linalg.norm(np.diff(grid, axis=axis), axis=-1))


def _power(x: Floats, power: float) -> Floats:
    return np.asarray(np.sign(x) * np.abs(x) ** power)


def _unit(x: Floats) -> Floats:
    return np.asarray(x / (np.linalg.norm(x, axis=-1, keepdims=True) + 1e-12))
