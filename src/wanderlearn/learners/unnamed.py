"""Does it look like something that was met before, but never named?

Known by sight is not known by name: of what was met without a label, and whose class nobody has named yet,
the right answer is "new" again. By the mean cosines of the keys, of the unlabelled meetings u before t:

    named[u] = max_{s told} sigmoid(a (cos(u, s) - b))             was it of a class that has a name by now?
    like[u]  = sigmoid(c (cos(t, u) - d))                          does this look like it?
    signs    = log(1 + sum_u like[u] (1 - named[u])), max_u like[u] (1 - named[u]), log(1 + sum_u like[u])
"""

from typing import Final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["SIGNS", "Unnamed", "best_before"]

SIGNS: Final = 3


class Unnamed(nn.Module):
    """How alike two meetings of one class are, for those told and for the one of now."""

    def __init__(self) -> None:
        super().__init__()
        self.likeness = nn.Parameter(torch.tensor([12.0, 0.65, 12.0, 0.65]))  # a, b, c, d

    def forward(
        self,
        now: Float[Tensor, "B Q N"],
        alike: Float[Tensor, "B N N"],
        seen: Bool[Tensor, "B Q N"],
        label: Int[Tensor, "B N"],
        window: int,
    ) -> Float[Tensor, "B Q S"]:
        """The signs at Q meetings: `now` has their cosines to N meetings, `alike` those of the N.

        Either Q is 1 and comes after all that is `seen`, or the Q are the N, each of which has seen the last
        `window` before it.
        """
        a, b, c, d = self.likeness.unbind()
        told = (a * (alike - b)).sigmoid() * (label >= 0)[:, None]  # [B, u, s]
        one = seen.shape[1] == 1
        named = (told * seen).amax(-1)[:, None] if one else best_before(told, window).mT  # [B, Q, u]
        free = seen & (label == UNLABELED)[:, None]  # [B, Q, N]
        like = (c * (now - d)).sigmoid() * free  # [B, Q, N]
        unnamed = like * (1 - named)  # [B, Q, N]
        return torch.stack([unnamed.sum(-1).log1p(), unnamed.amax(-1), like.sum(-1).log1p()], -1)


def best_before(x: Float[Tensor, "B N T"], window: int) -> Float[Tensor, "B N T"]:
    """The largest of the last `window` before each; 0 if there is none."""
    before = x[..., :-1]  # [B, N, T - 1]
    if x.shape[-1] <= window:
        return F.pad(before.cummax(-1).values, (1, 0))
    return F.max_pool1d(F.pad(before, (window, 0)), window, stride=1)
