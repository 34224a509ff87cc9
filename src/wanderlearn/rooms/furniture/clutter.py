"""Small things that fill a home and are nobody's to learn: bowls, vases, books, boxes, rugs."""

from wanderlearn.rooms.furniture.storage import books
from wanderlearn.rooms.patterns import rug
from wanderlearn.rooms.shapes import Paint, box, lathe, plain, quad, rounded, soft, tube
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = ["basket", "bottles", "bowl", "carpet", "floor_box", "mug", "pile", "row_of_books", "vase"]


def bowl(w: Workshop) -> Model:
    """A bowl of fruit."""
    r, paint = w.one(0.09, 0.14), w.solid()
    parts = lathe([(r * 0.4, 0), (r * 0.9, 0.05), (r, 0.08), (r * 0.9, 0.08), (0, 0.04)], paint, sides=16)
    for _ in range(w.count(2, 5)):
        size = w.one(0.03, 0.042)
        parts += soft(
            (w.one(-0.5, 0.5) * r, w.one(-0.5, 0.5) * r, 0.07 + size * 0.5),
            (size, size, size),
            w.solid(0.6, 0.95),
            round=1,
            rings=4,
        )
    return Model("bowl", parts)


def vase(w: Workshop) -> Model:
    """An empty vase."""
    high = w.one(0.14, 0.3)
    knots = [(float(r), high * k / 5) for k, r in enumerate(w.chance.uniform(0.025, 0.08, 6))]
    return Model(
        "vase",
        lathe([(0.001, 0), *knots], w.patterned("blotches", 0.15) if w.maybe(0.5) else w.solid(), sides=14),
    )


def mug(w: Workshop) -> Model:
    """Cups and plates."""
    paint = w.solid(0.4, 0.97)
    parts = lathe([(0.11, 0.004), (0.12, 0.012), (0.06, 0.008), (0, 0.008)], paint, sides=16)
    parts += lathe(
        [(0.035, 0.01), (0.04, 0.09), (0.034, 0.09), (0.03, 0.03)],
        w.solid(),
        sides=12,
        centre=(0.15, 0.02, 0),
    )
    return Model("cup and plate", parts)


def pile(w: Workshop) -> Model:
    """A pile of books."""
    parts, z = [], 0.0
    for _ in range(w.count(2, 5)):
        thick = w.one(0.012, 0.022)
        parts += box(
            (0, 0, z + thick),
            (w.one(0.09, 0.13), w.one(0.07, 0.1), thick),
            w.solid(0.2, 0.9),
            yaw=w.one(-0.4, 0.4),
        )
        z += 2 * thick
    return Model("pile of books", parts)


def row_of_books(w: Workshop) -> Model:
    """A few books standing."""
    return Model(
        "books", books(w, -0.14, 0.2, 0.0, 0.3, 0.08) or box((0, 0, 0.1), (0.02, 0.08, 0.1), w.solid())
    )


def bottles(w: Workshop) -> Model:
    """Bottles and jars."""
    parts = []
    for k in range(w.count(2, 4)):
        r, high = w.one(0.022, 0.04), w.one(0.12, 0.26)
        at = ((k - 1.5) * 0.09, w.one(-0.03, 0.03), 0)
        parts += lathe(
            [(r, 0), (r, high * 0.6), (r * 0.4, high * 0.75), (r * 0.4, high), (0, high)],
            w.solid(),
            sides=10,
            centre=at,
        )
    return Model("bottles", parts)


def floor_box(w: Workshop) -> Model:
    """A box or a toy chest on the floor."""
    wide, deep, high = w.one(0.25, 0.4), w.one(0.22, 0.32), w.one(0.16, 0.3)
    paint = w.pick(plain(0.68, 0.5, 0.32), w.solid())
    parts = box((0, 0, high / 2), (wide / 2, deep / 2, high / 2), paint)
    return Model(
        "box", parts + box((0, 0, high), (wide / 2 + 0.006, deep / 2 + 0.006, 0.02), paint.shaded(0.85))
    )


def basket(w: Workshop) -> Model:
    """A basket or a bin."""
    r, high = w.one(0.13, 0.2), w.one(0.25, 0.4)
    parts = lathe(
        [(r * 0.8, 0), (r, high), (r * 0.93, high), (r * 0.8, high * 0.6), (0, high * 0.55)],
        w.patterned("weave", 0.2),
        sides=16,
    )
    if w.maybe(0.4):
        parts += tube([(-r, 0, high), (0, 0, high + 0.15), (r, 0, high)], 0.012, w.wood())
    return Model("basket", parts)


def carpet(w: Workshop, wide: float, deep: float) -> Model:
    """A rug that lies on the floor."""
    cloth = Paint(texture=rug(w.chance))
    parts = quad((-wide / 2, -deep / 2, 0.012), (wide, 0, 0), (0, deep, 0), cloth, fit=True, cell=0.3)
    for sx in (-1, 1):
        parts += rounded((sx * wide / 2, 0, 0.006), (0.012, deep / 2, 0.007), w.solid())
    return Model("rug", parts)
