"""Things of cloth: towels, clothes, blinds and curtains."""

import numpy as np

from wanderlearn.rooms.shapes import Floats, Paint, Part, box, rounded, sheet, soft, tube
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = ["blinds", "coat", "dress", "robe", "shirt", "towel", "trousers"]


def _grid(rows: int, columns: int) -> tuple[Floats, Floats]:
    u, v = np.meshgrid(np.linspace(-1, 1, columns), np.linspace(0, 1, rows))
    return u, v


def towel(w: Workshop) -> Model:
    """A towel on a rail, a ring or a hook; the wall at y = 0."""
    wide, high, metal = w.one(0.32, 0.6), w.one(0.45, 0.8), w.metal()
    cloth = w.fabric(0.3) if w.maybe(0.75) else w.solid(0.3, 0.97)
    phase, waves, style = w.one(0, 6), w.one(3, 7), w.count(0, 2)
    u, v = _grid(9, 15)
    if style == 0:  # on a hook, gathered at the top
        spread = 0.2 + 0.8 * np.minimum(1, v * 1.6) ** 0.7
        x, y = u * wide / 2 * spread * 0.8, -0.07 - 0.03 * np.cos(waves * u + phase) * (0.4 + v) - 0.02
        parts = tube([(0, 0, 0), (0, -0.07, 0), (0, -0.08, 0.03)], 0.012, metal)
        return Model("towel", parts + _cloth(np.stack([x, y, -high * v * (1 - 0.12 * np.abs(u))], -1), cloth))
    x, y = u * wide / 2, -0.085 - 0.014 * np.sin(waves * u + phase) * v
    front = np.stack([x, y, 0.014 - high * v], -1)
    parts = _cloth(front, cloth)
    parts += _cloth(np.stack([x, y * 0 - 0.055, 0.014 - 0.6 * high * v], -1), cloth.shaded(0.85))
    parts += rounded((0, -0.07, 0.008), (wide / 2, 0.02, 0.012), cloth)
    if w.maybe(0.5):  # a stripe near the end
        stripe, band = w.solid(), (v > 0.78) & (v < 0.9)
        rows = np.flatnonzero(band[:, 0])
        if len(rows) > 1:
            parts += _cloth(front[rows[0] : rows[-1] + 1] - np.array([0, 0.004, 0]), stripe)
    if style == 1:
        reach = wide / 2 + 0.06
        parts += tube([(-reach, 0, 0), (-reach, -0.07, 0), (reach, -0.07, 0), (reach, 0, 0)], 0.01, metal)
    else:
        angle = np.linspace(0, 2 * np.pi, 17)
        parts += tube(
            [(0.1 * np.cos(a), -0.07, 0.1 + 0.1 * np.sin(a)) for a in angle], 0.008, metal, closed=False
        )
        parts += tube([(0, 0, 0.2), (0, -0.07, 0.2)], 0.014, metal)
    return Model("towel", parts)


def _cloth(grid: Floats, paint: Paint) -> list[Part]:
    """A sheet whose front looks to -y."""
    return sheet(grid, paint, flip=True)


def _hanger(w: Workshop) -> list[Part]:
    metal, wood = w.metal(), w.wood()
    hook = tube([(0, 0, 0.1), (0, -0.09, 0.11), (0, -0.1, 0.06), (0, -0.1, 0.0)], 0.006, metal, sides=5)
    return hook + tube([(-0.2, -0.1, -0.07), (0, -0.1, 0.005), (0.2, -0.1, -0.07)], 0.012, wood)


def _garment(w: Workshop, outline: Floats, cloth: Paint, puff: float = 0.05) -> list[Part]:
    """Front and back of a garment; outline [n, 2] is half width and height from the top."""
    u, v = _grid(len(outline), 13)
    half, z = outline[:, 0][:, None], outline[:, 1][:, None]
    folds = 0.012 * np.sin(w.one(5, 9) * u + w.one(0, 6)) * v
    parts = []
    for side in (-1.0, 1.0):
        y = -0.1 + side * (puff * np.sqrt(np.clip(1 - u**2, 0, 1)) + 0.006) + folds
        parts += sheet(np.stack([u * half, y, z + 0 * u], -1), cloth, flip=side < 0)
    return parts


