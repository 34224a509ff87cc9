"""How much a step counts in naming: more where it is rarely asked about, as of a class told often, long ago.

A learner that knows age and count also knows how rarely such a class returns, and where it is in doubt names
another. That is right on the whole, and wrong for whoever asks about just those. With `balance` g a step
counts 1 - g + g / p[n, a], the second part scaled to a mean of 1, where p[n, a] is the share of known steps
whose class was told n times (once, twice or more often) and last met as long ago as this one's (up to 20
meetings, up to 50, or more). So of what counts a share g is divided among all kinds alike: at 0 all steps
count the same, at 1 all kinds do. With more kinds than these most of that share went to what hardly ever
happens, such as something told six times.
"""

from collections.abc import Sequence
from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from wanderlearn.learners.matchingnet import one_hot
from wanderlearn.worlds.sequence import UNLABELED, Meetings
from wanderlearn.worlds.world import World

__all__ = ["Rarity", "rarity_of"]

MOST_TOLD: Final = 3  # more often is counted as this
LONG: Final = (20, 50)  # where kinds of "long ago" end
LEAST: Final = 20  # so often a kind is taken to have been asked about at least
SAMPLE: Final = 500  # sequences, to count what is asked about how often


class Rarity:
    """Weights of steps by how often their class was told and how long ago it was met, from a sample."""

    def __init__(self, sample: Sequence[Meetings], slots: int, balance: float) -> None:
        self.slots = slots
        asked = torch.zeros(MOST_TOLD * (len(LONG) + 1))
        for each in sample:
            given, target = (torch.from_numpy(x)[None] for x in (each.given, each.target))
            kind, known = self._kind(given, target)
            asked += torch.bincount(kind[known], minlength=len(asked))
        alike = 1 / asked.clamp(min=LEAST)  # [kinds]
        self.weight = 1 - balance + balance * alike * asked.sum() / (alike * asked).sum()

    def __call__(self, given: Int[Tensor, "B T"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """The weight of every step; 0 where the target is not a class."""
        kind, known = self._kind(given, target)
        return self.weight.to(given.device)[kind] * known

    def _kind(self, given: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """The kind of every step [B, T], and whether it is of a known class."""
        known = target >= 0  # [B, T]
        told = one_hot(given, self.slots)  # [B, T, K]
        met = (told > 0) | (one_hot(target.clamp(min=UNLABELED), self.slots) > 0)  # [B, T, K]
        time = torch.arange(given.shape[1], device=given.device)  # [T]
        last = torch.where(met, time[:, None], -1).cummax(1).values  # [B, T, K]
        last = F.pad(last[:, :-1], (0, 0, 1, 0), value=-1)  # [B, T, K] before this
        slot = target.clamp(min=0)[..., None]  # [B, T, 1]
        count = (told.cumsum(1) - told).gather(2, slot)[..., 0]  # [B, T]
        ago = time - last.gather(2, slot)[..., 0]  # [B, T]
        ends = torch.tensor(LONG, device=given.device)
        return (count.clamp(1, MOST_TOLD) - 1) * (len(LONG) + 1) + torch.bucketize(ago, ends), known


def rarity_of(world: World, seed: int, balance: float) -> Rarity | None:
    """The weights of steps in this world; none at a balance of 0, where all count the same."""
    if not balance:
        return None
    return Rarity([world.meetings(seed, i) for i in range(SAMPLE)], world.slots, balance)
