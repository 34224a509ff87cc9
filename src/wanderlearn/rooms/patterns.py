"""Patterns of cloth, wood, tile and paper: textures drawn from two colours and chance."""

from collections.abc import Callable
from typing import Final

import numpy as np

from wanderlearn.rooms.shapes import Floats, Texture

__all__ = ["CLOTHS", "SIZE", "Chance", "as_texture", "clouds", "grid", "hsv", "pattern", "rug"]

Chance = np.random.Generator
SIZE: Final = 128
TURN: Final = 2 * np.pi


def hsv(hue: float, saturation: float, value: float) -> Floats:
    """A colour from its hue, saturation and value."""
    k = (np.array([5.0, 3.0, 1.0]) + hue * 6) % 6
    return value - value * saturation * np.clip(np.minimum(k, 4 - k), 0, 1)


def as_texture(image: Floats) -> Texture:
    """Numbers from 0 to 1 as a texture."""
    return (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)


def grid(n: int = SIZE) -> tuple[Floats, Floats]:
    """x and y of every point, from 0 to 1."""
    line = (np.arange(n) + 0.5) / n
    x, y = np.meshgrid(line, line)
    return x, y


def clouds(chance: Chance, period: int = 2, octaves: int = 4, n: int = SIZE) -> Floats:
    """Smooth noise from 0 to 1 that repeats without a seam."""
    total = np.zeros((n, n))
    for k in range(octaves):
        m = period * 2**k
        knots = chance.random((m, m))
        at = np.arange(n) * m / n
        i = at.astype(int)
        f = at - i
        f = f * f * (3 - 2 * f)
        j = (i + 1) % m
        rows = knots[i] * (1 - f)[:, None] + knots[j] * f[:, None]
        total += 0.5**k * (rows[:, i] * (1 - f) + rows[:, j] * f)
    return np.asarray((total - total.min()) / (np.ptp(total) + 1e-9))


def pattern(kind: str, chance: Chance, first: Floats, second: Floats) -> Texture:
    """The pattern of this name; where it is 0 the first colour shows, where it is 1 the second."""
    x, y = grid()
    m = np.clip(PATTERNS[kind](chance, x, y), 0, 1.3)[..., None]
    return as_texture(first * (1 - m) + second * m)


def _wood(r: Chance, x: Floats, y: Floats) -> Floats:
    """Streaks along x that bend a little, with a few broad rings."""
    fine = clouds(r, 32, 2)[:, 0]
    bend = clouds(r, 1, 2)
    row = ((y + 0.16 * bend) * SIZE).astype(int) % SIZE
    rings = 0.5 + 0.5 * np.sin(TURN * (y * r.integers(3, 7) + 0.9 * bend))
    return np.asarray(0.55 * fine[row] + 0.35 * rings + 0.1 * clouds(r, 4))


def _planks(r: Chance, x: Floats, y: Floats) -> Floats:
    n = int(r.integers(3, 6))
    row = (y * n).astype(int)
    shift = r.random(n)[row]
    piece = ((x + shift) * 2 % 2).astype(int)
    tone = 0.6 * r.random((n, 2))[row, piece]
    grain = 0.12 * np.sin(TURN * (y * 20 + 2 * clouds(r, 2)))
    seam = ((y * n) % 1 < 0.05) | (((x + shift) * 2) % 1 < 0.02)
    return np.where(seam, 1.25, tone + 0.25 * clouds(r, 4) + grain)


def _herringbone(r: Chance, x: Floats, y: Floats) -> Floats:
    n = 8
    i, j = (x * n).astype(int), (y * n).astype(int)
    phase = (i - j) % 4
    flat = phase < 2
    tone = np.where(flat, r.random((n, n))[j, (i - phase % 2) % n], r.random((n, n))[(j + phase % 2) % n, i])
    across, along = np.where(flat, (y * n) % 1, (x * n) % 1), np.where(flat, (x * n) % 1, (y * n) % 1)
    seam = (across < 0.09) | ((along < 0.07) & (phase % 2 == 0))
    return np.where(seam, 1.2, 0.55 * tone + 0.3 * clouds(r, 8))


def _tiles(r: Chance, x: Floats, y: Floats) -> Floats:
    n = int(r.integers(2, 5))
    own = 0.22 * r.random((n, n))[(y * n).astype(int), (x * n).astype(int)]
    seam = (((x * n) % 1) < 0.05) | (((y * n) % 1) < 0.05)
    return np.where(seam, 1.0, own + 0.12 * clouds(r))


