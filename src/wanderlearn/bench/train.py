"""What a whole training step costs beside the encoder's own forward and backward on the same pictures."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import torch

from wanderlearn.bench.measure import interleaved, median_ratio, noise_pictures
from wanderlearn.errors import WanderError
from wanderlearn.model import Model, build
from wanderlearn.optimiser import Optimiser
from wanderlearn.pictures.collection import Pictures
from wanderlearn.presets import METHODS, PRESETS
from wanderlearn.sequence_training import SequenceTraining
from wanderlearn.worlds import Roaming, RoamingConfig

__all__ = ["bench_train", "encoding", "training"]


def bench_train(
    learners: Sequence[str] = (),
    pictures: Pictures | None = None,
    *,
    roaming: RoamingConfig | None = None,
    batch_size: int = 16,
    rounds: int = 5,
) -> dict[str, Any]:
    """A training step of CPM, from sampling to optimiser, over the encoder alone; and of other `learners`.

    `step_over_encoder`: every label told. `step_over_encoder_semi`: most hidden, so that the memory writes by
    itself. `peak_memory_gb` is the most this process has ever held.
    """
    for name in learners:
        if name not in METHODS:
            raise WanderError(f"There is no learner {name!r} to measure. Choose one of {', '.join(METHODS)}.")
    pictures, roaming = pictures or noise_pictures(), roaming or RoamingConfig()
    figures = _measured("cpm", pictures, roaming, batch_size, rounds)
    figures |= {
        name: _measured(name, pictures, roaming, batch_size, rounds) for name in learners if name != "cpm"
    }
    return figures | {"batch_size": batch_size, "length": roaming.length, "peak_memory_gb": _peak_memory()}


def _measured(
    name: str, pictures: Pictures, roaming: RoamingConfig, batch_size: int, rounds: int
) -> dict[str, Any]:
    torch.manual_seed(0)
    model = build(PRESETS[f"{name}-omniglot"].model).train()
    told, hidden = (Roaming(pictures, replace(roaming, semi=semi)) for semi in (False, True))
    seconds = interleaved(
        {
            "encoder": encoding(model, told, batch_size),
            "step": training(model, told, batch_size),
            "semi": training(model, hidden, batch_size),
        },
        rounds,
    )
    return {
        "step_over_encoder": median_ratio(seconds["step"], seconds["encoder"]),
        "step_over_encoder_semi": median_ratio(seconds["semi"], seconds["encoder"]),
        "encoder_seconds": median(seconds["encoder"]),
        "step_seconds": median(seconds["step"]),
        "step_seconds_semi": median(seconds["semi"]),
    }


def encoding(model: Model, world: Roaming, batch_size: int) -> Callable[[], None]:
    """The encoder's forward and backward on the pictures of one batch, drawn beforehand: the floor."""
    batch = world.batch([world.meetings(0, i) for i in range(batch_size)])
    pictures = batch.images[batch.valid]  # [N, C, H, W]
    with torch.no_grad():
        gradient = torch.randn_like(model.encoder(pictures))

    def run() -> None:
        model.encoder(pictures).backward(gradient)
        model.zero_grad(set_to_none=True)

    return run


def training(model: Model, world: Roaming, batch_size: int) -> Callable[[], None]:
    """The very step of `wander train`: draw, answer, loss, gradient, cap, Adam.

    Always step 0, so on the same pictures as `encoding`, whose sequences have the same numbers.
    """
    config = replace(PRESETS["cpm-omniglot"].train, batch_size=batch_size, steps=1, workers=0)
    stage = SequenceTraining(model, world, config)
    optimiser = Optimiser(stage.tensors(), config)

    def run() -> None:
        optimiser.step(stage.losses(0)["loss"], 1.0)

    return run


def _peak_memory() -> float | None:
    """In gigabytes; None where the system does not say."""
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e9 if sys.platform == "darwin" else most * 1024 / 1e9  # kilobytes on Linux
