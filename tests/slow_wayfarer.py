"""Wayfarer once more, as plainly as can be: lists, dictionaries and loops in double precision.

Written from the equations of its page, not from its code. Learner and live memory are held against it.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.live_agents import small_model
from tests.slow_agent import Met, SlowAgent, shares
from tests.slow_guesses import SlowGuesses
from wanderlearn.learners.wayfarer import Wayfarer

Vector = npt.NDArray[np.float64]
CERTAINLY_NEW = 1e3


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def unit(x: Vector) -> Vector:
    return x / max(float(np.sqrt(x @ x)), 1e-5)


@dataclass
class Meeting:
    """One meeting as it was met, and what is known of it by now."""

    feature: Vector
    keys: list[Vector]
    seen: Vector
    number: int = -1  # when it was written
    label: Hashable = None
    forgotten: int = 0  # the number of the forgetting that it was part of; 0: of none


@dataclass
class Class:
    sums: list[Vector]
    told: float
    last: int


@dataclass
class SlowWayfarer:
    """A memory by label. `meeting` and `read` change nothing."""

    learner: Wayfarer
    past: list[Meeting] = field(default_factory=list)
    classes: dict[Hashable, Class] = field(default_factory=dict)
    time: int = 0

    def __post_init__(self) -> None:
        self.config = self.learner.config
        self.guesses = SlowGuesses(self.config.guesses)
        named = self.learner.named_parameters()
        self.w = {name: part.detach().double().numpy() for name, part in named}
        self.hidden = self.cell = np.zeros(self.config.units)

    # The meeting

    def meeting(self, h: Vector) -> Meeting:
        config = self.config
        r, _ = self.lstm(h)
        keys = []
        if config.context_keys:
            keys.append(unit(unit(h) + self.linear("readout", r)))
        if config.plain_keys:
            keys.append(unit(h))
        return Meeting(h, keys, self.linear("seen", r))

    def linear(self, name: str, x: Vector) -> Vector:
        made: Vector = self.w[f"{name}.weight"] @ x + self.w[f"{name}.bias"]
        return made

    def lstm(self, h: Vector) -> tuple[Vector, Vector]:
        w, n = self.w, self.config.units
        x = (h - h.mean()) / np.sqrt(h.var() + 1e-5)
        a = w["lstm.gates.weight"] @ np.concatenate([x, self.hidden]) + w["lstm.gates.bias"]
        a = (a - a.mean()) / np.sqrt(a.var() + 1e-6) * w["lstm.norm.weight"] + w["lstm.norm.bias"]
        f, i, o, g = a[:n], a[n : 2 * n], a[2 * n : 3 * n], a[3 * n :]
        cell = sigmoid(f) * self.cell + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(cell), cell

    # Reading

    def window(self) -> list[Meeting]:
        return [one for one in self.past if self.time - one.number <= self.config.window]

    def completed(self) -> tuple[dict[Hashable, list[Vector]], dict[Hashable, float]]:
        """The prototypes, divided by their lengths, and counts, with late credit."""
        told = {k: c.told for k, c in self.classes.items()}
        if not self.config.late_credit:
            return {k: [unit(s) for s in c.sums] for k, c in self.classes.items()}, told
        credits: dict[Hashable, list[tuple[float, Meeting]]] = {k: [] for k in self.classes}
        sharpness, slope, offset = self.w["credit"]
        for one in self.window():
            if one.label is not None or one.forgotten:
                continue
            z = {
                k: sharpness * float(np.mean([x @ unit(s) for x, s in zip(one.keys, c.sums, strict=True)]))
                for k, c in self.classes.items()
            }
            total = sum(math.exp(likeness) for likeness in z.values())
            for k, likeness in z.items():
                share = math.exp(likeness) / total * sigmoid(slope * max(z.values()) + offset)
                credits[k].append((share, one))
        prototypes: dict[Hashable, list[Vector]] = {}
        for k, c in self.classes.items():
            shares = np.array([share for share, _ in credits[k]])
            prototypes[k] = []
            for v, s in enumerate(c.sums):
                added = sum((share * one.keys[v] for share, one in credits[k]), np.zeros_like(s))
                square = (
                    s @ s + 2 * max(float(s @ added), 0) + 0.5 * shares.sum() ** 2 + 0.5 * (shares**2).sum()
                )
                prototypes[k].append((s + added) / np.sqrt(max(square, 1e-10)))
            told[k] += shares.sum()
        return prototypes, told

    def company(self) -> dict[Hashable, list[float]]:
        """Of every class the shares of the walk after each hop."""
        if not self.config.company:
            return {k: [] for k in self.classes}
        p0, p1 = (sigmoid(10 * pace) for pace in self.w["company.pace"])
        a, b = self.w["company.likeness"]
        window = self.window()
        numbers = range(len(window))

        def named(one: Meeting) -> bool:
            return one.label is not None and not one.forgotten

        def same(s: int, r: int) -> float:
            one, other = window[s], window[r]
            if one.label is not None and other.label is not None:
                return float((one.label, one.forgotten) == (other.label, other.forgotten))
            cosine = float(np.mean([x @ y for x, y in zip(one.keys, other.keys, strict=True)]))
            return float(sigmoid(a * (cosine - b)))

        def scaled(u: list[float]) -> list[float]:
            return [part / (sum(u) + 1e-6) for part in u]

        alike = [[same(s, r) for r in numbers] for s in numbers]
        u = scaled([p0 ** (self.time - one.number) for one in window])
        walks: dict[Hashable, list[float]] = {k: [] for k in self.classes}
        for _ in range(4):
            v = [0.0] * len(window)
            for s in numbers:
                total = max(sum(alike[s]), 0.5)
                for r in numbers:
                    v[r] += u[s] * alike[s][r] / total
            for k in self.classes:
                walks[k].append(sum(v[s] for s in numbers if named(window[s]) and window[s].label == k))
            after = [0.0] * len(window)
            for s in numbers:
                for r in numbers:
                    after[r] += v[s] * p1 ** abs(window[s].number - window[r].number)
            u = scaled(after)
        return {k: [math.log(share + 1e-4) for share in walk] for k, walk in walks.items()}

    def heard(self) -> tuple[dict[Hashable, float], dict[Hashable, float]]:
        """How surely each class lives here, and the log of how likely it is met next."""
        here, chance = self.guesses.heard() if self.config.guesses else ({}, {})
        recent = {k for k, c in self.classes.items() if self.time - c.last <= self.config.window}
        logs = {k: math.log(len(chance) * chance.get(k, 0.0) + 0.01) for k in self.classes}
        return {k: here.get(k, 0.0) if k in recent else 0.0 for k in self.classes}, logs

    def read(self, met: Meeting) -> tuple[float, dict[Hashable, float]]:
        """Novelty, and the score of every class."""
        if not self.classes:
            return CERTAINLY_NEW, {}
        config, w, window = self.config, self.w, self.window()
        prototypes, told = self.completed()
        walks = self.company()
        here, chance = self.heard()
        scores: dict[Hashable, float] = {}
        cosines = {}
        ages = {k: math.log1p(min(self.time - c.last, config.window)) for k, c in self.classes.items()}
        for k in self.classes:
            examples = [one for one in window if one.label == k and not one.forgotten]
            cosines[k] = [float(x @ s) for x, s in zip(met.keys, prototypes[k], strict=True)]
            evidence, seen_as = [*cosines[k]], [*cosines[k]]
            if config.nearest:
                for v, x in enumerate(met.keys):
                    near = max((float(x @ one.keys[v]) for one in examples), default=cosines[k][v])
                    evidence.append(near)
                    seen_as.append(near)
            evidence += walks[k]
            seen_as += [walk / 4 for walk in walks[k]]
            if config.guesses:
                evidence.append(chance[k])
                seen_as.append(chance[k] / 4)
            if config.age_and_count:
                seen_as += [ages[k] / 3, math.log1p(told[k])]
            if config.guesses:
                seen_as.append(here[k])
            net = self.net("scorer", np.array(seen_as))
            scores[k] = float(w["weights"] @ np.array(evidence)) + 4 * net
        best = sorted(scores, key=lambda k: -scores[k])[:3]
        signs = [max(scores[k], -20) / 5 for k in best] + [-4.0] * (3 - len(best))
        for v in range(len(met.keys)):
            signs += [cosines[k][v] for k in best] + [-1.0] * (3 - len(best))
        if config.age_and_count:
            signs += [ages[best[0]], math.log1p(told[best[0]])]
        signs += [walk / 4 for walk in walks[best[0]]]
        if config.guesses:
            signs += [here[k] for k in best] + [0.0] * (3 - len(best))
        total = math.log(sum(math.exp(score) for score in scores.values()))
        signs += [max(total, -20) / 5, math.log1p(len(scores))]
        signs += [math.log1p(min(self.time, config.window)) / 3]
        if config.guesses:
            meetings, classes = sum(here[k] * c.told for k, c in self.classes.items()), sum(here.values())
            opens = math.log((1 + 0.2 * classes) / (1 + meetings))
            signs += [math.log1p(meetings), math.log1p(classes), opens]
        signs += self.unnamed(met, window) if config.unnamed else []
        judged = self.net("judge", np.concatenate([signs, met.seen]))
        slope, offset = w["closeness"]
        return 3 * judged + slope * float(np.mean(cosines[best[0]])) + offset, scores

    def unnamed(self, met: Meeting, window: list[Meeting]) -> list[float]:
        """Does it look like something that was met before, but never named?"""
        a, b, c, d = self.w["unnamed.likeness"]

        def cosine(one: Meeting, other: Meeting) -> float:
            return float(np.mean([x @ y for x, y in zip(one.keys, other.keys, strict=True)]))

        told = [one for one in window if one.label is not None and not one.forgotten]
        likes, without_name = [0.0], [0.0]
        for one in window:
            if one.label is None and not one.forgotten:
                named = max((sigmoid(a * (cosine(one, other) - b)) for other in told), default=0.0)
                likes.append(sigmoid(c * (cosine(met, one) - d)))
                without_name.append(likes[-1] * (1 - named))
        return [math.log1p(sum(without_name)), max(without_name), math.log1p(sum(likes))]

    def net(self, name: str, x: Vector) -> float:
        return float(self.linear(f"{name}.2", np.maximum(self.linear(f"{name}.0", x), 0))[0])

    # Writing

    def write(self, met: Meeting, label: Hashable) -> None:
        """A meeting, with its label or (None) without."""
        met.number = self.time
        self.past.append(replace(met, label=label, forgotten=0))
        self.hear_of(label)
        if label is not None:
            self.tell(met, label, self.time)
        self.hidden, self.cell = self.lstm(met.feature)
        self.time += 1

    def tell(self, met: Meeting, label: Hashable, time: int) -> None:
        nothing = Class([np.zeros_like(x) for x in met.keys], 0.0, 0)
        kept = self.classes.setdefault(label, nothing)
        kept.sums = [s + x for s, x in zip(kept.sums, met.keys, strict=True)]
        kept.told, kept.last = kept.told + 1, time

    def name(self, met: Meeting, label: Hashable) -> None:
        """The label of a meeting that was written without one."""
        next(one for one in self.past if one.number == met.number).label = label
        self.tell(met, label, self.time - 1)
        self.guess_again()

    def guess_again(self) -> None:
        """Where classes live, from the window alone."""
        self.guesses = SlowGuesses(self.config.guesses)
        for one in self.window():
            self.hear_of(None if one.forgotten else one.label)

    def hear_of(self, label: Hashable) -> None:
        if self.config.guesses:
            self.guesses.tell(label)

    def forget(self, label: Hashable) -> None:
        del self.classes[label]
        number = 1 + max((one.forgotten for one in self.past), default=0)
        for one in self.past:
            if one.label == label and not one.forgotten:
                one.forgotten = number
        self.guess_again()

    def merge(self, kept: Hashable, gone: Hashable) -> None:
        a, b = self.classes[kept], self.classes.pop(gone)
        a.sums = [s + x for s, x in zip(a.sums, b.sums, strict=True)]
        a.told, a.last = a.told + b.told, max(a.last, b.last)
        self.relabel(gone, kept)

    def rename(self, old: Hashable, new: Hashable) -> None:
        self.classes[new] = self.classes.pop(old)
        self.relabel(old, new)

    def relabel(self, old: Hashable, new: Hashable) -> None:
        for one in self.past:
            if one.label == old and not one.forgotten:
                one.label = new
        self.guess_again()


class SlowWayfaringAgent(SlowAgent):
    """The plain agent with this memory."""

    def __init__(self, kind: str) -> None:
        super().__init__("wayfarer")
        learner = small_model(kind).learner
        assert isinstance(learner, Wayfarer)
        self.now.wayfarer = SlowWayfarer(learner)

    @property
    def memory(self) -> SlowWayfarer:
        found = self.now.wayfarer
        assert isinstance(found, SlowWayfarer)
        return found

    def meet(self, h: Vector) -> Met:
        return Met(h, h, h, h, meeting=self.memory.meeting(h))

    def read(self, met: Met) -> tuple[float, dict[Hashable, float]]:
        novelty, scores = self.memory.read(met.meeting)
        return novelty, shares(scores) if scores else {}

    def write(self, met: Met, label: Hashable, late: bool) -> None:
        if late:
            self.memory.name(met.meeting, label)
        else:
            self.memory.write(met.meeting, label)

    def forget(self, label: Hashable) -> None:
        super().forget(label)
        self.memory.forget(label)

    def merge(self, kept: Hashable, gone: Hashable) -> None:
        super().merge(kept, gone)
        self.memory.merge(kept, gone)

    def rename(self, old: Hashable, new: Hashable) -> None:
        super().rename(old, new)
        if old != new:
            self.memory.rename(old, new)
