"""Plants in pots."""

import numpy as np

from wanderlearn.rooms.shapes import Floats, Part, lathe, plain, sheet, soft, tube
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = ["plant", "small_plant"]


def plant(w: Workshop, scale: float = 1.0) -> Model:
    """A plant of one of six kinds in a pot of its own."""
    radius, pot_high = w.one(0.11, 0.19) * scale, w.one(0.16, 0.34) * scale
    parts = _pot(w, radius, pot_high)
    grow = (_broad, _tree, _spikes, _palm, _flowers, _cactus)[w.count(0, 5)]
    kind, leaves = grow(w, radius, w.one(0.5, 1.05) * scale)
    for part in leaves:
        part.vertices[:, 2] += pot_high - 0.03 * scale
    return Model(kind, parts + leaves)


def small_plant(w: Workshop) -> Model:
    """A plant for a table or a sill."""
    return plant(w, 0.42)


def _pot(w: Workshop, r: float, high: float) -> list[Part]:
    if w.maybe(0.7):
        paint = w.patterned(
            w.pick("blotches", "stripes", "zigzag", "plaster", "dots", "diamonds", "waves", "tiles"),
            max(0.12, r),
        )
    else:
        paint = w.solid()
    foot, belly = w.one(0.55, 1.0), w.one(0.85, 1.2)
    line = [
        (0.001, 0.0),
        (r * foot, 0.0),
        (r * belly, high * 0.5),
        (r, high),
        (r * 0.88, high),
        (r * 0.85, high * 0.88),
    ]
    return lathe(line, paint, sides=18) + lathe(
        [(r * 0.86, high * 0.9), (0, high * 0.91)], plain(0.2, 0.13, 0.08), sides=12
    )


def _leaf(
    start: Floats, turn: float, long: float, wide: float, rise: float, droop: float, colour: Floats
) -> list[Part]:
    v, u = np.meshgrid(np.linspace(0, 1, 7), np.array([-1.0, 0.0, 1.0]), indexing="ij")
    angle = rise - droop * v
    out, up = np.cumsum(np.cos(angle), 0) / 7 * long, np.cumsum(np.sin(angle), 0) / 7 * long
    half = wide * np.sin(np.pi * np.clip(0.1 + 0.88 * v, 0, 1)) * u
    c, s = np.cos(turn), np.sin(turn)
    grid = np.stack([out * c - half * s, out * s + half * c, up - 0.3 * np.abs(half)], -1) + start
    part = sheet(grid, plain(*(float(x) for x in np.clip(colour, 0, 1))))[0]
    part.normals[part.normals[:, 2] < 0] *= -1
    return [part]


def _broad(w: Workshop, r: float, high: float) -> tuple[str, list[Part]]:
    parts, green, wide, droop = [], w.leaf(), w.one(0.05, 0.1), w.one(0.6, 1.8)
    for _ in range(w.count(10, 18)):
        parts += _leaf(
            np.zeros(3),
            w.one(0, 6.28),
            high * w.one(0.7, 1.1),
            high * wide,
            w.one(0.8, 1.5),
            droop,
            green * w.one(0.7, 1.25),
        )
    return "leafy plant", parts


def _tree(w: Workshop, r: float, high: float) -> tuple[str, list[Part]]:
    green, crown = w.leaf(), high * w.one(0.24, 0.36)
    parts = tube([(0, 0, 0), (0.02, 0.01, high * 0.6)], 0.07 * r + 0.008, plain(0.35, 0.24, 0.15))
    for _ in range(w.count(22, 34)):
        v = w.chance.normal(0, 1, 3)
        v *= crown * w.one(0.5, 1) / np.linalg.norm(v)
        size = crown * w.one(0.2, 0.34)
        parts += soft(
            (v[0], v[1], high * 0.72 + v[2]),
            (size, size, size * 0.7),
            plain(*(float(c) for c in green * w.one(0.6, 1.3))),
            round=1,
            rings=4,
        )
    if w.maybe(0.3):
        fruit = w.solid(0.6, 0.95)
        for _ in range(w.count(4, 8)):
            v = w.chance.normal(0, 1, 3)
            v *= crown * 1.1 / np.linalg.norm(v)
            parts += soft((v[0], v[1], high * 0.72 + v[2]), (0.03, 0.03, 0.03), fruit, round=1, rings=4)
    return "small tree", parts


