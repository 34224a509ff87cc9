"""What training makes small: naming the known, and telling the new from the known."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from wanderlearn.distributed.compute import Compute, with_value
from wanderlearn.learners.answer import Answers
from wanderlearn.worlds.sequence import NEW

__all__ = ["Loss", "no_loss", "sequence_loss"]


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
    compute: Compute | None = None,
    naming_weight: Float[Tensor, "B T"] | None = None,
) -> Loss:
    """The authors' loss over a batch: every valid step counts, told or not, with its true target.

    Both means run over the whole batch, not per sequence: a mean over no steps is 0. Slots still unused have
    a score so low that the softmax runs over the classes told so far.

    `naming_weight` says how much each step counts in naming; its mean over the known should be about 1.

    With a group in `compute` the batch is that of all its processes, and these sequences are a part of it:
    figures are those of the whole, gradients those of this part, and gradients add up to that of the whole.
    """
    is_new = target == NEW  # [B, T]
    known = valid & ~is_new  # [B, T]
    novelty = F.binary_cross_entropy_with_logits(
        answers.novelty[valid], is_new[valid].to(answers.novelty.dtype), reduction="sum"
    )
    each = F.cross_entropy(answers.scores[known], target[known], reduction="none")  # [n]
    naming = (each if naming_weight is None else each * naming_weight[known]).sum()
    return _means(naming, novelty, known.sum(), valid.sum(), novelty_weight, compute)


def no_loss(over: Tensor, novelty_weight: float, compute: Compute) -> Loss:
    """The part of a process that has no share of the batch. Its gradient by `over` is zero."""
    nothing = over.sum() * 0
    none = torch.zeros((), dtype=torch.long, device=over.device)
    return _means(nothing, nothing, none, none, novelty_weight, compute)


def _means(
    naming: Float[Tensor, ""],
    novelty: Float[Tensor, ""],
    known: Int[Tensor, ""],
    valid: Int[Tensor, ""],
    novelty_weight: float,
    compute: Compute | None,
) -> Loss:
    """From sums to means over the whole batch."""
    if compute is not None and compute.group.size > 1:
        parts = torch.stack([naming.detach().double(), novelty.detach().double(), known, valid])
        sums = compute.group.sum(parts)  # one message for all four
        naming, novelty = with_value(naming, sums[0]), with_value(novelty, sums[1])
        known, valid = sums[2].to(naming.dtype), sums[3].to(naming.dtype)
    naming, novelty = naming / known.clamp(min=1), novelty / valid.clamp(min=1)
    return Loss(total=torch.add(naming, novelty, alpha=novelty_weight), naming=naming, novelty=novelty)
