"""Appliances, and the kitchen counter with its sink."""

import numpy as np

from wanderlearn.rooms.shapes import Floats, Paint, Part, box, lathe, plain, quad, rounded, soft, tube, turned
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = [
    "coffee_machine",
    "counter",
    "dishwasher",
    "fridge",
    "kettle",
    "microwave",
    "stove",
    "toaster",
    "washer",
]

FACING: Floats = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # what pointed up points to -y


def _case(w: Workshop) -> Paint:
    return w.pick(
        plain(0.93), plain(0.6, 0.61, 0.63), plain(0.14), w.solid(0.3, 0.9), w.solid(0.5, 0.95)
    ).shaded(w.one(0.88, 1.05))


def _dial(x: float, y: float, z: float, radius: float, paint: Paint) -> list[Part]:
    return turned(
        lathe([(radius, 0), (radius * 0.85, 0.022), (0, 0.024)], paint, sides=10), FACING, (x, y, z)
    )


def fridge(w: Workshop) -> Model:
    """A fridge: freezer above or below, two doors or one, some with notes on the door."""
    wide, deep, high, case, metal = (
        w.one(0.55, 0.75),
        w.one(0.58, 0.66),
        w.one(1.35, 1.95),
        _case(w),
        w.metal(),
    )
    parts = box((0, 0, high / 2 + 0.02), (wide / 2, deep / 2, high / 2 - 0.02), case.shaded(0.9))
    split, side = high * w.pick(0.32, 0.62, 0.7, 0.97), w.pick(-1, 1)
    rounded_doors = w.maybe(0.4)
    for low, top in ((0.05, split - 0.008), (split + 0.008, high)):
        if top - low < 0.1:
            continue
        z, half = (low + top) / 2, (top - low) / 2
        door = rounded if rounded_doors else box
        parts += door((0, -deep / 2 - 0.03, z), (wide / 2, 0.032, half), case)
        x, long = side * (wide / 2 - 0.06), min(0.2, half * 0.6)
        parts += tube(
            [
                (x, -deep / 2 - 0.06, z - long),
                (x, -deep / 2 - 0.1, z - long * 0.9),
                (x, -deep / 2 - 0.1, z + long * 0.9),
                (x, -deep / 2 - 0.06, z + long),
            ],
            0.012,
            metal,
        )
    for _ in range(w.pick(0, 0, 3, 6)):  # notes and magnets
        x, z = w.one(-0.35, 0.25) * wide, w.one(0.45, 0.92) * high
        parts += box(
            (x, -deep / 2 - 0.066, z), (w.one(0.03, 0.07), 0.003, w.one(0.03, 0.08)), w.solid(0.5, 0.98)
        )
    return Model("fridge", parts)