def _spikes(w: Workshop, r: float, high: float) -> tuple[str, list[Part]]:
    parts, green, wide = [], w.leaf(), w.one(0.025, 0.05)
    for _ in range(w.count(12, 22)):
        start = np.array([*w.chance.uniform(-0.35, 0.35, 2) * r, 0])
        parts += _leaf(
            start,
            w.one(0, 6.28),
            high * w.one(0.5, 1),
            high * wide + 0.008,
            w.one(1.25, 1.57),
            w.one(0, 0.35),
            green * w.one(0.65, 1.35),
        )
    return "snake plant", parts


def _palm(w: Workshop, r: float, high: float) -> tuple[str, list[Part]]:
    green, trunk = w.leaf(), high * w.one(0.35, 0.6)
    parts = tube(
        [(0, 0, 0), (0.02, 0, trunk * 0.5), (0.0, 0.02, trunk)],
        (0.14 * r + 0.012, 0.1 * r + 0.01, 0.1 * r + 0.01),
        plain(0.42, 0.31, 0.2),
    )
    for k in range(w.count(9, 14)):
        parts += _leaf(
            np.array([0, 0.02, trunk]),
            k * 2.4 + w.one(0, 0.5),
            high * w.one(0.45, 0.7),
            high * 0.06,
            w.one(0.7, 1.3),
            w.one(1.4, 2.2),
            green * w.one(0.75, 1.25),
        )
    return "palm", parts


def _flowers(w: Workshop, r: float, high: float) -> tuple[str, list[Part]]:
    parts, green, petal, heart = [], w.leaf(), w.solid(0.65, 1.0), plain(0.95, 0.8, 0.25)
    high *= 0.75
    for _ in range(w.count(6, 11)):
        parts += _leaf(
            np.zeros(3),
            w.one(0, 6.28),
            high * w.one(0.4, 0.7),
            high * 0.09,
            w.one(0.5, 1.2),
            1.2,
            green * w.one(0.7, 1.2),
        )
    for _ in range(w.count(5, 10)):
        a, lean, up = w.one(0, 6.28), w.one(0.05, 0.45), high * w.one(0.6, 1.0)
        x, y = lean * up * np.cos(a), lean * up * np.sin(a)
        parts += tube([(0, 0, 0), (x, y, up)], 0.006, plain(*(float(c) for c in green)), sides=5)
        size = 0.055 * high / 0.6
        for k in range(5):
            b = 2 * np.pi * k / 5
            parts += soft(
                (x + size * np.cos(b), y + size * np.sin(b), up),
                (size * 0.75, size * 0.75, size * 0.4),
                petal,
                round=1,
                rings=3,
            )
        parts += soft((x, y, up + size * 0.2), (size * 0.5, size * 0.5, size * 0.45), heart, round=1, rings=3)
    return "flowers", parts


def _cactus(w: Workshop, r: float, high: float) -> tuple[str, list[Part]]:
    base, thick = high * 0.8, r * w.one(0.4, 0.6)
    body = plain(*(float(c) for c in w.leaf()))
    parts = tube(
        [(0, 0, 0), (0, 0, base * 0.5), (0, 0, base)], (thick * 0.85, thick, thick * 0.7), body, sides=12
    )
    parts += soft((0, 0, base), (thick * 0.7, thick * 0.7, thick * 0.6), body, round=1)
    for side in range(w.count(1, 3)):
        a, z = 2.1 * side + w.one(0, 1), base * w.one(0.35, 0.6)
        x, y = thick * 2.1 * np.cos(a), thick * 2.1 * np.sin(a)
        tip = z + base * w.one(0.2, 0.4)
        parts += tube([(0, 0, z), (x, y, z + 0.02), (x, y, tip)], thick * 0.5, body, sides=9)
        parts += soft((x, y, tip), (thick * 0.5, thick * 0.5, thick * 0.5), body, round=1, rings=4)
    if w.maybe(0.5):
        parts += soft(
            (0, 0, base + thick * 0.6),
            (thick * 0.4, thick * 0.4, thick * 0.3),
            w.solid(0.7, 1),
            round=1,
            rings=4,
        )
    return "cactus", parts
