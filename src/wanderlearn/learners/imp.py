"""Online infinite mixture prototypes (IMP): a class may have several clusters, a cluster may lack a name.

The paper's modification of IMP (Allen et al., 2019). A meeting joins a cluster near it or opens its own.
A cluster of unnamed things takes the name of the first named thing that joins it.

Who joins which cluster is a hard choice, and the only thing that has to be done in order. Whole sequences
therefore choose first, without gradients; then every mean a cluster ever had is one masked average, and
all meetings are compared with all of them in one product. Gradients flow through means and distances.
"""

from dataclasses import dataclass
from math import log
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.learners.matchingnet import FLOOR, MASKED, one_hot, pairwise_squared_distance
from wanderlearn.learners.prototypes import Similarity, unit_length
from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["Clusters", "IMPConfig", "OnlineIMP"]


@dataclass(frozen=True)
class IMPConfig:
    """Defaults of RoamingOmniglot."""

    features: int = 64
    """Width of the encoder's features."""
    similarity: Similarity = "euclidean"
    """What a cluster is compared by: its mean, or (cosine) its mean brought to the length of the feature."""
    unlabelled_join: Literal["any", "unlabelled"] = "any"
    """Which clusters an unnamed thing may join: any (the paper), or only unnamed ones (the authors' code)."""
    sigma_labelled: float = 1.0
    """First value of the trained width of named clusters."""
    sigma_unlabelled: float = 1.0
    """First value of the trained width of unnamed clusters."""
    beta: float = 10.0
    """First value of the trained shift: a squared distance above it says "new" (30 in Rooms and ImageNet)."""
    gamma: float = 1.0
    """First value of the trained scale of the novelty."""


class Clusters(NamedTuple):
    """What IMP remembers: N grows by one whenever a sequence of the batch opens a cluster."""

    mean: Float[Tensor, "B N D"]
    items: Float[Tensor, "B N"]  # how many joined; 0: not a cluster of this sequence
    label: Int[Tensor, "B N"]  # slot, or UNLABELED
    told: Bool[Tensor, "B K"]  # slots opened so far


