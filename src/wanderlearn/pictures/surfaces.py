"""Surfaces drawn by the program itself: stripes, checks, weaves, cells and the like, 128 x 128, grey.

A class is a kind of surface with parameters of its own (direction, size, sharpness, greys); every picture of
it is another piece of that surface: moved, turned by a hair, unevenly made. As in `strokes.py` only addition,
multiplication, division and square roots are used, so that a seed gives the same pixels on every machine.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.pictures.strokes import Chance, Floats, direction

__all__ = ["KINDS", "SIDE", "draw_surface"]

SIDE: Final = 128
MAKE, PIECE = 10, 11  # purposes of chance: the parameters of a class, and one picture of it
TURN: Final = 0.01  # how far a picture is turned against its class, in turns
UNEVEN: Final = 0.12  # how far places are moved, as a part of the pattern's size


class _Make(NamedTuple):
    """The parameters of a class."""

    turn: float  # direction, in turns
    size: float  # of one period or one cell, in pixels
    share: float  # of the bright part
    edge: float  # over which bright becomes dark, as a part of the period
    stretch: float  # one way against the other
    dark: float
    light: float
    grain: float  # how much fine noise lies on it


def draw_surface(kind: str, number: int, piece: int, seed: int = 0) -> npt.NDArray[np.uint8]:
    """One picture of class `number`, a surface of this kind, [128, 128]."""
    make = _made(Chance(seed, number, 0, MAKE))
    chance = Chance(seed, number, piece, PIECE)
    x, y = _places(make, chance)
    bright = KINDS[kind](x, y, make, chance)
    shade = 1 + 0.3 * (_lattice(*_straight(chance, 90.0), chance) - 0.5)  # light falls unevenly
    grey = make.dark + (make.light - make.dark) * bright
    grey = grey * shade + make.grain * (chance.numbers(0, 1, SIDE, SIDE) - 0.5)
    return np.floor(np.clip(grey, 0.0, 1.0) * 255 + 0.5).astype(np.uint8)


def _made(chance: Chance) -> _Make:
    dark = chance.number(0.05, 0.4)
    return _Make(
        turn=chance.number(0, 0.5),
        size=chance.number(5.0, 12.0),
        share=chance.number(0.3, 0.65),
        edge=chance.number(0.1, 0.4),
        stretch=chance.number(1.0, 2.0),
        dark=dark,
        light=dark + chance.number(0.35, 0.55),
        grain=chance.number(0.0, 0.15),
    )


def _grid() -> tuple[Floats, Floats]:
    line = np.arange(SIDE, dtype=np.float64)
    return np.broadcast_to(line, (SIDE, SIDE)), np.broadcast_to(line[:, None], (SIDE, SIDE))


def _straight(chance: Chance, size: float) -> tuple[Floats, Floats]:
    """Where every pixel lies on an upright lattice of this size, from a random corner on."""
    across, down = _grid()
    return across / size + chance.number(0, 1), down / size + chance.number(0, 1)


def _places(make: _Make, chance: Chance) -> tuple[Floats, Floats]:
    """Where every pixel lies on the surface, in periods: turned, moved, and a little uneven."""
    cosine, sine = direction(np.array([make.turn + TURN * float(chance.bell())]))
    across, down = _grid()
    u, v = across * cosine[0] + down * sine[0], down * cosine[0] - across * sine[0]
    x = u / make.size + 100 * chance.number(0, 1)
    y = v / (make.size * make.stretch) + 100 * chance.number(0, 1)
    bend = [_lattice(*_straight(chance, 3 * make.size), chance) - 0.5 for _ in range(2)]
    return x + 2 * UNEVEN * bend[0], y + 2 * UNEVEN * bend[1]


def _lattice(x: Floats, y: Floats, chance: Chance) -> Floats:
    """Smooth noise between 0 and 1: random values on whole numbers, blended in between."""
    left, top = np.floor(x), np.floor(y)
    column, row = (left - left.min()).astype(np.int64), (top - top.min()).astype(np.int64)
    values = chance.numbers(0, 1, int(row.max()) + 2, int(column.max()) + 2)
    s, t = _eased(x - left), _eased(y - top)
    upper = values[row, column] * (1 - s) + values[row, column + 1] * s
    lower = values[row + 1, column] * (1 - s) + values[row + 1, column + 1] * s
    blended: Floats = upper * (1 - t) + lower * t
    return blended


def _eased(part: Floats) -> Floats:
    return part * part * (3 - 2 * part)


def _tooth(x: Floats) -> Floats:
    """0 at whole numbers, 1 halfway between."""
    return 1 - 2 * np.abs(x - np.floor(x) - 0.5)


def _edged(height: Floats, make: _Make) -> Floats:
    """Bright where the height (0 to 1) is above 1 - share, with an edge."""
    return np.clip((height - (1 - make.share)) / make.edge + 0.5, 0.0, 1.0)


def _stripes(x: Floats, y: Floats, make: _Make, chance: Chance) -> Floats:
    return _edged(_tooth(x), make)


def _checks(x: Floats, y: Floats, make: _Make, chance: Chance) -> Floats:
    one, two = _edged(_tooth(x / 2), make), _edged(_tooth(y / 2), make)
    return one * (1 - two) + two * (1 - one)


def _clouds(x: Floats, y: Floats, make: _Make, chance: Chance) -> Floats:
    """Noise of several sizes, each half as strong as the one before or nearly as strong."""
    octaves = [_lattice(x * 2**n / 3, y * 2**n / 3, chance) for n in range(3)]
    weight = [(0.4 + make.share / 2) ** n for n in range(3)]
    height = sum((o * w for o, w in zip(octaves, weight, strict=True)), np.zeros(1)) / sum(weight)
    return np.clip((height - 0.5) / (0.3 + make.edge) + 0.5, 0.0, 1.0)


def _cells(x: Floats, y: Floats, make: _Make, chance: Chance) -> Floats:
    """Cells around scattered seeds, dark where two of them meet."""
    first, second = _nearest(x / 1.5, y / 1.5 * make.stretch, chance)
    return np.clip((second - first) / (make.edge + 0.1), 0.0, 1.0)


def _weave(x: Floats, y: Floats, make: _Make, chance: Chance) -> Floats:
    """Threads that go over and under each other."""
    over = (np.floor(x) + np.floor(y)) % 2
    along, across = _edged(_tooth(x), make), _edged(_tooth(y), make)
    return np.where(over == 1, np.maximum(along, 0.5 * across), np.maximum(across, 0.5 * along))


def _dots(x: Floats, y: Floats, make: _Make, chance: Chance) -> Floats:
    """Round dots, not quite in rows."""
    first, _ = _nearest(x / 1.2, y / 1.2 * make.stretch, chance, scatter=0.4)
    return np.clip((make.share - first) / make.edge + 0.5, 0.0, 1.0)


def _bricks(x: Floats, y: Floats, make: _Make, chance: Chance) -> Floats:
    """Rows of bricks, each row moved by half a brick, and no two bricks of one grey."""
    x, y = x / 2.4, y / 1.2
    x = x + 0.5 * (np.floor(y) % 2)
    joint = np.minimum(_tooth(x) * 2, _tooth(y))
    row, column = np.floor(y), np.floor(x)
    tone = chance.numbers(0.55, 1.0, 64, 64)
    shade = tone[row.astype(np.int64) % 64, column.astype(np.int64) % 64]
    return np.clip((joint - 0.15) / make.edge, 0.0, 1.0) * shade


def _fibres(x: Floats, y: Floats, make: _Make, chance: Chance) -> Floats:
    """Long thin streaks along one direction."""
    height = 0.6 * _lattice(x * 2, y / 4, chance) + 0.4 * _lattice(x * 4, y / 2, chance)
    return np.clip((height - 0.5) / (0.2 + make.edge) + 0.5, 0.0, 1.0)


def _hatching(x: Floats, y: Floats, make: _Make, chance: Chance) -> Floats:
    """Thin lines in two directions that are not at right angles."""
    one, two = _tooth(x / 1.3), _tooth(0.45 * x + 1.1 * y)
    return 1 - np.clip((np.maximum(one, two) - 0.75) / (0.5 * make.edge) + 0.5, 0.0, 1.0)


def _nearest(x: Floats, y: Floats, chance: Chance, scatter: float = 0.9) -> tuple[Floats, Floats]:
    """Distance to the nearest and to the second nearest of seeds that lie one in every square."""
    left, top = np.floor(x), np.floor(y)
    column, row = (left - left.min()).astype(np.int64) + 1, (top - top.min()).astype(np.int64) + 1
    shape = int(row.max()) + 2, int(column.max()) + 2
    across, down = (0.5 + scatter * (chance.numbers(0, 1, *shape) - 0.5) for _ in range(2))
    first = np.full(x.shape, 9.0)
    second = np.full(x.shape, 9.0)
    for dr in (-1, 0, 1):
        for dc in (-1, 0, 1):
            dx = x - left - dc - across[row + dr, column + dc]
            dy = y - top - dr - down[row + dr, column + dc]
            away = np.sqrt(dx * dx + dy * dy)
            second = np.minimum(second, np.maximum(first, away))
            first = np.minimum(first, away)
    return first, second


KINDS: Final[dict[str, Callable[[Floats, Floats, _Make, Chance], Floats]]] = {
    "stripes": _stripes,
    "checks": _checks,
    "clouds": _clouds,
    "cells": _cells,
    "weave": _weave,
    "dots": _dots,
    "bricks": _bricks,
    "fibres": _fibres,
    "hatching": _hatching,
}
"""What there is to draw, by name."""
