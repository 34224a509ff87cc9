"""Muon: steps that move a matrix in all its directions alike, where Adam's follow the few that are steep.

The momentum of the gradient is replaced by the nearest matrix whose singular values are all about one, found
by a few products of matrices. A kernel [outputs, inputs, 3, 3] is such a matrix, too; a BatchNorm follows it,
so its length means nothing: it is kept at that of the step, and a step turns it by a known share. Any other
matrix moves as far as Adam would move it at the same learning rate.
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
AS_ADAM: Final = 0.2  # about what an entry moves in a step of Adam, as a part of the learning rate


def orthogonal(matrix: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    """The matrix with all its singular values brought to about one; zero stays zero."""
    tall = matrix.shape[0] > matrix.shape[1]
    x: Tensor = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-12)
    for _ in range(ROUNDS):
        square = x @ x.T
        x = LINEAR * x + (CUBIC * square + QUINTIC * square @ square) @ x
    return x.T if tall else x


class Muon:
    """Moves kernels and matrices; `sizes` are shares of a kernel's length, and learning rates of a matrix."""

    def __init__(self, tensors: dict[str, nn.Parameter], sizes: dict[str, float]) -> None:
        self.tensors, self.sizes = tensors, sizes
        self.momentum = {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """One step down the gradients, at `factor` times the full size."""
        for name, tensor in self.tensors.items():
            if tensor.grad is None:
                continue
            momentum = self.momentum[name].lerp_(tensor.grad, 1 - MOMENTUM)
            ahead = torch.lerp(tensor.grad, momentum, MOMENTUM).flatten(1)  # where the momentum will be next
            step, size = orthogonal(ahead), self.sizes[name] * factor
            if tensor.ndim == 2:
                tensor.add_(step, alpha=-size * AS_ADAM * max(step.shape) ** 0.5)
                continue
            length = min(step.shape) ** 0.5  # of a matrix whose singular values are all one
            tensor.mul_(length / tensor.norm())
            tensor.add_(step.view_as(tensor), alpha=-size)
            tensor.mul_(length / tensor.norm())