class OnlineIMP(nn.Module):
    """A mixture of named and unnamed clusters, with as many clusters as the distances call for.

    Distances are squared and Euclidean; by cosine they are |h|^2 (2 - 2 cos(h, mean)). While no name has been
    told, everything is new; later the unnamed clusters' share of the mixture only ever says "perhaps new" (a
    novelty of at most 0), as in the authors' code, and it takes distance to say more.
    """

    def __init__(self, config: IMPConfig | None = None) -> None:
        super().__init__()
        self.config = config or IMPConfig()
        self.feature_dim = self.config.features
        self.log_sigma_labelled = nn.Parameter(torch.tensor(log(self.config.sigma_labelled)))
        self.log_sigma_unlabelled = nn.Parameter(torch.tensor(log(self.config.sigma_unlabelled)))
        self.beta = nn.Parameter(torch.tensor(self.config.beta))
        self.gamma = nn.Parameter(torch.tensor(self.config.gamma))

    def begin(self, batch_size: int, slots: int) -> Clusters:
        """No clusters yet."""
        device = self.beta.device
        return Clusters(
            mean=self.beta.new_zeros(batch_size, 0, self.feature_dim),
            items=self.beta.new_zeros(batch_size, 0),
            label=torch.zeros(batch_size, 0, dtype=torch.long, device=device),
            told=torch.zeros(batch_size, slots, dtype=torch.bool, device=device),
        )

    def step(
        self, state: Clusters, feature: Float[Tensor, "B D"], given: Int[Tensor, " B"]
    ) -> tuple[Answers, Clusters]:
        """One meeting: answer from the clusters, then join one or open one."""
        distance = self.distance(state.mean, feature)  # [B, N]
        used = state.items > 0  # [B, N]
        answers = self.answer(distance[:, None], used[:, None], state.label, state.told[:, None])
        answer = Answers(answers.scores[:, 0], answers.novelty[:, 0])

        home = self.choose(distance, used, state.label, given)  # [B] in 0..N, N to open
        # Columns to add: 0 or 1. A graph that is being traced cannot ask: it adds one, perhaps left empty.
        fresh = 1 if torch.compiler.is_compiling() else int((home == used.shape[1]).any())
        mean = F.pad(state.mean, (0, 0, 0, fresh))  # [B, N+fresh, D]
        items = F.pad(state.items, (0, fresh))
        label = F.pad(state.label, (0, fresh), value=UNLABELED)
        at = (torch.arange(home.shape[0], device=home.device), home)
        n = items[at] + 1  # [B]
        return answer, Clusters(
            mean=mean.index_put(at, mean[at] + (feature - mean[at]) / n[:, None]),  # running mean
            items=items.index_put(at, n),
            label=label.index_put(at, torch.maximum(label[at], given)),  # UNLABELED is below every slot
            told=state.told | one_hot(given, state.told.shape[1]).bool(),
        )

    def forward(self, features: Float[Tensor, "B T D"], given: Int[Tensor, "B T"], slots: int) -> Answers:
        """Whole sequences: choose clusters in order, then answer everything at once.

        Meeting s changes one cluster, so it makes one new version of it: the mean of all that had joined
        it by s. A version holds until the next meeting that joins the same cluster.
        """
        T = given.shape[1]
        home, label = self.choose_all(features, given)  # [B, T] both
        same = home[:, :, None] == home[:, None, :]  # [B, T, T]
        joined = same.tril().to(features)  # row s: who had joined the cluster of s by s
        version = (joined / joined.sum(-1, keepdim=True)) @ features  # [B, T, D]
        if self.config.similarity == "cosine":
            cosine = unit_length(features) @ unit_length(version).mT  # [B, T, T]
            distance = features.square().sum(-1, keepdim=True) * (2 - 2 * cosine)  # [B, T, T]
        else:
            distance = pairwise_squared_distance(features, version)  # [B, T, T] meeting t, version s

        # Version s is still the newest of its cluster just before t iff no meeting in s+1..t-1 joined it.
        rejoined = same.triu(1).int().cumsum(-1)  # [B, T, T] row s: joins after s, up to and with column
        newest = F.pad(rejoined[:, :, :-1] == 0, (1, 0)).mT  # [B, T, T] meeting t, version s
        seen = newest & torch.ones(T, T, dtype=torch.bool, device=given.device).tril(-1)
        opened = one_hot(given, slots).cumsum(1) > 0  # [B, T, K] after meeting t
        told = F.pad(opened[:, :-1], (0, 0, 1, 0))  # [B, T, K] before meeting t
        return self.answer(distance, seen, label, told)

    def answer(
        self,
        distance: Float[Tensor, "B Q N"],
        seen: Bool[Tensor, "B Q N"],
        label: Int[Tensor, "B N"],
        told: Bool[Tensor, "B Q K"],
    ) -> Answers:
        """Scores and novelty of Q meetings, each from the clusters it has `seen`."""
        if label.shape[1] == 0:
            return Answers(torch.where(told, 0.0, UNUSED), distance.new_full(seen.shape[:2], CERTAINLY_NEW))
        # p(c) = sum_j softmax_j(-d_j / 2 sigma_j^2) 1[label_j = c]
        weight = torch.softmax(
            self.closeness(distance, label).masked_fill(~seen, MASKED), dim=-1
        )  # [B, Q, N]
        p = weight @ one_hot(label, told.shape[-1]).to(weight)  # [B, Q, K]
        scores = torch.where(told, p.clamp_min(FLOOR).log(), UNUSED)  # [B, Q, K]
        # u = max(log p(unnamed), (d_min - beta) / gamma)
        p_unnamed = (weight @ (label == UNLABELED).to(weight)[..., None])[..., 0]  # [B, Q]
        d_min = distance.masked_fill(~seen, -MASKED).amin(-1)  # [B, Q]
        nameless = ~told.any(-1)  # [B, Q]
        # The far distance of an empty memory must not reach gamma's gradient: replace it before dividing.
        u = (d_min.masked_fill(nameless, 0.0) - self.beta) / self.gamma
        u = torch.maximum(p_unnamed.clamp_min(FLOOR).log(), u)
        return Answers(scores, torch.where(nameless, CERTAINLY_NEW, u))

    def distance(self, mean: Float[Tensor, "B N D"], feature: Float[Tensor, "B D"]) -> Float[Tensor, "B N"]:
        """How far a feature is from clusters."""
        h = feature[:, None]  # [B, 1, D]
        if self.config.similarity == "cosine":
            mean = unit_length(mean) * torch.linalg.vector_norm(h, dim=-1, keepdim=True)  # [B, N, D]
        return (mean - h).square().sum(-1)

    def closeness(
        self, distance: Float[Tensor, "B Q N"], label: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B Q N"]:
        """-d / 2 sigma^2, with the width of named or of unnamed clusters."""
        log_sigma = torch.where(
            label == UNLABELED, self.log_sigma_unlabelled, self.log_sigma_labelled
        )  # [B, N]
        return -0.5 * distance * torch.exp(-2 * log_sigma)[:, None]

    @torch.no_grad()
    def choose(
        self,
        distance: Float[Tensor, "B N"],
        used: Bool[Tensor, "B N"],
        label: Int[Tensor, "B N"],
        given: Int[Tensor, " B"],
    ) -> Int[Tensor, " B"]:
        """The cluster each meeting joins, or N to open one.

        A named thing may join clusters of its name and unnamed ones. If the nearest of them is within
        reach, it joins the most probable of them.
        """
        B, N = label.shape
        if N == 0:
            return torch.zeros(B, dtype=torch.long, device=label.device)
        may_join = (label == given[:, None]) | (label == UNLABELED)
        if self.config.unlabelled_join == "any":
            may_join |= (given == UNLABELED)[:, None]
        out = ~(used & may_join)  # [B, N]
        nearest = distance.masked_fill(out, -MASKED).amin(-1)  # [B]
        probable = self.closeness(distance[:, None], label)[:, 0].masked_fill(out, MASKED).argmax(-1)  # [B]
        return torch.where(((nearest - self.beta) / self.gamma < 0) & ~out.all(-1), probable, N)

    @torch.no_grad()
    def choose_all(
        self, features: Float[Tensor, "B T D"], given: Int[Tensor, "B T"]
    ) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
        """Which cluster each meeting joins (named by the meeting that opened it), and its label from then on.

        The same arithmetic as `step`, so that no choice falls differently by rounding; but in place.
        """
        B, T, _ = features.shape
        rows = torch.arange(B, device=given.device)
        mean, items = torch.zeros_like(features), features.new_zeros(B, T)
        label = torch.full_like(given, UNLABELED)
        homes, labels = torch.empty_like(given), torch.empty_like(given)
        for t, (feature, told) in enumerate(zip(features.unbind(1), given.unbind(1), strict=True)):
            distance = self.distance(mean[:, :t], feature)  # [B, t]
            home = self.choose(distance, items[:, :t] > 0, label[:, :t], told)  # [B] in 0..t
            at = (rows, home)
            n = items[at] + 1
            mean[at] += (feature - mean[at]) / n[:, None]
            items[at] = n
            label[at] = torch.maximum(label[at], told)
            homes[:, t], labels[:, t] = home, label[at]
        return homes, labels
