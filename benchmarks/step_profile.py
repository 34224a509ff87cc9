"""Where the time of a training step goes: the step of `wander train`, taken apart.

python benchmarks/step_profile.py        writes results/step-profile.json (about a minute)
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from wanderlearn.bench.measure import measured_on, noise_pictures
from wanderlearn.loss import sequence_loss
from wanderlearn.model import build
from wanderlearn.optimiser import Optimiser, trained
from wanderlearn.pictures.collection import Pictures
from wanderlearn.presets import PRESETS
from wanderlearn.results import write_result
from wanderlearn.worlds import Roaming, RoamingConfig


def step_profile(
    pictures: Pictures | None = None,
    *,
    roaming: RoamingConfig | None = None,
    batch_size: int = 16,
    rounds: int = 5,
) -> dict[str, dict[str, float]]:
    """Median seconds of every part of a CPM training step, with all labels and with few."""
    pictures, roaming = pictures or noise_pictures(), roaming or RoamingConfig()
    settings = {"told": False, "hidden": True}
    return {
        name: _profile(Roaming(pictures, replace(roaming, semi=semi)), batch_size, rounds)
        for name, semi in settings.items()
    }


def _profile(world: Roaming, batch_size: int, rounds: int) -> dict[str, float]:
    torch.manual_seed(0)
    preset = PRESETS["cpm-omniglot"]
    model = build(preset.model).train()
    tensors = trained(model.encoder, "encoder") + trained(model.learner, "learner")
    optimiser = Optimiser(tensors, preset.train)
    spent: dict[str, list[float]] = {}

    @contextmanager
    def part(name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        spent.setdefault(name, []).append(time.perf_counter() - start)

    for n in range(rounds + 1):
        with part("draw sequences and pictures"):
            batch = world.batch([world.meetings(0, n * batch_size + i) for i in range(batch_size)])
        with part("encoder, forward"):
            features = model.encoder(batch.images[batch.valid])  # [N, D]
            placed = features.new_zeros(*batch.valid.shape, features.shape[-1])
            placed = placed.index_put((batch.valid,), features)  # [B, T, D]
        # The gradient is stopped here, so that the two backward passes can be timed apart.
        met = placed.detach().requires_grad_()
        with part("context and memory, forward"):
            answers = model.learner(met, batch.given, world.slots)
        with part("loss"):
            loss = sequence_loss(answers, batch.target, batch.valid).total
        model.zero_grad(set_to_none=True)
        with part("context and memory, backward"):
            loss.backward()  # type: ignore[no-untyped-call]
        with part("encoder, backward"):
            placed.backward(met.grad)
        with part("cap and Adam"):
            # A loss whose gradient is nothing: what is left is the optimiser's own work.
            optimiser.step(sum(p.sum() * 0 for p in model.parameters()) + torch.zeros(()), 1.0)
    return {name: median(seconds[1:]) for name, seconds in spent.items()}


def main(results: Path = Path(__file__).parents[1] / "results") -> None:
    figures: dict[str, Any] = {"kind": "step-profile", "parts": step_profile(), "measured_on": measured_on()}
    write_result(results / "step-profile.json", figures)


if __name__ == "__main__":
    main()
