"""How many sequences one core draws, without and with their pictures."""

from statistics import median
from typing import Any

from wanderlearn.bench.measure import interleaved, noise_pictures
from wanderlearn.pictures.collection import Pictures
from wanderlearn.worlds import Roaming, RoamingConfig

__all__ = ["bench_sampler"]


def bench_sampler(
    pictures: Pictures | None = None, *, batch_size: int = 16, batches: int = 8, rounds: int = 5
) -> dict[str, Any]:
    """Sequences per second in one process, on one core.

    `sequences_per_second`: which picture is met when, what is told and what is right.
    `sequences_with_pictures_per_second`: the same, then cropped, occluded and stacked into batches.
    """
    world = Roaming(pictures or noise_pictures(), RoamingConfig())
    semi = Roaming(world.pictures, RoamingConfig(semi=True))
    count = batch_size * batches

    def with_pictures() -> None:
        for start in range(0, count, batch_size):
            world.batch([world.meetings(0, start + i) for i in range(batch_size)])

    seconds = interleaved(
        {
            "order": lambda: [world.meetings(0, i) for i in range(count)],
            "semi": lambda: [semi.meetings(0, i) for i in range(count)],
            "pictures": with_pictures,
        },
        rounds,
    )
    return {
        "sequences_per_second": count / median(seconds["order"]),
        "sequences_per_second_semi": count / median(seconds["semi"]),
        "sequences_with_pictures_per_second": count / median(seconds["pictures"]),
        "batch_size": batch_size,
    }
