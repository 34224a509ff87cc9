"""The live memory of Wayfarer: sums of keys per class, and the last meetings.

The last meetings are a ring: meeting t is in row t modulo the window.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch

from wanderlearn.agent.company import LiveCompany
from wanderlearn.agent.guesses import LiveGuesses, LiveHeard
from wanderlearn.agent.memory import Floats, Reading, fitting, nearest_of_each, sigmoid, with_room
from wanderlearn.agent.unnamed import LiveUnnamed
from wanderlearn.learners.answer import CERTAINLY_NEW
from wanderlearn.learners.company import HOPS
from wanderlearn.learners.late_credit import ALIKE
from wanderlearn.learners.recurrent import LSTMState
from wanderlearn.learners.self_writing import LENGTH_EPS
from wanderlearn.learners.wayfarer import (
    BEST,
    LOWEST,
    NOTHING,
    NOVELTY_GAIN,
    SCORE_GAIN,
    Wayfarer,
)
from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["LiveWayfarer"]

# From here down, the slots of meetings whose class was forgotten, another for every class: they were met, and
# count for no class that is known, but are still of one class among themselves.
FORGOTTEN: Final = NOTHING - 1


class _Met(NamedTuple):
    """A meeting, taken apart again from its trace."""

    keys: Floats  # [V, D]
    seen: Floats  # [p]


class _Prototypes(NamedTuple):
    """What the classes are compared by, with late credit, as long as nothing changes."""

    moment: object
    rows: Floats  # [n, V, D] of length 1, or about 1 with what is credited
    told: Floats  # [n] log(1 + how often it was told)


class LiveWayfarer:
    """Sums of keys, counts and times of all that was told; keys and slots of the last meetings.

    Forgetting a class empties its slot, and its meetings in the window count for nobody. Merging adds two
    classes up, exactly as if all had been told the one label. A label told late is written as it was met; if
    the meeting is still in the window it becomes an example there, and is credited to nobody else. After each
    of these where classes live is guessed anew, from the window.
    """

    def __init__(self, learner: Wayfarer) -> None:
        self.learner, self.config = learner, learner.config
        self.width, self.views = learner.feature_dim, learner.views
        self.window = learner.config.window
        self.classes = self.time = 0
        self.moment = object()
        V, D = self.views, self.width
        self.sums, self.told = np.zeros((0, V, D), np.float32), np.zeros(0, np.float32)  # [room, ...]
        self.last: npt.NDArray[np.int64] = np.zeros(0, np.int64)  # [room]
        self.keys = np.zeros((0, V, D), np.float32)  # [room, V, D]
        self.slots: npt.NDArray[np.int64] = np.zeros(0, np.int64)  # [room]
        self.context: LSTMState = learner.lstm.begin(1)
        self.ready: _Prototypes | None = None
        self.company = LiveCompany(learner.company, self.window) if learner.company else None
        self.unnamed = LiveUnnamed(learner.unnamed) if learner.unnamed else None
        self.guesses = LiveGuesses(learner.config.guesses) if learner.config.guesses else None
        # Where in the evidence walks, and age and count are.
        walks = V * (1 + self.config.nearest)
        chance = walks + (HOPS + 1) * self.config.company
        age = chance + (self.guesses is not None)
        self.at_walks, self.at_age = slice(walks, chance), slice(age, age + 2)
        w = {name: part.detach().numpy() for name, part in learner.named_parameters()}
        # One product instead of two, of what the network says now.
        now = [*(["readout"] if self.config.context_keys else []), "seen"]
        self.of_now = np.concatenate([w[f"{one}.weight"] for one in now])  # [D + p, units]
        self.plus_now = np.concatenate([w[f"{one}.bias"] for one in now])
        self.weights, self.credit = w["weights"], w.get("credit")
        self.slope, self.offset = float(w["closeness"][0]), float(w["closeness"][1])
        self.score_in = np.ascontiguousarray(
            w["scorer.0.weight"].T * learner.scales.numpy()[:, None]
        )  # [P, 32]
        self.score_bias, self.score_out = w["scorer.0.bias"], w["scorer.2.weight"][0] * SCORE_GAIN
        self.score_offset = SCORE_GAIN * float(w["scorer.2.bias"][0])
        self.judge_in, self.judge_bias = w["judge.0.weight"], w["judge.0.bias"]
        self.judge_out, self.judge_offset = w["judge.2.weight"][0], float(w["judge.2.bias"][0])

    # Reading -------------------------------------------------------------------------------------------

    def look(self, feature: Floats, afresh: bool = False) -> Reading:
        """Read without changing anything; `afresh`: with the context of somebody who has met nothing yet."""
        before = self.learner.lstm.begin(1) if afresh else self.context
        output, after = self._advanced(feature, before)
        now = self.of_now @ output + self.plus_now  # [D + p] or [p]
        parts = [feature]
        if self.config.context_keys:
            parts.append(_unit(_unit(feature) + now[: self.width]))
        parts.append(now[self.width if self.config.context_keys else 0 :])
        return self.read(np.concatenate(parts))._replace(after=after)

    def _advanced(self, feature: Floats, before: LSTMState) -> tuple[Floats, LSTMState]:
        sight = self.learner.sight(torch.from_numpy(feature)[None])  # [1, D]
        output, after = self.learner.lstm.step(before, sight)  # [1, n]
        return output[0].numpy(), after

    def read(self, trace: Floats) -> Reading:
        """What is to be said now of a meeting as it was met, in its own context."""
        if not self.classes:
            return Reading(np.zeros(0, np.float32), None, CERTAINLY_NEW, np.inf, np.inf, trace, self.moment)
        met, config = self._met(trace), self.config
        prototypes, heard = self._prototypes(), self._heard()
        cosine = [prototypes.rows[:, v] @ key for v, key in enumerate(met.keys)]  # [n] each
        slots = self.slots[: self.kept]  # [N]
        example = slots >= 0  # [N]
        parts = [*cosine]
        if config.nearest:
            parts += [self._nearest(v, met.keys[v], slots, example, cosine[v]) for v in range(self.views)]
        parts += self._walks()
        if heard is not None:
            parts.append(heard.next)
        if config.age_and_count:
            age = np.minimum(self._age(), self.window)  # [n]
            parts += [np.log1p(age.astype(np.float32)), prototypes.told]
        if heard is not None:
            parts.append(heard.here)
        evidence = np.stack(parts, -1)  # [n, P]
        scores = evidence[:, : len(self.weights)] @ self.weights  # [n]
        hidden = evidence @ self.score_in  # [n, 32]
        hidden += self.score_bias
        scores += np.maximum(hidden, 0, out=hidden) @ self.score_out
        scores += np.float32(self.score_offset)
        novelty = self._novelty(scores, evidence, met, heard)
        distance = -float(scores.max())
        return Reading(scores, None, novelty, distance, distance - novelty, trace, self.moment)

    def _nearest(
        self,
        v: int,
        key: Floats,
        slots: npt.NDArray[np.int64],
        example: npt.NDArray[np.bool_],
        cosine: Floats,
    ) -> Floats:
        """The largest cosine to an example of each class; to its prototype, if there is no example left."""
        alike = self.keys[: len(slots), v] @ key  # [N]
        best = -nearest_of_each(-alike[example], slots[example], self.classes)  # [n]
        return np.where(np.isinf(best), cosine, best)

    def _novelty(self, scores: Floats, evidence: Floats, met: _Met, heard: LiveHeard | None) -> float:
        """Is it new? From the best classes, how sure and how old they are, their company, and the context."""
        config, V, n = self.config, self.views, self.classes
        if n > 1000:  # sorting thousands for three is slow
            some = np.argpartition(scores, -BEST)[-BEST:]
            best = some[np.argsort(-scores[some], kind="stable")]
        else:
            best = np.argsort(-scores, kind="stable")[:BEST]
        near = np.full((V, BEST), -1, np.float32)  # [V, 3]
        near[:, : len(best)] = evidence[best, :V].T
        top = np.full(BEST, LOWEST, np.float32)
        top[: len(best)] = np.maximum(scores[best], LOWEST)
        most = float(scores[best[0]])
        total = max(most + float(np.log(np.exp(scores - np.float32(most)).sum())), LOWEST)
        signs: list[Any] = [top / 5, near.ravel()]
        signs += [evidence[best[0], self.at_age]] if config.age_and_count else []
        signs += [evidence[best[0], self.at_walks] / 4]
        if heard is not None:
            here = np.zeros(BEST, np.float32)
            here[: len(best)] = heard.here[best]
            signs.append(here)
        several = [total / 5, np.log1p(n), np.log1p(min(self.time, self.window)) / 3]
        several += [*heard.crowd] if heard is not None else []
        signs += [np.array(several, np.float32)]
        if self.unnamed is not None:
            slots = self.slots[: self.kept]
            signs += [self.unnamed.signs(self.moment, self.keys[: self.kept], slots, met.keys)]
        signs += [met.seen]
        hidden = np.maximum(self.judge_in @ np.concatenate(signs) + self.judge_bias, 0)  # [64]
        judged = float(hidden @ self.judge_out) + self.judge_offset
        return NOVELTY_GAIN * judged + self.slope * float(near[:, 0].mean()) + self.offset

    def _prototypes(self) -> _Prototypes:
        """The prototypes with what is credited to them now."""
        if self.ready is not None and self.ready.moment is self.moment:
            return self.ready
        n, V, D = self.classes, self.views, self.width
        sums, told = self.sums[:n], self.told[:n]
        free = np.flatnonzero(self.slots[: self.kept] == UNLABELED)  # [U]
        rows = _unit(sums)
        if self.credit is not None and len(free):
            sharpness, slope, offset = self.credit
            met = self.keys[free].reshape(-1, V * D)  # [U, V D]
            likeness = rows.reshape(n, V * D) @ met.T  # [n, U]
            likeness *= sharpness / V
            most = likeness.max(0)  # [U]
            known = sigmoid(slope * most + offset)  # [U]
            likeness -= most
            credit = np.exp(likeness, out=likeness)  # [n, U]
            credit *= known / credit.sum(0)
            added = (credit @ met).reshape(n, V, D)
            credited, squares = credit.sum(1), np.einsum("nu,nu->n", credit, credit)  # [n] each
            across = np.maximum(np.einsum("nvd,nvd->nv", sums, added), 0)  # [n, V]
            square = np.einsum("nvd,nvd->nv", sums, sums) + 2 * across  # [n, V]
            square += (ALIKE * credited**2 + (1 - ALIKE) * squares)[:, None]
            rows = (sums + added) / np.sqrt(np.maximum(square, LENGTH_EPS**2))[..., None]
            told = told + credited
        self.ready = _Prototypes(self.moment, rows, np.log1p(told))
        return self.ready

    def _walks(self) -> list[Floats]:
        """The company of the classes now, [n] after each hop, if it is asked for."""
        if self.company is None:
            return []
        keys, slots = self.keys[: self.kept], self.slots[: self.kept]
        return [*self.company.walked(self.moment, keys, slots, self.classes, self.time).walks]

    def _heard(self) -> LiveHeard | None:
        """What the guesses say now, if they are asked for."""
        if self.guesses is None:
            return None
        return self.guesses.heard(self.moment, self.told[: self.classes], self._age() <= self.window)

    def _age(self) -> npt.NDArray[np.int64]:
        """Meetings since each class was told, [n]."""
        return self.time - self.last[: self.classes]

    @property
    def kept(self) -> int:
        """How many meetings are in the window."""
        return min(self.time, self.window)

    def feature_of(self, trace: Floats) -> Floats:
        """The encoder's feature of a meeting."""
        return trace[: self.width]

    def _met(self, trace: Floats) -> _Met:
        D = self.width
        feature, rest = trace[:D], trace[D:]
        keys = []
        if self.config.context_keys:
            keys, rest = [rest[:D]], rest[D:]
        if self.config.plain_keys:
            keys.append(_unit(feature))
        return _Met(np.stack(keys), rest)

    # Writing -------------------------------------------------------------------------------------------

    def meet(self, trace: Floats, slot: int | None, reading: Reading | None = None) -> None:
        """Write a meeting, with its class or without, and move the context on."""
        met = self._met(trace)
        after = None
        if reading is not None and reading.moment is self.moment:
            after = reading.after
        if slot is not None:
            self._write(met.keys, slot, self.time)
        row = self.time % self.window
        if self.time < self.window:
            self.keys, self.slots = with_room(self.keys, row), with_room(self.slots, row)
        self.keys[row], self.slots[row] = met.keys, UNLABELED if slot is None else slot
        self.time += 1
        if self.company is not None:
            self.company.met(np.array([row]), self.keys[: self.kept], self.slots[: self.kept], self.time)
        if self.guesses is not None:
            self.guesses.met(int(self.slots[row]))
        self.context = after or self._advanced(trace[: self.width], self.context)[1]
        self.moment = object()

    def name(self, trace: Floats, slot: int) -> None:
        """Write the class of a meeting that was written without one. The context stays."""
        met = self._met(trace)
        self._write(met.keys, slot, max(self.time - 1, 0))
        kept = self.kept
        same = (self.keys[:kept] == met.keys).all((1, 2))
        rows = np.flatnonzero(same & (self.slots[:kept] == UNLABELED))
        if len(rows):  # else it has left the window
            self.slots[rows[0]] = slot
        self._renamed(rows[:1])
        self.moment = object()

    def _write(self, keys: Floats, slot: int, time: int) -> None:
        """Add the keys to the class that was told; the next slot is opened."""
        n = self.classes
        if slot == n:
            self.sums, self.told = with_room(self.sums, n), with_room(self.told, n)
            self.last = with_room(self.last, n)
            self.sums[n], self.told[n], self.last[n] = 0, 0, 0  # a forgotten class may have left something
            self.classes += 1
        self.sums[slot] += keys
        self.told[slot] += 1
        self.last[slot] = time

    # Changes by hand, and keeping ----------------------------------------------------------------------

    def forget(self, slot: int) -> None:
        """Empty a slot. The last class moves into it."""
        lowest = int(self.slots[: self.kept].min(initial=FORGOTTEN + 1))
        self._free(slot, lowest - 1)

    def merge(self, kept: int, gone: int) -> None:
        """Add two classes up."""
        self.sums[kept] += self.sums[gone]
        self.told[kept] += self.told[gone]
        self.last[kept] = max(self.last[kept], self.last[gone])
        self._free(gone, kept)

    def _free(self, slot: int, heir: int) -> None:
        """Give the meetings of a slot to another, and the slot to the last class."""
        slots = self.slots[: self.kept]
        given = np.flatnonzero(slots == slot)
        slots[given] = heir
        last = self.classes - 1
        slots[slots == last] = slot
        for part in (self.sums, self.told, self.last):
            part[slot] = part[last]
        self.classes = last
        self._renamed(given)
        self.moment = object()

    def _renamed(self, rows: npt.NDArray[np.int64]) -> None:
        """The meetings of these rows are of another class now."""
        if self.company is not None:
            self.company.named(rows, self.slots[: self.kept])
        if self.guesses is not None:
            row = (self.time - self.kept + np.arange(self.kept)) % self.window
            self.guesses.begin_again(self.slots[row])

    def copy(self) -> Self:
        """A copy that shares nothing that changes."""
        twin = type(self)(self.learner)
        twin.restore({name: part.copy() for name, part in self.arrays().items()}, self.classes)
        return twin

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Classes, last meetings, context and time."""
        n, kept = self.classes, self.kept
        arrays: dict[str, npt.NDArray[Any]] = {
            "sums": self.sums[:n],
            "told": self.told[:n],
            "last": self.last[:n],
            "keys": self.keys[:kept],
            "slots": self.slots[:kept],
            "time": np.array([self.time], np.int64),
        }
        arrays |= self.guesses.arrays(n) if self.guesses is not None else {}
        return arrays | {name: part.detach().numpy() for name, part in self.context._asdict().items()}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], classes: int) -> None:
        """Take over what `arrays` gave."""
        fitting(arrays, self.arrays())
        time, slots = int(arrays["time"][0]), arrays["slots"]
        kept = min(time, self.window)
        if not len(slots) == len(arrays["keys"]) == kept:
            raise ValueError(f"it has {len(slots)} meetings of {time}, and the window is of {self.window}")
        if not all(len(arrays[name]) == classes for name in ("sums", "told", "last")):
            raise ValueError(f"it has {len(arrays['sums'])} classes for {classes} labels")
        if bool(classes and not kept) or not (slots < classes).all():
            raise ValueError(f"its meetings are not of its {classes} labels")
        self.context = LSTMState(torch.from_numpy(arrays["hidden"]), torch.from_numpy(arrays["cell"]))
        self.sums, self.told, self.last = arrays["sums"], arrays["told"], arrays["last"]
        self.keys, self.slots = arrays["keys"], slots
        self.time, self.classes = time, classes
        self.moment, self.ready = object(), None
        if self.company is not None:
            self.company.restore()
        if self.guesses is not None:
            self.guesses.restore(arrays)


def _unit(x: Floats) -> Floats:
    """Vectors along the last axis, scaled to length 1; zero stays zero."""
    length = np.sqrt(np.einsum("...d,...d->...", x, x))[..., None]
    unit: Floats = x / np.maximum(length, np.float32(LENGTH_EPS))
    return unit
