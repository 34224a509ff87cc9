"""What training makes small: naming the known, and telling the new from the known."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from wanderlearn.learners.answer import Answers
from wanderlearn.worlds.sequence import NEW

__all__ = ["Loss", "sequence_loss"]


class Loss(NamedTuple):
    """The loss and its parts, all scalars: total = naming + weight x novelty."""

    total: Float[Tensor, ""]
    naming: Float[Tensor, ""]  # cross-entropy over the class scores, mean over the known steps
    novelty: Float[Tensor, ""]  # binary cross-entropy of "new", mean over all valid steps


def sequence_loss(
    answers: Answers,
    target: Int[Tensor, "B T"],
    valid: Bool[Tensor, "B T"],
    novelty_weight: float = 1.0,
) -> Loss:
    """The authors' loss over a batch: every valid step counts, told or not, with its true target.

    Both means run over the whole batch, not per sequence: a mean over no steps is 0. Slots still unused have
    a score so low that the softmax runs over the classes told so far.
    """
    is_new = target == NEW  # [B, T]
    known = valid & ~is_new  # [B, T]
    novelty = F.binary_cross_entropy_with_logits(
        answers.novelty[valid], is_new[valid].to(answers.novelty.dtype), reduction="sum"
    ) / valid.sum().clamp(min=1)
    naming = F.cross_entropy(answers.scores[known], target[known], reduction="sum") / known.sum().clamp(min=1)
    return Loss(total=torch.add(naming, novelty, alpha=novelty_weight), naming=naming, novelty=novelty)