def _outline(*points: tuple[float, float]) -> Floats:
    at = np.array(points)
    z = np.linspace(at[0, 1], at[-1, 1], 12)
    return np.stack([np.interp(-z, -at[:, 1], at[:, 0]), z], -1)


def _sleeves(w: Workshop, shoulder: float, long: float, cloth: Paint, radius: float) -> list[Part]:
    parts = []
    for sx in (-1, 1):
        out = shoulder + 0.05 + 0.12 * long
        parts += tube(
            [
                (sx * (shoulder - 0.02), -0.1, -0.1),
                (sx * (shoulder + 0.05), -0.1, -0.2),
                (sx * out, -0.1, -0.1 - long),
            ],
            (radius, radius * 0.95, radius * 0.75),
            cloth,
            sides=9,
        )
    return parts


def _front(w: Workshop, long: float, open_collar: bool) -> list[Part]:
    """Buttons and a collar."""
    colour, parts = w.solid(), []
    for k in range(w.count(3, 5)):
        parts += soft(
            (0, -0.165, -0.18 - k * (long - 0.25) / 5), (0.013, 0.008, 0.013), colour, round=1, rings=4
        )
    if open_collar:
        for sx in (-1, 1):
            parts += box((sx * 0.055, -0.14, -0.07), (0.018, 0.012, 0.07), w.solid(0.3), yaw=0, tilt=0.3)
    return parts


def shirt(w: Workshop) -> Model:
    """A shirt or pullover on a hanger."""
    cloth, wide, long = w.fabric(0.25), w.one(0.2, 0.25), w.one(0.55, 0.72)
    body = _outline((0.07, -0.02), (wide * 0.95, -0.1), (wide, -0.2), (wide * w.one(0.85, 1.05), -long))
    parts = _hanger(w) + _garment(w, body, cloth) + _sleeves(w, wide, w.one(0.15, 0.5), cloth, 0.06)
    return Model("shirt", parts + (_front(w, long, w.maybe(0.5)) if w.maybe(0.6) else []))


def coat(w: Workshop) -> Model:
    """A long coat."""
    cloth = w.fabric(0.3) if w.maybe(0.5) else w.solid(0.15, 0.7)
    wide, long = w.one(0.23, 0.27), w.one(0.85, 1.15)
    body = _outline((0.08, -0.02), (wide, -0.11), (wide * 0.92, -0.4), (wide * w.one(1.05, 1.3), -long))
    parts = (
        _hanger(w)
        + _garment(w, body, cloth, 0.075)
        + _sleeves(w, wide, 0.52, cloth, 0.07)
        + _front(w, long, True)
    )
    for sx in (-1, 1):
        parts += box((sx * wide * 0.55, -0.175, -long * 0.6), (0.06, 0.008, 0.05), cloth.shaded(0.7))
    return Model("coat", parts)


def robe(w: Workshop) -> Model:
    """A bathrobe with a belt."""
    cloth, wide, long = (
        (w.fabric(0.3) if w.maybe(0.6) else w.solid(0.5, 0.97)),
        w.one(0.22, 0.26),
        w.one(0.95, 1.15),
    )
    body = _outline((0.08, 0), (wide, -0.12), (wide * 0.8, -0.48), (wide * 1.1, -long))
    parts = _hanger(w) + _garment(w, body, cloth, 0.07) + _sleeves(w, wide, 0.45, cloth, 0.075)
    belt = w.solid()
    parts += rounded((0, -0.105, -0.48), (wide * 0.83, 0.085, 0.03), belt)
    parts += box((0.03, -0.195, -0.62), (0.02, 0.006, 0.14), belt)
    return Model("bathrobe", parts)


