"""What belongs in which room: the rules that furnish a home."""

from collections.abc import Callable
from typing import Final

from wanderlearn.rooms.furniture import beds, kitchen, walls
from wanderlearn.rooms.home import Dropped, Lamp, Thing
from wanderlearn.rooms.household import Household, Placed, Placer
from wanderlearn.rooms.patterns import Chance
from wanderlearn.rooms.placing import Space
from wanderlearn.rooms.plan import SIDES, Plan, draw_plan
from wanderlearn.rooms.shell import Piece, build_shell
from wanderlearn.rooms.workshop import Style, Workshop

__all__ = ["furnish"]

SMALL: Final = ("bowl", "vase", "cup", "pile of books", "books", "bottles")
OPPOSITE: Final = {"north": "south", "south": "north", "east": "west", "west": "east"}


def furnish(
    chance: Chance, materials: Chance
) -> tuple[Plan, list[Piece], list[Thing], list[Dropped], list[Lamp]]:
    """A plan with its shell and everything in it; places and looks are drawn from chances of their own."""
    workshop = Workshop(materials, Style.draw(materials))
    plan = draw_plan(chance)
    shell = build_shell(plan, workshop)
    household = Household(workshop)
    for room in plan.rooms:
        placer = Placer(household, Space(plan, room, chance))
        placer.ceiling()
        if room.inside.width * room.inside.depth > 15:
            placer.ceiling()
        RULES[room.kind](placer)
    return plan, shell, household.things, household.dropped, household.lamps


def _several(p: Placer, low: int, high: int) -> range:
    return range(p.workshop.count(low, high))


def _some(p: Placer, *kinds: str) -> str:
    return p.workshop.pick(*kinds)


def _pictures(p: Placer, low: int, high: int, largest: float = 1.0) -> None:
    for _ in _several(p, low, high):
        p.hang("picture", "picture", (1.45, 1.65), maker=lambda w: walls.picture(w, largest))


def _things_on(p: Placer, under: Placed | None, count: int) -> None:
    for _ in range(count):
        p.on(under, "objects", _some(p, *SMALL), turned=True)


def _plants(p: Placer, low: int, high: int) -> None:
    for _ in _several(p, low, high):
        p.corner("plant", "plant")


def _living(p: Placer) -> None:
    w = p.workshop
    if w.maybe(0.55):
        fire = p.wall("fireplace", "fireplace", clear=0.6, middle=True)
        if fire is not None:
            _things_on(p, fire, w.count(1, 3))
    sofa = p.wall("sofa", "sofa", clear=0.8)
    across = (OPPOSITE[sofa.side],) if sofa is not None and sofa.side else SIDES
    board = p.wall("furniture", "sideboard", sides=across, middle=True) or p.wall("furniture", "sideboard")
    p.on(board, "tv monitor", "television")
    _things_on(p, board, 1)
    p.cushions(sofa, w.count(2, 4))
    if sofa is not None:
        near = (sofa.pose.x, sofa.pose.y)
        side = p.wall("table", "side table", near=near, clear=0.2)
        p.on(side, "lighting", "table lamp")
        if w.maybe(0.6):
            second = p.wall("sofa", "sofa", clear=0.6)
            p.cushions(second, w.count(1, 3))
    coffee = p.floor("table", "coffee table", spread=0.32)
    if coffee is not None:
        p.rug(p.space.footprint(coffee.model, coffee.pose))
        _things_on(p, coffee, w.count(1, 2))
        if w.maybe(0.5):
            p.on(coffee, "plant", "small plant")
    for _ in _several(p, 1, 2):
        chair = p.wall("chair", "armchair", clear=0.3)
        p.cushions(chair, int(w.maybe(0.7)))
    for _ in _several(p, 1, 2):
        p.wall("furniture", "bookcase")
    chest = p.wall("chest of drawers", "chest of drawers")
    p.on(chest, *w.pick(("lighting", "table lamp"), ("plant", "small plant")))
    _things_on(p, chest, 1)
    p.corner("lighting", "floor lamp")
    _plants(p, 2, 3)
    for _ in _several(p, 0, 2):
        p.corner("stool", "stool")
    p.blinds()
    _pictures(p, 4, 7)
    if w.maybe(0.4):
        p.hang("lighting", "wall lamp", (1.6, 1.8))
    if w.maybe(0.5):
        p.hang("objects", "clock", (1.8, 2.0))
    _boxes(p)


def _boxes(p: Placer) -> None:
    for _ in _several(p, 0, 2):
        p.corner("objects", _some(p, "box", "basket"))


def _sleeping(p: Placer, wide: float | None) -> Placed | None:
    w = p.workshop
    bed = p.wall("bed", "bed", clear=0.4, maker=lambda x: beds.bed(x, wide))
    p.cushions(bed, w.count(1, 3))
    for _ in range(2 if wide is None or wide > 1.2 else 1):
        near = (bed.pose.x, bed.pose.y) if bed is not None else None
        chest = p.wall("chest of drawers", "bedside chest", near=near, clear=0.2)
        p.on(chest, "lighting", "table lamp")
    p.wall("furniture", "wardrobe", clear=0.45)
    return bed


