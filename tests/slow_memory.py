"""ProtoNet and CPM once more, in plain numpy: one sequence, one slot at a time, from the description alone.

As in the authors' code there is one slot more than classes, which is never filled.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.protonet import ProtoNetConfig

Array = npt.NDArray[np.float64]
Weights = dict[str, Array]


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def softplus(z: Any) -> Any:
    return np.log1p(np.exp(z))


def weights_of(learner: nn.Module) -> Weights:
    return {name: tensor.detach().numpy() for name, tensor in learner.state_dict().items()}


class SlowMemory:
    def __init__(self, slots: int, features: int, similarity: str, writing: str, weights: Weights) -> None:
        self.slots, self.similarity, self.writing, self.weights = slots, similarity, writing, weights
        self.p = [np.zeros(features) for _ in range(slots + 1)]
        self.count = [0.0] * (slots + 1)

    def distance(self, query: Array, prototype: Array) -> float:
        if self.similarity == "euclidean":
            return float(sum((q - p) ** 2 for q, p in zip(query, prototype, strict=True)))
        lengths = (np.linalg.norm(query) + 1e-5) * (np.linalg.norm(prototype) + 1e-5)
        return float(-self.weights["memory.temperature"] * (query @ prototype) / lengths)

    def read(self, x: Array, metric: Array, beta: float, gamma: float) -> tuple[list[float], float]:
        distances = [self.distance(metric * x, metric * p) for p in self.p]  # the empty ones too
        scores = [-d if c > 0 else -1e6 for d, c in zip(distances, self.count, strict=True)][: self.slots]
        return scores, (min(distances) - beta) / gamma

    def believe(self, scores: list[float], novelty: float) -> list[float]:
        odds = [np.exp(s - max(scores)) if c > 0 else 0.0 for s, c in zip(scores, self.count, strict=False)]
        return [o / max(sum(odds), 1e-300) * (1 - sigmoid(novelty)) for o in odds]

    def write(self, x: Array, assigned: list[float], given: int) -> None:
        for k, a in enumerate(assigned):
            if self.writing == "average":
                if self.count[k] + a > 0:
                    self.p[k] = (self.count[k] * self.p[k] + a * x) / (self.count[k] + a)
                    self.count[k] += a
            else:
                z = np.concatenate([a * x, self.p[k]]) @ self.weights["memory.gate.weight"][0]
                f = sigmoid(z + self.weights["memory.gate.bias"][0])
                self.p[k] = (1 - f) * self.p[k] + f * a * x
                self.count[k] += k == given


def slow_answers(
    config: CPMConfig | ProtoNetConfig, weights: Weights, features: Array, given: Array, slots: int
) -> tuple[Array, Array]:
    """Scores [T, K] and novelty [T] of one sequence."""
    D = features.shape[1]
    writing = config.memory if isinstance(config, CPMConfig) else "average"
    memory = SlowMemory(slots, D, config.similarity, writing, weights)
    state = (np.zeros(0), np.zeros(0))
    if isinstance(config, CPMConfig):
        state = (np.zeros(config.units), np.zeros(config.units))
    scores, novelty = [], []
    for h, y in zip(features, given, strict=True):
        x, metric = h, np.ones(D)
        if isinstance(config, CPMConfig):
            output, moved = slow_lstm(state, h, weights)
            state = moved if config.recurrent_on_unlabelled or y >= 0 else state
            x, metric, beta, gamma = slow_controls(config, weights, h, output)
        else:
            beta, gamma = weights["beta"], weights["gamma"]
        if config.unit_features:
            x = x / max(float(np.linalg.norm(x)), 1e-5)
        seen, u_read = memory.read(x, metric, beta[0], gamma[0])
        _, u_write = memory.read(x, metric, beta[-1], gamma[-1])
        scores.append(seen)
        novelty.append(u_read if any(c > 0 for c in memory.count) else 1e3)
        if y >= 0:
            assigned = [float(k == y) for k in range(slots)]
        elif config.self_write and np.any(h != 0):
            assigned = memory.believe(seen, u_write)
        else:
            assigned = [0.0] * slots
        memory.write(x, assigned, int(y))
    return np.array(scores), np.array(novelty)


def slow_lstm(state: tuple[Array, Array], x: Array, weights: Weights) -> tuple[Array, tuple[Array, Array]]:
    hidden, cell = state
    a = weights["lstm.gates.weight"] @ np.concatenate([x, hidden]) + weights["lstm.gates.bias"]
    a = (a - a.mean()) / np.sqrt(a.var() + 1e-6) * weights["lstm.norm.weight"] + weights["lstm.norm.bias"]
    f, i, o, g = np.split(a, 4)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    hidden = sigmoid(o) * np.tanh(cell)
    return hidden, (hidden, cell)


def slow_controls(
    config: CPMConfig, weights: Weights, h: Array, output: Array
) -> tuple[Array, Array, Array, Array]:
    read = list(weights["readout.weight"] @ output + weights["readout.bias"])

    def take(n: int) -> Array:
        taken = np.array(read[:n])
        del read[:n]
        return taken

    x, metric = h, np.ones(len(h))
    if config.context != "none":
        h_rnn = take(len(h))
        x = h + h_rnn if config.context == "add" else h_rnn
    if config.metric:
        metric = softplus(take(len(h)))
    if not config.predicted_thresholds:
        return x, metric, weights["beta"], weights["gamma"]
    pairs = 2 if config.write_thresholds else 1
    beta, gamma = take(pairs), softplus(take(pairs) + 1)
    assert not read
    return x, metric, beta, gamma
