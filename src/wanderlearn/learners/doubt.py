"""Doubt about the name as part of novelty: the chance that the best name is wrong.

novelty = logit(1 - sigmoid(-n) softmax(score)[best]),     below 0 if n is
"""

from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from wanderlearn.learners.answer import UNUSED

__all__ = ["with_doubt"]

SURELY: Final = 1e-3  # novelty is at least so far from 0 where it was before doubt


def with_doubt(
    novelty: Float[Tensor, "B Q"], scores: Float[Tensor, "B Q K"], best: Int[Tensor, "B Q 1"]
) -> Float[Tensor, "B Q"]:
    """The logit of the chance that the best name is wrong; below 0 where novelty is."""
    total = scores.logsumexp(-1)  # [B, Q]
    right = scores.gather(2, best)[..., 0] - total  # [B, Q] log of its share
    other = scores.scatter(2, best, UNUSED).logsumexp(-1) - total  # [B, Q] log of all others'
    wrong = torch.logaddexp(_log_sigmoid(novelty) + right, other)  # [B, Q]
    doubtful = wrong - _log_sigmoid(-novelty) - right  # [B, Q]
    return torch.where(novelty < 0, doubtful.clamp(max=-SURELY), doubtful)


def _log_sigmoid(z: Float[Tensor, "B Q"]) -> Float[Tensor, "B Q"]:
    if torch.compiler.is_compiling():  # runtimes of graphs round a small sigmoid before they take its log
        return z.clamp(max=0) - (-z.abs()).exp().log1p()
    return F.logsigmoid(z)
