"""How the cost of CPM beside its encoder grows with sequence length, classes, batch and feature width.

python benchmarks/cost_growth.py        writes results/cost-growth.json (about two minutes)
"""

from collections.abc import Callable, Mapping, Sequence
from math import log
from pathlib import Path
from statistics import median
from typing import Any

import torch

from wanderlearn.bench.measure import interleaved, measured_on
from wanderlearn.learners.cpm import CPM, CPMConfig
from wanderlearn.results import write_result
from wanderlearn.worlds import UNLABELED

BASE = {"length": 150, "classes": 50, "batch": 16, "features": 64}
AXES: Mapping[str, Sequence[int]] = {
    "length": (75, 150, 300, 600),
    "classes": (25, 50, 100, 200),
    "batch": (4, 8, 16, 32),
    "features": (32, 64, 128, 256),
}
SETTINGS = {"told": 1.0, "hidden": 0.4}  # the share of meetings that come with their name


def cost_growth(
    base: Mapping[str, int] = BASE, axes: Mapping[str, Sequence[int]] = AXES, rounds: int = 5
) -> dict[str, Any]:
    """Seconds of the learner's forward and backward along each axis, the other sizes as in `base`.

    The exponent is the slope of log seconds over log size between the two largest sizes: 1 is linear.
    """
    found: dict[str, Any] = {}
    for axis, sizes in axes.items():
        work = {
            f"{size} {setting}": _learning(**{**base, axis: size}, labelled=labelled)
            for size in sizes
            for setting, labelled in SETTINGS.items()
        }
        seconds = {name: median(measured) for name, measured in interleaved(work, rounds).items()}
        rows = [{"size": n} | {setting: seconds[f"{n} {setting}"] for setting in SETTINGS} for n in sizes]
        fewer, more = rows[-2:]
        exponents = {
            setting: log(more[setting] / fewer[setting]) / log(more["size"] / fewer["size"])
            for setting in SETTINGS
        }
        found[axis] = {"seconds": rows, "exponent": exponents}
    return {"base": dict(base), "axes": found}


def _learning(*, length: int, classes: int, batch: int, features: int, labelled: float) -> Callable[[], None]:
    """CPM's forward and backward on random features, from answers to the gradient of the features."""
    torch.manual_seed(0)
    learner = CPM(CPMConfig(features=features)).train()
    met = torch.randn(batch, length, features, requires_grad=True)
    truth = torch.randint(classes, (batch, length))
    given = torch.where(torch.rand(batch, length) < labelled, truth, UNLABELED)

    def run() -> None:
        answers = learner(met, given, classes)
        (answers.scores.clamp(min=-100).mean() + answers.novelty.mean()).backward()
        learner.zero_grad(set_to_none=True)
        met.grad = None

    return run


def main(results: Path = Path(__file__).parents[1] / "results") -> None:
    figures = {"kind": "cost-growth", **cost_growth(), "measured_on": measured_on()}
    write_result(results / "cost-growth.json", figures)


if __name__ == "__main__":
    main()
