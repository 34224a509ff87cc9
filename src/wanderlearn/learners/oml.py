"""OML-U and OML-U++: a classifier that takes one step of gradient descent per label, on learned features.

    s            = W h_t + b           OML-U, W and b zero at first
    s[k]         = 10 cos(W[k], h_t)   OML-U++, W tiny and random at first
    y_hat        = softmax(s)          over all outputs, in use or not
    u            = 1 - max_k y_hat[k]  k in use (or the sum of y_hat over those not in use)
    W, b         = (W, b) - eta d CE(y_hat, y_t) / d(W, b)        if y_t was told

W and b are the memory: every sequence starts anew. What is learned for good is the encoder, through these
steps: their gradient stands here in closed form, so plain backpropagation through it is of second order.

The authors take one step of the optimiser per piece of 5 meetings; here a piece only ends the gradient's way
back, and one step is taken for all pieces of a batch. They draw W anew for every sequence; so does this one
in training, but afterwards it keeps one draw, so that a memory can be relied on to answer the same again.
"""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from wanderlearn.errors import WanderError
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.learners.chance import drawn
from wanderlearn.learners.lstm import check_room
from wanderlearn.learners.matchingnet import one_hot
from wanderlearn.learners.prototypes import unit_length

__all__ = ["OML", "OMLConfig", "OMLState"]

SCALE: Final = 10.0  # what cosines are multiplied with
SMALL: Final = 0.01  # deviation of the first weights of the cosine classifier
LEAST: Final = 1e-5  # the probability of "new" is kept between these, where its logit is finite
MOST: Final = 1 - 1e-3
SHORTEST: Final = 1e-5  # a class direction is never taken for shorter


@dataclass(frozen=True)
class OMLConfig:
    """Defaults are the paper's OML-U for Omniglot; OML-U++ has `classifier="cosine"`."""

    features: int = 64
    """Width of the encoder's features."""
    classifier: Literal["linear", "cosine"] = "linear"
    """What is trained on the spot: a linear layer (OML-U), or cosines with class directions (OML-U++)."""
    slots: int = 50
    """The classifier's outputs, in use or not: the most classes a sequence may have."""
    inner_lr: float = 1e-2
    """Learning rate of the step taken on the spot."""
    novelty: Literal["max", "sum"] = "max"
    """What "new" is: no class in use is likely ("max"), or those not in use are ("sum")."""
    second_order: bool = True
    """In training, backpropagate through the steps; without, they count as given (first order)."""
    truncate: int = 5
    """In training, the most steps a gradient goes back through (Rooms: 20; 0: all)."""


class OMLState(NamedTuple):
    """The classifier as it is now, and which of its outputs are in use."""

    weight: Float[Tensor, "B S D"]
    bias: Float[Tensor, "B S"]  # stays zero for cosines
    told: Bool[Tensor, "B K"]


