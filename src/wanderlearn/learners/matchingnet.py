"""Online MatchingNet: every named example is kept, and a meeting is compared with all of them.

The paper's modification of MatchingNet (Vinyals et al., 2016) without its context embedding. Examples
without a label are skipped, and leave nothing behind. There is no time loop: all pairs of a sequence are
compared at once, and a mask lets every meeting see only the examples before it.
"""

from dataclasses import dataclass
from math import log
from typing import Final, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.worlds.sequence import UNLABELED

__all__ = [
    "FLOOR",
    "Examples",
    "MatchingNetConfig",
    "OnlineMatchingNet",
    "one_hot",
    "pairwise_squared_distance",
]

FLOOR: Final = 1e-6  # the least probability of a known class, so that its log stays finite
MASKED: Final = -1e9  # a similarity that softmax turns into exactly 0
TINY: Final = 1e-5  # keeps the direction of an all-zero feature finite


@dataclass(frozen=True)
class MatchingNetConfig:
    """Defaults from the paper and the authors' code."""

    features: int = 64
    """Width of the encoder's features."""
    similarity: Literal["euclidean", "cosine"] = "euclidean"
    """Minus the squared Euclidean distance, or the cosine times `temperature`."""
    temperature: float = 7.5
    """Fixed scale of the cosine; no part of the Euclidean distance."""
    beta: float = 0.0
    """First value of the trained shift: a distance above it says "new"."""
    gamma: float = 1.0
    """First value of the trained scale of the novelty."""


class Examples(NamedTuple):
    """What MatchingNet remembers: N grows by one whenever a sequence of the batch is told a label."""

    features: Float[Tensor, "B N D"]
    labels: Int[Tensor, "B N"]  # UNLABELED: not an example of this sequence
    told: Bool[Tensor, "B K"]  # slots opened so far


class OnlineMatchingNet(nn.Module):
    """A softmax over all named examples, summed by name; far from the nearest example is new."""

    def __init__(self, config: MatchingNetConfig | None = None) -> None:
        super().__init__()
        self.config = config or MatchingNetConfig()
        self.feature_dim = self.config.features
        self.beta = nn.Parameter(torch.tensor(self.config.beta))
        self.gamma = nn.Parameter(torch.tensor(self.config.gamma))

    def begin(self, batch_size: int, slots: int) -> Examples:
        """No examples yet."""
        return Examples(
            features=self.beta.new_zeros(batch_size, 0, self.feature_dim),
            labels=torch.zeros(batch_size, 0, dtype=torch.long, device=self.beta.device),
            told=torch.zeros(batch_size, slots, dtype=torch.bool, device=self.beta.device),
        )

    def step(
        self, state: Examples, feature: Float[Tensor, "B D"], given: Int[Tensor, " B"]
    ) -> tuple[Answers, Examples]:
        """One meeting: compare with the examples kept, then keep this one if it was named."""
        query = feature[:, None]  # [B, 1, D]
        distance = self.distance(query, state.features)  # [B, 1, N]
        seen = (state.labels != UNLABELED)[:, None]  # [B, 1, N]
        answers = self.answer(distance, seen, state.labels, state.told[:, None])
        answer = Answers(answers.scores[:, 0], answers.novelty[:, 0])
        named = given != UNLABELED  # [B]
        # A graph that is being traced cannot ask: it keeps a column without a label, which nobody sees.
        if not torch.compiler.is_compiling() and not named.any():
            return answer, state
        return answer, Examples(
            features=torch.cat([state.features, query], dim=1),  # [B, N+1, D]
            labels=torch.cat([state.labels, given[:, None]], dim=1),  # [B, N+1]
            told=state.told | one_hot(given, state.told.shape[1]).bool(),
        )

    def forward(self, features: Float[Tensor, "B T D"], given: Int[Tensor, "B T"], slots: int) -> Answers:
        """Whole sequences: all pairs of meetings, of which each sees the named ones before it."""
        T = given.shape[1]
        before = torch.ones(T, T, dtype=torch.bool, device=given.device).tril(-1)  # [T, T]
        seen = before & (given != UNLABELED)[:, None, :]  # [B, T, T]
        opened = one_hot(given, slots).cumsum(1) > 0  # [B, T, K] after meeting t
        told = F.pad(opened[:, :-1], (0, 0, 1, 0))  # [B, T, K] before meeting t
        return self.answer(self.distance(features, features), seen, given, told)

    def distance(
        self, queries: Float[Tensor, "B Q D"], examples: Float[Tensor, "B N D"]
    ) -> Float[Tensor, "B Q N"]:
        """d(h, e): ||h - e||^2, or -7.5 cos(h, e)."""
        if self.config.similarity == "euclidean":
            return pairwise_squared_distance(queries, examples)
        return -self.config.temperature * _direction(queries) @ _direction(examples).mT

    def answer(
        self,
        distance: Float[Tensor, "B Q N"],
        seen: Bool[Tensor, "B Q N"],
        labels: Int[Tensor, "B N"],
        told: Bool[Tensor, "B Q K"],
    ) -> Answers:
        """Scores and novelty of Q meetings, each from the examples it has `seen`."""
        if labels.shape[1] == 0:
            return Answers(torch.where(told, 0.0, UNUSED), distance.new_full(seen.shape[:2], CERTAINLY_NEW))
        # p(c) = sum_i softmax_i(-d_i) 1[label_i = c]
        weight = torch.softmax((-distance).masked_fill(~seen, MASKED), dim=-1)  # [B, Q, N]
        p = weight @ one_hot(labels, told.shape[-1]).to(weight)  # [B, Q, K]
        scores = torch.where(told, p.clamp_min(FLOOR).log(), UNUSED)  # [B, Q, K]
        # u = max(log 1e-6, (d_min - beta) / gamma). The authors' code adds beta; trained, the sign is free.
        d_min = distance.masked_fill(~seen, -MASKED).amin(-1)  # [B, Q]
        empty = ~seen.any(-1)  # [B, Q]
        # The far distance of an empty memory must not reach gamma's gradient: replace it before dividing.
        u = (d_min.masked_fill(empty, 0.0) - self.beta) / self.gamma
        novelty = torch.where(empty, CERTAINLY_NEW, u.clamp_min(log(FLOOR)))  # [B, Q]
        return Answers(scores, novelty)


def pairwise_squared_distance(a: Float[Tensor, "B Q D"], b: Float[Tensor, "B N D"]) -> Float[Tensor, "B Q N"]:
    """||a_q - b_n||^2 for all pairs.

    As |a|^2 + |b|^2 - 2ab this is one matrix product, but close vectors far from the origin would cancel
    in float32; in float64 the product is as good as subtracting first, and still costs next to nothing.
    """
    x, y = a.double(), b.double()
    squares = x.square().sum(-1)[:, :, None] + y.square().sum(-1)[:, None, :]  # [B, Q, N]
    return torch.baddbmm(squares, x, y.mT, alpha=-2).clamp_min(0).to(a.dtype)


def one_hot(labels: Int[Tensor, "*B"], slots: int) -> Int[Tensor, "*B K"]:
    """One-hot rows; all zero where UNLABELED."""
    return F.one_hot(labels.clamp_min(0), slots) * (labels != UNLABELED)[..., None]


def _direction(x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
    # vector_norm has gradient 0 at the zero vector, where a square root would give NaN
    length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / (length + TINY)