def _chessboard(r: Chance, x: Floats, y: Floats) -> Floats:
    n = 2 * int(r.integers(1, 3))
    return np.asarray(((x * n).astype(int) + (y * n).astype(int)) % 2 * 0.9 + 0.1 * clouds(r, 4))


def _mosaic(r: Chance, x: Floats, y: Floats) -> Floats:
    n = 8
    own = r.random((n, n))[(y * n).astype(int), (x * n).astype(int)]
    return np.where((((x * n) % 1) < 0.12) | (((y * n) % 1) < 0.12), 0.5, own)


def _stripes(r: Chance, x: Floats, y: Floats) -> Floats:
    along = x if r.random() < 0.6 else y
    wide = np.sin(TURN * along * r.integers(2, 6)) > r.uniform(-0.5, 0.5)
    thin = np.sin(TURN * along * r.integers(8, 13)) > 0.75
    return np.asarray(wide * 0.8 + thin * r.choice([0.0, 0.35]))


def _checks(r: Chance, x: Floats, y: Floats) -> Floats:
    n = int(r.integers(2, 5))
    return np.asarray(0.5 * ((x * n * 2).astype(int) % 2) + 0.5 * ((y * n * 2).astype(int) % 2))


def _tartan(r: Chance, x: Floats, y: Floats) -> Floats:
    marks = r.random(8) < 0.45
    marks[0], line = True, np.repeat(marks, SIZE // 8)
    fine = 0.5 + 0.5 * np.sin(TURN * (x + y) * 32)
    return np.asarray(0.45 * line[None, :] + 0.45 * line[:, None] + 0.1 * fine)


def _dots(r: Chance, x: Floats, y: Floats) -> Floats:
    n, radius = int(r.integers(2, 6)), r.uniform(0.18, 0.36)
    shift = 0.5 * ((y * n).astype(int) % 2) if n % 2 == 0 else 0.0
    return np.asarray(np.hypot((x * n + shift) % 1 - 0.5, (y * n) % 1 - 0.5) < radius, float)


def _weave(r: Chance, x: Floats, y: Floats) -> Floats:
    n = int(r.integers(10, 20))
    return np.asarray(0.5 + 0.25 * np.sin(TURN * x * n) * np.sin(TURN * y * n) + 0.3 * (clouds(r) - 0.5))


def _zigzag(r: Chance, x: Floats, y: Floats) -> Floats:
    n = int(r.integers(2, 5))
    return np.asarray(((y * n + np.abs(((x * n) % 1) - 0.5)) % 1) < r.uniform(0.3, 0.55), float)


def _blotches(r: Chance, x: Floats, y: Floats) -> Floats:
    return clouds(r, int(r.integers(2, 4)))


def _plaster(r: Chance, x: Floats, y: Floats) -> Floats:
    return 0.5 * clouds(r, 8)


def _bricks(r: Chance, x: Floats, y: Floats) -> Floats:
    row = (y * 6).astype(int)
    shifted = x + 0.125 * (row % 2)
    tone = 0.5 * r.random((6, 4))[row, (shifted * 4 % 4).astype(int)] + 0.15 * clouds(r, 8)
    return np.where(((y * 6) % 1 < 0.16) | ((shifted * 4) % 1 < 0.09), 1.1, tone)


def _stones(r: Chance, x: Floats, y: Floats) -> Floats:
    n = 14
    px, py, tone = r.random(n), r.random(n), 0.7 * r.random(n)
    dx = (x[..., None] - px + 0.5) % 1 - 0.5
    dy = (y[..., None] - py + 0.5) % 1 - 0.5
    away = np.hypot(dx, dy)
    near = np.sort(away, -1)
    return np.where(near[..., 1] - near[..., 0] < 0.025, 1.1, tone[away.argmin(-1)] + 0.2 * clouds(r, 8))


def _flowers(r: Chance, x: Floats, y: Floats) -> Floats:
    m = np.zeros_like(x)
    for _ in range(int(r.integers(5, 10))):
        px, py, radius, petals = r.random(), r.random(), r.uniform(0.07, 0.17), int(r.integers(4, 8))
        dx, dy = (x - px + 0.5) % 1 - 0.5, (y - py + 0.5) % 1 - 0.5
        away = np.hypot(dx, dy)
        flower = away < radius * (0.62 + 0.38 * np.cos(petals * np.arctan2(dy, dx)))
        m = np.maximum(m, np.where(away < 0.25 * radius, 0.45, flower * 1.0))
    return m


def _leaves(r: Chance, x: Floats, y: Floats) -> Floats:
    m = np.zeros_like(x)
    for _ in range(int(r.integers(9, 16))):
        px, py, turn, length = r.random(), r.random(), r.uniform(0, TURN), r.uniform(0.1, 0.2)
        dx, dy = (x - px + 0.5) % 1 - 0.5, (y - py + 0.5) % 1 - 0.5
        along, across = dx * np.cos(turn) + dy * np.sin(turn), dy * np.cos(turn) - dx * np.sin(turn)
        leaf = np.abs(across) < 0.35 * length * np.clip(1 - (along / length) ** 2, 0, 1)
        m = np.maximum(m, np.where(leaf, np.where(np.abs(across) < 0.008, 0.5, 1.0), 0.0))
    return m


def _diamonds(r: Chance, x: Floats, y: Floats) -> Floats:
    n = int(r.integers(2, 5))
    ring = np.abs((x * n) % 1 - 0.5) + np.abs((y * n) % 1 - 0.5)
    return np.where(np.abs(ring - 0.42) < 0.07, 0.6, (ring < 0.22) * 1.0)


def _waves(r: Chance, x: Floats, y: Floats) -> Floats:
    n, k = int(r.integers(3, 7)), int(r.integers(1, 4))
    return np.asarray(np.sin(TURN * (y * n + 0.35 * np.sin(TURN * x * k))) > r.uniform(-0.3, 0.3), float)


def _rings(r: Chance, x: Floats, y: Floats) -> Floats:
    n = int(r.integers(2, 4))
    away = np.hypot((x * n) % 1 - 0.5, (y * n) % 1 - 0.5)
    return np.asarray(np.sin(away * TURN * r.integers(3, 6)) > 0, float)


def _marble(r: Chance, x: Floats, y: Floats) -> Floats:
    vein = np.abs(np.sin(TURN * (x + y + 1.4 * clouds(r, 2, 5))))
    return np.asarray(np.clip(0.9 - 3.2 * vein, 0, 1) + 0.2 * clouds(r, 4))


def _speckle(r: Chance, x: Floats, y: Floats) -> Floats:
    return np.asarray(clouds(r, 32, 2) ** 3 * 1.3)


PATTERNS: Final[dict[str, Callable[[Chance, Floats, Floats], Floats]]] = {
    "wood": _wood, "planks": _planks, "herringbone": _herringbone, "tiles": _tiles,
    "chessboard": _chessboard, "mosaic": _mosaic, "stripes": _stripes, "checks": _checks,
    "tartan": _tartan, "dots": _dots, "weave": _weave, "zigzag": _zigzag, "blotches": _blotches,
    "plaster": _plaster, "bricks": _bricks, "stones": _stones, "flowers": _flowers, "leaves": _leaves,
    "diamonds": _diamonds, "waves": _waves, "rings": _rings, "marble": _marble, "speckle": _speckle,
}  # fmt: skip
CLOTHS: Final = (
    "stripes", "checks", "tartan", "dots", "weave", "weave", "zigzag", "blotches", "flowers", "leaves",
    "diamonds", "waves", "rings", "speckle",
)  # fmt: skip


def rug(chance: Chance) -> Texture:
    """A carpet with a border and a middle, to be shown once."""
    x, y = grid()
    colours = [hsv(chance.random(), chance.uniform(0.3, 0.8), chance.uniform(0.25, 0.85)) for _ in range(4)]
    edge = np.minimum(np.minimum(x, 1 - x), np.minimum(y, 1 - y))
    image = pattern(str(chance.choice(CLOTHS)), chance, colours[0], colours[1]).astype(float) / 255
    if chance.random() < 0.5:
        turn = np.arctan2(y - 0.5, x - 0.5)
        star = np.hypot(x - 0.5, y - 0.5) < 0.22 + 0.06 * np.cos(int(chance.integers(4, 9)) * turn)
        image[star] = colours[2]
    image[edge < 0.12] = colours[3]
    image[(edge > 0.04) & (edge < 0.07)] = colours[1]
    return as_texture(image * (0.85 + 0.15 * clouds(chance, 32, 2))[..., None])
