"""Late credit along whole sequences: what was met without a label counts for the classes known later.

At every meeting all unlabelled ones before it are shared out anew among the classes known by then. One label
changes one class, so every labelled prototype there ever is is a version: V_s, "the class of meeting s after
it was told". With E[s,u] = exp z_u[s] of every version and every unlabelled meeting, computed once, and s the
version of class k that is in force at t,

    credit[t,u,s] = R[t,u] E[s,u],   R[t,u] = sigmoid(g max_s z_u[s] + e) / sum_s E[s,u]
    P[t,s]        = V_s + sum_u credit[t,u,s] x_u
    x_t . P[t,s]  = x_t . V_s + sum_u R[t,u] (x_t . x_u) E[s,u]
    |P[t,s]|^2    = |V_s|^2 + 2 sum_u R[t,u] E[s,u] (V_s . x_u) + |sum_u credit[t,u,s] x_u|^2

All sums over u are products of small matrices, but for the last, which takes meetings x classes x unlabelled
meetings. So that is done some meetings at a time, each with only the classes that were opened and the
meetings that were met until then.
"""

from typing import Final, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from wanderlearn.learners.matchingnet import one_hot
from wanderlearn.learners.prototypes import unit_length
from wanderlearn.learners.self_writing import LENGTH_EPS
from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["MASKED", "Credit", "order_of_naming", "prototypes_along", "shared"]

CHUNK: Final = 25  # meetings at a time

MASKED: Final = -1e4  # below every real likeness; softmax turns it into exactly 0
LEAST: Final = 1e-37  # a sum of exponentials is at least so large


class Credit(NamedTuple):
    """How what has no name is shared out: b, g and e."""

    sharpness: Tensor
    slope: Tensor
    offset: Tensor

    @property
    def highest(self) -> Tensor:
        """No z is higher."""
        return self.sharpness.abs()

    def known(self, most: Tensor) -> Tensor:
        """How surely a meeting is of a known class, by how like the likeliest one it is."""
        return (self.slope * most + self.offset).sigmoid()


def shared(
    likeness: Float[Tensor, "B Q K U"], free: Bool[Tensor, "B Q U"], credit: Credit
) -> Float[Tensor, "B Q K U"]:
    """To which classes unlabelled meetings (`free`) are credited, by z; MASKED where a slot is empty."""
    most = likeness.max(2).values  # [B, Q, U]
    known = credit.known(most) * (free & (most > MASKED / 2))  # [B, Q, U]
    return likeness.softmax(2) * known[:, :, None]


def prototypes_along(
    keys: Float[Tensor, "B V T D"],
    given: Int[Tensor, "B T"],
    last: Int[Tensor, "B T K"],
    count: Float[Tensor, "B T K"],
    credit: Credit | None,
    window: int,
) -> tuple[Float[Tensor, "B V T K"], Float[Tensor, "B T K"]]:
    """Cosines to the prototypes at every t, and the counts, both with late credit.

    `last` is when each class was told before t (or -1), and `count` how often. Slots are best numbered by
    when they are first told: what is done in pieces looks at all up to the last that is open.
    """
    B, V, T, D = keys.shape
    labelled = given != UNLABELED  # [B, T]
    same = (given[:, :, None] == given[:, None, :]) & labelled[:, :, None]  # [B, T, T]
    versions = same.tril().to(keys)[:, None] @ keys  # [B, V, T, D]
    alike = keys @ unit_length(versions).mT  # [B, V, T, T] of meeting and version
    opened = last >= 0  # [B, T, K]
    current = last.clamp(min=0)[:, None].expand(-1, V, -1, -1)  # [B, V, T, K] the version in force
    cosine = alike.gather(3, current) * opened[:, None]  # [B, V, T, K]
    if credit is None or bool(labelled.all()):
        return cosine, count
    # The unlabelled meetings of each sequence come first; where it has fewer than others, any follow.
    U = int((~labelled).sum(1).max())
    when = labelled.long().argsort(dim=1, stable=True)[:, :U]  # [B, U]
    free = ~labelled.gather(1, when)  # [B, U]
    rows = when[:, None, :, None]  # [B, 1, U, 1]
    met = keys.gather(2, rows.expand(-1, V, -1, D))  # [B, V, U, D]
    like = alike.gather(2, rows.expand(-1, V, -1, T)).mT  # [B, V, T, U] of version and unlabelled meeting
    likely = (credit.sharpness * like.mean(1) - credit.highest).exp()  # [B, T, U] E, but for a factor
    length: Tensor = torch.linalg.vector_norm(versions, dim=-1)  # [B, V, T]
    shares, squares = _shared_out(_Asked(met, when, free, likely, last, window), credit)
    pooled = shares @ torch.cat([likely, *(likely[:, None] * like * length[..., None]).unbind(1)], 1).mT
    beside = (shares[:, None] * (keys @ met.mT)).flatten(1, 2) @ likely.mT  # [B, V T, T]
    several = torch.cat([pooled.view(B, T, 1 + V, T).transpose(1, 2), beside.view(B, V, T, T)], 1)
    added = several.gather(3, current[:, :1].expand(-1, 1 + 2 * V, -1, -1))  # [B, 1 + 2 V, T, K]
    across, dot = added[:, 1:].chunk(2, 1)  # [B, V, T, K] each
    own = length[:, :, None].expand(-1, -1, T, -1).gather(3, current)  # [B, V, T, K] |V_s|
    whole = (own.square() + 2 * across + squares).clamp(min=LENGTH_EPS**2).sqrt()  # [B, V, T, K]
    return (cosine * own + dot) / whole * opened[:, None], count + added[:, 0] * opened


