"""Muon: steps that turn a kernel in all its directions alike, where Adam's follow the few that are steep.

The momentum of the gradient, as a matrix [outputs, inputs x 3 x 3], is replaced by the nearest matrix whose
singular values are all about one, found by a few products of matrices; so each step turns the kernel by a
known share of its length. Only for kernels that a BatchNorm follows: there the length means nothing, and it
is kept at that of the step.
"""

from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor, nn

__all__ = ["Muon", "orthogonal"]

MOMENTUM: Final = 0.95
ROUNDS: Final = 5
# An odd polynomial that brings singular values from (0, 1] near one in few rounds: it overshoots a little
# (0.7 to 1.2), which does no harm.
LINEAR, CUBIC, QUINTIC = 3.4445, -4.7750, 2.0315


def orthogonal(matrix: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    """The matrix with all its singular values brought to about one; zero stays zero."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-12)
    for _ in range(ROUNDS):
        square = x @ x.T
        x = LINEAR * x + (CUBIC * square + QUINTIC * square @ square) @ x
    return x.T if tall else x


class Muon:
    """Turns kernels; for each, `turn` is the share of its length that a full step moves it by."""

    def __init__(self, kernels: dict[str, nn.Parameter], turns: dict[str, float]) -> None:
        self.kernels, self.turns = kernels, turns
        self.momentum = {name: torch.zeros_like(kernel) for name, kernel in kernels.items()}

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """One step down the gradients, at `factor` times the full turn."""
        for name, kernel in self.kernels.items():
            if kernel.grad is None:
                continue
            momentum = self.momentum[name].lerp_(kernel.grad, 1 - MOMENTUM)
            ahead = torch.lerp(kernel.grad, momentum, MOMENTUM).flatten(1)  # where the momentum will be next
            step = orthogonal(ahead)
            length = min(step.shape) ** 0.5  # of a matrix whose singular values are all one
            kernel.mul_(length / kernel.norm())
            kernel.add_(step.view_as(kernel), alpha=-self.turns[name] * factor)
            kernel.mul_(length / kernel.norm())
