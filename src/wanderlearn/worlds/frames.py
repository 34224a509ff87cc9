"""Frames in which several things are met: each frame is kept once, each thing is a mask over it."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["Frames"]


class Frames(NamedTuple):
    """N meetings in F frames. An encoder that can looks at a frame once, however often it is met."""

    rgb: Float[Tensor, "F C H W"]  # in [-1, 1]
    masks: Float[Tensor, "N 1 H W"]  # 1 where the thing is, 0 elsewhere
    of: Int[Tensor, " N"]  # which frame a meeting is in

    def to(self, device: torch.device, non_blocking: bool = False) -> "Frames":
        """The same on a device."""
        return Frames(*(tensor.to(device, non_blocking=non_blocking) for tensor in self))

    def whole(self) -> Float[Tensor, "N C H W"]:
        """A picture for every meeting, its mask as the last channel: what it is without frames."""
        return torch.cat([self.rgb[self.of], self.masks], 1)

    def parted(self, lengths: Sequence[int]) -> "list[Frames]":
        """The meetings in parts of these lengths, each with its own frames only."""
        parts = []
        masks_of, frames_of = (torch.split(each, list(lengths)) for each in (self.masks, self.of))
        for masks, of in zip(masks_of, frames_of, strict=True):
            own, place = torch.unique(of, return_inverse=True)
            parts.append(Frames(self.rgb[own], masks, place))
        return parts