def order_of_naming(given: Int[Tensor, "B T"], slots: int) -> Int[Tensor, " K"]:
    """The slots by when any sequence was first told them; those never told come last."""
    first = one_hot(given, slots).cumsum(1).eq(0).sum(1).amin(0)  # [K]
    return first.argsort(dim=0, stable=True)


class _Asked(NamedTuple):
    """The unlabelled meetings, and to whom they may be credited when."""

    keys: Float[Tensor, "B V U D"]
    when: Int[Tensor, "B U"]
    free: Bool[Tensor, "B U"]
    likely: Float[Tensor, "B T U"]
    last: Int[Tensor, "B T K"]  # the version in force, or -1
    window: int


def _shared_out(asked: _Asked, credit: Credit) -> tuple[Float[Tensor, "B T U"], Float[Tensor, "B V T K"]]:
    """R at every meeting, and the squared length of what each class is credited."""
    (B, V), (T, U), K = asked.keys.shape[:2], asked.likely.shape[1:], asked.last.shape[2]
    beside = asked.keys.transpose(1, 2).flatten(2)  # [B, U, V D] keys side by side
    row = torch.arange(B, device=beside.device)[:, None, None] * T  # [B, 1, 1]
    shares, squares = [], []
    for start in range(0, T, CHUNK):
        last = asked.last[:, start : start + CHUNK]  # [B, Q, K]
        Q, opened = last.shape[1], last >= 0
        ever = opened.any(0).any(0).nonzero()  # [n, 1]
        k = int(ever.max()) + 1 if len(ever) else 0
        apart = torch.arange(start, start + Q, device=last.device)[:, None] - asked.when[:, None]  # [B, Q, U]
        free = asked.free[:, None] & (apart > 0) & (apart <= asked.window)  # [B, Q, U]
        u = int(free.any(1).sum(1).max()) if asked.window >= T else U
        free = free[..., :u] & opened.any(-1)[..., None]  # [B, Q, u]
        # E of the versions in force, and a row of zeros where there is none.
        padded = F.pad(asked.likely[..., :u].reshape(B * T, u), (0, 0, 0, 1))  # [B T + 1, u]
        rows = torch.where(opened[..., :k], last[..., :k] + row, B * T).flatten()  # [B Q k]
        likely = padded.index_select(0, rows).view(B, Q, k, u)
        if not (k and u):
            shares.append(likely.new_zeros(B, Q, U))
            squares.append(likely.new_zeros(B, V, Q, K))
            continue
        most = likely.amax(2).clamp(min=LEAST).log() + credit.highest  # [B, Q, u]
        share = credit.known(most) * free / likely.sum(2).clamp(min=LEAST)  # [B, Q, u]
        weight = (likely * share[:, :, None]).view(B, Q * k, u)
        square = (weight @ beside[:, :u]).view(B, Q, k, V, -1).square().sum(-1)  # [B, Q, k, V]
        shares.append(F.pad(share, (0, U - u)))
        squares.append(F.pad(square.movedim(-1, 1), (0, K - k)))
    return torch.cat(shares, 1), torch.cat(squares, 2)
