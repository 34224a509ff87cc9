"""How alike two things look: small pictures of them from two sides, and their sizes."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.rooms.shapes import Floats, rotation
from wanderlearn.rooms.workshop import Model

__all__ = ["LEAST", "Look", "difference", "look_of"]

LEAST: Final = 0.05  # things of one category in one home differ by at least this
CELLS: Final = 14
POINTS: Final = 3000
VIEWS: Final = (0.5, -0.6)  # radians from the front


class Look(NamedTuple):
    """Two small pictures and the logarithms of width, depth and height."""

    pictures: npt.NDArray[np.float32]  # [views, CELLS, CELLS, 3]
    size: Floats


def look_of(model: Model) -> Look:
    """What a thing looks like, in small, without light."""
    points, colours = _surface(model)
    middle, span = (model.low + model.high) / 2, float(model.size.max())
    pictures = [_seen((points - middle) / span, colours, turn) for turn in VIEWS]
    return Look(np.stack(pictures).astype(np.float32), np.log(np.maximum(model.size, 0.02)))


def difference(one: Look, other: Look) -> float:
    """From 0: the mean difference of the pictures, and how far the sizes are apart."""
    apart = float(np.abs(one.pictures - other.pictures).mean())
    return apart + 0.25 * float(np.abs(one.size - other.size).max())


def _surface(model: Model) -> tuple[Floats, Floats]:
    """Points spread over the surface, with their colours."""
    areas = []
    for part in model.parts:
        corner = part.vertices[part.faces]
        areas.append(
            np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1) / 2
        )
    per_point = max(sum(float(a.sum()) for a in areas) / POINTS, 1e-9)
    points, colours = [], []
    for part, area in zip(model.parts, areas, strict=True):
        which = np.repeat(np.arange(len(area)), np.ceil(area / per_point).astype(int))
        if not len(which):
            continue
        k = np.arange(len(which))
        a, b = (0.5 + k * 0.7548776662466927) % 1, (0.5 + k * 0.5698402909980532) % 1  # spread evenly
        a, b = np.where(a + b > 1, 1 - a, a), np.where(a + b > 1, 1 - b, b)
        weights = np.stack([1 - a - b, a, b], -1)[:, None]
        face = part.faces[which]
        points.append((weights @ part.vertices[face])[:, 0])
        colour = np.tile(np.array(part.paint.colour), (len(which), 1))
        texture = part.paint.texture
        if texture is not None:
            at = (weights @ part.uv[face])[:, 0] % 1
            n = len(texture)
            colour *= texture[(at[:, 1] * n).astype(int) % n, (at[:, 0] * n).astype(int) % n] / 255
        colours.append(colour)
    return np.concatenate(points), np.concatenate(colours)


def _seen(points: Floats, colours: Floats, turn: float) -> Floats:
    """The points from one side: the nearest in each cell, on grey."""
    at = points @ rotation(turn).T
    column = np.clip(((at[:, 0] + 0.55) / 1.1 * CELLS).astype(int), 0, CELLS - 1)
    row = np.clip(((0.55 - at[:, 2]) / 1.1 * CELLS).astype(int), 0, CELLS - 1)
    cell = row * CELLS + column
    nearest = np.full(CELLS * CELLS, np.inf)
    np.minimum.at(nearest, cell, at[:, 1])
    front = at[:, 1] < nearest[cell] + 0.06
    count = np.bincount(cell[front], minlength=CELLS * CELLS)
    image = np.stack([np.bincount(cell[front], colours[front, c], CELLS * CELLS) for c in range(3)], -1)
    shown = np.where(count[:, None] > 0, image / np.maximum(count, 1)[:, None], 0.5)
    return shown.reshape(CELLS, CELLS, 3)