class OML(nn.Module):
    """Learns by gradient descent while it wanders. It has no weights of its own: the encoder has them all."""

    def __init__(self, config: OMLConfig | None = None) -> None:
        super().__init__()
        config = config or OMLConfig()
        self.config, self.feature_dim = config, config.features
        cosine = config.classifier == "cosine"
        if config.truncate < 0:
            raise WanderError(f"OML's truncate must not be below 0, but it is {config.truncate}.")
        self.exempt = {"slots": "every output starts in a direction of its own"} if cosine else {}
        start = torch.zeros(config.slots, config.features)
        self.start: Tensor
        self.register_buffer("start", _draw(start) if cosine else start)

    def begin(self, batch_size: int, slots: int) -> OMLState:
        """A fresh classifier for each sequence, and no class known."""
        check_room(slots, self.config.slots)
        weight = self.start.expand(batch_size, -1, -1)  # [B, S, D]
        if self.training and self.config.classifier == "cosine":
            weight = drawn(weight, _draw)
        return OMLState(
            weight=weight,
            bias=weight.new_zeros(weight.shape[:2]),
            told=torch.zeros(batch_size, slots, dtype=torch.bool, device=weight.device),
        )

    def step(
        self, state: OMLState, feature: Float[Tensor, "B D"], given: Int[Tensor, " B"]
    ) -> tuple[Answers, OMLState]:
        """One meeting: answer, then one step down the error of that answer, if there is a label."""
        cosine = self.config.classifier == "cosine"
        x, weight, length = feature, state.weight, None  # [B, D], [B, S, D]
        if cosine:
            length = torch.linalg.vector_norm(weight, dim=-1, keepdim=True).clamp(min=SHORTEST)  # [B, S, 1]
            x, weight = unit_length(x), weight / length
        s = torch.baddbmm(state.bias[..., None], weight, x[..., None])[..., 0]  # [B, S]
        if cosine:
            s = SCALE * s
        y_hat = s.softmax(-1)  # [B, S]
        label = one_hot(given, self.config.slots).to(y_hat)  # [B, S]
        error = (label - y_hat) * label.sum(-1, keepdim=True)  # [B, S] -d CE / d s; nothing without a label
        eta = self.config.inner_lr
        if length is not None:  # d cos / d W[k] = (x - cos W[k] / |W[k]|) / |W[k]|
            pull = (eta * SCALE) * error[..., None] / length  # [B, S, 1]
            change = pull * (x[:, None] - (s / SCALE)[..., None] * weight)  # [B, S, D]
            bias = state.bias
        else:
            change = (eta * error)[..., None] * x[:, None]  # [B, S, D]
            bias = state.bias + self._given(eta * error)  # [B, S]
        after = OMLState(
            weight=state.weight + self._given(change),
            bias=bias,
            told=state.told | (label[:, : state.told.shape[1]] > 0),
        )
        return self._answer(s, y_hat, state.told), after

    def forward(self, features: Float[Tensor, "B T D"], given: Int[Tensor, "B T"], slots: int) -> Answers:
        """Whole sequences, a step at a time: every step needs what the last one left."""
        state, scores, novelty = self.begin(len(features), slots), [], []
        for t, (feature, label) in enumerate(zip(features.unbind(1), given.unbind(1), strict=True)):
            if self.training and self.config.truncate and t % self.config.truncate == 0:
                state = OMLState(state.weight.detach(), state.bias.detach(), state.told)
            answer, state = self.step(state, feature, label)
            scores.append(answer.scores)
            novelty.append(answer.novelty)
        return Answers(torch.stack(scores, 1), torch.stack(novelty, 1))  # [B, T, K], [B, T]

    def _given(self, change: Tensor) -> Tensor:
        """A step as the gradient sees it."""
        return change if self.config.second_order else change.detach()

    def _answer(
        self, s: Float[Tensor, "B S"], y_hat: Float[Tensor, "B S"], told: Bool[Tensor, "B K"]
    ) -> Answers:
        S, K = y_hat.shape[1], told.shape[1]
        known = y_hat[:, :K] * told  # [B, K] all outputs beyond K are not in use either
        likely = one_hot(known.argmax(-1), K).bool() if self.config.novelty == "max" else told  # [B, K]
        # All that is left, summed: 1 - max_k y_hat[k] would leave nothing but rounding where it is sure.
        left = y_hat.masked_fill(F.pad(likely, (0, S - K)), 0)  # [B, S]
        new = left.sum(-1).clamp(LEAST, MOST)  # [B]
        novelty = new.log() - torch.log1p(-new)  # [B]
        return Answers(
            s[:, :K].masked_fill(~told, UNUSED),
            novelty.masked_fill(~told.any(-1), CERTAINLY_NEW),
        )


def _draw(weight: Tensor) -> Tensor:
    """Small random weights, cut off at two deviations, as the authors'."""
    return nn.init.trunc_normal_(weight, std=SMALL, a=-2 * SMALL, b=2 * SMALL)
