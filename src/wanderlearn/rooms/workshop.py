"""The workshop furniture is made in: chance, and the materials of one home."""

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from wanderlearn.rooms.patterns import CLOTHS, Chance, hsv, pattern
from wanderlearn.rooms.shapes import Floats, Paint, Part, bounds, plain

__all__ = ["Model", "Style", "Workshop"]

T = TypeVar("T")


@dataclass(frozen=True)
class Model:
    """One thing before it has a place: front towards -y, its origin on the floor, the wall or the ceiling.

    A thing that stands has its origin below its middle; one that hangs on a wall has the wall at y = 0; one
    that hangs from the ceiling has the ceiling at z = 0.
    """

    kind: str  # what a person would call it: armchair, bookcase
    parts: list[Part]
    top: tuple[float, float, float] | None = None  # half width, half depth and height of a surface to use
    light: tuple[float, float] | None = None  # power and height of the light it gives
    seat: tuple[float, float, float] | None = None  # half width, y and height of where cushions lie
    low: Floats = field(init=False)
    high: Floats = field(init=False)

    def __post_init__(self) -> None:
        low, high = bounds(self.parts)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def size(self) -> Floats:
        """Width, depth and height."""
        return self.high - self.low


@dataclass(frozen=True)
class Style:
    """The taste of a household: what its woods, cloths and metals have in common."""

    wood: float  # how dark
    hue: float
    colourful: float
    painted: float  # how much of the wood is painted

    @classmethod
    def draw(cls, chance: Chance) -> "Style":
        """A household's taste."""
        return cls(
            chance.uniform(0.3, 0.8), chance.random(), chance.uniform(0.5, 1.1), chance.uniform(0.1, 0.4)
        )


class Workshop:
    """Chance and materials; every call gives a material of its own."""

    def __init__(self, chance: Chance, style: Style | None = None) -> None:
        self.chance = chance
        self.style = style or Style.draw(chance)

    def one(self, low: float, high: float) -> float:
        """A number between the two."""
        return float(self.chance.uniform(low, high))

    def count(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return int(self.chance.integers(low, high + 1))

    def maybe(self, probability: float) -> bool:
        """True as often as this."""
        return bool(self.chance.random() < probability)

    def pick(self, *choices: T) -> T:
        """One of these."""
        return choices[int(self.chance.integers(len(choices)))]

    def colour(self, low: float = 0.25, high: float = 0.95) -> Floats:
        """Any colour of about the household's taste."""
        r = self.chance
        hue = r.random() if r.random() < 0.6 else (self.style.hue + r.normal(0, 0.08)) % 1
        return hsv(hue, min(1.0, r.uniform(0.1, 0.85) * self.style.colourful), r.uniform(low, high))

    def solid(self, low: float = 0.25, high: float = 0.95) -> Paint:
        """A paint of one colour."""
        return plain(*(float(c) for c in self.colour(low, high)))

    def grey(self, low: float, high: float) -> Paint:
        """A grey between the two."""
        return plain(self.one(low, high))

    def metal(self) -> Paint:
        """Steel, brass, copper or black iron."""
        tone = self.pick((0.62, 0.63, 0.66), (0.75, 0.6, 0.3), (0.7, 0.42, 0.28), (0.12, 0.12, 0.13))
        return plain(*tone).shaded(self.one(0.85, 1.15))

    def white(self) -> Paint:
        """Ceramic: nearly white, sometimes tinted."""
        if self.maybe(0.3):
            return plain(*(float(c) for c in hsv(self.chance.random(), self.one(0.1, 0.35), 0.92)))
        return plain(*(float(c) for c in hsv(self.one(0.05, 0.15), self.one(0, 0.08), self.one(0.86, 0.97))))

    def wood(self, size: float = 0.6) -> Paint:
        """Wood, stained or painted."""
        r = self.chance
        if self.maybe(self.style.painted):
            base = self.colour(0.35)
            return Paint(texture=pattern("plaster", r, base, base * 0.82), size=size)
        tone = np.clip(self.style.wood + r.normal(0, 0.16), 0.16, 0.9)
        base = hsv(r.uniform(0.045, 0.115), r.uniform(0.3, 0.75), tone)
        return Paint(texture=pattern("wood", r, base, base * r.uniform(0.5, 0.8)), size=size)

    def fabric(self, size: float = 0.4) -> Paint:
        """Cloth with a pattern."""
        return self.patterned(str(self.chance.choice(CLOTHS)), size * self.one(0.7, 1.4))

    def patterned(self, kind: str, size: float = 0.4) -> Paint:
        """A pattern in two colours that suit each other."""
        r = self.chance
        hue = r.random() if r.random() < 0.6 else (self.style.hue + r.normal(0, 0.08)) % 1
        vivid = self.style.colourful
        first = hsv(hue, min(1.0, r.uniform(0.1, 0.8) * vivid), r.uniform(0.3, 0.95))
        other = (hue + r.choice([0.0, 0.5, 0.33]) + r.normal(0, 0.05)) % 1
        second = hsv(other, min(1.0, r.uniform(0.05, 0.7) * vivid), r.uniform(0.3, 1))
        if np.abs(first - second).sum() < 0.5:  # a pattern must be seen
            second = second * 0.4 if first.sum() > 1.5 else 0.5 + 0.5 * second
        return Paint(texture=pattern(kind, r, first, second), size=size)

    def leaf(self) -> Floats:
        """A green."""
        r = self.chance
        return hsv(r.uniform(0.2, 0.4), r.uniform(0.4, 0.9), r.uniform(0.28, 0.65))
