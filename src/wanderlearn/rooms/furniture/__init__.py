"""Furniture by category: the 21 categories of the paper, and what else stands about in a home."""

from collections.abc import Callable
from typing import Final

from wanderlearn.rooms.furniture import (
    bath,
    beds,
    cloth,
    clutter,
    kitchen,
    lamps,
    leisure,
    plants,
    seats,
    storage,
    tables,
    walls,
)  # fmt: skip
from wanderlearn.rooms.workshop import Model, Workshop

__all__ = ["CATEGORIES", "MAKERS", "OTHERS", "Maker"]

Maker = Callable[[Workshop], Model]

MAKERS: Final[dict[str, dict[str, Maker]]] = {
    "picture": {"picture": walls.picture},
    "chair": {"chair": seats.chair, "office chair": seats.office_chair, "armchair": seats.armchair},
    "lighting": {
        "ceiling lamp": lamps.ceiling_lamp, "floor lamp": lamps.floor_lamp,
        "table lamp": lamps.table_lamp, "wall lamp": lamps.wall_lamp,
    },
    "cushion": {"cushion": beds.cushion},
    "table": {
        "dining table": tables.dining_table, "coffee table": tables.coffee_table,
        "side table": tables.side_table, "desk": tables.desk, "console table": tables.bench_table,
    },
    "plant": {"plant": plants.plant, "small plant": plants.small_plant},
    "chest of drawers": {"chest of drawers": storage.chest, "bedside chest": storage.bedside_chest},
    "towel": {"towel": cloth.towel},
    "sofa": {"sofa": seats.sofa},
    "bed": {"bed": beds.bed},
    "appliances": {
        "fridge": kitchen.fridge, "stove": kitchen.stove, "washing machine": kitchen.washer,
        "dishwasher": kitchen.dishwasher, "microwave": kitchen.microwave, "toaster": kitchen.toaster,
        "kettle": kitchen.kettle, "coffee machine": kitchen.coffee_machine,
    },
    "stool": {"stool": seats.stool},
    "tv monitor": {"television": walls.television, "computer": walls.monitor},
    "clothes": {
        "shirt": cloth.shirt, "coat": cloth.coat, "bathrobe": cloth.robe, "dress": cloth.dress,
        "trousers": cloth.trousers,
    },
    "toilet": {"toilet": bath.toilet},
    "fireplace": {"fireplace": leisure.fireplace},
    "furniture": {
        "bookcase": storage.bookcase, "wardrobe": storage.wardrobe, "sideboard": storage.sideboard,
        "cabinet": storage.cabinet, "shoe rack": storage.shoe_rack,
    },
    "bathtub": {"bathtub": bath.bathtub},
    "gym equipment": {
        "treadmill": leisure.treadmill, "exercise bike": leisure.bicycle, "weight bench": leisure.bench_press,
        "dumbbell rack": leisure.dumbbells, "punching bag": leisure.punch_bag,
        "gym ball": leisure.yoga_ball,
    },
    "blinds": {"blinds": cloth.blinds},
    "board panel": {"board": walls.board},
}  # fmt: skip
CATEGORIES: Final = tuple(MAKERS)

# What the paper leaves out, by the category its makers would give it.
OTHERS: Final[dict[str, dict[str, Maker]]] = {
    "objects": {
        "bowl": clutter.bowl, "vase": clutter.vase, "cup": clutter.mug, "pile of books": clutter.pile,
        "books": clutter.row_of_books, "bottles": clutter.bottles, "box": clutter.floor_box,
        "basket": clutter.basket, "clock": walls.wall_clock,
    },
    "sink": {"sink": bath.basin},
    "mirror": {"mirror": walls.mirror},
}  # fmt: skip
