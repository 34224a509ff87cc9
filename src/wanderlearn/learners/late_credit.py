"""Late credit: what was met without a label counts for the classes known later.

At every meeting all unlabelled ones before it are shared out anew among the classes known by then, by z_u[k],
how like class k each is:

    credit[u,k] = softmax_k(z_u[k]) sigmoid(g max_k z_u[k] + e)
    P[k]        = V[k] + A[k],   V[k] = sum_{s in k} x_s,   A[k] = sum_u credit[u,k] x_u
    cos[k]      = x . P[k] / |P[k]|

where the length takes credited keys to have a cosine of r to each other, as those of one class have, and
none to be against the class:

    |P[k]|^2    = |V[k]|^2 + 2 max(V[k] . A[k], 0) + r (sum_u credit[u,k])^2 + (1 - r) sum_u credit[u,k]^2

Along whole sequences nobody then has to add keys up at every meeting. One label changes one class, so every
labelled prototype there ever is is a version: V_s, "the class of meeting s after it was told". With
E[s,u] = exp z_u[s] of every version and every unlabelled meeting, computed once, and R[t,u] the sigmoid at t
divided by the sum of E[s,u] over the versions in force at t, credit[u,s] = R[t,u] E[s,u], and so

    x_t . A[s]           = sum_u R[t,u] (x_t . x_u) E[s,u]
    V_s . A[s]           = sum_u R[t,u] E[s,u] (V_s . x_u)
    sum_u credit[u,s]^n  = sum_u R[t,u]^n E[s,u]^n

are products of matrices. Only the largest z in force, meetings x classes x unlabelled meetings, has to be
looked for: some meetings at a time, each with only the classes opened and the meetings met until then.
Single precision holds E for b up to about 80, and gradients through R for b up to about 40; b stays near 15.
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

__all__ = [
    "ALIKE",
    "MASKED",
    "Credit",
    "lengthened",
    "order_of_naming",
    "prototypes_along",
    "prototypes_now",
    "shared",
]

CHUNK: Final = 25  # meetings at a time
MASKED: Final = -1e4  # below every real likeness; softmax turns it into exactly 0
ALIKE: Final = 0.5  # r
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


def lengthened(
    length: Float[Tensor, "..."],
    across: Float[Tensor, "..."],
    credited: Float[Tensor, "..."],
    squares: Float[Tensor, "..."],
) -> Float[Tensor, "..."]:
    """|P| from |V|, V . A, and the sums of what is credited and of its squares."""
    square = length.square() + 2 * across.clamp(min=0) + ALIKE * credited.square() + (1 - ALIKE) * squares
    return square.clamp(min=LENGTH_EPS**2).sqrt()


def prototypes_now(
    sums: Float[Tensor, "B V K D"],
    opened: Bool[Tensor, "B K"],
    keys: Float[Tensor, "B V N D"],
    unlabelled: Bool[Tensor, "B N"],
    credit: Credit | None,
) -> tuple[Float[Tensor, "B V K D"], Float[Tensor, "B K"]]:
    """The prototypes divided by their lengths, and how much is credited to each class.

    `sums` are of what was told, `keys` of the meetings remembered.
    """
    prototypes = unit_length(sums)  # [B, V, K, D]
    if credit is None:
        return prototypes, sums.new_zeros(opened.shape)
    likeness = credit.sharpness * (prototypes @ keys.mT).mean(1)  # [B, K, N]
    likeness = likeness.masked_fill(~opened[..., None], MASKED)  # [B, K, N]
    weight = shared(likeness[:, None], unlabelled[:, None], credit)  # [B, 1, K, N]
    added, credited = weight @ keys, weight.sum(-1)  # [B, V, K, D], [B, 1, K]
    length: Tensor = torch.linalg.vector_norm(sums, dim=-1)  # [B, V, K]
    whole = lengthened(length, (sums * added).sum(-1), credited, weight.square().sum(-1))  # [B, V, K]
    return (sums + added) / whole[..., None], credited[:, 0]


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
    (B, V, T, D), time = keys.shape, torch.arange(keys.shape[2], device=keys.device)
    labelled = given != UNLABELED  # [B, T]
    # The labelled meetings of each sequence, in order; where it has fewer than others, any follow. So below.
    S = max(1, int(labelled.sum(1).max()))
    named = (~labelled).long().argsort(dim=1, stable=True)[:, :S]  # [B, S]
    same = (given.gather(1, named)[..., None] == given[:, None]) & labelled[:, None]  # [B, S, T]
    versions = (same & (time <= named[..., None])).to(keys)[:, None] @ keys  # [B, V, S, D]
    alike = keys @ unit_length(versions).mT  # [B, V, T, S] of meeting and version
    opened = last >= 0  # [B, T, K]
    order = (labelled.cumsum(1) - 1).clamp(min=0)  # [B, T]
    current = order.gather(1, last.clamp(min=0).flatten(1)).view(last.shape)  # [B, T, K] the version in force
    of_views = current[:, None].expand(-1, V, -1, -1)  # [B, V, T, K]
    cosine = alike.gather(3, of_views) * opened[:, None]  # [B, V, T, K]
    if credit is None or bool(labelled.all()):
        return cosine, count
    U = int((~labelled).sum(1).max())
    when = labelled.long().argsort(dim=1, stable=True)[:, :U]  # [B, U] the unlabelled meetings
    apart = time[:, None] - when[:, None]  # [B, T, U]
    free = ~labelled.gather(1, when)[:, None] & (apart > 0) & (apart <= window)  # [B, T, U]
    rows = when[:, None, :, None]  # [B, 1, U, 1]
    met = keys.gather(2, rows.expand(-1, V, -1, D))  # [B, V, U, D]
    like = alike.gather(2, rows.expand(-1, V, -1, S)).mT  # [B, V, S, U] of version and unlabelled meeting
    length: Tensor = torch.linalg.vector_norm(versions, dim=-1)  # [B, V, S]
    # E, but for a factor, and R with what undoes it.
    likely = (credit.sharpness * like.mean(1) - credit.highest).exp()  # [B, S, U]
    most, every = _in_force(likely, torch.where(opened, current, S), free)  # [B, T, U] each
    known = credit.known(most.clamp(min=LEAST).log() + credit.highest) * free  # [B, T, U]
    share = known / every.clamp(min=LEAST)  # [B, T, U]
    # What that comes to for all versions at once, of which those in force are taken.
    crossed = likely[:, None] * like * length[..., None]  # [B, V, S, U]
    pooled = share @ torch.cat([likely, *crossed.unbind(1)], 1).mT  # [B, T, (1 + V) S]
    beside = (share[:, None] * (keys @ met.mT)).flatten(1, 2) @ likely.mT  # [B, V T, S]
    # Where every likeness is low E is tiny and R huge: single precision could not hold their squares.
    squares = (share.double().square() @ likely.double().square().mT).to(keys)  # [B, T, S]
    parts = [pooled.view(B, T, 1 + V, S).transpose(1, 2), squares[:, None], beside.view(B, V, T, S)]
    added = torch.cat(parts, 1).gather(3, current[:, None].expand(-1, 2 + 2 * V, -1, -1))
    credited, across = added[:, :1], added[:, 1 : 1 + V]
    square, dot = added[:, 1 + V : 2 + V], added[:, 2 + V :]
    own = length[:, :, None].expand(-1, -1, T, -1).gather(3, of_views)  # [B, V, T, K] |V_s|
    whole = lengthened(own, across, credited, square)  # [B, V, T, K]
    return (cosine * own + dot) / whole * opened[:, None], count + credited[:, 0] * opened


def order_of_naming(given: Int[Tensor, "B T"], slots: int) -> Int[Tensor, " K"]:
    """The slots by when any sequence was first told them; those never told come last."""
    first = one_hot(given, slots).cumsum(1).eq(0).sum(1).amin(0)  # [K]
    return first.argsort(dim=0, stable=True)


def _in_force(
    likely: Float[Tensor, "B S U"], current: Int[Tensor, "B T K"], free: Bool[Tensor, "B T U"]
) -> tuple[Float[Tensor, "B T U"], Float[Tensor, "B T U"]]:
    """The largest of the versions in force at every t, and their sum; `current` is that of each class, or S.

    0 where there is none, or where nothing is `free`.
    """
    (B, S, U), T = likely.shape, current.shape[1]
    force = likely.new_zeros(B, T, S + 1).scatter_(2, current, 1)[..., :S]  # [B, T, S]
    pieces, row = [], torch.arange(B, device=likely.device)[:, None, None] * (S + 1)
    for start in range(0, T, CHUNK):
        now = slice(start, start + CHUNK)
        some = (current[:, now] < S).any(0).any(0).nonzero(), free[:, now].any(0).any(0).nonzero()  # [n, 1]
        k, u = (int(each.max()) + 1 if len(each) else 0 for each in some)
        of_version = F.pad(likely[..., :u], (0, 0, 0, 1)).flatten(0, 1)  # [B (S + 1), u]
        rows = current[:, now, :k] + row  # [B, Q, k]
        if not (k and u):
            pieces.append(likely.new_zeros(B, rows.shape[1], U))
            continue
        of_class = of_version.index_select(0, rows.flatten()).view(*rows.shape, u)  # [B, Q, k, u]
        pieces.append(F.pad(of_class.amax(2), (0, U - u)))
    return torch.cat(pieces, 1), force @ likely
