"""Contextual Prototypical Memory (CPM): prototypes read and written in the light of the recent past.

    z_t, h_RNN, m, beta_r, gamma_r, beta_w, gamma_w = RNN(h_t; z_{t-1})
    f_t      = h_t + h_RNN
    y_hat[k] = softmax(-d_m(f_t, p[k]))
    u_r      = sigmoid((min_k d_m(f_t, p[k]) - beta_r) / gamma_r)         is it new?
    Delta[k] = 1[y = k], or without a label  y_hat[k] (1 - u_w)           where does it belong?
    p[k]     = A(f_t Delta[k]; p[k])                                      mean, or gated (GAU)

Reading and writing themselves are in `prototypes.py`.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.functional import softplus

from wanderlearn.errors import WanderError
from wanderlearn.learners.answer import Answers
from wanderlearn.learners.prototypes import (
    Memory,
    PrototypeMemory,
    Similarity,
    Thresholds,
    Writing,
    first_betas,
    may_self_write,
    phased_in,
    unit_length,
)
from wanderlearn.learners.recurrent import LayerNormLSTM, LSTMState
from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["CPM", "CPMConfig", "CPMState", "Controls"]


@dataclass(frozen=True)
class CPMConfig:
    """How a CPM is built. The defaults are the paper's best; every column of its ablations is a field."""

    features: int = 64
    """Width of the encoder's features."""
    units: int = 256
    """Width of the recurrent network."""
    context: Literal["add", "none", "replace"] = "add"
    """What h_RNN does to the feature: f = h + h_RNN, f = h, or f = h_RNN."""
    metric: bool = True
    """The RNN scales the dimensions of the distance (m_t)."""
    predicted_thresholds: bool = True
    """The RNN says when something is new (beta_t, gamma_t); otherwise they are learned constants."""
    memory: Writing = "gau"
    """How prototypes are written: "average" or "gau" (gated averaging unit)."""
    similarity: Similarity = "cosine"
    """Squared Euclidean distance, or cosine times a learned temperature."""
    temperature: float = 10.0
    """Where the temperature of the cosine starts: it moves slowly, so a short training should start well."""
    recurrent_on_unlabelled: bool = True
    """Unlabelled items move the RNN's state on (column "RNN")."""
    self_write: bool = True
    """Unlabelled items update the prototypes they seem to belong to (column "Prototype")."""
    write_thresholds: bool = True
    """Writing has thresholds of its own instead of those of reading (column "beta_w, gamma_w")."""
    unit_features: bool = False
    """Scale f to length 1 (ImageNet)."""
    beta_read: float | None = None
    """Where the reading threshold starts (None: 10, for cosine -10)."""
    beta_write: float | None = None
    """Where the writing threshold starts (None: 10, for cosine -10)."""
    write_schedule: int = 0
    """Training steps over which self-writing is phased in (Rooms: 10,000; 0: from the start)."""


class CPMState(NamedTuple):
    """The short-term context and what is kept per class."""

    context: LSTMState
    memory: Memory


class Controls(NamedTuple):
    """What the RNN makes of a meeting: the feature in its context, the metric, and the thresholds."""

    f: Float[Tensor, "*B D"]
    metric: Float[Tensor, "*B D"] | None
    thresholds: Thresholds


