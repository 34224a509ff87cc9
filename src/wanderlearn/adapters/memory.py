"""What the adapters share: a live memory with labels, fed with pictures or with vectors of any width."""

import math
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch

from wanderlearn.agent.inputs import LARGEST
from wanderlearn.agent.kinds import live_memory
from wanderlearn.agent.memory import Floats, LiveMemory, sigmoid_of
from wanderlearn.agent.prototypes import LivePrototypes
from wanderlearn.errors import WanderError
from wanderlearn.learners.protonet import OnlineProtoNet, ProtoNetConfig

__all__ = ["Labelled", "Looked", "Pictures", "Source", "Vectors"]

# Of a vector: how sharply distances become probabilities. See `Vectors`.
SHARPNESS: Final = 10.0
# The learner counts the zero vector as a prototype that is always empty, which is right for features of an
# encoder and wrong for vectors that may lie anywhere. One more number, the same in all of them, changes no
# distance between vectors and keeps all of them far from zero.
AWAY_FROM_ZERO: Final = 1000.0


class Looked(NamedTuple):
    """What things are."""

    known: npt.NDArray[np.float64]  # [N, C] probabilities of the labels, given that it is one of them
    new: npt.NDArray[np.float64]  # [N] the probability that it is none


class Source(Protocol):
    """Where features come from."""

    def fresh(self) -> LiveMemory:
        """An empty memory for them."""
        ...

    def features(self, things: Sequence[Any]) -> list[Floats]:
        """One for each thing."""
        ...


class Pictures:
    """Pictures through the encoder of trained weights: shipped ones by name, a run folder, or a file."""

    def __init__(self, weights: str | Path, ink: str) -> None:
        from wanderlearn.agent.catalogue import load

        self.agent = load(weights, ink=ink)  # type: ignore[arg-type]
        self.size = self.agent.model.config.encoder.image_size
        self.channels = self.agent.model.config.encoder.in_channels
        self.width = self.agent.model.config.learner.features

    def fresh(self) -> LiveMemory:
        """An empty memory of the trained learner."""
        return live_memory(self.agent.model.learner)

    def features(self, things: Sequence[Any]) -> list[Floats]:
        """Whatever an agent looks at: pictures of any kind, or features."""
        return self.agent._encode(list(things)) if things else []

    def unflattened(self, row: Any) -> Any:
        """A row of numbers as what it stands for: a feature if it is as wide as one, else a flat picture."""
        if len(row) == self.width:
            return np.asarray(row, dtype=np.float32)
        square = (self.size, self.size)
        if len(row) == math.prod(square) * self.channels:
            return np.reshape(row, square if self.channels == 1 else (*square, self.channels))
        raise WanderError(
            f"A row of {len(row)} numbers is neither a feature of these weights ({self.width}) nor a flat "
            f"picture of theirs ({self.size} x {self.size}, {self.channels} channels). "
            "Give pictures as [N, H, W], or no weights for vectors of any width."
        )


class Vectors:
    """Vectors as they are, for an Online ProtoNet without an encoder: the nearest mean answers.

    Distances are mean squared differences per feature, so they do not depend on the width. What is farther
    than `new_beyond` from every mean is new. Of features with variance 1, two that have nothing to do with
    each other are 2 apart: 1 lies between that and nothing.
    """

    def __init__(self, width: int, new_beyond: float) -> None:
        if not new_beyond > 0:
            raise WanderError(f"new_beyond must be above 0, not {new_beyond}.")
        self.width, self.new_beyond = width, new_beyond

    @property
    def scale(self) -> float:
        """Squared distances times this squared are mean squared differences times the sharpness."""
        return math.sqrt(SHARPNESS / max(self.width, 1))

    def fresh(self) -> LiveMemory:
        """An empty memory of means."""
        beta = SHARPNESS * self.new_beyond
        config = ProtoNetConfig(features=self.width + 1, beta_read=beta, beta_write=beta)
        return LivePrototypes(OnlineProtoNet(config).eval())

    def features(self, things: Sequence[Any]) -> list[Floats]:
        """Scaled, and with one number more."""
        made = []
        for thing in things:
            vector = np.full(self.width + 1, AWAY_FROM_ZERO, np.float32)
            with np.errstate(over="ignore"):
                vector[1:] = np.asarray(thing, dtype=np.float64) * self.scale
            if not (np.abs(vector) < LARGEST).all():
                raise WanderError("A vector has numbers that are not finite, or too large to be squared.")
            made.append(vector)
        return made

    def widened(self, memory: LiveMemory, width: int) -> tuple["Vectors", LiveMemory]:
        """For vectors with more numbers at the end: in all that was met before these were 0."""
        wide = Vectors(width, self.new_beyond)
        fresh, arrays = wide.fresh(), memory.arrays()
        rows = np.zeros((memory.classes, width + 1), np.float32)
        rows[:, 0] = arrays["rows"][:, 0]
        rows[:, 1 : self.width + 1] = arrays["rows"][:, 1:] * (wide.scale / self.scale)
        fresh.restore(arrays | {"rows": rows}, memory.classes)
        return wide, fresh


class Labelled:
    """A live memory whose classes have labels. It only grows: no undo, no journal."""

    def __init__(self, source: Source) -> None:
        self.source, self.memory = source, source.fresh()
        self.labels: list[Hashable] = []
        self.slots: dict[Hashable, int] = {}

    @torch.inference_mode()
    def learn(self, thing: Any, label: Hashable | None) -> None:
        """One meeting: with its label, or (None) without."""
        (feature,) = self.source.features([thing])
        reading = self.memory.look(feature)
        slot = None
        if label is not None:
            slot = self.slots.setdefault(label, len(self.labels))
            if slot == len(self.labels):
                self.labels.append(label)
        self.memory.meet(reading.trace, slot, reading)

    @torch.inference_mode()
    def look(self, things: Sequence[Any]) -> Looked:
        """What each thing is. Changes nothing."""
        scores, new = np.zeros((len(things), len(self.labels))), np.ones(len(things))
        for n, feature in enumerate(self.source.features(things)):
            reading = self.memory.look(feature)
            scores[n], new[n] = reading.scores, sigmoid_of(reading.novelty)
        known = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
        return Looked(known / known.sum(axis=1, keepdims=True) if self.labels else known, new)

    def widen(self, width: int) -> None:
        """Go on with wider vectors."""
        if isinstance(self.source, Vectors):
            self.source, self.memory = self.source.widened(self.memory, width)
