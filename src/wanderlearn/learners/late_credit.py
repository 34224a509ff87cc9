"""Late credit along whole sequences: what was met without a label counts for the classes known later.

At every meeting all unlabelled ones before it are shared out anew among the classes known by then. That is
meetings x classes x unlabelled meetings, so it is done some meetings at a time, each with only the classes
that were opened and the meetings that were met until then.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from wanderlearn.learners.matchingnet import one_hot
from wanderlearn.learners.prototypes import unit_length
from wanderlearn.learners.self_writing import LENGTH_EPS
from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["MASKED", "Versions", "credited", "order_of_naming", "prototypes_along"]

CHUNK: Final = 25  # meetings at a time

MASKED: Final = -1e4  # below every real likeness; softmax turns it into exactly 0

Share = Callable[[Tensor, Tensor], Tensor]


class Versions(NamedTuple):
    """Every labelled prototype there ever is, and which of them are in force when.

    Version s is "the class of meeting s after meeting s was told".
    """

    sums: Float[Tensor, "B V T D"]
    likeness: Float[Tensor, "B T T"]  # of meeting and version
    current: Int[Tensor, "B T K"]  # the version of each class before meeting t
    opened: Bool[Tensor, "B T K"]  # whether there is one


def prototypes_along(
    keys: Float[Tensor, "B V T D"],
    given: Int[Tensor, "B T"],
    last: Int[Tensor, "B T K"],
    count: Float[Tensor, "B T K"],
    sharpness: Tensor | None,
    share: Share,
    window: int,
) -> tuple[Float[Tensor, "B V T K"], Float[Tensor, "B T K"]]:
    """Cosines to the prototypes at every t, and the counts, both with late credit.

    `last` is when each class was told before t (or -1), and `count` how often. `sharpness` multiplies
    cosines before they are shared out; without one nothing is credited.

    One label changes one class, so every labelled prototype there ever is is a version: "the class of
    meeting s after it was told". All meetings are compared with all versions in one product.
    """
    labelled = given != UNLABELED  # [B, T]
    same = (given[:, :, None] == given[:, None, :]) & labelled[:, :, None]  # [B, T, T]
    versions = same.tril().to(keys)[:, None] @ keys  # [B, V, T, D]
    alike = keys @ unit_length(versions).mT  # [B, V, T, T] of meeting and version
    current, opened = last.clamp(min=0), last >= 0  # [B, T, K]
    cosine = alike.gather(3, current[:, None].expand(-1, keys.shape[1], -1, -1)) * opened[:, None]
    if sharpness is None or bool(labelled.all()):
        return cosine, count
    all_versions = Versions(versions, sharpness * alike.mean(1), current, opened)
    cosine, credit = credited(keys, given, all_versions, cosine, share, window)
    return cosine, count + credit


def order_of_naming(given: Int[Tensor, "B T"], slots: int) -> Int[Tensor, " K"]:
    """The slots by when any sequence was first told them; those never told come last."""
    first = one_hot(given, slots).cumsum(1).eq(0).sum(1).amin(0)  # [K]
    return first.argsort(dim=0, stable=True)


def credited(
    keys: Float[Tensor, "B V T D"],
    given: Int[Tensor, "B T"],
    versions: Versions,
    cosine: Float[Tensor, "B V T K"],
    share: Share,
    window: int,
) -> tuple[Float[Tensor, "B V T K"], Float[Tensor, "B T K"]]:
    """Cosines to the prototypes with late credit, and how much was credited.

    `cosine` is without late credit. `share` says to which classes unlabelled meetings go. Slots are best
    numbered by when they are first told: a chunk looks at all up to the last that is open.
    """
    parts = [
        _chunk(keys, given, versions, cosine, share, window, start)
        for start in range(0, given.shape[1], CHUNK)
    ]
    return torch.cat([part[0] for part in parts], 2), torch.cat([part[1] for part in parts], 1)


def _chunk(
    keys: Float[Tensor, "B V T D"],
    given: Int[Tensor, "B T"],
    versions: Versions,
    cosine: Float[Tensor, "B V T K"],
    share: Share,
    window: int,
    start: int,
) -> tuple[Float[Tensor, "B V Q K"], Float[Tensor, "B Q K"]]:
    (B, V, T, D), slots = keys.shape, cosine.shape[3]
    end = min(start + CHUNK, T)
    Q, now = end - start, slice(start, end)
    ever = versions.opened[:, end - 1].any(0)  # [K]
    K = int(ever.nonzero().max()) + 1 if bool(ever.any()) else 0
    labelled = given[:, : end - 1] != UNLABELED  # [B, end - 1]
    U = int((~labelled).sum(1).max()) if end > 1 else 0
    before, rest = cosine[:, :, now], cosine.new_zeros(B, Q, slots)  # [B, V, Q, K], [B, Q, K]
    if not (K and U):
        return before, rest
    when = labelled.long().argsort(dim=1, stable=True)[:, :U]  # [B, U] the unlabelled ones come first
    time = torch.arange(start, end, device=given.device)[:, None]  # [Q, 1]
    apart = time - when[:, None]  # [B, Q, U]
    free = ~labelled.gather(1, when)[:, None] & (apart > 0) & (apart <= window)  # [B, Q, U]
    opened = versions.opened[:, now, :K]  # [B, Q, K]
    row = torch.arange(B, device=given.device)[:, None, None] * T  # [B, 1, 1]
    current = (versions.current[:, now, :K] + row).flatten()  # [B Q K] rows of all versions of all sequences
    of_free = versions.likeness.gather(1, when[..., None].expand(-1, -1, T))  # [B, U, T]
    masked = F.pad(of_free.mT.reshape(B * T, U), (0, 0, 0, 1), value=MASKED)  # [B T + 1, U]
    likeness = masked.index_select(0, torch.where(opened.flatten(), current, B * T)).view(B, Q, K, U)
    weight = share(likeness, free)  # [B, Q, K, U]
    flat, found = weight.view(B, Q * K, U), []
    for v in range(V):
        met = keys[:, v].gather(1, when[..., None].expand(-1, -1, D))  # [B, U, D]
        told = versions.sums[:, v].reshape(B * T, D).index_select(0, current).view(B, Q * K, D)
        prototype = torch.baddbmm(told, flat, met).view(B * Q, K, D)
        dot = (prototype @ keys[:, v, now].reshape(B * Q, D, 1)).view(B, Q, K)
        length: Tensor = torch.linalg.vector_norm(prototype, dim=-1)  # [B Q, K]
        found.append(dot / length.clamp(min=LENGTH_EPS).view(B, Q, K) * opened)  # [B, Q, K]
    completed = torch.cat([torch.stack(found, 1), before[..., K:]], -1)  # [B, V, Q, slots]
    return completed, torch.cat([weight.sum(-1), rest[..., K:]], -1)