class CPM(nn.Module):
    """The paper's learner: an RNN over the features steers a prototype memory."""

    def __init__(self, config: CPMConfig | None = None) -> None:
        super().__init__()
        config = config or CPMConfig()
        if config.context == "none" and not config.metric and not config.predicted_thresholds:
            raise WanderError(
                "This CPM makes no use of its RNN: context 'none', no metric, no predicted_thresholds. "
                "Switch one of them on, or use OnlineProtoNet."
            )
        self.config, self.feature_dim = config, config.features
        self.lstm = LayerNormLSTM(config.features, config.units)
        self.memory = PrototypeMemory(config.features, config.memory, config.similarity, config.temperature)
        betas = torch.tensor(first_betas(config.similarity, config.beta_read, config.beta_write))  # [2]
        pairs = 2 if config.write_thresholds else 1
        self.widths = [
            config.features if config.context != "none" else 0,  # h_RNN
            config.features if config.metric else 0,  # m
            pairs if config.predicted_thresholds else 0,  # beta
            pairs if config.predicted_thresholds else 0,  # gamma
        ]
        self.readout = nn.Linear(config.units, sum(self.widths))
        bound = sum(self.widths) ** -0.5  # by the outputs, not by the inputs: the authors' initialisation
        nn.init.uniform_(self.readout.weight, -bound, bound)
        nn.init.zeros_(self.readout.bias)
        if config.predicted_thresholds:
            with torch.no_grad():
                self.readout.bias[-2 * pairs : -pairs] = betas[:pairs]
        else:
            self.beta = nn.Parameter(betas[:pairs].clone())
            self.gamma = nn.Parameter(torch.ones(pairs))
        self.self_write_probability = 1.0  # in training only, see `schedule_writing`

    def schedule_writing(self, step: int) -> None:
        """Before training step `step` (from 0): how often unlabelled items may write, by the schedule."""
        self.self_write_probability = phased_in(step, self.config.write_schedule)

    def begin(self, batch_size: int, slots: int) -> CPMState:
        """An empty memory for `batch_size` sequences with room for `slots` classes."""
        memory = self.memory.begin(batch_size, slots, like=self.readout.weight)
        return CPMState(self.lstm.begin(batch_size), memory)

    def step(
        self, state: CPMState, feature: Float[Tensor, "B D"], given: Int[Tensor, " B"]
    ) -> tuple[Answers, CPMState]:
        """One meeting: answer first, then write what was told (a slot, or UNLABELED)."""
        output, context = self.lstm.step(state.context, feature, self._advances(given))  # [B, n]
        f, metric, thresholds = self.controls(feature, output)  # [B, D], [B, D], [B] each
        may_write = self._may_write(feature, given)  # [B]
        answer, memory = self.memory.step(state.memory, f, metric, thresholds, given, may_write)
        return answer, CPMState(context, memory)

    def forward(self, features: Float[Tensor, "B T D"], given: Int[Tensor, "B T"], slots: int) -> Answers:
        """Whole sequences at once. The RNN sees only features, so it runs before the memory is touched."""
        output = self.lstm(features, self._advances(given))  # [B, T, n]
        f, metric, thresholds = self.controls(features, output)  # [B, T, D], [B, T, D], [B, T] each
        may_write = self._may_write(features, given)  # [B, T]
        return self.memory.live_through(f, metric, thresholds, given, may_write, slots)

    def controls(self, feature: Float[Tensor, "*B D"], output: Float[Tensor, "*B n"]) -> Controls:
        """Read the RNN's output as context, metric and thresholds."""
        read = F.linear(output, self.readout.weight, self.readout.bias)  # [*B, sum of widths]
        h_rnn, m, beta, gamma = torch.split_with_sizes(
            read, self.widths, -1
        )  # [*B, D], [*B, D], [*B, 2] twice
        if self.config.context == "none":
            f = feature  # [*B, D]
        else:
            f = feature + h_rnn if self.config.context == "add" else h_rnn  # [*B, D]
        if self.config.unit_features:
            f = unit_length(f)
        metric = softplus(m) if self.config.metric else None  # [*B, D]
        if self.config.predicted_thresholds:
            thresholds = Thresholds.of(beta, softplus(gamma + 1))
        else:
            shape = (*feature.shape[:-1], -1)
            thresholds = Thresholds.of(self.beta.expand(shape), self.gamma.expand(shape))
        return Controls(f, metric, thresholds)

    def _advances(self, given: Int[Tensor, "*B"]) -> Bool[Tensor, "*B"] | None:
        return None if self.config.recurrent_on_unlabelled else given != UNLABELED

    def _may_write(
        self, feature: Float[Tensor, "*B D"], given: Int[Tensor, "*B"]
    ) -> Bool[Tensor, "*B"] | None:
        if not self.config.self_write:
            return None
        return may_self_write(feature, given, self.self_write_probability if self.training else 1.0)
