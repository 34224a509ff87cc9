"""Lighting: lamps that hang, stand, sit on tables or on walls."""

import numpy as np

from wanderlearn.rooms.shapes import Paint, Part, box, lathe, plain, soft, tube
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = ["ceiling_lamp", "floor_lamp", "table_lamp", "wall_lamp"]


def _shade_paint(w: Workshop) -> Paint:
    if w.maybe(0.5):
        return w.patterned(w.pick("stripes", "dots", "blotches", "waves", "flowers", "diamonds"), 0.2)
    return w.solid(0.75, 0.98)


def _shade(w: Workshop, radius: float, high: float, z: float, paint: Paint) -> list[Part]:
    """A lamp shade around z: cone, drum, bell or globe."""
    style, narrow = w.count(0, 3), w.one(0.35, 0.8)
    if style == 0:
        line = [(radius, z), (radius * narrow, z + high)]
    elif style == 1:
        line = [(radius * 0.85, z), (radius * 0.85, z + high)]
    elif style == 2:
        line = [
            (radius, z),
            (radius * 0.72, z + high * 0.3),
            (radius * 0.5, z + high * 0.7),
            (radius * 0.35, z + high),
        ]
    else:
        return soft(
            (0, 0, z + high / 2),
            (radius * 0.85, radius * 0.85, max(high / 2, radius * 0.6)),
            paint,
            round=1.0,
            glow=0.6,
        )
    return lathe(line, paint, sides=20, glow=0.6) + soft(
        (0, 0, z + high * 0.4), (0.03, 0.03, 0.04), plain(1, 0.95, 0.8), round=1, rings=4, glow=1.0
    )


def floor_lamp(w: Workshop) -> Model:
    """A lamp that stands: straight, arched or on three legs."""
    high, radius, stem = w.one(1.25, 1.65), w.one(0.15, 0.25), (w.metal() if w.maybe(0.6) else w.wood())
    style, paint = w.count(0, 2), _shade_paint(w)
    if style == 2:
        parts = []
        for k in range(3):
            a = 2 * np.pi * k / 3 + 0.5
            parts += tube([(0.26 * np.cos(a), 0.26 * np.sin(a), 0), (0, 0, high - 0.05)], 0.014, stem)
    else:
        parts = lathe([(0.15, 0), (0.15, 0.02), (0.04, 0.04), (0.012, 0.06)], stem)
        parts += tube([(0, 0, 0.03), (0, 0, high)], 0.012, stem)
        if style == 1:  # a second, small lamp on an arm
            parts += tube([(0, 0, high * 0.6), (0.12, -0.12, high * 0.68)], 0.009, stem)
            parts += lathe(
                [(0.06, -0.06), (0.03, 0.04)], paint, sides=12, centre=(0.13, -0.13, high * 0.68), glow=0.5
            )
    return Model(
        "floor lamp",
        parts + _shade(w, radius, w.one(0.22, 0.34), high - 0.06, paint),
        light=(0.55, high + 0.05),
    )


def table_lamp(w: Workshop) -> Model:
    """A lamp for a table: turned foot, or a bent arm."""
    high, radius, paint = w.one(0.24, 0.38), w.one(0.11, 0.17), _shade_paint(w)
    if w.maybe(0.25):  # a reading lamp
        metal = w.solid(0.2, 0.9)
        parts = lathe([(0.09, 0), (0.09, 0.02), (0.02, 0.03)], metal)
        parts += tube([(0, 0, 0.02), (0.02, 0.1, high), (0, -0.04, high + 0.12)], 0.01, metal)
        parts += lathe(
            [(0.085, -0.06), (0.05, 0.0), (0.02, 0.06)], metal, sides=14, centre=(0, -0.06, high + 0.1)
        )
        parts += soft(
            (0, -0.06, high + 0.06), (0.05, 0.05, 0.03), plain(1, 0.95, 0.8), round=1, rings=4, glow=1.0
        )
        return Model("reading lamp", parts, light=(0.3, high))
    foot = (
        w.patterned(w.pick("blotches", "stripes", "zigzag", "marble", "waves"), 0.2)
        if w.maybe(0.6)
        else w.solid()
    )
    knots = w.chance.uniform(0.025, 0.085, 5)
    line = [
        (0.001, 0.0),
        (0.07, 0.0),
        *((float(r), float(z)) for r, z in zip(knots, np.linspace(0.02, high * 0.75, 5), strict=True)),
        (0.012, high * 0.8),
        (0.012, high),
    ]
    return Model(
        "table lamp",
        lathe(line, foot) + _shade(w, radius, w.one(0.14, 0.22), high - 0.03, paint),
        light=(0.35, high + 0.08),
    )


