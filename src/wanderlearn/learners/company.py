"""Which classes keep company with what was met just now: a walk over the meetings that are remembered.

Things of one environment are met together, so whoever was met beside the things of now may be met next. The
walk begins at a recent meeting s, the more likely the more recent, and then in turn goes

    by name    to a meeting of the same class,       same[s, s'] = 1 or 0 if both were told a class,
                                                     sigmoid(a (cos(s, s') - b)) if one was not
    by time    to a meeting near it in time,         near[s, s'] = p1 ^ |s - s'|

    u_0[s]      ~ p0 ^ (t - s)
    v_h[s']     = sum_s u_h[s] same[s, s'] / sum_s'' same[s, s'']
    u_{h+1}[s'] ~ sum_s v_h[s] near[s, s']
    share_h[k]  = sum_{s in k} v_h[s]                          where it is after h times, by class

    company_h[k] = log(share_h[k] + 1e-4)

Each u is scaled to a sum of one. What a walk sees is only what came before t.
"""

from typing import Final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from wanderlearn.learners.matchingnet import one_hot
from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["FLOOR", "HOPS", "Company", "no_company", "sameness", "walked", "with_newest"]

HOPS: Final = 3  # so often it goes on by time
NOBODY_LIKE_IT: Final = 0.5  # the least that a meeting's likeness to all, itself among them, is taken to be
TINY: Final = 1e-6
FLOOR: Final = 1e-4  # what the share of a class is at least
BLOCK: Final = 50  # so many meetings are walked from at once
QUICKER: Final = 10.0  # the paces of walks are learned so many times as fast


class Company(nn.Module):
    """How fast the walks go, and how alike the same things are."""

    def __init__(self) -> None:
        super().__init__()
        self.pace = nn.Parameter(torch.tensor([0.4, 0.3]).logit() / QUICKER)  # of p0, p1
        self.likeness = nn.Parameter(torch.tensor([12.0, 0.65]))  # a, b

    def forward(
        self,
        apart: Int[Tensor, "Q N"],
        alike: Float[Tensor, "B N N"],
        seen: Bool[Tensor, "B Q N"],
        label: Int[Tensor, "B N"],
        slots: int,
    ) -> Float[Tensor, "B Q K H"]:
        """The company of every class at Q meetings.

        `apart` is how long ago N meetings were, `alike` their mean cosines, and `seen` which of them come
        before each of the Q.
        """
        begin, on = F.logsigmoid(QUICKER * self.pace).unbind()
        place = torch.arange(label.shape[1], device=label.device)  # [N]
        near = (on * (place[:, None] - place).abs()).exp()  # [N, N]
        same = sameness(alike, label, *self.likeness.unbind())  # [B, N, N]
        recent = (begin * apart.clamp(min=0)).exp()[None]  # [1, Q, N]
        shares = []
        for queries, places in _blocks(seen):
            begins, goes = recent[:, queries, places], seen[:, queries, places]
            alone = same[:, places, places], near[places, places], label[:, places]
            shares.append(walked(begins, goes, *alone, slots))
        return (torch.cat(shares, 1) + FLOOR).log()


def _blocks(seen: Bool[Tensor, "B Q N"]) -> list[tuple[slice, slice]]:
    """Some of the Q meetings, and the places that any of them sees: what comes after is not looked at."""
    Q = seen.shape[1]
    if Q == 1 or torch.compiler.is_compiling():
        return [(slice(None), slice(None))]
    blocks, ever = [], torch.arange(seen.shape[2], device=seen.device)
    for start in range(0, Q, BLOCK):
        some = ever[seen[:, start : start + BLOCK].any(0).any(0)]  # [n]
        first, end = (int(some[0]), int(some[-1]) + 1) if len(some) else (0, 1)
        blocks.append((slice(start, start + BLOCK), slice(first, end)))
    return blocks


def no_company(
    apart: Int[Tensor, "Q N"],
    alike: Float[Tensor, "B M M"],
    seen: Bool[Tensor, "B Q N"],
    label: Int[Tensor, "B N"],
    slots: int,
) -> Float[Tensor, "B Q K H"]:
    """The same for those who do not ask: no walks."""
    return alike.new_zeros(*seen.shape[:2], slots, 0)


def with_newest(
    alike: Float[Tensor, "B N N"], newest: Float[Tensor, "B N"], itself: Float[Tensor, " B"]
) -> Float[Tensor, "B N N"]:
    """Cosines of all pairs without the oldest meeting and with the newest, by its cosines to those before.

    `itself` is its cosine to itself: 1, unless a feature is all zeros.
    """
    row = newest[:, 1:]  # [B, N - 1]
    above = torch.cat([alike[:, 1:, 1:], row[..., None]], 2)  # [B, N - 1, N]
    return torch.cat([above, torch.cat([row, itself[:, None]], 1)[:, None]], 1)


def sameness(
    alike: Float[Tensor, "B N N"], label: Int[Tensor, "B N"], sharpness: Tensor, threshold: Tensor
) -> Float[Tensor, "B N N"]:
    """Whether two meetings were of the same class: surely, if both were told one; else by their cosine."""
    equal = (label[:, :, None] == label[:, None]).to(alike)  # [B, N, N]
    told = label != UNLABELED  # [B, N]
    if not torch.compiler.is_compiling() and bool(told.all()):
        return equal
    perhaps = (sharpness * (alike - threshold)).sigmoid()  # [B, N, N]
    return torch.where(told[:, :, None] & told[:, None], equal, perhaps)


def walked(
    recent: Float[Tensor, "#B Q N"],
    seen: Bool[Tensor, "B Q N"],
    same: Float[Tensor, "B N N"],
    near: Float[Tensor, "N N"],
    label: Int[Tensor, "B N"],
    slots: int,
) -> Float[Tensor, "B Q K H"]:
    """Where Q walks are after 0 to HOPS hops by time, as shares of the classes.

    `recent` says where they begin, `seen` which of N meetings each may go to.
    """
    mask = seen.to(same)  # [B, Q, N]
    told = one_hot(label.clamp(min=UNLABELED), slots).to(same)  # [B, N, K]
    likes = (mask @ same.mT).clamp(min=NOBODY_LIKE_IT)  # [B, Q, N] of each, to all that are seen
    at, shares = _scaled(recent * mask), []
    for hop in range(HOPS + 1):
        by_name = (at / likes) @ same * mask  # [B, Q, N]
        shares.append(by_name @ told)  # [B, Q, K]
        if hop < HOPS:
            at = _scaled(by_name @ near * mask)
    return torch.stack(shares, -1)


def _scaled(at: Float[Tensor, "B Q N"]) -> Float[Tensor, "B Q N"]:
    return at / (at.sum(-1, keepdim=True) + TINY)
