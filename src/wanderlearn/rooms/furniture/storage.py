"""Chests of drawers, and the furniture that stands against walls: bookcases, wardrobes, cabinets."""

from wanderlearn.rooms.shapes import Paint, Part, box, lathe, plain, rounded, soft, tube
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = ["bedside_chest", "bookcase", "books", "cabinet", "chest", "shoe_rack", "sideboard", "wardrobe"]


def _handle(w: Workshop, style: int, x: float, y: float, z: float, wide: float, paint: Paint) -> list[Part]:
    if style == 0:
        return soft((x, y - 0.012, z), (0.018, 0.018, 0.018), paint, round=1.0, rings=4)
    if style == 1:
        return rounded((x, y - 0.016, z), (wide * 0.2, 0.008, 0.008), paint)
    return tube(
        [
            (x - wide * 0.16, y, z),
            (x - wide * 0.1, y - 0.025, z - 0.02),
            (x + wide * 0.1, y - 0.025, z - 0.02),
            (x + wide * 0.16, y, z),
        ],
        0.007,
        paint,
        sides=5,
    )


def _drawers(w: Workshop, wide: float, deep: float, high: float, rows: int, columns: int) -> list[Part]:
    wood, metal, style = w.wood(), w.metal(), w.count(0, 2)
    front = w.wood() if w.maybe(0.35) else wood.shaded(w.one(0.82, 1.0))
    lift = w.one(0.02, 0.16)
    parts = box((0, 0, (high + lift) / 2), (wide / 2, deep / 2, (high - lift) / 2), wood)
    parts += box((0, -0.01, high + 0.01), (wide / 2 + 0.015, deep / 2 + 0.015, 0.012), wood)
    for sx in (-1, 1):
        for sy in (-1, 1):
            parts += tube(
                [
                    (sx * (wide / 2 - 0.05), sy * (deep / 2 - 0.05), 0),
                    (sx * (wide / 2 - 0.05), sy * (deep / 2 - 0.05), lift),
                ],
                (0.016, 0.024),
                wood,
            )
    cell_wide, cell_high = (wide - 0.04) / columns, (high - lift - 0.05) / rows
    for row in range(rows):
        for column in range(columns):
            x, z = (column - (columns - 1) / 2) * cell_wide, lift + 0.03 + cell_high * (row + 0.5)
            parts += box((x, -deep / 2 - 0.008, z), (cell_wide / 2 - 0.01, 0.01, cell_high / 2 - 0.01), front)
            parts += _handle(w, style, x, -deep / 2 - 0.018, z, cell_wide, metal)
    return parts


def chest(w: Workshop) -> Model:
    """A chest of drawers."""
    wide, deep, high = w.one(0.6, 1.2), w.one(0.4, 0.5), w.one(0.65, 1.15)
    parts = _drawers(w, wide, deep, high, w.count(3, 5), 2 if wide > 0.85 and w.maybe(0.8) else 1)
    return Model("chest of drawers", parts, top=(wide / 2 - 0.14, deep / 2 - 0.12, high + 0.022))


def bedside_chest(w: Workshop) -> Model:
    """A small chest beside a bed."""
    wide, deep, high = w.one(0.38, 0.5), w.one(0.36, 0.42), w.one(0.45, 0.62)
    parts = _drawers(w, wide, deep, high, w.count(1, 3), 1)
    return Model("bedside chest", parts, top=(wide / 2 - 0.12, deep / 2 - 0.12, high + 0.022))


def books(w: Workshop, left: float, right: float, z: float, room: float, deep: float) -> list[Part]:
    """A row of books with gaps, between left and right."""
    parts, x = [], left
    while x < right - 0.06:
        if w.maybe(0.12):
            x += w.one(0.05, 0.2)
            continue
        thick, tall = w.one(0.022, 0.055), min(room - 0.03, w.one(0.17, 0.29))
        parts += box(
            (x + thick / 2, w.one(-0.03, 0.03), z + tall / 2),
            (thick / 2 - 0.001, deep, tall / 2),
            w.solid(0.15, 0.9),
            cell=1,
        )
        x += thick
    return parts


def bookcase(w: Workshop) -> Model:
    """Open shelves with books and small things."""
    wide, deep, high, wood = w.one(0.65, 1.3), w.one(0.28, 0.36), w.one(1.2, 2.05), w.wood()
    parts: list[Part] = []
    for sx in (-1, 1):
        parts += box((sx * (wide / 2 - 0.015), 0, high / 2), (0.015, deep / 2, high / 2), wood)
    parts += box(
        (0, deep / 2 - 0.008, high / 2), (wide / 2 - 0.01, 0.008, high / 2 - 0.01), wood.shaded(0.75)
    )
    count = w.count(3, 5)
    for k in range(count + 1):
        z, room = 0.05 + (high - 0.07) * k / count, (high - 0.07) / count - 0.03
        parts += box((0, 0, z), (wide / 2 - 0.015, deep / 2 - 0.002, 0.013), wood)
        if k < count:
            if w.maybe(0.2):  # a bowl or a box instead of books
                parts += lathe(
                    [(0.05, 0), (0.09, 0.06), (0.06, min(room, 0.17)), (0.04, min(room, 0.18))],
                    w.solid(),
                    sides=12,
                    centre=(w.one(-0.15, 0.15), 0, z + 0.013),
                )
            else:
                parts += books(w, -wide / 2 + 0.04, wide / 2 - w.one(0.04, 0.3), z + 0.013, room, deep * 0.3)
    return Model("bookcase", parts)


