"""Things to sit on: chairs, stools, sofas."""

import numpy as np

from wanderlearn.rooms.shapes import Paint, Part, box, lathe, plain, rounded, soft, tube
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = ["armchair", "chair", "legs", "office_chair", "sofa", "stool"]


def legs(
    w: Workshop, width: float, depth: float, height: float, paint: Paint, thick: float = 0.024
) -> list[Part]:
    """Four legs: square, splayed, turned or of metal tube."""
    style, metal, parts = w.count(0, 3), w.metal(), []
    for sx in (-1, 1):
        for sy in (-1, 1):
            x, y = sx * (width / 2 - thick - 0.01), sy * (depth / 2 - thick - 0.01)
            if style == 0:
                parts += box((x, y, height / 2), (thick, thick, height / 2), paint)
            elif style == 1:
                parts += tube(
                    [(x * 1.1, y * 1.1, 0), (x * 0.85, y * 0.85, height)], (thick * 0.5, thick), paint
                )
            elif style == 2:
                parts += tube([(x, y, 0), (x, y, height)], thick * 0.6, metal)
            else:
                profile = [
                    (thick * f, height * z)
                    for f, z in (
                        (0.6, 0),
                        (0.6, 0.1),
                        (1.2, 0.25),
                        (0.7, 0.4),
                        (1.1, 0.6),
                        (0.8, 0.75),
                        (1.2, 1),
                    )
                ]
                parts += lathe(profile, paint, sides=8, centre=(x, y, 0))
    return parts


def chair(w: Workshop) -> Model:
    """A chair with four legs and one of five backs."""
    wide, deep, high, back = w.one(0.4, 0.5), w.one(0.4, 0.48), w.one(0.43, 0.48), w.one(0.36, 0.56)
    wood = w.wood()
    padded = w.maybe(0.55)
    cloth = w.fabric(0.3) if padded else wood
    parts = legs(w, wide, deep, high, wood)
    if padded:
        parts += soft((0, 0, high + 0.03), (wide / 2, deep / 2, 0.045), cloth, round=0.3)
    else:
        parts += box((0, 0, high + 0.012), (wide / 2, deep / 2, 0.016), wood)
    style, y, lean = w.count(0, 4), deep / 2 - 0.03, w.one(0.02, 0.09)

    def post(x: float, thick: float, paint: Paint) -> list[Part]:
        return tube([(x, y, high), (x, y + lean, high + back)], thick, paint)

    for sx in (-1, 1):
        parts += post(sx * (wide / 2 - 0.025), 0.018, wood)
    if style == 0:  # upholstered
        parts += soft(
            (0, y + lean * 0.6, high + back * 0.62),
            (wide / 2, 0.035, back * 0.4),
            cloth,
            round=0.3,
            tilt=-lean / back,
        )
    elif style == 4:  # a solid board
        parts += box(
            (0, y + lean * 0.65, high + back * 0.7),
            (wide / 2 - 0.01, 0.013, back * 0.3),
            wood,
            tilt=-lean / back,
        )
    else:
        parts += box((0, y + lean, high + back - 0.02), (wide / 2, 0.016, w.one(0.03, 0.055)), wood)
        for k in range(count := w.count(2, 5)):
            u = (k + 1) / (count + 1)
            if style == 1:  # rungs
                parts += box((0, y + lean * u, high + back * u), (wide / 2 - 0.02, 0.011, 0.022), wood)
            elif style == 2:  # bars
                parts += post((u - 0.5) * wide, 0.01, wood)
            else:  # crossed bars
                x = (u - 0.5) * wide * 0.9
                parts += tube([(x, y, high), (-x, y + lean, high + back)], 0.011, wood)
    if w.maybe(0.25):
        for sx in (-1, 1):
            x = sx * (wide / 2 + 0.01)
            parts += tube([(x, y, high + 0.22), (x, -deep / 2 + 0.06, high + 0.21)], 0.02, wood)
            parts += tube([(x, -deep / 2 + 0.07, high + 0.21), (x, -deep / 2 + 0.07, high)], 0.014, wood)
    return Model("chair", parts)


def office_chair(w: Workshop) -> Model:
    """A swivel chair on five castors."""
    cloth, dark, metal = (w.fabric(0.3) if w.maybe(0.5) else w.solid()), w.grey(0.06, 0.25), w.metal()
    high, wide, back = w.one(0.44, 0.52), w.one(0.44, 0.54), w.one(0.45, 0.7)
    parts = tube([(0, 0, 0.1), (0, 0, high - 0.04)], 0.03, metal)
    for k in range(5):
        a = 2 * np.pi * k / 5 + 0.3
        x, y = 0.28 * np.cos(a), 0.28 * np.sin(a)
        parts += tube([(0, 0, 0.11), (x, y, 0.07)], (0.028, 0.018), dark)
        parts += soft((x, y, 0.035), (0.03, 0.03, 0.035), plain(0.06), round=0.8, rings=4)
    parts += soft((0, 0, high), (wide / 2, 0.24, 0.05), cloth, round=0.35)
    parts += soft(
        (0, 0.23, high + 0.12 + back / 2), (wide / 2 - 0.02, 0.04, back / 2), cloth, round=0.35, tilt=-0.12
    )
    parts += tube([(0, 0.2, high), (0, 0.27, high + 0.3)], 0.025, dark)
    if w.maybe(0.7):
        for sx in (-1, 1):
            x = sx * (wide / 2 + 0.03)
            parts += tube([(x, 0.02, high), (x, 0.02, high + 0.2)], 0.016, dark)
            parts += rounded((x, 0, high + 0.21), (0.03, 0.13, 0.018), dark)
    return Model("office chair", parts)


