"""Things on walls and stands: pictures, boards, televisions, mirrors; the wall at y = 0."""

import numpy as np

from wanderlearn.rooms.art import notes, painting, screen
from wanderlearn.rooms.shapes import (
    Paint,
    Part,
    box,
    lathe,
    plain,
    quad,
    rounded,
    scaled,
    sheet,
    tube,
    turned,
)
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = ["board", "framed", "mirror", "monitor", "picture", "television", "wall_clock"]


def framed(
    w: Workshop, wide: float, high: float, inside: Paint, frame: Paint, border: float, *, glow: float = 0.0
) -> list[Part]:
    """A picture shown once, in a frame of four bars."""
    a, b = wide / 2 - border, high / 2 - border
    parts = quad((-a, -0.022, -b), (2 * a, 0, 0), (0, 0, 2 * b), inside, fit=True, glow=glow)
    for s in (-1, 1):
        parts += box((s * (wide / 2 - border / 2), -0.02, 0), (border / 2, 0.02, high / 2), frame)
        parts += box((0, -0.02, s * (high / 2 - border / 2)), (wide / 2 - border, 0.02, border / 2), frame)
    return parts


def picture(w: Workshop, largest: float = 1.0) -> Model:
    """A framed painting, print or photograph; square, upright, lying or oval, some with a mount."""
    wide = w.one(0.3, 0.95) * largest
    high = float(np.clip(wide * w.pick(0.62, 0.75, 1.0, 1.3, 1.45), 0.28, 1.0))
    frame = w.wood() if w.maybe(0.7) else w.metal()
    border, art = w.one(0.015, 0.055), Paint(texture=painting(w.chance))
    if w.maybe(0.12):
        flat = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]).T  # z of the lathe becomes -y
        r, s = wide / 2, high / wide
        parts = turned(
            lathe([(r, 0), (r, 0.03), (r * 0.87, 0.03), (r * 0.85, 0.015)], frame, sides=28, squash=(1, s)),
            flat,
        )
        u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 29), [1.0, 0.5, 0.0])
        disc = np.stack([0.87 * r * v * np.cos(u), 0 * u - 0.016, 0.87 * r * s * v * np.sin(u)], -1)
        part = sheet(disc, art)[0]
        uv = np.stack([0.5 + 0.5 * (v * np.cos(u)), 0.5 - 0.5 * (v * np.sin(u))], -1).reshape(-1, 2)
        normals = np.tile([0.0, -1.0, 0.0], (len(uv), 1))
        return Model("oval picture", [*parts, type(part)(part.vertices, normals, uv, part.faces, art)])
    if w.maybe(0.3):  # a mount of card around the picture
        card = plain(*w.pick((0.93, 0.92, 0.88), (0.15, 0.15, 0.16), (0.75, 0.7, 0.6)))
        inner = border + w.one(0.04, 0.09) * min(1.0, wide / 0.5)
        parts = framed(w, wide, high, card, frame, border)
        a, b = wide / 2 - inner, high / 2 - inner
        return Model("picture", parts + quad((-a, -0.025, -b), (2 * a, 0, 0), (0, 0, 2 * b), art, fit=True))
    return Model("picture", framed(w, wide, high, art, frame, border))


def board(w: Workshop) -> Model:
    """A pin board, white board or black board with notes."""
    wide, high = w.one(0.7, 1.3), w.one(0.5, 0.85)
    ground = w.pick((0.76, 0.56, 0.36), (0.95, 0.95, 0.95), (0.12, 0.2, 0.17), (0.5, 0.3, 0.3))
    frame = w.wood() if w.maybe(0.6) else w.metal()
    inside = Paint(texture=notes(w.chance, np.array(ground) * w.one(0.85, 1.05)))
    parts = framed(w, wide, high, inside, frame, w.one(0.02, 0.04))
    if w.maybe(0.5):  # a ledge with pens
        parts += box((0, -0.05, -high / 2), (wide * 0.3, 0.03, 0.008), frame)
        for k in range(w.count(2, 4)):
            x = (k - 1.5) * 0.09
            parts += tube(
                [(x, -0.05, -high / 2 + 0.018), (x + 0.07, -0.05, -high / 2 + 0.018)],
                0.009,
                w.solid(),
                sides=6,
            )
    return Model("board", parts)


def television(w: Workshop, largest: float = 1.35) -> Model:
    """A flat television on a stand."""
    wide = w.one(0.75, largest)
    high, case = wide * 0.57, (w.grey(0.04, 0.12) if w.maybe(0.6) else w.grey(0.5, 0.9))
    border = w.one(0.012, 0.035)
    lift = w.one(0.05, 0.1)
    on = w.maybe(0.8)
    shown = Paint(texture=screen(w.chance)) if on else plain(0.035, 0.04, 0.05)
    parts = turned(
        framed(w, wide, high, shown, case, border, glow=0.55 if on else 0.0),
        np.eye(3),
        (0, -0.01, high / 2 + lift),
    )
    parts += box((0, 0, high / 2 + lift), (wide / 2, 0.022, high / 2), case)
    if w.maybe(0.5):
        for s in (-1, 1):
            parts += tube(
                [
                    (s * wide * 0.32, -0.1, 0.008),
                    (s * wide * 0.3, 0, lift + 0.01),
                    (s * wide * 0.32, 0.1, 0.008),
                ],
                0.01,
                case,
            )
    else:
        parts += box((0, 0, lift / 2), (0.04, 0.02, lift / 2 + 0.01), case)
        parts += rounded((0, 0, 0.01), (wide * 0.22, 0.11, 0.01), case)
    return Model("television", parts)


def monitor(w: Workshop) -> Model:
    """A computer's screen with its foot and a keyboard."""
    model = television(w, 0.8)
    parts = scaled(model.parts, 0.6)
    key = w.grey(0.15, 0.85)
    parts += box((0, -0.24, 0.012), (0.2, 0.065, 0.01), key)
    for row in range(3):
        parts += box((0, -0.2 - 0.035 * row, 0.024), (0.185, 0.013, 0.004), key.shaded(0.6))
    return Model("computer", parts)


def mirror(w: Workshop, wide: float | None = None) -> Model:
    """A mirror, painted as a pale sheen."""
    wide = wide or w.one(0.4, 0.7)
    high = w.one(0.55, 0.85)
    sheen = Paint((0.66, 0.74, 0.77))
    return Model("mirror", framed(w, wide, high, sheen, w.wood() if w.maybe(0.5) else w.metal(), 0.025))


def wall_clock(w: Workshop) -> Model:
    """A round clock."""
    radius, rim, face = w.one(0.12, 0.2), w.solid(0.15, 0.9), w.grey(0.8, 0.95)
    flat = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]).T
    parts = turned(
        lathe([(radius, 0), (radius, 0.035), (radius * 0.88, 0.035), (radius * 0.86, 0.02)], rim, sides=24),
        flat,
    )
    parts += turned(lathe([(radius * 0.87, 0.02), (0, 0.021)], face, sides=24), flat)
    for turn, long in ((w.one(0, 6.28), 0.5), (w.one(0, 6.28), 0.75)):
        parts += tube(
            [(0, -0.027, 0), (radius * long * np.sin(turn), -0.027, radius * long * np.cos(turn))],
            0.007,
            plain(0.08),
            sides=5,
        )
    return Model("clock", parts)
