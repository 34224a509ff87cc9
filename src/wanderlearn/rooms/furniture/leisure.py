"""Fireplaces and gym equipment."""

import numpy as np

from wanderlearn.rooms.art import screen
from wanderlearn.rooms.shapes import Paint, Part, box, lathe, plain, quad, rounded, soft, tube, turned
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = ["bench_press", "bicycle", "dumbbells", "fireplace", "punch_bag", "treadmill", "yoga_ball"]


def fireplace(w: Workshop) -> Model:
    """A fireplace with a mantel, logs and a fire; its back to the wall."""
    wide, high, deep = w.one(1.1, 1.5), w.one(0.95, 1.2), w.one(0.3, 0.4)
    stone = w.patterned(w.pick("bricks", "stones", "marble", "bricks"), 0.6)
    opening, top = wide * w.one(0.48, 0.6), high * w.one(0.6, 0.72)
    side = (wide - opening) / 4
    parts: list[Part] = []
    for sx in (-1, 1):
        parts += box((sx * (opening / 2 + side), 0, high / 2), (side, deep / 2, high / 2), stone)
    parts += box((0, 0, (high + top) / 2), (opening / 2, deep / 2, (high - top) / 2), stone)
    parts += box((0, -0.03, high + 0.03), (wide / 2 + 0.06, deep / 2 + 0.06, 0.03), w.wood())
    parts += quad((-opening / 2, deep / 2 - 0.02, 0), (opening, 0, 0), (0, 0, top), plain(0.06))
    parts += quad((-opening / 2, -deep / 2, 0.01), (opening, 0, 0), (0, deep, 0), plain(0.12))
    if w.maybe(0.5):
        parts += box((0, -deep / 2 - 0.18, 0.015), (wide / 2, 0.18, 0.015), stone)
    log = plain(0.32, 0.2, 0.11)
    for k in range(4):
        z = 0.06 + 0.045 * k
        parts += tube(
            [(-0.2 + 0.03 * k, -0.06 + 0.05 * (k % 3), z), (0.2 - 0.03 * k, 0.04 - 0.03 * k, z + 0.02)],
            0.04,
            log,
            sides=8,
        )
    for k in range(7):
        x, tall = (k - 3) * 0.055 + w.one(-0.02, 0.02), w.one(0.12, 0.34)
        flame = plain(1.0, w.one(0.35, 0.75), 0.1)
        parts += lathe(
            [(0.03, 0.0), (0.045, tall * 0.35), (0.0, tall)],
            flame,
            sides=7,
            centre=(x, w.one(-0.05, 0.05), 0.13),
            glow=0.9,
        )
    if w.maybe(0.4):
        iron = plain(0.08)
        for k in range(9):
            x = (k / 8 - 0.5) * opening
            parts += tube([(x, -deep / 2 - 0.03, 0), (x, -deep / 2 - 0.03, 0.32)], 0.007, iron, sides=4)
        parts += tube(
            [(-opening / 2, -deep / 2 - 0.03, 0.32), (opening / 2, -deep / 2 - 0.03, 0.32)],
            0.009,
            iron,
            sides=5,
        )
    return Model("fireplace", parts, top=(wide / 2 - 0.12, 0.06, high + 0.06), light=(0.3, 0.4))


def treadmill(w: Workshop) -> Model:
    """A treadmill with a belt, rails and a display."""
    trim, dark, metal, high = w.solid(0.3, 0.95), w.grey(0.1, 0.3), w.metal(), w.one(1.1, 1.3)
    parts = rounded((0, 0, 0.09), (w.one(0.3, 0.38), 0.72, 0.06), dark) + box(
        (0, -0.05, 0.155), (0.24, 0.63, 0.004), plain(0.07)
    )
    for sx in (-1, 1):
        parts += box((sx * 0.28, -0.05, 0.155), (0.03, 0.63, 0.012), trim)
        parts += tube([(sx * 0.31, 0.6, 0.1), (sx * 0.31, 0.55, high)], 0.03, metal if w.maybe(0.5) else trim)
        parts += tube([(sx * 0.31, 0.56, high - 0.12), (sx * 0.31, 0.1, high - 0.2)], 0.024, dark)
    parts += rounded((0, 0.55, high), (0.34, 0.05, 0.13), trim, tilt=-0.5)
    parts += box(
        (0, 0.51, high + 0.02),
        (0.15, 0.03, 0.07),
        Paint(texture=screen(w.chance), size=0.3),
        tilt=-0.5,
        glow=0.4,
    )
    return Model("treadmill", parts)


def bicycle(w: Workshop) -> Model:
    """An exercise bicycle."""
    frame, dark, metal = w.solid(0.25, 0.95), plain(0.08), w.metal()
    seat, bar = w.one(0.85, 1.0), w.one(1.0, 1.2)
    parts = box((0, -0.4, 0.03), (0.25, 0.04, 0.03), dark) + box((0, 0.4, 0.03), (0.22, 0.04, 0.03), dark)
    parts += tube([(0, -0.4, 0.05), (0, 0.1, 0.28), (0, 0.4, 0.05)], 0.03, frame)
    parts += tube([(0, 0.05, 0.25), (0, 0.28, seat)], 0.028, frame) + tube(
        [(0, -0.12, 0.22), (0, -0.36, bar)], 0.028, frame
    )
    parts += soft((0, 0.28, seat + 0.03), (0.11, 0.14, 0.04), dark, round=0.6)
    parts += tube(
        [
            (-0.22, -0.3, bar + 0.02),
            (-0.18, -0.4, bar + 0.03),
            (0.18, -0.4, bar + 0.03),
            (0.22, -0.3, bar + 0.02),
        ],
        0.017,
        dark,
    )
    parts += box((0, -0.38, bar + 0.1), (0.09, 0.02, 0.06), frame, tilt=-0.5)
    spin = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])
    r = w.one(0.2, 0.26)
    wheel = lathe(
        [(0.04, -0.03), (r, -0.03), (r + 0.015, 0), (r, 0.03), (0.04, 0.03)], w.solid(0.2, 0.9), sides=24
    )
    parts += turned(wheel, spin, (0, -0.28, 0.33))
    for sx in (-1, 1):
        parts += tube(
            [
                (0, 0.02, 0.32),
                (sx * 0.08, 0.02, 0.32),
                (sx * 0.08, 0.02 + sx * 0.1, 0.32 - sx * 0.1),
                (sx * 0.17, 0.02 + sx * 0.1, 0.32 - sx * 0.1),
            ],
            0.014,
            metal,
        )
        parts += box((sx * 0.15, 0.02 + sx * 0.1, 0.32 - sx * 0.1), (0.045, 0.06, 0.012), dark)
    return Model("exercise bike", parts)


