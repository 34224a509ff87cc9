"""BatchNorm's statistics over the parts of a batch that lie in several processes.

An encoder knows nothing of processes: it is given a function that sums a tensor over all parts.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wanderlearn.errors import WanderError

__all__ = ["Total", "joint_moments", "synchronise"]

Total = Callable[[Tensor], Tensor]


def joint_moments(
    mean: Float[Tensor, " K"], variance: Float[Tensor, " K"], count: int, total: Total
) -> tuple[Float[Tensor, " K"], Float[Tensor, " K"], float]:
    """Mean, biased variance and count of the whole, from those of this part (whose count may be 0)."""
    m, v = mean.double(), variance.double()  # with twice the digits, squares may be subtracted
    sums = torch.cat([m, v + m.square(), torch.ones_like(m[:1])])
    sums = sums * count if count else torch.zeros_like(sums)  # nothing has a mean that is no number
    first, second, counts = total(sums).split([len(m), len(m), 1])  # type: ignore[no-untyped-call]
    m = first / counts
    return m.to(mean.dtype), (second / counts - m.square()).clamp_min_(0).to(mean.dtype), float(counts)


def synchronise(encoder: nn.Module, total: Total | None) -> None:
    """From now on BatchNorm, in training, uses the statistics of all parts; with None those of its own."""
    parts = [module for module in encoder.modules() if hasattr(module, "total")]
    if total is not None and not parts and any(True for _ in encoder.parameters()):
        raise WanderError(
            f"{type(encoder).__name__} cannot synchronise its BatchNorm. Leave out --train.sync-batch-norm: "
            "every process then uses the statistics of its own share."
        )
    for module in parts:
        module.total = total  # type: ignore[assignment]