def _bedroom(p: Placer) -> None:
    w = p.workshop
    _sleeping(p, w.pick(1.4, 1.6))
    chest = p.wall("chest of drawers", "chest of drawers")
    p.on(chest, "tv monitor", "television") if w.maybe(0.25) else p.on(chest, "plant", "small plant")
    _things_on(p, chest, 1)
    if w.maybe(0.7):
        p.wall("chair", _some(p, "armchair", "chair"), clear=0.2)
    if w.maybe(0.35):
        p.corner("stool", "stool")
    if w.maybe(0.5):
        p.corner("lighting", "floor lamp")
    _plants(p, 1, 2)
    for _ in _several(p, 1, 3):
        p.hang("clothes", _some(p, "shirt", "dress", "coat", "trousers", "bathrobe"), (1.6, 1.75))
    p.blinds()
    _pictures(p, 3, 5)
    p.rug()
    if w.maybe(0.5):
        p.hang("mirror", "mirror", (1.4, 1.5))
    _boxes(p)


def _child(p: Placer) -> None:
    w = p.workshop
    _sleeping(p, 0.95)
    desk = p.wall("table", "desk", clear=0.6)
    p.on(desk, "lighting", "table lamp")
    if w.maybe(0.6):
        p.on(desk, "tv monitor", "computer")
    p.around(desk, "chair", _some(p, "chair", "office chair"), 1)
    p.wall("furniture", "bookcase")
    p.corner("stool", "stool")
    _plants(p, 0, 1)
    for _ in _several(p, 1, 2):
        p.hang("clothes", _some(p, "shirt", "dress", "trousers"), (1.5, 1.65))
    p.hang("board panel", "board", (1.4, 1.55))
    p.blinds()
    _pictures(p, 2, 4)
    p.rug()
    for _ in _several(p, 1, 3):
        p.corner("objects", _some(p, "box", "basket"))


def _bathroom(p: Placer) -> None:
    w = p.workshop
    p.wall("bathtub", "bathtub", clear=0.5)
    p.wall("toilet", "toilet", clear=0.45)
    sink = p.wall("sink", "sink", clear=0.5)
    if sink is not None:
        p.hang("mirror", "mirror", (1.5, 1.6), sides=(sink.side or "north",), near=(sink.pose.x, sink.pose.y))
    if w.maybe(0.45):
        washer = p.wall("appliances", "washing machine")
        p.on(washer, "objects", "bottles")
    for _ in _several(p, 2, 4):
        p.hang("towel", "towel", (1.15, 1.5))
    if w.maybe(0.6):
        p.hang("clothes", "bathrobe", (1.7, 1.8))
    if w.maybe(0.6):
        p.wall("furniture", "cabinet", clear=0.3)
    p.hang("lighting", "wall lamp", (1.75, 1.95))
    _plants(p, 0, 1)
    if w.maybe(0.6):
        p.corner("stool", "stool")
    p.blinds()
    _pictures(p, 1, 2, 0.6)
    p.rug()


def _kitchen(p: Placer) -> None:
    w = p.workshop
    wide = w.one(1.2, 1.8)
    counter = p.wall("counter", "kitchen counter", clear=0.6, maker=lambda x: kitchen.counter(x, wide))
    near = (counter.pose.x, counter.pose.y) if counter is not None else None
    p.wall("appliances", "stove", near=near, clear=0.5)
    p.wall("appliances", "fridge", near=near, clear=0.5)
    if w.maybe(0.75):
        p.wall("appliances", "dishwasher", near=near, clear=0.4)
    second = p.wall(
        "counter", "kitchen counter", near=near, clear=0.5, maker=lambda x: kitchen.counter(x, 0.9)
    )
    p.on(counter, "appliances", _some(p, "microwave", "coffee machine"))
    p.on(counter, "appliances", _some(p, "toaster", "kettle"))
    p.on(second or counter, "appliances", _some(p, "kettle", "toaster", "coffee machine"))
    _things_on(p, counter, 1)
    table = p.floor("table", "dining table", spread=0.35) or p.wall("table", "side table")
    p.around(table, "chair", "chair", w.count(2, 4))
    _things_on(p, table, w.count(1, 2))
    for _ in _several(p, 1, 2):
        p.corner("stool", "stool")
    p.wall("furniture", _some(p, "cabinet", "sideboard"), clear=0.3)
    for _ in _several(p, 1, 2):
        p.hang("towel", "towel", (1.3, 1.5))
    _plants(p, 0, 2)
    p.blinds()
    _pictures(p, 2, 3, 0.7)
    if w.maybe(0.5):
        p.hang("board panel", "board", (1.45, 1.6))
    if w.maybe(0.6):
        p.hang("objects", "clock", (1.8, 2.0))


