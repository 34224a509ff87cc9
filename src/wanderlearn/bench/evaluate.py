"""How many sequences are evaluated per second, and what that costs beside the encoder's own forward."""

from dataclasses import replace
from statistics import median
from typing import Any

import torch

from wanderlearn.bench.measure import interleaved, median_ratio, noise_pictures
from wanderlearn.evaluate import gather
from wanderlearn.model import build
from wanderlearn.pictures.collection import Pictures
from wanderlearn.presets import PRESETS
from wanderlearn.worlds import Roaming, RoamingConfig

__all__ = ["bench_evaluate"]


def bench_evaluate(
    pictures: Pictures | None = None,
    *,
    roaming: RoamingConfig | None = None,
    batch_size: int = 16,
    batches: int = 2,
    rounds: int = 5,
) -> dict[str, Any]:
    """Evaluation of a CPM of the paper's size, pictures and batches included.

    `evaluation_over_encoder`: its time over the encoder's forward alone on the same pictures, drawn
    beforehand; `..._semi` where the memory also writes by itself.
    """
    torch.manual_seed(0)
    pictures, roaming = pictures or noise_pictures("test"), roaming or RoamingConfig()
    told, hidden = (Roaming(pictures, replace(roaming, semi=semi)) for semi in (False, True))
    count = batch_size * batches
    sequences = {world: [world.meetings(0, i) for i in range(count)] for world in (told, hidden)}
    model = build(PRESETS["cpm-omniglot"].model).eval()
    drawn = [told.batch(sequences[told][start : start + batch_size]) for start in range(0, count, batch_size)]
    shown = [batch.images[batch.valid] for batch in drawn]  # [N, C, H, W] each

    def encode() -> None:
        with torch.inference_mode():
            for some in shown:
                model.encoder(some)

    seconds = interleaved(
        {
            "encoder": encode,
            "evaluation": lambda: gather(model, told, sequences[told], batch_size),
            "semi": lambda: gather(model, hidden, sequences[hidden], batch_size),
        },
        rounds,
    )
    return {
        "sequences_per_second": count / median(seconds["evaluation"]),
        "sequences_per_second_semi": count / median(seconds["semi"]),
        "evaluation_over_encoder": median_ratio(seconds["evaluation"], seconds["encoder"]),
        "evaluation_over_encoder_semi": median_ratio(seconds["semi"], seconds["encoder"]),
        "encoder_pictures_per_second": sum(map(len, shown)) / median(seconds["encoder"]),
        "batch_size": batch_size,
    }
