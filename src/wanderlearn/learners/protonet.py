"""Online ProtoNet: one mean per class, without context. The paper's model minus its RNN."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from wanderlearn.learners.answer import Answers
from wanderlearn.learners.prototypes import (
    Memory,
    PrototypeMemory,
    Similarity,
    Thresholds,
    first_betas,
    may_self_write,
    phased_in,
    unit_length,
)

__all__ = ["OnlineProtoNet", "ProtoNetConfig"]


@dataclass(frozen=True)
class ProtoNetConfig:
    """How an Online ProtoNet is built. The defaults are the paper's for Omniglot."""

    features: int = 64
    """Width of the encoder's features."""
    similarity: Similarity = "euclidean"
    """Squared Euclidean distance, or cosine times a learned temperature."""
    temperature: float = 10.0
    """Where the temperature of the cosine starts: it moves slowly, so a short training should start well."""
    self_write: bool = True
    """Unlabelled items update the prototypes they seem to belong to (column "Prototype")."""
    write_thresholds: bool = True
    """Writing has thresholds of its own instead of those of reading (column "beta_w, gamma_w")."""
    unit_features: bool = False
    """Scale features to length 1 first."""
    beta_read: float | None = None
    """Where the reading threshold starts (None: 10, for cosine -10)."""
    beta_write: float | None = None
    """Where the writing threshold starts (None: 10, for cosine -10)."""
    write_schedule: int = 0
    """Training steps over which self-writing is phased in (Rooms: 10,000; 0: from the start)."""


class OnlineProtoNet(nn.Module):
    """Answers by the distance to the mean of each class; new is what is far from them all.

        y_hat[k] = softmax(-d(h, p[k]))
        u        = sigmoid((min_k d(h, p[k]) - beta) / gamma)
        p[k]     = mean of what was written to k

    The state is the `Memory`.
    """

    def __init__(self, config: ProtoNetConfig | None = None) -> None:
        super().__init__()
        config = config or ProtoNetConfig()
        self.config, self.feature_dim = config, config.features
        self.memory = PrototypeMemory(config.features, "average", config.similarity, config.temperature)
        betas = first_betas(config.similarity, config.beta_read, config.beta_write)
        pairs = 2 if config.write_thresholds else 1
        self.beta = nn.Parameter(torch.tensor(betas[:pairs]))  # read, write
        self.gamma = nn.Parameter(torch.ones(pairs))
        self.self_write_probability = 1.0  # in training only, see `schedule_writing`

    def schedule_writing(self, step: int) -> None:
        """Before training step `step` (from 0): how often unlabelled items may write, by the schedule."""
        self.self_write_probability = phased_in(step, self.config.write_schedule)

    def begin(self, batch_size: int, slots: int) -> Memory:
        """An empty memory for `batch_size` sequences with room for `slots` classes."""
        return self.memory.begin(batch_size, slots, like=self.beta)

    def step(
        self, state: Memory, feature: Float[Tensor, "B D"], given: Int[Tensor, " B"]
    ) -> tuple[Answers, Memory]:
        """One meeting: answer first, then write what was told (a slot, or UNLABELED)."""
        may_write = self._may_write(feature, given)  # [B]
        return self.memory.step(state, self._x(feature), None, self._thresholds(given), given, may_write)

    def forward(self, features: Float[Tensor, "B T D"], given: Int[Tensor, "B T"], slots: int) -> Answers:
        """Whole sequences at once."""
        may_write = self._may_write(features, given)  # [B, T]
        x, thresholds = self._x(features), self._thresholds(given)  # [B, T, D], [B, T] each
        return self.memory.live_through(x, None, thresholds, given, may_write, slots)

    def _x(self, feature: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return unit_length(feature) if self.config.unit_features else feature

    def _thresholds(self, given: Int[Tensor, "*B"]) -> Thresholds:
        shape = (*given.shape, -1)
        return Thresholds.of(self.beta.expand(shape), self.gamma.expand(shape))

    def _may_write(
        self, feature: Float[Tensor, "*B D"], given: Int[Tensor, "*B"]
    ) -> Bool[Tensor, "*B"] | None:
        if not self.config.self_write:
            return None
        return may_self_write(feature, given, self.self_write_probability if self.training else 1.0)
