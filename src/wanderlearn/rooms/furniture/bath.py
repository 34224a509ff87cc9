"""The bathroom: toilets, bathtubs, wash basins."""

import numpy as np

from wanderlearn.rooms.shapes import Part, box, lathe, plain, rounded, sheet, soft, tube
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = ["basin", "bathtub", "toilet"]


def toilet(w: Workshop) -> Model:
    """A toilet with its cistern, seat and lid, open or closed."""
    white = w.white()
    seat = w.wood(0.4) if w.maybe(0.35) else (w.solid() if w.maybe(0.45) else white.shaded(0.93))
    squash, high, reach = w.one(0.88, 1.0), w.one(0.37, 0.43), w.one(1.15, 1.35)
    foot = w.one(0.1, 0.15)
    bowl = [
        (foot, 0.0),
        (foot * 0.95, 0.1),
        (0.15, 0.24),
        (0.195, high - 0.03),
        (0.2, high),
        (0.145, high),
        (0.12, high - 0.1),
        (0.0, high - 0.13),
    ]
    parts = lathe(bowl, white, sides=22, centre=(0, -0.12, 0), squash=(squash, reach))
    ring = [(0.205, high), (0.205, high + 0.02), (0.135, high + 0.02), (0.13, high)]
    parts += lathe(ring, seat, sides=22, centre=(0, -0.12, 0), squash=(squash, reach))
    parts += lathe(
        [(0.12, high - 0.085), (0.0, high - 0.085)],
        plain(0.5, 0.65, 0.75),
        sides=16,
        centre=(0, -0.12, 0),
        squash=(squash, reach),
    )
    tank, tank_high = w.one(0.17, 0.23), w.one(0.68, 0.85)
    style = w.count(0, 2)
    if style == 0:
        parts += rounded(
            (0, 0.24, (high + tank_high) / 2), (tank, 0.09, (tank_high - high) / 2 + 0.03), white
        )
    elif style == 1:
        parts += box((0, 0.24, (high + tank_high) / 2), (tank, 0.085, (tank_high - high) / 2), white)
    else:  # an old one with the cistern up on the wall
        parts += rounded((0, 0.26, 1.55), (tank, 0.08, 0.16), w.wood() if w.maybe(0.4) else white)
        parts += tube([(0, 0.27, high - 0.1), (0, 0.27, 1.4)], 0.022, w.metal())
        parts += tube([(tank * 0.7, 0.17, 1.5), (tank * 0.7, 0.17, 1.05)], 0.005, w.metal(), sides=4)
    if style != 2:
        lid = white.shaded(0.97)
        parts += box((0, 0.235, tank_high + 0.045), (tank + 0.012, 0.1, 0.014), lid)
        parts += soft((0, 0.235, tank_high + 0.062), (0.03, 0.03, 0.012), w.metal(), round=0.8, rings=4)
    parts += box((0, 0.16, high * 0.5), (0.11, 0.13, high * 0.5 - 0.01), white)
    if w.maybe(0.6):  # the lid is up
        parts += soft((0, 0.125, high + 0.22), (0.19, 0.016, 0.22), seat, round=0.6, tilt=-0.12)
    else:
        parts += lathe(
            [(0.206, high + 0.021), (0.2, high + 0.035), (0.0, high + 0.045)],
            seat,
            sides=22,
            centre=(0, -0.12, 0),
            squash=(squash, reach),
        )
    if w.maybe(0.3):  # a mat around the foot
        parts += soft((0, -0.28, 0.012), (0.28, 0.26, 0.014), w.fabric(0.3), round=0.3)
    return Model("toilet", parts)


