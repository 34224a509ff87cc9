"""Which ResNet-12 learns most in the same time: widths and picture sizes, for the presets `*-imagenet-small`.

    python benchmarks/imagenet_sizes.py folder:PATH                  all that are missing, two minutes each
    python benchmarks/imagenet_sizes.py folder:PATH --only 32x16     one of them, again
    python benchmarks/imagenet_sizes.py --tables                     only fill docs/imagenet.md in

Each encoder is pretrained on single pictures for so many seconds of one processor (so other work on the
machine does not matter), then tested by Online ProtoNet as it is, on validation sequences. Writes
results/imagenet-sizes.json after every encoder.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from wanderlearn.bench.measure import measured_on
from wanderlearn.evaluate import gather
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.resnet12 import ResNet12Config
from wanderlearn.metrics import ap, known_accuracy
from wanderlearn.model import ModelConfig, build
from wanderlearn.optimiser import Optimiser
from wanderlearn.places import at_place, merged_place
from wanderlearn.presets import IMAGENET_PRESETS
from wanderlearn.pretrain import Pretraining
from wanderlearn.results import fill, markdown_table, read_result, write_result
from wanderlearn.schedule import rate_factor
from wanderlearn.worlds import Roaming, RoamingConfig, open_pictures

ROOT = Path(__file__).parents[1]
RESULT, PAGE = ROOT / "results" / "imagenet-sizes.json", ROOT / "docs" / "imagenet.md"
KIND = "imagenet-sizes"
PRESET = IMAGENET_PRESETS["protonet-imagenet-small"]
TRIED = ("32x8", "32x16", "32x24", "42x8", "42x16", "64x8")  # side x channels of the first block


def encoder_of(name: str) -> ResNet12Config:
    """The preset's encoder, for pictures of another size and with other channels."""
    size, first = (int(part) for part in name.split("x"))
    assert isinstance(PRESET.model.encoder, ResNet12Config)
    channels = tuple(first * 2**n for n in range(4))
    return replace(PRESET.model.encoder, image_size=size, channels=channels)


def measure(name: str, world: str, seconds: float, sequences: int) -> dict[str, Any]:
    """Pretrain one encoder and test it."""
    encoder = encoder_of(name)
    torch.manual_seed(0)
    learner = ProtoNetConfig(features=encoder.feature_dim, similarity="cosine")
    model = build(ModelConfig(encoder, learner))
    assert isinstance(PRESET.roaming, RoamingConfig)
    place = at_place(merged_place(world, PRESET.roaming.environments), model.config)
    roaming = replace(PRESET.roaming, crop_padding=max(1, encoder.image_size // 10))
    train, val = (Roaming(open_pictures(place, split), roaming) for split in ("train", "val"))
    assert PRESET.pretrain is not None
    config = PRESET.pretrain
    stage = Pretraining(model, train, config, seed=0)
    optimiser = Optimiser(stage.tensors(), config)
    model.train()
    step, start = 0, time.process_time()
    while (spent := (time.process_time() - start) / seconds) < 1:
        torch.manual_seed(step)
        losses = stage.losses(step)
        optimiser.step(losses["loss"], rate_factor(config.schedule, spent, step, config.warmup))
        step += 1
    record = gather(model, val, [val.meetings(0, n) for n in range(sequences)], 4)
    pictures = step * config.batch_size
    return {
        "encoder": name,
        "channels": list(encoder.channels),
        "million_multiplications": encoder.multiplications / 1e6,
        "parameters": sum(p.numel() for p in model.encoder.parameters()),
        "epochs": pictures / len(train.pictures.images),
        "milliseconds_per_picture": 1e3 * seconds / pictures,
        "validation_ap": 100 * ap(record),
        "validation_accuracy": 100 * known_accuracy(record),
    }


def tables(result: dict[str, Any], page: Path = PAGE) -> None:
    """Fill the page in, the best first."""
    rows = sorted(result["rows"], key=lambda row: -row["validation_ap"])
    columns = ["side", "channels", "million multiply-adds", "epochs", "ms per picture", "AP", "accuracy"]
    shown = [
        [
            int(row["encoder"].partition("x")[0]),
            ", ".join(map(str, row["channels"])),
            row["million_multiplications"],
            row["epochs"],
            row["milliseconds_per_picture"],
            f"{row['validation_ap']:.2f}",
            f"{row['validation_accuracy']:.2f}",
        ]
        for row in rows
    ]
    told = (
        f"After {result['seconds']:g} seconds of one processor each, Online ProtoNet on "
        f"{result['sequences']} validation sequences of {result['world']}, percent."
    )
    fill(page, "imagenet-sizes", f"{markdown_table(columns, shown)}\n\n{told}")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("world", nargs="?", help="folder:PATH or imagenet:PATH")
    asked.add_argument("--only", nargs="+", metavar="SIDExCHANNELS", help=f"such as {TRIED[0]}")
    asked.add_argument("--seconds", type=float, default=100.0, help="of one processor, for each encoder")
    asked.add_argument("--sequences", type=int, default=40, help="of validation")
    asked.add_argument("--result", type=Path, default=RESULT, help="where the result is written")
    asked.add_argument("--tables", action="store_true", help="measure nothing")
    words = asked.parse_args()
    torch.set_num_threads(1)
    result: dict[str, Any] = {"kind": KIND, "rows": []}
    if words.result.exists():
        result = read_result(words.result, KIND)
    there = {row["encoder"] for row in result["rows"]}
    for name in [] if words.tables else words.only or [name for name in TRIED if name not in there]:
        if words.world is None:
            asked.error("say which pictures: folder:PATH")
        row = measure(name, words.world, words.seconds, words.sequences)
        print(row, file=sys.stderr)
        rows = [other for other in result["rows"] if other["encoder"] != name]
        label = words.world.partition("?")[0].rstrip("/").rpartition("/")[2].rpartition(":")[2]
        result |= {"world": label, "seconds": words.seconds, "sequences": words.sequences}
        result |= {"measured_on": measured_on(), "rows": [*rows, row]}
        write_result(words.result, result)
    if words.result == RESULT and result["rows"]:
        tables(result)


if __name__ == "__main__":
    main()