def stool(w: Workshop) -> Model:
    """A stool: round or square, low or for a bar, or a padded footstool."""
    paint = w.wood() if w.maybe(0.6) else w.metal()
    seat = w.fabric(0.25) if w.maybe(0.5) else (w.solid() if w.maybe(0.3) else paint)
    style = w.count(0, 3)
    if style == 3:  # a pouffe
        radius, high = w.one(0.2, 0.3), w.one(0.34, 0.44)
        parts = lathe(
            [
                (radius * 0.9, 0.02),
                (radius, 0.08),
                (radius, high - 0.06),
                (radius * 0.9, high),
                (0, high + 0.02),
            ],
            w.fabric(0.35),
            sides=20,
        )
        parts += lathe(
            [(radius * 1.01, high * 0.5), (radius * 1.03, high * 0.53), (radius * 1.01, high * 0.56)],
            w.solid(),
            sides=20,
        )
        return Model("pouffe", parts)
    high, half = w.one(0.42, 0.78), w.one(0.15, 0.2)
    if style == 2:
        parts = rounded((0, 0, high), (half, half, 0.03), seat)
    else:
        parts = lathe(
            [
                (0, high - 0.03),
                (half, high - 0.03),
                (half * 1.03, high),
                (half * 0.95, high + 0.03),
                (0, high + 0.04),
            ],
            seat,
            sides=20,
        )
    count = 4 if style == 2 else w.count(3, 4)
    spread, ring = w.one(1.0, 1.3), w.one(0.25, 0.45)
    for k in range(count):
        a = 2 * np.pi * (k + 0.5) / count
        x, y = half * np.cos(a), half * np.sin(a)
        parts += tube([(x * spread, y * spread, 0), (x * 0.75, y * 0.75, high - 0.02)], 0.016, paint)
        b = 2 * np.pi * (k + 1.5) / count
        at = spread + (0.75 - spread) * ring
        parts += tube(
            [(x * at, y * at, high * ring), (half * np.cos(b) * at, half * np.sin(b) * at, high * ring)],
            0.01,
            paint,
            sides=5,
        )
    return Model("bar stool" if high > 0.6 else "stool", parts)


def sofa(w: Workshop, seats: int | None = None) -> Model:
    """A sofa of two or three seats; one seat is an armchair."""
    n = seats or w.count(2, 3)
    wide, arm = w.one(0.58, 0.7), w.one(0.1, 0.2)
    full, deep, high, back = n * wide + 2 * arm, w.one(0.8, 0.95), w.one(0.38, 0.46), w.one(0.75, 0.95)
    cloth = w.fabric() if w.maybe(0.7) else w.solid(0.2, 0.85)
    second = w.fabric() if w.maybe(0.25) else cloth
    lift = w.one(0.05, 0.14)
    parts = rounded(
        (0, 0, (lift + high) / 2 - 0.02), (full / 2 - 0.02, deep / 2 - 0.03, (high - lift) / 2), cloth
    )
    arm_high, arm_round = w.one(0.5, 0.68), w.one(0.2, 0.6)
    for sx in (-1, 1):
        x = sx * (full / 2 - arm / 2)
        parts += soft(
            (x, 0, (arm_high + lift) / 2), (arm / 2, deep / 2, (arm_high - lift) / 2), cloth, round=arm_round
        )
        if arm_round > 0.45:  # a rolled arm
            parts += tube(
                [(x, -deep / 2 + 0.02, arm_high - 0.06), (x, deep / 2 - 0.05, arm_high - 0.06)],
                arm * 0.55,
                cloth,
                sides=12,
            )
    parts += soft(
        (0, deep / 2 - 0.1, (back + lift) / 2), (full / 2 - 0.03, 0.11, (back - lift) / 2), cloth, round=0.22
    )
    for k in range(n):
        x = (k - (n - 1) / 2) * wide
        parts += soft((x, -0.06, high), (wide / 2, deep / 2 - 0.08, 0.085), second, round=0.28)
        parts += soft(
            (x, deep / 2 - 0.26, high + 0.27), (wide / 2 - 0.01, 0.1, 0.21), second, round=0.35, tilt=-0.15
        )
    foot = w.wood() if w.maybe(0.5) else w.metal()
    for sx in (-1, 1):
        for sy in (-1, 1):
            parts += tube(
                [
                    (sx * (full / 2 - 0.08), sy * (deep / 2 - 0.08), 0),
                    (sx * (full / 2 - 0.1), sy * (deep / 2 - 0.1), lift + 0.02),
                ],
                (0.018, 0.028),
                foot,
            )
    return Model("armchair" if n == 1 else "sofa", parts, seat=(n * wide / 2, deep / 2 - 0.42, high + 0.08))


def armchair(w: Workshop) -> Model:
    """A sofa for one."""
    return sofa(w, 1)