def bathtub(w: Workshop) -> Model:
    """A bathtub: built in with tiles or panels, or standing on feet."""
    wide, deep, high, metal = w.one(1.45, 1.7), w.one(0.68, 0.8), w.one(0.5, 0.6), w.metal()
    white, free = w.white(), w.maybe(0.35)
    outside = (
        w.solid(0.3, 0.95)
        if free
        else w.patterned(w.pick("tiles", "mosaic", "chessboard", "planks", "wood"), 0.4)
    )
    u = np.linspace(0, 2 * np.pi, 41)
    power = 0.75 if free else 0.42
    cos, sin = (np.sign(c) * np.abs(c) ** power for c in (np.cos(u), np.sin(u)))

    def ring(scale: float, z: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        reach = 0.5 - (1 - scale) * 0.35
        return np.stack(
            [cos * wide * reach * (0.94 + 0.06 * scale), sin * deep * (0.5 - (1 - scale) * 0.5), z + 0 * u],
            -1,
        )

    inner = np.stack(
        [
            ring(1.0, high),
            ring(0.88, high),
            ring(0.82, high - 0.08),
            ring(0.72, high - 0.3),
            ring(0.6, high - 0.38),
            ring(0.05, high - 0.4),
        ]
    )
    basin = sheet(inner, white)[0]
    middle = np.array([0, 0, high + 0.4])
    basin.normals[((middle - basin.vertices) * basin.normals).sum(1) < 0] *= -1
    parts: list[Part] = [basin]
    if free:
        shell = np.stack(
            [
                ring(0.45, 0.1),
                ring(0.7, 0.13),
                ring(0.9, 0.3),
                ring(1.0, high - 0.02),
                ring(1.03, high),
                ring(1.0, high + 0.001),
            ]
        )
        part = sheet(shell, outside)[0]
        part.normals[(part.vertices[:, :2] * part.normals[:, :2]).sum(1) < 0] *= -1
        parts.append(part)
        for sx in (-1, 1):
            for sy in (-1, 1):
                parts += soft(
                    (sx * wide * 0.3, sy * deep * 0.24, 0.07),
                    (0.045, 0.045, 0.075),
                    metal,
                    round=0.9,
                    rings=4,
                )
    else:
        parts += box((0, -deep / 2 + 0.015, high / 2 - 0.005), (wide / 2, 0.015, high / 2 - 0.005), outside)
        for sx in (-1, 1):
            parts += box(
                (sx * (wide / 2 - 0.015), 0.015, high / 2 - 0.005),
                (0.015, deep / 2 - 0.015, high / 2 - 0.005),
                outside,
            )
        rim = white
        for sy in (-1, 1):
            parts += box((0, sy * (deep / 2 - 0.01), high - 0.012), (wide / 2, 0.03, 0.012), rim)
        for sx in (-1, 1):  # the corners between the oval and the wall
            parts += box((sx * (wide / 2 - 0.03), 0, high - 0.012), (0.035, deep / 2 - 0.04, 0.0115), rim)
    x = wide / 2 - 0.06
    parts += tube(
        [(x, 0, high - 0.02), (x, 0, high + 0.16), (x - 0.06, 0, high + 0.2), (x - 0.16, 0, high + 0.13)],
        0.016,
        metal,
    )
    for sy in (-1, 1):
        parts += soft((x, sy * 0.09, high + 0.04), (0.025, 0.025, 0.03), metal, round=0.8, rings=4)
    if w.maybe(0.4):  # foam
        for _ in range(12):
            parts += soft(
                (w.one(-0.4, 0.4) * wide, w.one(-0.22, 0.22) * deep, high - 0.12),
                (w.one(0.05, 0.12),) * 2 + (0.05,),
                plain(0.97),
                round=1,
                rings=4,
            )
    return Model("bathtub", parts)


def basin(w: Workshop) -> Model:
    """A wash basin with a tap, on a cupboard or a column."""
    white, metal, high = w.white(), w.metal(), w.one(0.8, 0.88)
    half = w.one(0.25, 0.34)
    bowl = [
        (0.06, high - 0.16),
        (half * 0.75, high - 0.12),
        (half, high - 0.02),
        (half, high),
        (half * 0.88, high),
        (half * 0.6, high - 0.1),
        (0.0, high - 0.12),
    ]
    parts = lathe(bowl, white, sides=24, centre=(0, -0.02, 0), squash=(1, 0.72))
    if w.maybe(0.6):
        front = w.wood()
        parts += box((0, 0.0, (high - 0.13) / 2), (half * 0.9, 0.2, (high - 0.13) / 2), front)
        for sx in (-1, 1):
            parts += box(
                (sx * half * 0.45, -0.208, (high - 0.13) / 2),
                (half * 0.43, 0.01, (high - 0.2) / 2),
                front.shaded(0.85),
            )
            parts += soft(
                (sx * half * 0.12, -0.228, high * 0.5), (0.015, 0.015, 0.015), metal, round=1, rings=4
            )
    else:
        parts += lathe([(0.11, 0), (0.09, 0.06), (0.07, 0.3), (0.09, high - 0.14)], white, sides=14)
    parts += rounded((0, 0.2, high - 0.03), (half * 0.7, 0.05, 0.035), white)
    parts += tube(
        [(0, 0.18, high), (0, 0.18, high + 0.13), (0, 0.08, high + 0.16), (0, 0.03, high + 0.1)], 0.014, metal
    )
    for sx in (-1, 1):
        parts += soft((sx * 0.08, 0.18, high + 0.03), (0.022, 0.022, 0.03), metal, round=0.8, rings=4)
    return Model("sink", parts)
