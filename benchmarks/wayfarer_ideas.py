"""Ideas for Wayfarer that were tried and not kept: each a small change of the learner, or of its loss.

`python benchmarks/wayfarer_tries.py --ideas` trains and scores them beside Wayfarer as it is. They are
sketches: whole sequences only, no steps, not in the agent.
"""

from math import log, sqrt
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from wanderlearn.feature_training import FeatureTraining
from wanderlearn.learners.answer import Answers
from wanderlearn.learners.company import FLOOR
from wanderlearn.learners.guesses import crowd
from wanderlearn.learners.late_credit import MASKED
from wanderlearn.learners.matchingnet import one_hot
from wanderlearn.learners.wayfarer import HIDDEN, Found, Met, Wayfarer, WayfarerConfig
from wanderlearn.loss import Loss
from wanderlearn.worlds.sequence import NEW, UNLABELED

__all__ = ["IDEAS", "Ranking"]


class _More(Wayfarer):
    """A Wayfarer whose net of the scores sees further evidence for every class."""

    extra: int
    """How many numbers."""
    scale: float = 1.0
    """How the net sees them."""

    def __init__(self, config: WayfarerConfig) -> None:
        super().__init__(config)
        self.scales = torch.cat([self.scales, torch.full((self.extra,), self.scale)])
        self.scorer = nn.Sequential(nn.Linear(len(self.scales), HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
        nn.init.zeros_(self.scorer.get_parameter("2.weight"))

    def evidence(self, found: Found) -> list[Float[Tensor, "B Q K"]]:
        return super().evidence(found) + self.more(found)

    def more(self, found: Found) -> list[Float[Tensor, "B Q K"]]:
        """The further evidence."""
        raise NotImplementedError


class Copying(_More):
    """Attention over past meetings that copies their labels: queries and keys of feature and context."""

    extra, scale = 4, 0.25
    width = 16

    def __init__(self, config: WayfarerConfig) -> None:
        super().__init__(config)
        self.query = nn.Linear(config.features + config.units, self.extra * self.width)
        self.key = nn.Linear(config.features + config.units, self.extra * self.width)

    def meeting(self, feature: Float[Tensor, "B T D"], output: Float[Tensor, "B T n"]) -> Met:
        known = torch.cat([8 * F.normalize(feature, dim=-1), output], -1)  # [B, T, D + n]
        self._query, self._key = (
            part(known).unflatten(-1, (self.extra, self.width)).transpose(1, 2)
            for part in (self.query, self.key)
        )  # [B, heads, T, width]
        return super().meeting(feature, output)

    def nearest(self, alike: Tensor, seen: Tensor, label: Tensor, cosine: Tensor) -> Tensor:
        logits = self._query @ self._key.mT / sqrt(self.width)  # [B, heads, Q, N]
        logits = logits.masked_fill(~(seen & (label >= 0)[:, None])[:, None], MASKED)
        nobody = torch.zeros_like(logits[..., :1])
        weight = torch.cat([logits, nobody], -1).softmax(-1)[..., :-1]  # [B, heads, Q, N]
        told = one_hot(label.clamp(min=UNLABELED), cosine.shape[-1]).to(weight)[:, None]  # [B, 1, N, K]
        self._copied = (weight @ told + FLOOR).log()  # [B, heads, Q, K]
        return super().nearest(alike, seen, label, cosine)

    def more(self, found: Found) -> list[Float[Tensor, "B Q K"]]:
        return list(self._copied.unbind(1))


class Slots(_More):
    """Several slots per class, one for every example, and all of them count: the nearer, the more."""

    extra = 2

    def __init__(self, config: WayfarerConfig) -> None:
        super().__init__(config)
        self.sharpness = nn.Parameter(torch.tensor(10.0))

    def nearest(self, alike: Tensor, seen: Tensor, label: Tensor, cosine: Tensor) -> Tensor:
        told = one_hot(label.clamp(min=UNLABELED), cosine.shape[-1]).to(alike)[:, None]  # [B, 1, N, K]
        close = (self.sharpness * (alike - 1)).exp() * seen[:, None]  # [B, V, Q, N]
        self._close = (close @ told + FLOOR).log() / self.sharpness  # [B, V, Q, K]
        return super().nearest(alike, seen, label, cosine)

    def more(self, found: Found) -> list[Float[Tensor, "B Q K"]]:
        return list(self._close.unbind(1))


class Bayes(_More):
    """Prototypes that are sure by how often they were told, and a Chinese restaurant's prior.

    Of class k, told n times, w = n / (n + a): a thing of it lies at w times its prototype, give or take
    s^2 + b^2 / (n + a); it is met n - d times where something new is met 1 + d K times.
    """

    extra, scale = 2, 0.1

    def __init__(self, config: WayfarerConfig) -> None:
        super().__init__(config)
        self.spread = nn.Parameter(torch.tensor([log(0.02), log(0.02), log(0.5)]))  # of s^2, b^2, a

    def more(self, found: Found) -> list[Float[Tensor, "B Q K"]]:
        width = self.feature_dim / 4  # so many numbers of a feature are independent, about
        noise, doubt, before = self.spread.exp().unbind()
        count = found.told.expm1()  # [B, Q, K]
        share = count / (count + before)  # [B, Q, K]
        room = noise + doubt / (count + before)  # [B, Q, K]
        away = 1 + share.square() - 2 * share * found.cosine[:, -1]  # [B, Q, K] squared distance
        fits = -away / (2 * room) - width / 2 * room.log()  # [B, Q, K]
        tables = found.opened.sum(-1, keepdim=True).to(count)  # [B, Q, 1]
        prior = (count - 0.2).clamp(min=0.1).log() - (1 + 0.2 * tables).log()  # [B, Q, K]
        anywhere = noise + doubt / before  # []
        of_new = -1 / (2 * anywhere) - width / 2 * anywhere.log()  # []
        against = fits + prior - of_new  # [B, Q, K] log odds against something new
        return [fits, against]


class Relative(_More):
    """Every class also sees the best of the others, how far it is ahead of it, and how many there are."""

    extra = 4

    def more(self, found: Found) -> list[Float[Tensor, "B Q K"]]:
        mean = found.cosine.mean(1).masked_fill(~found.opened, -1)  # [B, Q, K]
        two = F.pad(mean, (0, 2), value=-1.0).topk(2, -1).values  # [B, Q, 2]
        other = torch.where(mean >= two[..., :1], two[..., 1:], two[..., :1])  # [B, Q, K]
        classes = found.opened.sum(-1, keepdim=True).to(mean).log1p() / 3  # [B, Q, 1]
        guests, tables, _ = crowd(found.here, found.guests)  # [B, Q] each
        return [other, mean - other, classes.expand_as(mean), (guests - tables)[..., None].expand_as(mean)]


class Ranking(FeatureTraining):
    """Beside the loss, one over pairs of the batch: what is new should rank before what is known."""

    weight = 0.5

    def _of(self, step: int, features: Float[Tensor, "N copies D"]) -> Loss:
        kept: dict[str, Answers] = {}
        learner = self.model.learner
        hook = learner.register_forward_hook(lambda *words: kept.update(answers=words[-1]))
        loss = super()._of(step, features)
        hook.remove()
        meetings = [self.world.meetings(self.seed, step * self.config.batch_size + i) for i in self.share]
        batch = self.world.batch(meetings, pixels=False)
        novelty = kept["answers"].novelty  # [B, T]
        judged = batch.valid & (novelty.detach().abs() < 100)  # not the first meetings, which are certain
        new, known = novelty[judged & (batch.target == NEW)], novelty[judged & (batch.target != NEW)]
        wrong = F.softplus(known[None] - new[:, None]).mean()  # pairs in the wrong order
        return loss._replace(total=loss.total + self.weight * wrong)


IDEAS: Final[dict[str, type[Wayfarer] | type[FeatureTraining]]] = {
    "attention that copies labels": Copying,
    "a slot for every example": Slots,
    "Bayesian prototypes, restaurant prior": Bayes,
    "each class sees the best other": Relative,
    "ranking loss across the batch": Ranking,
}
