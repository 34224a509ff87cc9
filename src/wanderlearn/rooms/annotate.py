"""Which things of a frame are met, and the boxes around them, as the authors' recorder chooses them."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.rooms.home import Home
from wanderlearn.rooms.render import Camera

__all__ = [
    "EDGE",
    "FULL",
    "Box",
    "Known",
    "annotate",
    "met_in",
    "object_list",
    "region",
    "scene_name",
    "tight_box",
    "viewing_order",
    "zoom_boxes",
]

FULL: Final = (600, 800)  # height and width that boxes are given in, whatever the size of the frame
LEAST_AREA: Final = 0.004  # of the frame; anything smaller is not met
EDGE: Final = 0.05  # of the frame, at each side, where the middle of what is met may not lie; authors: 0.15
MOST: Final = 10  # with a cap, as the authors', a frame has at most 1 to 9 objects, drawn for every frame
ZOOMS: Final = (5, 10)  # 5 to 9 boxes from far to near

Box = tuple[int, int, int, int]  # top, bottom, left, right, all inside


class Known(NamedTuple):
    """What is told of a thing that is met."""

    category: str
    region: str
    region_name: str


def scene_name(seed: int) -> str:
    """What a home is called in files; no underscore, the readers split names at them."""
    return f"home{seed:04d}"


def region(room: int) -> str:
    """What a room is called in files: storey and room, as in Matterport3D."""
    return f"0_{room}"


def object_list(home: Home) -> list[dict[str, Any]]:
    """Every thing of a home, as the `objects` of a file tell it. Its id in pictures ends the id told here."""
    return [
        {
            "sizes": [round(float(side), 4) for side in thing.size],
            "center": [round(float(x), 4) for x in thing.centre],
            "id": f"{region(thing.room)}_{thing.id}",
            "category": thing.category,
            "region_id": region(thing.room),
            "region_name": home.plan.rooms[thing.room].kind,
        }
        for thing in home.things
    ]


def viewing_order(home: Home, walk: int) -> npt.NDArray[np.int64]:
    """For every id its place in the order things are looked at in a walk.

    The authors' order is that of a Python set: not by size or place, but the same in every frame.
    """
    return np.random.default_rng([home.seed, walk]).permutation(len(home.things) + 1)


def annotate(
    home: Home,
    camera: Camera,
    ids: npt.NDArray[np.int32],
    order: npt.NDArray[np.int64],
    r: np.random.Generator,
    *,
    edge: float = EDGE,
    any_room: bool = False,
    capped: bool = False,
) -> dict[str, Any]:
    """The objects met in a frame: large enough, near enough to the middle, in the room one stands in."""
    known = {
        t.id: Known(t.category, region(t.room), home.plan.rooms[t.room].kind)
        for t in home.things
        if t.counted
    }
    return met_in(
        ids,
        known,
        order,
        r,
        viewpoint=f"{scene_name(home.seed)}-{camera.viewpoint}",
        room=None if any_room else region(home.viewpoints[camera.viewpoint].room),
        edge=edge,
        capped=capped,
    )


def met_in(
    ids: npt.NDArray[np.int32],
    known: Mapping[int, Known],
    order: npt.NDArray[np.int64],
    r: np.random.Generator,
    *,
    viewpoint: str,
    room: str | None,
    edge: float,
    capped: bool,
) -> dict[str, Any]:
    """The known things that are met in a frame seen from a viewpoint, of this room or (None) of any."""
    areas = np.bincount(ids.ravel(), minlength=len(order))
    large = np.flatnonzero(areas >= max(1, int(ids.size * LEAST_AREA)))
    most, found = int(r.integers(1, MOST)), dict[str, Any]()
    for id in large[np.argsort(order[large])].tolist():
        if capped and len(found) == most:
            break
        if id not in known or (room is not None and known[id].region != room):
            continue
        box = tight_box(ids == id)
        x, y = box[2] + (box[3] - box[2]) // 2, box[0] + (box[1] - box[0]) // 2
        if not all(edge * side <= at <= (1 - edge) * side for at, side in ((y, FULL[0]), (x, FULL[1]))):
            continue
        found[f"object_{len(found)}"] = {
            "instance_id": id,
            "category": known[id].category,
            "region_id": known[id].region,
            "region_name": known[id].region_name,
            "viewpoint": viewpoint,
            "centroid": [x, y],
            "zoom_bboxes": [list(b) for b in zoom_boxes(box, int(r.integers(*ZOOMS)))],
        }
    return found


def tight_box(mask: npt.NDArray[np.bool_]) -> Box:
    """The smallest box around a mask, in the coordinates of a frame of 600 x 800."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    high, wide = FULL[0] / mask.shape[0], FULL[1] / mask.shape[1]
    return (
        int(rows[0] * high),
        int((rows[-1] + 1) * high) - 1,
        int(columns[0] * wide),
        int((columns[-1] + 1) * wide) - 1,
    )


def zoom_boxes(tight: Box, count: int) -> list[Box]:
    """So many boxes from far to near, each inside the one before; the last is the tight one."""
    boxes = [tight]
    for step in range(1, count):
        inner, wider = boxes[-1], list[int]()
        for low, high, side, before in (
            (tight[0], tight[1], FULL[0], inner[:2]),
            (tight[2], tight[3], FULL[1], inner[2:]),
        ):
            grown = (side - (high - low)) * step // (2 * count)  # to each side
            wider += [min(before[0], max(0, low - grown)), max(before[1], min(side - 1, high + grown))]
        boxes.append((wider[0], wider[1], wider[2], wider[3]))
    return boxes[::-1]
