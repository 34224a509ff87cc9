"""Strokes of a pen: chance, directions, splines, and ink on a small page.

Only addition, multiplication, division and square roots of float64 are used, one array operation at a time,
because these are rounded alike on every machine: what is drawn here is the same everywhere, to the bit.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["KNOTS", "PAGE", "SIDE", "Chance", "Floats", "bend", "direction", "ink", "path", "spline"]

Floats = npt.NDArray[np.float64]

KNOTS: Final = 14  # control points of every stroke
PAGE: Final = 105.0  # the page is this many units wide and high, as Omniglot's
SIDE: Final = 28  # and so many pixels
PER_KNOT: Final = 8  # points of ink between two control points
EDGE: Final = 1.3  # units over which ink fades


class Chance:
    """A stream of random numbers, a function of four whole numbers. Every draw is made from uniforms."""

    def __init__(self, seed: int, alphabet: int, character: int, purpose: int) -> None:
        counter = np.array([0, 0, character, purpose], dtype=np.uint64)
        key = np.array([seed, alphabet], dtype=np.uint64)
        self._generator = np.random.Generator(np.random.Philox(key=key, counter=counter))

    def number(self, low: float, high: float) -> float:
        """A number between the two."""
        return low + (high - low) * float(self._generator.random())

    def numbers(self, low: float, high: float, *shape: int) -> Floats:
        """Numbers between the two."""
        return low + (high - low) * self._generator.random(shape)

    def yes(self, chance: float) -> bool:
        """True with this chance."""
        return float(self._generator.random()) < chance

    def sign(self) -> float:
        """1 or -1."""
        return 1.0 if self.yes(0.5) else -1.0

    def pick(self, count: int) -> int:
        """One of 0 to count - 1."""
        return int(float(self._generator.random()) * count)

    def among(self, weights: tuple[float, ...]) -> int:
        """A place in the row, in proportion to the weights."""
        at = float(self._generator.random()) * sum(weights)
        for place, weight in enumerate(weights):
            at -= weight
            if at < 0:
                return place
        return len(weights) - 1

    def bell(self, *shape: int) -> Floats:
        """Bell-shaped numbers of mean 0 and deviation 1: the sum of four uniforms, never beyond 3.5."""
        u = self._generator.random((4, *shape))
        bell: Floats = (u[0] + u[1] + u[2] + u[3] - 2.0) * 1.7320508075688772
        return bell


def direction(turns: Floats) -> tuple[Floats, Floats]:
    """Cosine and sine of an angle in turns, by rational arithmetic (good to a thousandth)."""
    eighth = (turns - np.rint(turns)) * 0.7853981633974483
    square = eighth * eighth
    k = eighth * (1.0 + square * (1 / 3 + square * (2 / 15)))  # tan of an eighth of the angle
    c, s = (1.0 - k * k) / (1.0 + k * k), 2.0 * k / (1.0 + k * k)  # of a quarter
    for _ in range(2):
        c, s = c * c - s * s, 2.0 * c * s
    return c, s


def path(heading: float, pieces: list[tuple[float, float, float]]) -> Floats:
    """A pen's way from the origin as control points, [KNOTS, 2] (x to the right, y down).

    Each piece is (corner, length, curl): turn on the spot by `corner`, then go `length` while turning
    evenly by `curl`; angles in turns.
    """
    total = sum(length for _, length, _ in pieces)
    steps = [max(1, round(length / total * (KNOTS - 1))) for _, length, _ in pieces]
    steps[steps.index(max(steps))] += KNOTS - 1 - sum(steps)
    headings, lengths = np.empty(KNOTS - 1), np.empty(KNOTS - 1)
    at = 0
    for (corner, length, curl), count in zip(pieces, steps, strict=True):
        heading += corner
        for _ in range(count):
            headings[at] = heading + curl / count / 2
            heading += curl / count
            lengths[at] = length / count
            at += 1
    c, s = direction(headings)
    points = np.zeros((KNOTS, 2))
    points[1:, 0] = np.cumsum(c * lengths)
    points[1:, 1] = np.cumsum(s * lengths)
    return points


def bend(knots: Floats, amount: Floats) -> Floats:
    """Round the corners: every inner control point moves by `amount` towards the middle of its neighbours."""
    out = knots.copy()
    middle = (knots[..., :-2, :] + knots[..., 2:, :]) * 0.5
    out[..., 1:-1, :] += (middle - knots[..., 1:-1, :]) * amount
    return out


def spline(knots: Floats) -> Floats:
    """Points along the uniform cubic B-splines of [..., KNOTS, 2], from the first knot to the last."""
    before = knots[..., :1, :] * 2.0 - knots[..., 1:2, :]
    after = knots[..., -1:, :] * 2.0 - knots[..., -2:-1, :]
    padded = np.concatenate((before, knots, after), axis=-2)
    spans = knots.shape[-2] - 1
    t = ((np.arange(PER_KNOT) + 0.5) / PER_KNOT)[:, None]
    r = 1.0 - t
    weights = (r * r * r / 6.0, (4.0 - 6.0 * t * t + 3.0 * t * t * t) / 6.0,
               (4.0 - 6.0 * r * r + 3.0 * r * r * r) / 6.0, t * t * t / 6.0)  # fmt: skip
    points = np.zeros((*knots.shape[:-2], spans, PER_KNOT, 2))
    for n, weight in enumerate(weights):
        points += padded[..., n : n + spans, None, :] * weight
    return points.reshape(*knots.shape[:-2], spans * PER_KNOT, 2)


def ink(points: Floats, pen: Floats) -> npt.NDArray[np.uint8]:
    """Pictures [N, SIDE, SIDE] of points [N, S, 2] on the page, drawn with pens of these half widths, [N].

    Like Omniglot's, a picture is a page of hard thin lines looked at only in the middle of each pixel, with
    hardly any smoothing: a pixel is lit by its distance to the nearest point of ink.
    """
    count, pixel = len(points), PAGE / SIDE
    place = (points + 0.5) / pixel - 0.5  # in pixels
    corner = np.floor(place)
    picture = np.arange(count)[:, None] * (SIDE * SIDE)
    nearest = np.full(count * SIDE * SIDE, 1e9)
    for dy in (0.0, 1.0):
        for dx in (0.0, 1.0):
            x, y = corner[..., 0] + dx, corner[..., 1] + dy
            off = place - np.stack((x, y), axis=-1)
            square = (off[..., 0] * off[..., 0] + off[..., 1] * off[..., 1]) * (pixel * pixel)
            on = (x >= 0) & (x < SIDE) & (y >= 0) & (y < SIDE)
            where = (picture + (y * SIDE + x).astype(np.int64))[on]
            np.minimum.at(nearest, where, square[on])
    distance = np.sqrt(nearest).reshape(count, SIDE, SIDE)
    light = np.minimum(np.maximum((pen[:, None, None] - distance) / EDGE + 0.5, 0.0), 1.0)
    pictures: npt.NDArray[np.uint8] = np.rint(light * light * (3.0 - 2.0 * light) * 255.0).astype(np.uint8)
    return pictures