def dress(w: Workshop) -> Model:
    """A dress with a waist and a wide skirt."""
    cloth, long, wide = w.fabric(0.3), w.one(0.85, 1.1), w.one(0.17, 0.21)
    body = _outline(
        (0.06, -0.02),
        (wide, -0.1),
        (wide * 0.95, -0.25),
        (wide * 0.72, -0.42),
        (wide * w.one(1.3, 1.9), -long),
    )
    parts = _hanger(w) + _garment(w, body, cloth, 0.07)
    if w.maybe(0.5):
        parts += _sleeves(w, wide, 0.18, cloth, 0.05)
    return Model("dress", parts + rounded((0, -0.1, -0.42), (wide * 0.76, 0.08, 0.022), w.solid()))


def trousers(w: Workshop) -> Model:
    """Trousers hung by the waist."""
    cloth, long = (w.solid(0.15, 0.75) if w.maybe(0.6) else w.fabric(0.25)), w.one(0.85, 1.0)
    parts = _hanger(w)
    parts += rounded((0, -0.1, -0.13), (0.18, 0.06, 0.06), cloth) + rounded(
        (0, -0.1, -0.09), (0.182, 0.063, 0.02), w.solid(0.1, 0.6)
    )
    flare = w.one(0.8, 1.15)
    for sx in (-1, 1):
        parts += tube(
            [(sx * 0.095, -0.1, -0.12), (sx * 0.1, -0.1, -0.5), (sx * 0.105, -0.1, -long)],
            (0.09, 0.075, 0.072 * flare),
            cloth,
            sides=10,
        )
    return Model("trousers", parts)


def blinds(w: Workshop, wide: float = 1.2, high: float = 1.2) -> Model:
    """Slats, a roller blind, a pleated blind or curtains, for a window of this size; its middle at z = 0."""
    style, down = w.count(0, 4), w.one(0.4, 0.95)
    rail = w.wood() if w.maybe(0.5) else w.metal()
    top = high / 2 + 0.06
    parts = rounded((0, -0.04, top), (wide / 2 + 0.05, 0.035, 0.035), rail)
    cloth = w.fabric(0.4) if w.maybe(0.7) else w.solid(0.4, 0.97)
    u, v = _grid(10, 9)
    if style <= 1:  # slats, lying or nearly closed
        slat = w.solid(0.5, 0.97) if w.maybe(0.6) else w.wood()
        step, tilt = w.one(0.045, 0.08), w.one(0.3, 1.1)
        for z in np.arange(top - 0.06, top - 0.06 - high * down, -step):
            parts += box((0, -0.04, z), (wide / 2, 0.5 * step, 0.002), slat, tilt=tilt, cell=2)
        for sx in (-0.7, 0.7):
            parts += tube(
                [(sx * wide / 2, -0.04, top), (sx * wide / 2, -0.04, top - 0.06 - high * down)],
                0.004,
                rail,
                sides=4,
            )
        return Model("blinds", parts)
    if style == 2:  # roller
        parts += tube([(-wide / 2, -0.04, top - 0.02), (wide / 2, -0.04, top - 0.02)], 0.032, cloth)
        parts += _cloth(np.stack([u * wide / 2, 0 * u - 0.04, top - 0.02 - high * down * v], -1), cloth)
        parts += box((0, -0.04, top - 0.02 - high * down), (wide / 2, 0.01, 0.012), rail)
        return Model("roller blind", parts)
    if style == 3:  # roman: falls in folds
        folds = w.count(4, 7)
        for k in range(folds):
            z = top - 0.03 - (k + 0.5) * high * down / folds
            parts += soft(
                (0, -0.05, z), (wide / 2, 0.035, high * down / folds * 0.54), cloth, round=0.4, rings=5
            )
        return Model("roman blind", parts)
    u, v = _grid(6, 17)  # curtains, drawn to the sides
    share, long = w.one(0.32, 0.5), high * w.one(1.0, 1.2)
    for sx in (-1, 1):
        x = sx * (wide / 2 + 0.05 - share * wide / 2 * (1 + u) * 0.98)
        y = -0.055 - 0.028 * np.sin(w.one(9, 14) * u)
        parts += sheet(np.stack([x, y, top - 0.02 - long * v], -1), cloth, flip=sx < 0)
    return Model("curtains", parts)
