"""Half precision: the loss is scaled up before the backward pass, so that small gradients are not lost."""

from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor

__all__ = ["LossScale"]

FIRST: Final = 2.0**16
LEAST: Final = 2.0**-10  # below it the gradients themselves are no numbers
PATIENCE: Final = 2000  # steps without an overflow after which the scale is doubled


class LossScale:
    """Doubled every so often, halved at every overflow, whose step is then left out.

    It goes by gradients that are summed already, so all processes do the same.
    """

    def __init__(self) -> None:
        self.value, self.since = FIRST, 0

    def overflowed(self) -> bool:
        """The gradient was no number: try again with half of it. False if that is of no use any more."""
        self.value, self.since = self.value / 2, 0
        return self.value >= LEAST

    def went_well(self) -> None:
        """A step was taken."""
        self.since += 1
        if self.since == PATIENCE:
            self.value, self.since = self.value * 2, 0

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint keeps."""
        return {"scale": torch.tensor([self.value, float(self.since)], dtype=torch.float64)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on as `state` says, if it does."""
        if "scale" in state:
            self.value, self.since = float(state["scale"][0]), int(state["scale"][1])
