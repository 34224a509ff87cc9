"""Offline logistic regression: what the features allow when the whole sequence may be read at once.

The paper's reference in its figure of accuracy over time. At each meeting a fresh logistic regression is
fitted to every other labelled item of the sequence, later ones included, and answers for this one item. It
is not a learner to live with: it says how good features are when nothing has to be remembered.
"""

from dataclasses import dataclass
from math import log
from typing import ClassVar, Final, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from wanderlearn.errors import WanderError
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.learners.logistic import fit, principal_axes
from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["LabelledItems", "OfflineConfig", "OfflineLR"]

FLOOR: Final = 1e-6  # the least probability of "new", as in the authors' code
TOGETHER: Final = 25  # meetings fitted at a time: neighbours in time have nearly the same classes
ROUGH: Final = 0.1  # how far a fit on the items of a set of classes goes before single items are left out


@dataclass(frozen=True)
class OfflineConfig:
    """Defaults from the authors' code."""

    features: int = 64
    """Width of the encoder's features."""
    strength: float = 1.0
    """C of scikit-learn: how much the labelled items weigh against the penalty on the weights."""
    least_classes: int = 5
    """Fit at least this many classes, the earliest named, even while fewer have been named."""


class LabelledItems(NamedTuple):
    """What has been told so far: N grows by one whenever a sequence of the batch is told a label."""

    features: Float[Tensor, "B N D"]
    labels: Int[Tensor, "B N"]  # UNLABELED: not an item of this sequence
    told: Bool[Tensor, "B K"]  # slots opened so far


