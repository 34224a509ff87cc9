"""Guesses at who lives where once more, as plainly as can be: a list of dictionaries."""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

ENVIRONMENTS, STAY, DISCOUNT, CONCENTRATION = 5, 0.8, 0.2, 1.0
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Guess:
    weight: float
    lives: dict[Hashable, int]

    def __deepcopy__(self, memo: object) -> "Guess":
        return self  # nobody changes it


@dataclass
class SlowGuesses:
    """What was told, and where everybody may live."""

    most: int
    guesses: list[Guess] = field(default_factory=lambda: [Guess(1.0, {})])
    told: dict[Hashable, int] = field(default_factory=dict)
    last: Hashable = None
    silent: int = 0

    def rate(self, guess: Guess, e: int) -> float:
        stay = STAY ** (self.silent + 1) if self.told else 0.0
        move = (1 - stay) / ENVIRONMENTS + stay * (self.told != {} and guess.lives[self.last] == e)
        return move / (sum(n for k, n in self.told.items() if guess.lives[k] == e) + CONCENTRATION)

    def opens(self, guess: Guess, e: int) -> float:
        tables = sum(home == e for home in guess.lives.values())
        return self.rate(guess, e) * (CONCENTRATION + DISCOUNT * tables)

    def heard(self) -> tuple[dict[Hashable, float], dict[Hashable, float]]:
        """How surely each class lives where the last one told does, and how likely it is met next."""
        total = sum(guess.weight for guess in self.guesses)
        here, chance = {}, {}
        for k, n in self.told.items():
            beside = sum(g.weight for g in self.guesses if g.lives[k] == g.lives[self.last])
            here[k] = beside / total
            comes = sum(g.weight * self.rate(g, g.lives[k]) for g in self.guesses)
            chance[k] = comes * (n - DISCOUNT) / total
        return here, chance

    def something_new(self) -> float:
        """How likely something new is met next."""
        total = sum(guess.weight for guess in self.guesses)
        return sum(g.weight * self.opens(g, e) for g in self.guesses for e in range(ENVIRONMENTS)) / total

    def tell(self, label: Hashable) -> None:
        if label is None:
            self.silent += 1
            return
        if label in self.told:
            self.guesses = [
                replace(g, weight=g.weight * self.rate(g, g.lives[label]) * (self.told[label] - DISCOUNT))
                for g in self.guesses
            ]
        else:
            divided = []
            for guess in self.guesses:
                empty = [e for e in range(ENVIRONMENTS) if e not in guess.lives.values()]
                for e in range(ENVIRONMENTS):
                    homes = 1 if e not in empty else len(empty) if e == empty[0] else 0
                    part = guess.weight * self.opens(guess, e) * homes
                    if part > 0:
                        divided.append(Guess(part, guess.lives | {label: e}))
            self.guesses = self.thinned(divided)
        self.told[label] = self.told.get(label, 0) + 1
        self.last, self.silent = label, 0
        most = max(guess.weight for guess in self.guesses)
        self.guesses = [replace(guess, weight=guess.weight / most) for guess in self.guesses]

    def thinned(self, guesses: list[Guess]) -> list[Guess]:
        if len(guesses) <= self.most:
            return guesses
        ordered = sorted((guess.weight for guess in guesses), reverse=True)
        whole = 0
        while ordered[whole] * (self.most - whole) >= sum(ordered[whole:]):
            whole += 1
        step = sum(ordered[whole:]) / (self.most - whole)
        kept, passed, until = [], 0.0, GOLDEN * step
        for guess in guesses:
            if guess.weight >= step:
                kept.append(guess)
                continue
            passed += guess.weight
            if passed > until:
                until += step
                kept.append(Guess(step, guess.lives))
        return kept
