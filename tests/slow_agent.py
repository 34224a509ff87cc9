"""The agent once more, as plainly as can be: dictionaries by label, arrays in double precision, and a copy of
everything before every change. Slow, and written from the paper's equations, not from the agent."""

import copy
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.live_agents import small_model

Vector = npt.NDArray[np.float64]
CERTAINLY_NEW = 1e3


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


@dataclass
class Met:
    """One meeting as it was met."""

    feature: Vector
    x: Vector
    metric: Vector
    thresholds: Vector  # beta, beta_write, gamma, gamma_write
    told: bool = False
    label: Hashable = None
    meeting: Any = None  # of Wayfarer's


@dataclass
class State:
    """All that changes."""

    hidden: Vector
    cell: Vector
    prototypes: dict[Hashable, Vector] = field(default_factory=dict)
    weight: dict[Hashable, float] = field(default_factory=dict)
    examples: list[tuple[Vector, Hashable]] = field(default_factory=list)
    clusters: list[dict[str, Any]] = field(default_factory=list)
    told: dict[Hashable, int] = field(default_factory=dict)
    wayfarer: Any = None


class SlowAgent:
    """Of the kinds "cpm", "protonet", "matchingnet" and "imp" of `live_agents`."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        learner: Any = small_model(kind).learner
        self.w = {name: part.detach().numpy().astype(np.float64) for name, part in learner.named_parameters()}
        self.now = State(np.zeros(12), np.zeros(12))
        self.before: list[tuple[State, Met | None, bool, Hashable]] = []

    # Reading

    def look(self, feature: npt.NDArray[np.float32]) -> tuple[float, dict[Hashable, float], Met]:
        """P(new), P(label) of every label, and the meeting."""
        met = self.meet(feature.astype(np.float64))
        novelty, p = self.read(met)
        p_new = float(sigmoid(novelty))
        return p_new, {label: share * (1 - p_new) for label, share in p.items()}, met

    def meet(self, h: Vector) -> Met:
        w = self.w
        if self.kind == "protonet":
            betas_gammas = np.concatenate([w["beta"], w["gamma"]])
            return Met(h, h, np.ones_like(h), betas_gammas)
        if self.kind != "cpm":
            return Met(h, h, np.ones_like(h), np.zeros(4))
        hidden, _ = self.lstm(h)
        read = w["readout.weight"] @ hidden + w["readout.bias"]
        d = len(h)
        metric = np.log1p(np.exp(read[d : 2 * d]))
        beta, gamma = read[2 * d : 2 * d + 2], np.log1p(np.exp(read[2 * d + 2 :] + 1))
        return Met(h, h + read[:d], metric, np.concatenate([beta, gamma]))

    def lstm(self, h: Vector) -> tuple[Vector, Vector]:
        w, n = self.w, 12
        a = w["lstm.gates.weight"] @ np.concatenate([h, self.now.hidden]) + w["lstm.gates.bias"]
        a = (a - a.mean()) / np.sqrt(a.var() + 1e-6) * w["lstm.norm.weight"] + w["lstm.norm.bias"]
        f, i, o, g = a[:n], a[n : 2 * n], a[2 * n : 3 * n], a[3 * n :]
        cell = sigmoid(f) * self.now.cell + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(cell), cell

    def scores(self, met: Met) -> dict[Hashable, float]:
        """Of the prototypes."""
        mx = met.metric * met.x
        found = {}
        for label, p in self.now.prototypes.items():
            mp = met.metric * p
            if self.kind == "cpm":
                lengths = (np.linalg.norm(mx) + 1e-5) * (np.linalg.norm(mp) + 1e-5)
                found[label] = float(self.w["memory.temperature"] * (mx @ mp) / lengths)
            else:
                found[label] = -float(((mx - mp) ** 2).sum())
        return found

    def nearest(self, met: Met, scores: dict[Hashable, float]) -> float:
        of_zero = 0.0 if self.kind == "cpm" else -float((met.metric * met.x) @ (met.metric * met.x))
        return -max(*scores.values(), of_zero)

    def read(self, met: Met) -> tuple[float, dict[Hashable, float]]:
        if not self.now.told:
            return CERTAINLY_NEW, {}
        if self.kind in ("cpm", "protonet"):
            scores = self.scores(met)
            beta, _, gamma, _ = met.thresholds
            return (self.nearest(met, scores) - beta) / gamma, shares(scores)
        beta, gamma = float(self.w["beta"]), float(self.w["gamma"])
        if self.kind == "matchingnet":
            near = [(float(((met.x - e) ** 2).sum()), label, 1.0) for e, label in self.now.examples]
        else:
            near = [(self.away(c, met), c["label"], self.width(c)) for c in self.now.clusters]
        closest = min(d for d, _, _ in near)
        logits = np.array([-d / width for d, _, width in near])
        weight = np.exp(logits - logits.max())
        weight /= weight.sum()
        p = dict.fromkeys(self.now.told, 0.0)
        unnamed = 0.0
        for share, (_, label, _) in zip(weight, near, strict=True):
            if label is None:
                unnamed += share
            else:
                p[label] += share
        p = {label: max(share, 1e-6) for label, share in p.items()}
        u = max(np.log(max(unnamed, 1e-6)), (closest - beta) / gamma)
        return float(u), {label: share / sum(p.values()) for label, share in p.items()}

    def width(self, cluster: dict[str, Any]) -> float:
        name = "log_sigma_unlabelled" if cluster["label"] is None else "log_sigma_labelled"
        return 2 * float(np.exp(self.w[name])) ** 2

    @staticmethod
    def away(cluster: dict[str, Any], met: Met) -> float:
        return float(((cluster["mean"] - met.x) ** 2).sum())

    # Writing

    def remember(self, met: Met | None = None) -> None:
        told, label = (met.told, met.label) if met is not None else (False, None)
        self.before.append((copy.deepcopy(self.now), met, told, label))

    def undo(self) -> None:
        self.now, met, told, label = self.before.pop()
        if met is not None:
            met.told, met.label = told, label

    def tell(self, met: Met, label: Hashable = None) -> None:
        if met.told and (label is None or met.label is not None):
            return
        late = met.told
        self.remember(met)
        met.told, met.label = True, label
        if self.kind == "matchingnet":
            if label is not None:
                self.now.examples.append((met.x, label))
        elif self.kind == "imp":
            self.join(met, label)
        else:
            self.write(met, label, late)
            if not late and self.kind == "cpm":
                self.now.hidden, self.now.cell = self.lstm(met.feature)
        if label is not None:
            self.now.told[label] = self.now.told.get(label, 0) + 1

    def write(self, met: Met, label: Hashable, late: bool) -> None:
        p, weight = self.now.prototypes, self.now.weight
        delta = dict.fromkeys(p, 0.0)
        if label is not None:
            p.setdefault(label, np.zeros_like(met.x))
            weight.setdefault(label, 0.0)
            delta[label] = 1.0
        elif p:
            scores = self.scores(met)
            _, beta, _, gamma = met.thresholds
            known = 1 - sigmoid((self.nearest(met, scores) - beta) / gamma)
            delta = {k: share * known for k, share in shares(scores).items()}
        for k, part in delta.items():
            if self.kind == "protonet":
                weight[k] += part
                p[k] = p[k] + part / weight[k] * (met.x - p[k])
            elif not late or k == label:
                d = len(met.x)
                of_x, of_p = self.w["memory.gate.weight"][0, :d], self.w["memory.gate.weight"][0, d:]
                f = sigmoid(part * (of_x @ met.x) + of_p @ p[k] + self.w["memory.gate.bias"][0])
                p[k] = (1 - f) * p[k] + f * part * met.x
                weight[k] += k == label

    def join(self, met: Met, label: Hashable) -> None:
        clusters = self.now.clusters
        may = [c for c in clusters if label is None or c["label"] in (None, label)]
        near = min((self.away(c, met) for c in may), default=np.inf)
        if near - float(self.w["beta"]) >= 0:
            home: dict[str, Any] = {"mean": np.zeros_like(met.x), "items": 0, "label": None}
            clusters.append(home)
        else:
            home = max(may, key=lambda c: -self.away(c, met) / self.width(c))
        home["items"] += 1
        home["mean"] = home["mean"] + (met.x - home["mean"]) / home["items"]
        home["label"] = label if home["label"] is None else home["label"]

    # By hand

    def forget(self, label: Hashable) -> None:
        self.remember()
        self._drop(label)

    def _drop(self, label: Hashable) -> None:
        now = self.now
        del now.told[label]
        now.prototypes.pop(label, None)
        now.weight.pop(label, None)
        now.examples = [(e, name) for e, name in now.examples if name != label]
        now.clusters = [c for c in now.clusters if c["label"] != label]

    def merge(self, kept: Hashable, gone: Hashable) -> None:
        self.remember()
        now = self.now
        now.told[kept] += now.told[gone]
        if kept in now.prototypes:
            a, b = now.weight[kept], now.weight[gone]
            now.prototypes[kept] = (a * now.prototypes[kept] + b * now.prototypes[gone]) / (a + b)
            now.weight[kept] = a + b
        now.examples = [(e, kept if name == gone else name) for e, name in now.examples]
        for cluster in now.clusters:
            cluster["label"] = kept if cluster["label"] == gone else cluster["label"]
        self._drop(gone)

    def rename(self, old: Hashable, new: Hashable) -> None:
        self.remember()
        now = self.now
        by_label: list[dict[Hashable, Any]] = [now.told, now.prototypes, now.weight]
        for kept in by_label:
            if old in kept:
                kept[new] = kept.pop(old)
        now.examples = [(e, new if name == old else name) for e, name in now.examples]
        for cluster in now.clusters:
            cluster["label"] = new if cluster["label"] == old else cluster["label"]


def shares(scores: dict[Hashable, float]) -> dict[Hashable, float]:
    """Softmax."""
    most = max(scores.values())
    powers = {label: np.exp(score - most) for label, score in scores.items()}
    return {label: float(power / sum(powers.values())) for label, power in powers.items()}
