"""Beds and cushions."""

from wanderlearn.rooms.shapes import Paint, Part, box, plain, rounded, soft, tube
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = ["bed", "cushion"]


def bed(w: Workshop, wide: float | None = None) -> Model:
    """A bed with headboard, mattress, blanket and pillows; its head at the wall."""
    wide = wide or w.pick(0.95, 1.4, 1.7)
    long, high, wood = 2.02, w.one(0.26, 0.36), w.wood()
    head = w.one(0.75, 1.15)
    parts = box((0, 0, high / 2 + 0.05), (wide / 2, long / 2, high / 2 - 0.05), wood)
    for sx in (-1, 1):
        for sy in (-1, 1):
            parts += box((sx * (wide / 2 - 0.06), sy * (long / 2 - 0.06), 0.06), (0.035, 0.035, 0.06), wood)
    parts += _headboard(w, wide, long / 2 + 0.03, head, wood)
    if w.maybe(0.3):
        parts += box((0, -long / 2 - 0.02, high * 0.8), (wide / 2, 0.02, high * 0.7), wood)
    sheet = plain(0.93) if w.maybe(0.5) else w.solid(0.7, 0.97)
    parts += soft((0, 0, high + 0.09), (wide / 2 - 0.01, long / 2 - 0.01, 0.12), sheet, round=0.18)
    blanket, down = w.fabric(0.6), w.one(0.2, 0.45)
    parts += soft(
        (0, -down / 2 - 0.02, high + 0.12),
        (wide / 2 + 0.035, long / 2 - down / 2, 0.13),
        blanket,
        round=0.2,
        rings=8,
    )
    if w.maybe(0.6):  # turned back at the top
        parts += soft(
            (0, long / 2 - down - 0.08, high + 0.235), (wide / 2 + 0.03, 0.12, 0.03), sheet, round=0.3
        )
    if w.maybe(0.4):  # a throw across the foot
        parts += soft(
            (0, -long / 2 + 0.35, high + 0.13),
            (wide / 2 + 0.045, 0.2, 0.14),
            w.fabric(0.3),
            round=0.2,
            rings=8,
        )
    pillow, count = (w.fabric(0.3) if w.maybe(0.6) else sheet), (1 if wide < 1.2 else 2)
    for k in range(count):
        x = (k - (count - 1) / 2) * wide * 0.48
        parts += soft(
            (x, long / 2 - 0.24, high + 0.26),
            (min(0.34, wide * 0.4 / count + 0.05), 0.19, 0.085),
            pillow,
            round=0.5,
            tilt=0.25,
        )
    return Model(
        "single bed" if wide < 1.2 else "double bed",
        parts,
        seat=(wide / 2 - 0.25, long / 2 - 0.62, high + 0.25),
    )


def _headboard(w: Workshop, wide: float, y: float, high: float, wood: Paint) -> list[Part]:
    style = w.count(0, 3)
    if style == 0:
        return box((0, y, high / 2), (wide / 2 + 0.03, 0.03, high / 2), wood)
    if style == 1:  # padded
        parts, cloth = box((0, y, high / 2), (wide / 2 + 0.02, 0.02, high / 2), wood), w.fabric(0.3)
        for k in range(count := w.count(2, 5)):
            x = (k - (count - 1) / 2) * wide / count
            parts += soft((x, y - 0.03, high * 0.68), (wide / count / 2, 0.05, high * 0.3), cloth, round=0.35)
        return parts
    metal = w.metal() if style == 2 else wood
    parts = tube([(-wide / 2, y, 0), (-wide / 2, y, high)], 0.025, metal)
    parts += tube([(wide / 2, y, 0), (wide / 2, y, high)], 0.025, metal)
    arch = high + w.one(0, 0.15)
    parts += tube(
        [(-wide / 2, y, high), (-wide / 4, y, arch), (wide / 4, y, arch), (wide / 2, y, high)], 0.022, metal
    )
    for k in range(count := w.count(4, 8)):
        x = ((k + 1) / (count + 1) - 0.5) * wide
        parts += tube([(x, y, 0.3), (x, y, high)], 0.011, metal, sides=5)
    return parts


def cushion(w: Workshop) -> Model:
    """A cushion that stands on its edge, leaning back a little."""
    half, tall = w.one(0.17, 0.25), w.one(0.85, 1.05)
    cloth = w.fabric(0.3) if w.maybe(0.8) else w.solid()
    shape, thick = w.count(0, 2), w.one(0.055, 0.085)
    if shape == 0:  # long
        parts = soft((0, 0, 0.14), (half * 1.3, thick, 0.15), cloth, round=0.45, rings=9, tilt=-0.3)
    elif shape == 1:  # round
        parts = soft((0, 0, half), (half, thick, half), cloth, round=0.85, rings=9, tilt=-0.3)
    else:
        parts = soft((0, 0, half * 0.85), (half, thick, half * tall), cloth, round=0.42, rings=9, tilt=-0.3)
    if w.maybe(0.3):
        parts += soft((0, -thick - 0.02, half * 0.8), (0.02, 0.015, 0.02), w.solid(), round=1, rings=4)
    if w.maybe(0.3):  # a stripe of another cloth
        parts += rounded((0, -0.02, half * 0.8), (half * 0.2, thick, half * 0.8), w.solid(), tilt=-0.3)
    return Model("cushion", parts)
