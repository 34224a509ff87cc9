"""The pretrained encoders for Omniglot that come with the package, made as they were made.

    python benchmarks/omniglot_encoders.py               about two and a half hours of one core, in all
    python benchmarks/omniglot_encoders.py --runs DIR    keep run folders there; what was interrupted goes on

Three runs, one after the other, each a pretraining and nothing else:

    encoder-omniglot-resnet    the teacher, a small ResNet-12: names of pictures that are bent and mirrored
    encoder-omniglot-named     Conv4, by names
    encoder-omniglot           the same Conv4, which goes on learning from the teacher

The first and the last are copied to src/wanderlearn/weights/encoders, as omniglot-resnet and omniglot. All
rows of the tables start with one of the two: `python benchmarks/omniglot.py`.
"""

import argparse
import shutil
from pathlib import Path

from wanderlearn.presets.pretrained import OMNIGLOT_TEACHING
from wanderlearn.shipped import ENCODERS
from wanderlearn.table_rows import pretrained

ROOT = Path(__file__).parents[1]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("--runs", type=Path, default=ROOT / "runs", help="where run folders are kept")
    runs = asked.parse_args().runs
    teacher = pretrained("protonet-omniglot-resnet", runs / "encoder-omniglot-resnet")
    named = pretrained("protonet-omniglot", runs / "encoder-omniglot-named")
    how = OMNIGLOT_TEACHING
    words = ["--encoder", str(named), "--pretrain.teacher", str(teacher), "--pretrain.mirror"]
    words += ["--pretrain.epochs", f"{how.epochs:g}", "--pretrain.turn", f"{how.turn:g}"]
    words += ["--pretrain.lr", f"{how.lr:g}", "--pretrain.classifier-lr", f"{how.classifier_lr:g}"]
    words += ["--pretrain.scale", f"{how.scale:g}", "--pretrain.warmup", str(how.warmup)]
    taught = pretrained("protonet-omniglot", runs / "encoder-omniglot", *words)
    for run, name in ((teacher, "omniglot-resnet"), (taught, "omniglot")):
        shutil.copy(run / "pretrained" / "model.safetensors", ENCODERS / f"{name}.safetensors")


if __name__ == "__main__":
    main()
