"""The live memory of CPM and Online ProtoNet: one prototype per class, and CPM's context.

The gated averaging unit (GAU) lets every prototype fade at every meeting, p <- (1 - f) p, with a gate f that
sees p only as the number w_p . p. Fading does not turn a vector. So each row is kept with one factor of its
own, and what writing a label costs is a few numbers per class instead of a row per class.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch

from wanderlearn.agent.memory import (
    CHUNK,
    Floats,
    Reading,
    fitting,
    sigmoid,
    sigmoid_of,
    softmax,
    with_room,
)
from wanderlearn.learners.answer import CERTAINLY_NEW
from wanderlearn.learners.cpm import CPM
from wanderlearn.learners.protonet import OnlineProtoNet
from wanderlearn.learners.prototypes import Thresholds
from wanderlearn.learners.recurrent import LSTMState
from wanderlearn.learners.self_writing import LENGTH_EPS

__all__ = ["LivePrototypes"]

FADED: Final = 1e-30  # a factor below it is as good as 0, and arithmetic on still smaller numbers is slow
FEW: Final = 500  # rows below which numpy is quicker, and uses one thread


class _Met(NamedTuple):
    """A meeting, taken apart again from its trace."""

    feature: Floats  # [D]
    x: Floats  # [D] the feature in its context
    metric: Floats | None  # [D]
    thresholds: list[float]  # beta, gamma, beta_write, gamma_write


class LivePrototypes:
    """Prototypes as factor times row, with the counts that the learner keeps beside them.

    Forgetting a class empties its slot. Merging takes the mean of two prototypes, weighted by their counts
    (how often each was told and, for an averaging memory, what it took without being told).
    """

    def __init__(self, learner: CPM | OnlineProtoNet) -> None:
        self.learner, self.rules, self.config = learner, learner.memory, learner.config
        self.width = learner.feature_dim
        self.gated, self.cosine = self.rules.writing == "gau", self.rules.similarity == "cosine"
        self.classes = 0
        self.moment = object()
        self.rows = np.zeros((0, self.width), np.float32)  # [room, D]
        self.counts = np.zeros(0, np.float32)  # [room]
        self.factor = np.zeros(0, np.float32)  # [room] in a memory that averages always 1
        self.pull = np.zeros(0, np.float32)  # [room] w_p . row
        self.context: LSTMState | None = learner.lstm.begin(1) if isinstance(learner, CPM) else None
        if isinstance(learner, OnlineProtoNet):
            self.thresholds = [float(one.detach()) for one in Thresholds.of(learner.beta, learner.gamma)]
        if self.cosine:
            self.temperature = float(self.rules.temperature.detach())
        if self.gated:
            gate = self.rules.gate
            self.of_input, self.of_prototype = np.split(gate.weight[0].detach().numpy(), 2)  # [D] each
            self.bias = float(gate.bias.detach())

    # Reading -------------------------------------------------------------------------------------------

    def look(self, feature: Floats, afresh: bool = False) -> Reading:
        """Read without changing anything; `afresh`: with the context of somebody who has met nothing yet."""
        learner = self.learner
        if isinstance(learner, OnlineProtoNet):
            return self.read(feature)
        context = learner.lstm.begin(1) if afresh else self.context
        assert context is not None
        h = torch.from_numpy(feature)[None]  # [1, D]
        output, after = learner.lstm.step(context, h)  # [1, n]
        x, metric, thresholds = learner.controls(h, output)  # [1, D], [1, D], [1] each
        parts = [h, x, *([] if metric is None else [metric]), torch.stack(thresholds, -1)]  # [1, ...] each
        return self.read(torch.cat(parts, -1)[0].numpy())._replace(after=after)

    def read(self, trace: Floats) -> Reading:
        """What is to be said now of a meeting as it was met, in its own context."""
        met = self._met(trace)
        scores, distance = self._scores(met)
        beta, gamma = met.thresholds[:2]
        novelty = (distance - beta) / gamma if self.classes else CERTAINLY_NEW
        return Reading(scores, None, novelty, distance, beta, trace, self.moment)

    def feature_of(self, trace: Floats) -> Floats:
        """The encoder's feature of a meeting."""
        return trace[: self.width]

    def _met(self, trace: Floats) -> _Met:
        D = self.width
        if isinstance(self.learner, OnlineProtoNet):
            x = trace
            if self.config.unit_features:
                x = trace / max(float(np.sqrt(trace @ trace)), LENGTH_EPS)
            return _Met(trace, x, None, self.thresholds)
        metric = trace[2 * D : 3 * D] if len(trace) > 2 * D + 4 else None
        return _Met(trace[:D], trace[D : 2 * D], metric, trace[-4:].tolist())

    def _scores(self, met: _Met) -> tuple[Floats, float]:
        """How alike x and each prototype are, and the distance to the nearest (or to zero, if less)."""
        n, x, metric = self.classes, met.x, met.metric
        m2 = np.ones_like(x) if metric is None else metric * metric  # [D]
        query = x * m2  # [D]
        square = float(query @ x)  # |m x|^2
        first = np.empty(n, np.float32)  # [n] cosine: <m x, m row>; else |m (x - p)|^2
        second = np.empty(n, np.float32)  # [n] cosine: |m row|^2
        scratch = np.empty((min(n, CHUNK), self.width), np.float32)
        for start in range(0, n, CHUNK):
            some = slice(start, min(start + CHUNK, n))
            rows = self.rows[some]  # [c, D]
            away = scratch[: len(rows)]  # [c, D]
            if self.cosine:
                _times(rows, query, first[some])
                _times(np.multiply(rows, rows, out=away), m2, second[some])
            else:
                np.subtract(rows * self.factor[some, None] if self.gated else rows, x, out=away)
                _times(np.multiply(away, away, out=away), m2, first[some])
        if not self.cosine:
            np.negative(first, out=first)
            return first, min(-float(first.max()), square) if n else square
        lengths = np.sqrt(second, out=second)
        if self.gated:
            first *= self.factor[:n]
            lengths *= self.factor[:n]
        lengths += LENGTH_EPS
        first /= lengths
        first *= self.temperature / (square**0.5 + LENGTH_EPS)
        return first, -max(float(first.max()), 0.0) if n else 0.0

    # Writing -------------------------------------------------------------------------------------------

    def meet(self, trace: Floats, slot: int | None, reading: Reading | None = None) -> None:
        """Write a meeting, with its class or without, and move the context on."""
        met = self._met(trace)
        if reading is not None and reading.moment is not self.moment:
            reading = None
        if slot is not None:
            self._write(met.x, slot, fades=True)
        elif self.classes:
            self._write_where_it_belongs(met, reading)
        learner = self.learner
        if isinstance(learner, CPM) and (slot is not None or learner.config.recurrent_on_unlabelled):
            after = reading.after if reading is not None else None
            assert self.context is not None
            self.context = after or learner.lstm.step(self.context, torch.from_numpy(met.feature)[None])[1]
        self.moment = object()

    def name(self, trace: Floats, slot: int) -> None:
        """Write the class of a meeting that was written without one: nothing fades, the context stays."""
        self._write(self._met(trace).x, slot, fades=False)
        self.moment = object()

    def _write(self, x: Floats, slot: int, fades: bool) -> None:
        """p <- A(x; p) for the class that was told; a GAU lets the others fade."""
        if slot == self.classes:
            self._open()
        row = self.rows[slot]  # [D]
        self.counts[slot] += 1
        if not self.gated:
            row += (x - row) / self.counts[slot]
            return
        own = float(self.factor[slot])
        gate = own * float(self.pull[slot]) + self.bias + float(x @ self.of_input)
        if fades:
            self._fade()
        row *= own * sigmoid_of(-gate)
        row += x * np.float32(sigmoid_of(gate))
        self.factor[slot] = 1
        self.pull[slot] = row @ self.of_prototype

    def _fade(self) -> None:
        """p <- (1 - f) p for every class, f = sigmoid(w_p . p + b)."""
        factor = self.factor[: self.classes]
        gate = factor * self.pull[: self.classes]  # [n]
        gate += self.bias
        factor *= sigmoid(np.negative(gate, out=gate))
        factor[factor < FADED] = 0

    def _write_where_it_belongs(self, met: _Met, reading: Reading | None) -> None:
        """Without a label: Delta[k] = y_hat[k] (1 - u_w). This does turn the rows, all of them."""
        if not self.config.self_write or not met.feature.any():
            if self.gated:
                self._fade()
            return
        scores, distance = (reading.scores, reading.distance) if reading is not None else self._scores(met)
        beta, gamma = met.thresholds[2:]
        delta = softmax(scores)  # [n]
        delta *= sigmoid_of((beta - distance) / gamma)
        n, x = self.classes, met.x
        if not self.gated:
            self.counts[:n] += delta
            keep, add = None, delta
            add /= np.maximum(self.counts[:n], 1)
        else:
            g = self.factor[:n] * self.pull[:n]  # [n] w_p . p
            gate = g + delta * float(x @ self.of_input)  # [n]
            gate += self.bias
            keep, add = sigmoid(-gate), sigmoid(gate)  # [n]
            add *= delta
            self.pull[:n] = keep * g + add * float(x @ self.of_prototype)
            keep *= self.factor[:n]
            self.factor[:n] = 1
        rows, to = torch.from_numpy(self.rows[:n]), torch.from_numpy(x)
        if keep is None:
            torch.lerp(rows, to.expand_as(rows), torch.from_numpy(add)[:, None], out=rows)
        else:
            rows.mul_(torch.from_numpy(keep)[:, None]).addr_(torch.from_numpy(add), to)

    def _open(self) -> None:
        """An empty prototype in the next slot."""
        n = self.classes
        self.rows, self.counts = with_room(self.rows, n), with_room(self.counts, n)
        self.factor, self.pull = with_room(self.factor, n), with_room(self.pull, n)
        # A class that was forgotten may have left something here.
        self.rows[n], self.counts[n], self.factor[n], self.pull[n] = 0, 0, 1, 0
        self.classes += 1

    # Changes by hand, and keeping ----------------------------------------------------------------------

    def forget(self, slot: int) -> None:
        """Empty a slot. The last class moves into it."""
        last = self.classes - 1
        for part in (self.rows, self.counts, self.factor, self.pull):
            part[slot] = part[last]
        self.classes = last
        self.moment = object()

    def merge(self, kept: int, gone: int) -> None:
        """The mean of both prototypes, weighted by their counts."""
        pair = [kept, gone]
        total = self.counts[pair].sum()
        self.rows[kept] = (self.counts[pair] / total * self.factor[pair]) @ self.rows[pair]
        self.counts[kept], self.factor[kept] = total, 1
        if self.gated:
            self.pull[kept] = self.rows[kept] @ self.of_prototype
        self.forget(gone)

    def copy(self) -> Self:
        """A copy that shares nothing that changes."""
        twin = type(self)(self.learner)
        twin.restore({name: part.copy() for name, part in self.arrays().items()}, self.classes)
        return twin

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Prototypes with their factors and counts, and the context."""
        n = self.classes
        kept = {"rows": self.rows[:n], "counts": self.counts[:n]}
        kept |= {"factor": self.factor[:n], "pull": self.pull[:n]}
        if self.context is not None:
            kept |= {name: part.detach().numpy() for name, part in self.context._asdict().items()}
        return kept

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], classes: int) -> None:
        """Take over what `arrays` gave."""
        fitting(arrays, self.arrays())
        if self.context is not None:
            self.context = LSTMState(torch.from_numpy(arrays["hidden"]), torch.from_numpy(arrays["cell"]))
        self.rows, self.counts = arrays["rows"], arrays["counts"]
        self.factor, self.pull = arrays["factor"], arrays["pull"]
        if not all(len(part) == classes for part in (self.rows, self.counts, self.factor, self.pull)):
            raise ValueError(f"it has {len(self.rows)} prototypes for {classes} labels")
        self.classes = classes
        self.moment = object()


def _times(rows: Floats, x: Floats, out: Floats) -> None:
    """rows @ x. By torch where there are many: it keeps to the threads that it was given."""
    if len(rows) < FEW:
        np.dot(rows, x, out=out)
        return
    torch.mv(torch.from_numpy(rows), torch.from_numpy(x), out=torch.from_numpy(out))
