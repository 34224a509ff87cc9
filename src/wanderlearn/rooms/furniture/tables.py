"""Tables of every height: for dining, coffee, writing, and beside a sofa."""

import numpy as np

from wanderlearn.rooms.furniture.seats import legs
from wanderlearn.rooms.shapes import Paint, Part, box, lathe, plain, rounded, tube
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = ["bench_table", "coffee_table", "desk", "dining_table", "side_table"]


def _top_paint(w: Workshop, wood: Paint) -> Paint:
    kind = w.count(0, 5)
    if kind == 0:
        return w.patterned("marble", 0.9)
    if kind == 1:
        return plain(0.55, 0.68, 0.68).shaded(w.one(0.7, 1.2))  # glass, nearly
    return wood


def _round(w: Workshop, radius: float, high: float) -> list[Part]:
    wood = w.wood()
    top = _top_paint(w, wood)
    parts = lathe([(0, high - 0.03), (radius, high - 0.03), (radius, high), (0, high)], top, sides=28)
    if w.maybe(0.5):
        foot = lathe(
            [(radius * 0.5, 0), (radius * 0.45, 0.03), (0.06, 0.07), (0.04, high * 0.5), (0.07, high - 0.03)],
            wood,
        )
        return parts + foot
    for k in range(count := w.count(3, 4)):
        a = 2 * np.pi * (k + 0.5) / count
        x, y = radius * np.cos(a), radius * np.sin(a)
        parts += tube([(x * 0.92, y * 0.92, 0), (x * 0.6, y * 0.6, high - 0.03)], (0.016, 0.028), wood)
    return parts


def _square(w: Workshop, wide: float, deep: float, high: float) -> list[Part]:
    wood = w.wood()
    top = _top_paint(w, wood)
    thick = w.one(0.014, 0.03)
    parts = box((0, 0, high - thick), (wide / 2, deep / 2, thick), top)
    style = w.count(0, 3)
    if style == 0:  # two boards
        for sx in (-1, 1):
            parts += box(
                (sx * (wide / 2 - 0.1), 0, high / 2 - thick), (0.025, deep / 2 - 0.06, high / 2 - thick), wood
            )
        return parts + box((0, 0, high * 0.3), (wide / 2 - 0.1, 0.02, 0.04), wood)
    if style == 1:  # crossed legs
        for sx in (-1, 1):
            x, y = sx * (wide / 2 - 0.12), deep / 2 - 0.06
            for sy in (-1, 1):
                parts += tube([(x, sy * y, 0), (x, -sy * y, high - 2 * thick)], 0.025, wood)
        return parts
    parts += legs(w, wide, deep, high - 2 * thick, wood, w.one(0.022, 0.038))
    if w.maybe(0.6):
        parts += box((0, 0, high - 2 * thick - 0.04), (wide / 2 - 0.05, deep / 2 - 0.05, 0.04), wood)
    return parts


def dining_table(w: Workshop) -> Model:
    """A table for meals, round or long."""
    high = w.one(0.71, 0.77)
    if w.maybe(0.35):
        radius = w.one(0.45, 0.62)
        return Model("dining table", _round(w, radius, high), top=(radius * 0.65, radius * 0.65, high))
    wide, deep = w.one(1.1, 1.7), w.one(0.75, 0.92)
    return Model("dining table", _square(w, wide, deep, high), top=(wide / 2 - 0.12, deep / 2 - 0.12, high))


def coffee_table(w: Workshop) -> Model:
    """A low table before a sofa."""
    high = w.one(0.36, 0.46)
    if w.maybe(0.4):
        radius = w.one(0.32, 0.45)
        return Model("coffee table", _round(w, radius, high), top=(radius * 0.6, radius * 0.6, high))
    wide, deep = w.one(0.7, 1.15), w.one(0.45, 0.62)
    parts = _square(w, wide, deep, high)
    if w.maybe(0.5):  # a shelf below
        parts += box((0, 0, high * 0.35), (wide / 2 - 0.06, deep / 2 - 0.06, 0.01), w.wood())
    return Model("coffee table", parts, top=(wide / 2 - 0.1, deep / 2 - 0.1, high))


def side_table(w: Workshop) -> Model:
    """A small table for a lamp or a plant."""
    high = w.one(0.45, 0.65)
    if w.maybe(0.6):
        radius = w.one(0.2, 0.28)
        return Model("side table", _round(w, radius, high), top=(radius * 0.4, radius * 0.4, high))
    wide = w.one(0.38, 0.5)
    return Model("side table", _square(w, wide, wide, high), top=(wide / 2 - 0.12, wide / 2 - 0.12, high))


def desk(w: Workshop) -> Model:
    """A writing desk with drawers on one side."""
    wide, deep, high = w.one(1.0, 1.5), w.one(0.55, 0.72), w.one(0.71, 0.76)
    wood, knob = w.wood(), w.metal()
    front = w.wood() if w.maybe(0.4) else wood.shaded(0.88)
    side = w.pick(-1, 1)
    parts = box((0, 0, high - 0.018), (wide / 2, deep / 2, 0.018), wood)
    x, half = side * (wide / 2 - 0.21), 0.19
    parts += box((x, 0, high / 2 - 0.02), (half, deep / 2 - 0.03, high / 2 - 0.02), wood)
    for k in range(count := w.count(2, 4)):
        tall = (high - 0.06) / count
        z = 0.02 + tall * (k + 0.5)
        parts += box((x, -deep / 2 + 0.022, z), (half - 0.012, 0.01, tall / 2 - 0.01), front)
        parts += rounded((x, -deep / 2 + 0.002, z), (0.05, 0.012, 0.01), knob)
    for sy in (-1, 1):
        parts += tube(
            [
                (-side * (wide / 2 - 0.05), sy * (deep / 2 - 0.06), 0),
                (-side * (wide / 2 - 0.05), sy * (deep / 2 - 0.06), high - 0.03),
            ],
            0.022,
            knob,
        )
    return Model("desk", parts, top=(wide / 2 - 0.15, deep / 2 - 0.12, high))


def bench_table(w: Workshop) -> Model:
    """A narrow table against a wall, for a hall."""
    wide, deep, high = w.one(0.7, 1.1), w.one(0.28, 0.36), w.one(0.75, 0.88)
    return Model("console table", _square(w, wide, deep, high), top=(wide / 2 - 0.1, deep / 2 - 0.06, high))
