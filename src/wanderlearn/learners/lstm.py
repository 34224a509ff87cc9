"""The LSTM baseline: no memory of its own for classes, only a recurrent network that is shown the labels.

    z_t           = LSTM_2(LSTM_1([h_t, one-hot(y_{t-1})]))      y: the label given, all zero without one
    scores, u     = W z_t + b                                    one per slot, and the novelty

A label arrives one meeting late, beside the next feature, because the answer must come before it. All
inputs are known beforehand, so whole sequences pass one layer after the other, without a loop here.

Unlike in the authors' code an unlabelled meeting shows no label at all (theirs sets an extra bit), and a
slot takes part as soon as it was named (theirs lets all slots in after the first unlabelled meeting): the
paper's version.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from wanderlearn.errors import WanderError
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.learners.blocks import begin_with_blocks, turn_to
from wanderlearn.learners.matchingnet import one_hot
from wanderlearn.learners.recurrent import LayerNormLSTM, LSTMState
from wanderlearn.worlds.sequence import UNLABELED

__all__ = [
    "NUMBERED",
    "LSTMConfig",
    "LSTMLearner",
    "StackedState",
    "answers_of",
    "check_room",
    "linear",
    "one_late",
    "told_before",
]

NUMBERED: Final = "reads labels as one-hot vectors and has weights of its own for every slot"


@dataclass(frozen=True)
class LSTMConfig:
    """Defaults from the paper."""

    features: int = 64
    """Width of the encoder's features."""
    units: int = 256
    """Width of each layer."""
    layers: int = 2
    """How many layers are stacked."""
    slots: int = 50
    """The most classes a sequence may have: every slot has weights of its own."""
    look_up: float = 0.0
    """Begin with blocks of cells for names, for features of this length (blocks.py); 0: at random."""


class StackedState(NamedTuple):
    """What the layers carry on, the label that comes with the next meeting, and which slots are open."""

    hidden: Float[Tensor, "B L n"]
    cell: Float[Tensor, "B L n"]
    label: Int[Tensor, " B"]  # given at the last meeting
    told: Bool[Tensor, "B K"]


class LSTMLearner(nn.Module):
    """Stacked LSTMs over features and labels; everything it knows of a sequence is in their state."""

    exempt: ClassVar = {"slots": NUMBERED}

    def __init__(self, config: LSTMConfig | None = None) -> None:
        super().__init__()
        self.config = config or LSTMConfig()
        self.feature_dim = self.config.features
        if self.config.layers < 1:
            raise WanderError(f"An LSTM needs at least 1 layer, got layers={self.config.layers}.")
        widths = [self.config.features + self.config.slots] + [self.config.units] * (self.config.layers - 1)
        self.layers = nn.ModuleList(LayerNormLSTM(width, self.config.units) for width in widths)
        self.readout = linear(self.config.units, self.config.slots + 1)
        if self.config.look_up:
            begin_with_blocks(self, self.config.look_up)

    def look_at(self, features: Float[Tensor, "N D"]) -> None:
        """Before the first step of training: what it begins by keeping is what tells these apart best."""
        if self.config.look_up:
            turn_to(self, features)

    def begin(self, batch_size: int, slots: int) -> StackedState:
        """Zeros, and no slot open. More `slots` than the config has are an error."""
        check_room(slots, self.config.slots)
        weight = self.readout.weight
        zeros = weight.new_zeros(batch_size, self.config.layers, self.config.units)
        return StackedState(
            hidden=zeros,
            cell=zeros,
            label=torch.full((batch_size,), UNLABELED, device=weight.device),
            told=torch.zeros(batch_size, slots, dtype=torch.bool, device=weight.device),
        )

    def step(
        self, state: StackedState, feature: Float[Tensor, "B D"], given: Int[Tensor, " B"]
    ) -> tuple[Answers, StackedState]:
        """One meeting. What was told is kept for the next one."""
        x = torch.cat([feature, one_hot(state.label, self.config.slots).to(feature)], -1)  # [B, D + slots]
        after = []
        for layer, hidden, cell in zip(
            self.layers, state.hidden.unbind(1), state.cell.unbind(1), strict=True
        ):
            assert isinstance(layer, LayerNormLSTM)  # a ModuleList does not say what it holds
            x, layer_state = layer.step(LSTMState(hidden, cell), x)  # [B, n]
            after.append(layer_state)
        return answers_of(self.readout(x), state.told), StackedState(
            hidden=torch.stack([layer_state.hidden for layer_state in after], 1),  # [B, L, n]
            cell=torch.stack([layer_state.cell for layer_state in after], 1),  # [B, L, n]
            label=given,
            told=state.told | one_hot(given, state.told.shape[1]).bool(),  # [B, K]
        )

    def forward(self, features: Float[Tensor, "B T D"], given: Int[Tensor, "B T"], slots: int) -> Answers:
        """Whole sequences, a layer at a time."""
        check_room(slots, self.config.slots)
        label = one_hot(one_late(given), self.config.slots).to(features)  # [B, T, slots]
        x = torch.cat([features, label], -1)  # [B, T, D + slots]
        for layer in self.layers:
            x = layer(x)  # [B, T, n]
        return answers_of(self.readout(x), told_before(given, slots))


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer that starts as the authors' do: uniform, bounded by the outputs (not the inputs)."""
    layer = nn.Linear(inputs, outputs)
    nn.init.uniform_(layer.weight, -(outputs**-0.5), outputs**-0.5)
    nn.init.zeros_(layer.bias)
    return layer


def check_room(slots: int, most: int) -> None:
    """A learner with weights per slot cannot take in more classes than it was built for: say so."""
    if slots > most:
        raise WanderError(
            f"This learner was built for sequences of at most {most} classes, but is asked for {slots}. "
            f"Its weights belong to slots: train one with slots={slots} or more, or use a learner without "
            "such weights (CPM, ProtoNet, MatchingNet, IMP)."
        )


def one_late(given: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """The label given at the meeting before; none at the first."""
    return F.pad(given[:, :-1], (1, 0), value=UNLABELED)


def told_before(given: Int[Tensor, "B T"], slots: int) -> Bool[Tensor, "B T K"]:
    """Which slots a label has opened before each meeting."""
    return one_hot(one_late(given), slots).cumsum(1) > 0


def answers_of(logits: Float[Tensor, "*B n"], told: Bool[Tensor, "*B K"]) -> Answers:
    """Logits as answers: the last one is the novelty, and only open slots take part."""
    scores = torch.where(told, logits[..., : told.shape[-1]], UNUSED)  # [*B, K]
    return Answers(scores, torch.where(told.any(-1), logits[..., -1], CERTAINLY_NEW))  # [*B]