def _disc(radius: float, half: float, paint: Paint, x: float, y: float, z: float) -> list[Part]:
    spin = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])
    return turned(
        lathe([(0, -half), (radius, -half), (radius, half), (0, half)], paint, sides=18), spin, (x, y, z)
    )


def bench_press(w: Workshop) -> Model:
    """A bench with a bar and weights."""
    pad, iron, post = w.solid(0.2, 0.9), plain(0.55), w.pick(plain(0.12), w.solid(0.3, 0.9))
    high, long = w.one(0.85, 1.05), w.one(0.5, 0.62)
    parts = rounded((0, -0.05, 0.44), (0.14, long, 0.045), pad)
    for y in (-long + 0.1, long - 0.2):
        parts += tube([(0, y, 0), (0, y, 0.42)], 0.03, post) + box((0, y, 0.02), (0.22, 0.03, 0.02), post)
    parts += tube([(-0.7, 0.45, high), (0.7, 0.45, high)], 0.014, iron)
    plates = [(w.one(0.14, 0.22), w.solid(0.1, 0.9)) for _ in range(w.count(1, 3))]
    for sx in (-1, 1):
        parts += tube([(sx * 0.32, 0.47, 0), (sx * 0.32, 0.47, high + 0.05)], 0.026, post)
        for k, (radius, colour) in enumerate(plates):
            parts += _disc(radius, 0.02, colour, sx * (0.56 + 0.05 * k), 0.45, high)
    return Model("weight bench", parts)


def dumbbells(w: Workshop) -> Model:
    """A rack of dumbbells."""
    wide, iron = w.one(0.8, 1.2), w.pick(plain(0.12), w.solid(0.2, 0.8))
    rows = w.count(2, 3)
    parts: list[Part] = []
    for sx in (-1, 1):
        parts += box((sx * wide / 2, 0, 0.18 * rows + 0.05), (0.025, 0.2, 0.18 * rows + 0.05), iron)
    grip = plain(0.6)
    for row in range(rows):
        z = 0.2 + 0.34 * row
        parts += box((0, 0, z), (wide / 2, 0.16, 0.015), iron, tilt=-0.25)
        colour, x = w.solid(0.1, 0.95), -wide / 2 + 0.14
        while x < wide / 2 - 0.1:
            r = w.one(0.045, 0.07)
            for sy in (-0.1, 0.1):
                parts += tube(
                    [(x, sy - 0.035, z + r + 0.02), (x, sy + 0.035, z + r + 0.02)], r, colour, sides=8
                )
            parts += tube([(x, -0.1, z + r + 0.02), (x, 0.1, z + r + 0.02)], 0.018, grip, sides=6)
            x += 2 * r + 0.05
    return Model("dumbbell rack", parts)


def punch_bag(w: Workshop) -> Model:
    """A punching bag on a stand."""
    leather, metal, dark = w.solid(0.2, 0.95), w.metal(), plain(0.1)
    high = w.one(1.8, 2.05)
    r, z = w.one(0.14, 0.19), high - 0.25
    parts = box((0, 0.35, 0.03), (0.4, 0.06, 0.03), dark) + box((0, 0, 0.03), (0.05, 0.4, 0.029), dark)
    parts += tube([(0, 0.35, 0.03), (0, 0.35, high - 0.1), (0, 0.25, high), (0, -0.1, high)], 0.035, metal)
    parts += tube([(0, -0.1, high), (0, -0.1, z)], 0.01, metal, sides=5)
    parts += lathe(
        [(r * 0.8, z - 1.05), (r, z - 1.0), (r, z - 0.05), (r * 0.7, z), (0, z + 0.01)],
        leather,
        sides=18,
        centre=(0, -0.1, 0),
    )
    band = w.solid()
    for at in (0.25, 0.75):
        parts += lathe([(r * 1.012, z - at - 0.05), (r * 1.012, z - at)], band, sides=18, centre=(0, -0.1, 0))
    return Model("punching bag", parts)


def yoga_ball(w: Workshop) -> Model:
    """A large ball on a mat."""
    r = w.one(0.25, 0.35)
    ball = w.solid(0.4, 0.95) if w.maybe(0.5) else w.patterned(w.pick("stripes", "waves", "blotches"), 0.4)
    mat = w.solid(0.3, 0.9)
    parts = box((0, 0, 0.008), (0.32, 0.7, 0.008), mat) + soft(
        (0, w.one(-0.2, 0.2), r + 0.016), (r, r, r), ball, round=1, rings=10
    )
    roll = tube([(-0.3, 0.62, 0.07), (0.3, 0.62, 0.07)], 0.055, w.solid(0.2, 0.9), sides=12)
    return Model("gym ball and mat", parts + (roll if w.maybe(0.5) else []))