def _dining(p: Placer) -> None:
    w = p.workshop
    table = p.floor("table", "dining table", spread=0.5)
    if table is not None:
        p.rug(p.space.footprint(table.model, table.pose))
    p.around(table, "chair", "chair", w.count(4, 6))
    p.on(table, "plant", "small plant")
    _things_on(p, table, w.count(1, 3))
    board = p.wall("furniture", "sideboard")
    p.on(board, "lighting", "table lamp")
    _things_on(p, board, w.count(1, 2))
    if w.maybe(0.35):
        p.wall("fireplace", "fireplace", clear=0.5)
    chest = p.wall("chest of drawers", "chest of drawers")
    p.on(chest, "plant", "small plant")
    _plants(p, 1, 3)
    p.corner("lighting", "floor lamp")
    p.blinds()
    _pictures(p, 3, 6)
    for _ in _several(p, 0, 2):
        p.hang("lighting", "wall lamp", (1.6, 1.8))


def _study(p: Placer) -> None:
    desk = p.wall("table", "desk", clear=0.7)
    p.on(desk, "tv monitor", "computer")
    p.on(desk, "lighting", "table lamp")
    _things_on(p, desk, 1)
    p.around(desk, "chair", "office chair", 1)
    for _ in _several(p, 1, 3):
        p.wall("furniture", "bookcase")
    chair = p.wall("chair", "armchair", clear=0.3)
    p.cushions(chair, 1)
    chest = p.wall("chest of drawers", "chest of drawers")
    p.on(chest, "plant", "small plant")
    p.corner("lighting", "floor lamp")
    _plants(p, 1, 2)
    for _ in _several(p, 1, 2):
        p.hang("board panel", "board", (1.4, 1.6))
    p.blinds()
    _pictures(p, 2, 5)
    p.rug()
    _boxes(p)


def _gym(p: Placer) -> None:
    w = p.workshop
    machines = w.chance.permutation(
        ["treadmill", "exercise bike", "weight bench", "punching bag", "gym ball"]
    )
    for kind in machines[: w.count(3, 4)]:
        p.floor("gym equipment", str(kind), spread=0.12)
    p.wall("gym equipment", "dumbbell rack", clear=0.4)
    p.wall("stool", "stool", clear=0.2)
    chest = p.wall("furniture", "sideboard")
    p.on(chest, "tv monitor", "television")
    for _ in _several(p, 2, 3):
        p.hang("towel", "towel", (1.3, 1.5))
    p.hang("clothes", "shirt", (1.6, 1.75))
    p.hang("board panel", "board", (1.45, 1.6))
    _plants(p, 1, 2)
    p.blinds()
    _pictures(p, 2, 4)
    p.hang("mirror", "mirror", (1.4, 1.5))


def _laundry(p: Placer) -> None:
    w = p.workshop
    for _ in range(2):
        washer = p.wall("appliances", "washing machine", clear=0.4)
        p.on(washer, "objects", _some(p, "bottles", "bowl"))
    p.wall("furniture", "cabinet", clear=0.3)
    if w.maybe(0.5):
        p.wall("sink", "sink", clear=0.4)
    for _ in _several(p, 2, 4):
        p.hang("clothes", _some(p, "shirt", "dress", "trousers"), (1.6, 1.75))
    for _ in _several(p, 1, 2):
        p.hang("towel", "towel", (1.3, 1.5))
    p.corner("objects", "basket")
    p.corner("stool", "stool")
    _plants(p, 0, 1)
    p.blinds()
    _pictures(p, 1, 2, 0.7)
    p.hang("lighting", "wall lamp", (1.7, 1.9))


def _hall(p: Placer) -> None:
    w = p.workshop
    for _ in _several(p, 2, 4):
        p.hang("clothes", _some(p, "coat", "coat", "shirt"), (1.65, 1.8))
    p.wall("furniture", "shoe rack", clear=0.3)
    if w.maybe(0.7):
        table = p.wall("table", "console table", clear=0.3)
        p.on(table, *w.pick(("plant", "small plant"), ("lighting", "table lamp")))
        _things_on(p, table, 1)
    chest = p.wall("chest of drawers", "chest of drawers", clear=0.3)
    p.on(chest, "plant", "small plant")
    if w.maybe(0.5):
        p.wall("stool", "stool", clear=0.2)
    p.hang("mirror", "mirror", (1.4, 1.5))
    _pictures(p, 3, 5, 0.8)
    for _ in _several(p, 1, 2):
        p.hang("lighting", "wall lamp", (1.65, 1.85))
    if w.maybe(0.4):
        p.hang("board panel", "board", (1.45, 1.55))
    p.blinds()
    if p.space.room.inside.width * p.space.room.inside.depth > 8:
        p.ceiling()


RULES: Final[dict[str, Callable[[Placer], None]]] = {
    "living room": _living, "bedroom": _bedroom, "child's room": _child, "bathroom": _bathroom,
    "kitchen": _kitchen, "dining room": _dining, "study": _study, "gym": _gym, "laundry": _laundry,
    "hall": _hall,
}  # fmt: skip