def ceiling_lamp(w: Workshop) -> Model:
    """A lamp from the ceiling: a pendant, a flush bowl, a bar with spots or a chandelier."""
    style, radius, paint = w.count(0, 4), w.one(0.14, 0.26), _shade_paint(w)
    metal = w.metal()
    parts = lathe([(0.001, -0.03), (0.05, -0.03), (0.055, 0)], metal, sides=12)
    if style == 0:  # flush
        parts += lathe(
            [(0.001, -0.13), (radius * 0.6, -0.12), (radius, -0.07), (radius * 1.05, -0.02)],
            paint,
            sides=22,
            glow=0.75,
        )
        parts += lathe([(radius * 1.06, -0.04), (radius * 1.08, 0)], metal, sides=22)
        return Model("ceiling lamp", parts, light=(1.0, -0.25))
    drop = w.one(0.3, 0.6)
    if style == 1:  # spots on a bar
        half, count = w.one(0.3, 0.5), w.count(3, 4)
        parts += tube([(0, 0, -0.08), (0, 0, 0)], 0.012, metal) + box(
            (0, 0, -0.09), (half, 0.02, 0.015), metal
        )
        for k in range(count):
            x = (k - (count - 1) / 2) * 2 * half / count
            parts += lathe(
                [(0.055, -0.2), (0.04, -0.12), (0.02, -0.1)], paint, sides=12, centre=(x, 0, 0), glow=0.15
            )
            parts += soft((x, 0, -0.19), (0.04, 0.04, 0.02), plain(1, 0.96, 0.85), round=1, rings=4, glow=1.0)
        return Model("spots", parts, light=(1.0, -0.35))
    if style == 2:  # chandelier
        arms, reach = w.count(4, 6), w.one(0.22, 0.32)
        parts += tube([(0, 0, -drop), (0, 0, 0)], 0.012, metal) + soft(
            (0, 0, -drop), (0.05, 0.05, 0.06), metal, round=1
        )
        for k in range(arms):
            a = 2 * np.pi * k / arms
            x, y = reach * np.cos(a), reach * np.sin(a)
            parts += tube([(0, 0, -drop), (x * 0.6, y * 0.6, -drop - 0.08), (x, y, -drop)], 0.01, metal)
            parts += lathe([(0.05, 0.08), (0.03, 0.0)], paint, sides=10, centre=(x, y, -drop), glow=0.7)
        return Model("chandelier", parts, light=(1.0, -drop - 0.25))
    parts += tube([(0, 0, -drop), (0, 0, 0)], 0.007, plain(0.12), sides=5)
    return Model(
        "pendant lamp",
        parts + _shade(w, radius, w.one(0.16, 0.26), -drop - 0.18, paint),
        light=(1.0, -drop - 0.3),
    )


def wall_lamp(w: Workshop) -> Model:
    """A lamp on a wall; the wall at y = 0."""
    metal, paint, radius = w.metal(), _shade_paint(w), w.one(0.07, 0.11)
    parts = box((0, -0.012, 0), (0.04, 0.012, w.one(0.06, 0.1)), metal)
    parts += tube([(0, -0.01, 0), (0, -0.12, -0.02), (0, -0.13, 0.04)], 0.01, metal)
    up = w.maybe(0.6)
    parts += lathe(
        [(radius * (0.6 if up else 1), 0.03), (radius * (1 if up else 0.6), 0.03 + w.one(0.12, 0.18))],
        paint,
        sides=16,
        centre=(0, -0.13, 0),
        glow=0.6,
    )
    return Model("wall lamp", parts, light=(0.3, 0.1))