def wardrobe(w: Workshop) -> Model:
    """A wardrobe with two or three doors."""
    wide, deep, high, wood, metal = w.one(0.9, 1.6), w.one(0.52, 0.6), w.one(1.75, 2.15), w.wood(), w.metal()
    count = 2 if wide < 1.2 else 3
    front = w.wood() if w.maybe(0.35) else wood.shaded(w.one(0.85, 1.0))
    panelled, mirror = w.maybe(0.5), w.count(0, count) if w.maybe(0.3) else -1
    parts = box((0, 0, high / 2), (wide / 2, deep / 2, high / 2), wood)
    parts += box((0, -0.01, high + 0.015), (wide / 2 + 0.025, deep / 2 + 0.025, 0.02), wood)
    door = wide / count
    for k in range(count):
        x = (k - (count - 1) / 2) * door
        own = plain(0.72, 0.78, 0.8) if k == mirror else front
        parts += box((x, -deep / 2 - 0.01, high / 2 + 0.03), (door / 2 - 0.012, 0.012, high / 2 - 0.07), own)
        if panelled and k != mirror:
            for low, top in ((0.12, 0.45), (0.52, 0.93)):
                parts += box(
                    (x, -deep / 2 - 0.024, high * (low + top) / 2),
                    (door / 2 - 0.07, 0.006, high * (top - low) / 2),
                    front.shaded(0.85),
                )
        at = x + (door / 2 - 0.05) * (1 if k % 2 == 0 else -1)
        parts += tube(
            [(at, -deep / 2 - 0.04, high * 0.44), (at, -deep / 2 - 0.04, high * 0.56)], 0.012, metal
        )
    return Model("wardrobe", parts)


def sideboard(w: Workshop) -> Model:
    """A low wide cabinet, for a television or for plates."""
    wide, deep, high, wood, metal = w.one(1.0, 1.6), w.one(0.38, 0.46), w.one(0.48, 0.85), w.wood(), w.metal()
    front = w.wood() if w.maybe(0.5) else wood.shaded(0.85)
    lift, style, count = w.one(0.08, 0.2), w.count(0, 2), w.count(2, 4)
    parts = box((0, 0, (high + lift) / 2), (wide / 2, deep / 2, (high - lift) / 2), wood)
    for sx in (-1, 1):
        for sy in (-1, 1):
            parts += tube(
                [
                    (sx * (wide / 2 - 0.08), sy * (deep / 2 - 0.06), 0),
                    (sx * (wide / 2 - 0.11), sy * (deep / 2 - 0.08), lift),
                ],
                (0.012, 0.022),
                metal,
            )
    open_one = w.count(0, count - 1) if w.maybe(0.5) else -1
    for k in range(count):
        cell = wide / count
        x, z = (k - (count - 1) / 2) * cell, (high + lift) / 2
        own = plain(0.1) if k == open_one else front
        parts += box((x, -deep / 2 - 0.008, z), (cell / 2 - 0.015, 0.01, (high - lift) / 2 - 0.025), own)
        if k != open_one:
            parts += _handle(w, style, x + cell * 0.3, -deep / 2 - 0.018, z + 0.05, cell * 0.5, metal)
    return Model("sideboard", parts, top=(wide / 2 - 0.12, deep / 2 - 0.12, high))


def cabinet(w: Workshop) -> Model:
    """A tall narrow cabinet for a bathroom or kitchen."""
    wide, deep, high = w.one(0.35, 0.55), w.one(0.3, 0.36), w.one(0.9, 1.75)
    paint, metal = (w.wood() if w.maybe(0.6) else w.solid(0.5)), w.metal()
    split = high * w.one(0.35, 0.65)
    parts = box((0, 0, high / 2), (wide / 2, deep / 2, high / 2), paint)
    for low, top in ((0.05, split - 0.01), (split + 0.01, high - 0.03)):
        z, half = (low + top) / 2, (top - low) / 2
        parts += box((0, -deep / 2 - 0.008, z), (wide / 2 - 0.015, 0.01, half), paint.shaded(0.88))
        parts += tube(
            [(wide / 2 - 0.06, -deep / 2 - 0.035, z - 0.06), (wide / 2 - 0.06, -deep / 2 - 0.035, z + 0.06)],
            0.009,
            metal,
        )
    return Model("cabinet", parts)


def shoe_rack(w: Workshop) -> Model:
    """Slatted shelves with shoes."""
    wide, deep, wood = w.one(0.65, 0.95), 0.3, w.wood()
    count = w.count(2, 3)
    high = 0.22 * count + 0.05
    parts: list[Part] = []
    for sx in (-1, 1):
        parts += box((sx * wide / 2, 0, high / 2), (0.014, deep / 2, high / 2), wood)
    for k in range(count):
        z = 0.07 + 0.22 * k
        for y in (-0.1, 0.0, 0.1):
            parts += box((0, y, z), (wide / 2, 0.03, 0.008), wood, cell=1)
        x = -wide / 2 + 0.1
        while x < wide / 2 - 0.1:
            shoe = w.solid(0.1, 0.8)
            for dx in (0.0, 0.09):
                parts += soft((x + dx, -0.02, z + 0.04), (0.036, 0.125, 0.035), shoe, round=0.6, rings=4)
                parts += soft((x + dx, 0.06, z + 0.075), (0.034, 0.045, 0.035), shoe, round=0.6, rings=4)
            x += w.one(0.2, 0.3)
    return Model("shoe rack", parts, top=(wide / 2 - 0.15, 0.05, high))