class OfflineLR(nn.Module):
    """A logistic regression for every meeting, on all other labelled items of the sequence.

    Called on whole sequences it reads the future; `step` knows only the past and fits on that. The label
    told at a meeting never reaches the answer to it. Nothing is trained and nothing can be trained through
    it.
    """

    exempt: ClassVar[dict[str, str]] = {
        "causal": "an offline reference: it is fitted on later labelled items too",
        "agreement": "whole sequences are fitted on the future too, and a step knows only the past",
        "gradients": "nothing is trained: every answer comes from a fit of its own",
    }

    def __init__(self, config: OfflineConfig | None = None) -> None:
        super().__init__()
        self.config = config or OfflineConfig()
        if self.config.strength <= 0 or self.config.least_classes < 1:
            raise WanderError(
                "Offline logistic regression needs a strength above 0 and at least 1 class, "
                f"not {self.config.strength:g} and {self.config.least_classes}."
            )
        self.feature_dim = self.config.features
        self.register_buffer("like", torch.zeros(()), persistent=False)  # knows device and number type

    def begin(self, batch_size: int, slots: int) -> LabelledItems:
        """Nothing told yet."""
        like: Tensor = self.get_buffer("like")
        return LabelledItems(
            features=like.new_zeros(batch_size, 0, self.feature_dim),
            labels=torch.zeros(batch_size, 0, dtype=torch.long, device=like.device),
            told=torch.zeros(batch_size, slots, dtype=torch.bool, device=like.device),
        )

    @torch.no_grad()
    def step(
        self, state: LabelledItems, feature: Float[Tensor, "B D"], given: Int[Tensor, " B"]
    ) -> tuple[Answers, LabelledItems]:
        """One meeting: fit on what was told before, answer, then keep this item if it was named."""
        scores = feature.new_full(state.told.shape, UNUSED)  # [B, K]
        novelty = feature.new_full(given.shape, CERTAINLY_NEW)  # [B]
        for row in range(len(given)):
            items = state.labels[row] != UNLABELED  # [N]
            if items.any():
                labels = state.labels[row, items]
                scores[row], novelty[row] = self._answer(
                    feature[row : row + 1],
                    state.features[row, items],
                    labels,
                    torch.ones_like(labels, dtype=torch.bool)[None],
                    torch.ones_like(labels, dtype=torch.bool)[None],
                    state.told[row : row + 1],
                )
        named = given != UNLABELED  # [B]
        if not named.any():
            return Answers(scores, novelty), state
        opened = F.one_hot(given.clamp_min(0), state.told.shape[1]).bool() & named[:, None]  # [B, K]
        return Answers(scores, novelty), LabelledItems(
            features=torch.cat([state.features, feature[:, None]], 1),  # [B, N+1, D]
            labels=torch.cat([state.labels, given[:, None]], 1),  # [B, N+1]
            told=state.told | opened,
        )

    @torch.no_grad()
    def forward(self, features: Float[Tensor, "B T D"], given: Int[Tensor, "B T"], slots: int) -> Answers:
        """Whole sequences: each meeting is answered by a fit on all other labelled items."""
        if self.training and features.requires_grad:
            raise WanderError(
                "Offline logistic regression cannot be trained. Train another learner, "
                "then judge its features with `wander evaluate RUN --offline`."
            )
        scores = features.new_full((*given.shape, slots), UNUSED)  # [B, T, K]
        novelty = features.new_full(given.shape, CERTAINLY_NEW)  # [B, T]
        for row, told in enumerate(given):
            items = (told != UNLABELED).nonzero()[:, 0]  # [N]
            first = _first_named(told, slots)  # [T, K]
            t = torch.arange(len(told), device=told.device)  # [T]
            known = first < t[:, None]  # [T, K] named before t
            if not known.any():
                continue
            # The classes to fit: those known, and if they are fewer than 5, the next that will be named.
            rank = (first[:, None, :] < first[:, :, None]).sum(-1)  # [T, K] in order of first naming
            enough = known.sum(1).clamp_min(self.config.least_classes)  # [T]
            classes = (first < len(told)) & (rank < enough[:, None])  # [T, K]
            of_classes = classes[:, told[items]]  # [T, N]
            chosen = of_classes & (items != t[:, None])  # [T, N] all but the item itself
            for some in torch.split(known.any(1).nonzero()[:, 0], TOGETHER):
                scores[row, some], novelty[row, some] = self._answer(
                    features[row, some],
                    features[row, items],
                    told[items],
                    of_classes[some],
                    chosen[some],
                    known[some],
                )
        return Answers(scores, novelty)

    def _answer(
        self,
        queries: Float[Tensor, "P D"],
        items: Float[Tensor, "N D"],
        labels: Int[Tensor, " N"],
        of_classes: Bool[Tensor, "P N"],
        chosen: Bool[Tensor, "P N"],
        known: Bool[Tensor, "P K"],
    ) -> Answers:
        """Answers to P queries, the p-th from a fit on the items `chosen[p]`."""
        used = of_classes.any(0)  # [N] for most of a sequence far from all
        slots, y = torch.unique(labels[used], return_inverse=True)  # the K' classes that take part
        x = items[used].double()
        mean, axes = principal_axes(x)
        x, q = (x - mean) @ axes, (queries.double() - mean) @ axes
        # Queries between two new classes differ in one left-out item: fit those with all items roughly
        # first, and go on from there. Queries whose fits are the same share one.
        fits, which = torch.unique(chosen[:, used], dim=0, return_inverse=True)  # [U, N'], [P]
        wholes, whole_of = torch.unique(of_classes[:, used], dim=0, return_inverse=True)  # [V, N'], [P]
        start_of = torch.zeros_like(which[: len(fits)]).scatter(0, which, whole_of)  # [U]
        c = self.config.strength
        start = fit(x, y, wholes, len(slots), strength=c, tolerance=ROUGH).weights[:, start_of]
        fitted = fit(x, y, fits, len(slots), strength=c, start=start)
        log_p = queries.new_full(known.shape, -torch.inf, dtype=torch.float64)  # [P, K]
        log_p[:, slots] = fitted.of(which).log_probabilities(q)
        # u = logit(1 - max p) over the known classes: above 0 when "new" is more likely than the best.
        top, best = log_p.masked_fill(~known, -torch.inf).max(-1)  # [P]
        rest = log_p.scatter(-1, best[:, None], -torch.inf).logsumexp(-1)  # [P] log(1 - max p)
        scores = log_p.masked_fill(~known, -torch.inf).log_softmax(-1).masked_fill(~known, UNUSED)
        return Answers(scores.to(queries), (rest.clamp_min(log(FLOOR)) - top).to(queries))


def _first_named(given: Int[Tensor, " T"], slots: int) -> Int[Tensor, "T K"]:
    """When each class is first named by a meeting other than t; T if never.

    Without t itself, so that what is told at t changes nothing in the answer to t.
    """
    T = len(given)
    named = F.one_hot(given.clamp_min(0), slots).bool() & (given != UNLABELED)[:, None]  # [T, K]
    when = torch.where(named, torch.arange(T, device=given.device)[:, None], T)  # [T, K]
    once, again = F.pad(when, (0, 0, 0, 2), value=T).topk(2, dim=0, largest=False).values  # [K] each
    return torch.where(when == once, again, once)  # [T, K]