def stove(w: Workshop) -> Model:
    """A stove with an oven door, dials and rings."""
    wide, deep, high, case, metal = w.one(0.52, 0.65), 0.6, w.one(0.84, 0.9), _case(w), w.metal()
    glass = plain(0.05)
    parts = box((0, 0, high / 2), (wide / 2, deep / 2, high / 2), case)
    parts += box((0, -deep / 2 - 0.012, high * 0.42), (wide / 2 - 0.02, 0.014, high * 0.3), case.shaded(0.85))
    parts += box((0, -deep / 2 - 0.028, high * 0.42), (wide / 2 - 0.08, 0.004, high * 0.2), glass)
    parts += tube(
        [(-wide / 2 + 0.06, -deep / 2 - 0.06, high * 0.75), (wide / 2 - 0.06, -deep / 2 - 0.06, high * 0.75)],
        0.012,
        metal,
    )
    knob = w.solid(0.1, 0.9)
    for k in range(count := w.count(4, 6)):
        parts += _dial((k - (count - 1) / 2) * wide / (count + 0.5), -deep / 2, high * 0.87, 0.024, knob)
    parts += box(
        (0, 0, high + 0.006), (wide / 2 - 0.01, deep / 2 - 0.01, 0.006), plain(0.1) if w.maybe(0.6) else case
    )
    ring = w.pick(plain(0.28), plain(0.5, 0.2, 0.15), plain(0.02))
    for k in range(4):
        radius = w.pick(0.075, 0.095)
        parts += lathe(
            [(radius, 0), (radius, 0.012), (0, 0.014)],
            ring,
            sides=16,
            centre=((k % 2 - 0.5) * wide * 0.48, (k // 2 - 0.5) * 0.27, high + 0.012),
        )
    if w.maybe(0.4):
        parts += box((0, deep / 2 - 0.02, high + 0.08), (wide / 2, 0.02, 0.08), case)
    if w.maybe(0.5):  # a pot on it
        pot, r = w.metal() if w.maybe(0.5) else w.solid(), w.one(0.08, 0.11)
        at = (w.pick(-1, 1) * wide * 0.24, 0.13, high + 0.026)
        parts += lathe([(r, 0), (r, 0.13), (r * 0.9, 0.135), (0, 0.16)], pot, sides=16, centre=at)
        parts += tube(
            [(at[0] - r * 1.35, at[1], at[2] + 0.1), (at[0] + r * 1.35, at[1], at[2] + 0.1)],
            0.012,
            plain(0.08),
        )
    return Model("stove", parts)


def washer(w: Workshop) -> Model:
    """A washing machine or dryer with a round door."""
    wide, deep, high, case = w.one(0.56, 0.63), 0.58, w.one(0.82, 0.9), _case(w)
    panel, trim, r = (
        case.shaded(w.one(0.6, 0.9)),
        w.pick(plain(0.12), plain(0.7), w.solid()),
        w.one(0.15, 0.2),
    )
    parts = rounded((0, 0, high / 2), (wide / 2, deep / 2, high / 2), case)
    z = high * w.one(0.44, 0.5)
    door = lathe([(r + 0.03, 0), (r + 0.02, 0.035), (r - 0.02, 0.04), (r - 0.03, 0.02)], trim, sides=24)
    door += lathe(
        [(r - 0.025, 0.02), (r * 0.6, 0.03), (0, 0.034)],
        plain(0.12, 0.16, 0.22).shaded(w.one(0.6, 1.6)),
        sides=20,
    )
    parts += turned(door, FACING, (0, -deep / 2 + 0.002, z))
    parts += box((0, -deep / 2 - 0.004, high - 0.075), (wide / 2 - 0.02, 0.008, 0.05), panel)
    parts += _dial(w.pick(-1, 0, 1) * 0.16, -deep / 2 - 0.01, high - 0.075, w.one(0.026, 0.036), trim)
    parts += box((w.pick(-0.19, 0.2), -deep / 2 - 0.013, high - 0.075), (0.06, 0.004, 0.025), w.solid())
    if w.maybe(0.3):
        parts += box((0, -deep / 2 - 0.004, 0.07), (wide / 2 - 0.03, 0.006, 0.04), panel)
    return Model("washing machine", parts, top=(wide / 2 - 0.12, 0.12, high))


def dishwasher(w: Workshop) -> Model:
    """A dishwasher: one wide door with a bar."""
    wide, deep, high, case, metal = w.one(0.45, 0.6), 0.58, w.one(0.82, 0.88), _case(w), w.metal()
    parts = box((0, 0, high / 2), (wide / 2, deep / 2, high / 2), case.shaded(0.85))
    parts += box((0, -deep / 2 - 0.012, high * 0.42 + 0.04), (wide / 2 - 0.006, 0.014, high * 0.4), case)
    parts += box(
        (0, -deep / 2 - 0.012, high * 0.93),
        (wide / 2 - 0.006, 0.014, high * 0.055),
        case.shaded(w.one(0.4, 0.9)),
    )
    parts += tube(
        [(-wide / 2 + 0.06, -deep / 2 - 0.05, high * 0.8), (wide / 2 - 0.06, -deep / 2 - 0.05, high * 0.8)],
        0.013,
        metal,
    )
    for k in range(w.count(3, 6)):
        parts += _dial(-wide * 0.35 + 0.05 * k, -deep / 2 - 0.025, high * 0.93, 0.011, metal)
    parts += box(
        (wide * 0.25, -deep / 2 - 0.027, high * 0.93),
        (0.05, 0.003, 0.018),
        w.pick(plain(0.1, 0.5, 0.3), plain(0.6, 0.15, 0.1), plain(0.1, 0.25, 0.6)),
    )
    return Model("dishwasher", parts, top=(wide / 2 - 0.12, 0.12, high))


def microwave(w: Workshop) -> Model:
    """A microwave oven for a counter."""
    wide, deep, high, case = w.one(0.42, 0.52), w.one(0.3, 0.36), w.one(0.24, 0.3), _case(w)
    parts = box((0, 0, high / 2 + 0.01), (wide / 2, deep / 2, high / 2), case)
    parts += box(
        (-wide * 0.12, -deep / 2 - 0.008, high / 2 + 0.01), (wide * 0.34, 0.01, high * 0.42), case.shaded(0.8)
    )
    parts += box(
        (-wide * 0.12, -deep / 2 - 0.02, high / 2 + 0.01), (wide * 0.26, 0.003, high * 0.3), plain(0.05)
    )
    parts += box(
        (wide * 0.37, -deep / 2 - 0.004, high * 0.82),
        (wide * 0.09, 0.004, high * 0.1),
        w.pick(plain(0.1, 0.5, 0.3), plain(0.6, 0.2, 0.1)),
        glow=0.3,
    )
    if w.maybe(0.5):
        for k in range(2):
            parts += _dial(wide * 0.37, -deep / 2, high * (0.55 - 0.28 * k), 0.026, w.solid())
    else:
        for k in range(9):
            parts += box(
                (wide * (0.31 + 0.06 * (k % 3)), -deep / 2 - 0.003, high * (0.6 - 0.16 * (k // 3))),
                (0.01, 0.004, 0.01),
                w.grey(0.7, 0.9),
            )
    return Model("microwave", parts)


def toaster(w: Workshop) -> Model:
    """A toaster, with or without toast."""
    case, half = (w.metal() if w.maybe(0.4) else w.solid()), w.one(0.12, 0.16)
    parts = soft((0, 0, 0.105), (half, 0.085, 0.1), case, round=0.35)
    for sy in (-1, 1):
        parts += box((0, sy * 0.032, 0.2), (half * 0.72, 0.013, 0.006), plain(0.06))
        if w.maybe(0.5):
            parts += box((0, sy * 0.032, 0.225), (half * 0.6, 0.01, 0.04), plain(0.75, 0.5, 0.25))
    parts += box((half + 0.012, 0, 0.13), (0.02, 0.02, 0.012), plain(0.08))
    return Model("toaster", parts)


def kettle(w: Workshop) -> Model:
    """An electric kettle."""
    case, r, high, dark = (
        (w.metal() if w.maybe(0.4) else w.solid()),
        w.one(0.075, 0.095),
        w.one(0.17, 0.23),
        w.grey(0.05, 0.2),
    )
    parts = lathe(
        [
            (r * 1.1, 0),
            (r * 1.1, 0.02),
            (r, 0.025),
            (r * w.one(1.0, 1.15), high * 0.4),
            (r * 0.7, high),
            (r * 0.3, high + 0.025),
            (0, high + 0.03),
        ],
        case,
        sides=18,
    )
    parts += tube(
        [
            (r * 0.7, 0, high * 0.95),
            (r * 1.6, 0, high * 0.9),
            (r * 1.6, 0, high * 0.4),
            (r * 1.0, 0, high * 0.25),
        ],
        0.014,
        dark,
    )
    parts += tube([(-r * 0.75, 0, high * 0.6), (-r * 1.45, 0, high * 0.95)], (0.026, 0.014), case)
    parts += soft((0, 0, high + 0.035), (0.02, 0.02, 0.016), dark, round=1, rings=4)
    return Model("kettle", parts)


def coffee_machine(w: Workshop) -> Model:
    """A coffee machine with its jug."""
    case, dark = _case(w), plain(0.06)
    high = w.one(0.3, 0.38)
    parts = rounded((0, 0.07, high / 2), (0.11, 0.08, high / 2), case) + rounded(
        (0, -0.02, high - 0.05), (0.11, 0.15, 0.05), case
    )
    parts += box((0, -0.06, 0.015), (0.1, 0.12, 0.015), dark)
    parts += lathe(
        [(0.06, 0), (0.075, 0.05), (0.05, 0.12), (0.055, 0.14)],
        plain(0.18, 0.1, 0.06),
        sides=14,
        centre=(0, -0.08, 0.03),
    )
    parts += tube([(0.06, -0.1, 0.14), (0.12, -0.13, 0.13), (0.1, -0.12, 0.05)], 0.01, dark)
    parts += _dial(0.05, -0.17, high - 0.05, 0.018, w.solid()) + _dial(
        -0.05, -0.17, high - 0.05, 0.014, w.metal()
    )
    return Model("coffee machine", parts)


def counter(w: Workshop, wide: float) -> Model:
    """Kitchen cupboards under a worktop, with a sink and a tap."""
    deep, high, wood, metal = 0.6, 0.88, w.wood(), w.metal()
    top = w.patterned(w.pick("marble", "speckle", "wood"), 0.8)
    parts = box((0, 0, high / 2), (wide / 2, deep / 2 - 0.02, high / 2 - 0.02), wood)
    parts += box((0, -0.01, high), (wide / 2, deep / 2, 0.02), top)
    count = max(1, round(wide / 0.5))
    for k in range(count):
        cell = wide / count
        x = (k - (count - 1) / 2) * cell
        parts += box(
            (x, -deep / 2 + 0.012, high * 0.47), (cell / 2 - 0.01, 0.01, high * 0.37), wood.shaded(0.88)
        )
        parts += tube(
            [(x - 0.06, -deep / 2 - 0.015, high * 0.76), (x + 0.06, -deep / 2 - 0.015, high * 0.76)],
            0.008,
            metal,
            sides=5,
        )
    steel, x = plain(0.6, 0.62, 0.65), w.pick(-1, 1) * max(0.0, wide / 2 - 0.4)
    parts += box((x, -0.02, high + 0.022), (0.24, 0.2, 0.004), steel)
    parts += quad((x - 0.2, -0.17, high + 0.027), (0.4, 0, 0), (0, 0.3, 0), plain(0.25, 0.27, 0.3))
    parts += tube(
        [(x, 0.21, high), (x, 0.21, high + 0.22), (x, 0.12, high + 0.26), (x, 0.05, high + 0.19)],
        0.014,
        metal,
    )
    return Model("kitchen counter", parts, top=(wide / 2 - 0.15, 0.1, high + 0.02))
