"""The pretrained encoders for Omniglot that come with the package, made as they were made.

    python benchmarks/omniglot_encoders.py               about three hours of one core, in all
    python benchmarks/omniglot_encoders.py --runs DIR    keep run folders there; what was interrupted goes on

Five runs, one after the other, each a pretraining and nothing else:

    encoder-omniglot-teacher   a small ResNet-12: names of pictures that are bent and mirrored
    encoder-omniglot-named     Conv4, by names
    encoder-omniglot-taught    the same Conv4, which goes on learning from the teacher
    encoder-omniglot           the same, and pictures are where a test shows them
    encoder-omniglot-resnet    the teacher, which goes on in that way, too, and is its own teacher

The last two are copied to src/wanderlearn/weights/encoders, as omniglot and omniglot-resnet. All rows of the
tables start with one of the two: `python benchmarks/omniglot.py`.
"""

import argparse
import shutil
from pathlib import Path

from wanderlearn.presets.pretrained import OMNIGLOT_FINISH, OMNIGLOT_TEACHER_FINISH, OMNIGLOT_TEACHING
from wanderlearn.shipped import ENCODERS
from wanderlearn.table_rows import going_on, pretrained

ROOT = Path(__file__).parents[1]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("--runs", type=Path, default=ROOT / "runs", help="where run folders are kept")
    runs = asked.parse_args().runs
    small, large = "protonet-omniglot", "protonet-omniglot-resnet"
    teacher = pretrained(large, runs / "encoder-omniglot-teacher")
    named = pretrained(small, runs / "encoder-omniglot-named")
    taught = pretrained(small, runs / "encoder-omniglot-taught", *going_on(named, teacher, OMNIGLOT_TEACHING))
    finished = pretrained(small, runs / "encoder-omniglot", *going_on(taught, teacher, OMNIGLOT_FINISH))
    words = going_on(teacher, teacher, OMNIGLOT_TEACHER_FINISH)
    stronger = pretrained(large, runs / "encoder-omniglot-resnet", *words)
    for run, name in ((finished, "omniglot"), (stronger, "omniglot-resnet")):
        shutil.copy(run / "pretrained" / "model.safetensors", ENCODERS / f"{name}.safetensors")


if __name__ == "__main__":
    main()
