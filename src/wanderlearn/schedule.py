"""How the learning rate moves along a run: by how much of the budget is spent, in steps or in minutes."""

from math import cos, pi
from typing import Literal

from wanderlearn.errors import WanderError

__all__ = ["Schedule", "rate_factor", "refuse_budget", "spent"]

Schedule = Literal["piecewise", "cosine", "constant"]


def spent(step: int, seconds: float, steps: int | None, minutes: float | None) -> float:
    """The part of the budget that is spent, from 0 to 1: of steps or of minutes, whichever is more."""
    parts = [step / steps] if steps else []
    parts += [seconds / (60 * minutes)] if minutes else []
    if not parts:
        raise WanderError("A run needs a budget: give steps, minutes or both, each above 0.")
    return min(1.0, max(parts))


def refuse_budget(stage: str, steps: int | None, minutes: float | None) -> None:
    """Budgets below 0 are never spent."""
    for name, amount in (("steps", steps), ("minutes", minutes)):
        if amount is not None and not amount >= 0:
            raise WanderError(f"{stage}.{name} must not be below 0, but it is {amount:g}.")


def rate_factor(schedule: Schedule, progress: float, step: int = 0, warmup: int = 0) -> float:
    """What the learning rate is multiplied with after `progress` (0 to 1) of the budget.

    "piecewise" is the authors': a tenth after one half, a hundredth after three quarters. A warm-up lets the
    rate grow evenly over the first `warmup` steps.

    >>> [rate_factor("piecewise", progress) for progress in (0.5, 0.6, 0.8)]
    [1.0, 0.1, 0.01]
    """
    warm = min(1.0, (step + 1) / warmup) if warmup else 1.0
    if schedule == "constant":
        return warm
    if schedule == "cosine":
        return warm * (1 + cos(pi * progress)) / 2
    return warm * (1.0 if progress <= 1 / 2 else 0.1 if progress <= 3 / 4 else 0.01)
