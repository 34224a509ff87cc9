"""The rows of the table of natural pictures, one after the other, all from one pretrained encoder.

    python benchmarks/imagenet.py imagenet:PATH                     protonet, cpm and wayfarer, both settings
    python benchmarks/imagenet.py folder:PATH cpm-imagenet-small    this row only
    python benchmarks/imagenet.py imagenet:PATH --threads 1 --seed 1
    python benchmarks/imagenet.py --tables                          only fill docs/imagenet.md in
    python benchmarks/imagenet.py folder:PATH --runs DIR --results DIR --sequences 5 -- --pretrain.minutes 0.2

What it runs, for a row:

    wander train protonet-imagenet-small --world WORLD --name encoder-imagenet-small ...   once, the encoder
    wander train ROW --world WORLD --name ROW --encoder runs/encoder-imagenet-small
    wander evaluate runs/ROW --sequences 2000 --json results/ROW.json --answers runs/ROW/answers.npz

An interrupted run goes on where it was, and a row whose result is there is not done again: delete it to start
over. Words after -- go to every `wander train`. By the presets the encoder sees every picture as often as it
says there, which is minutes of one core, and a row takes six minutes beyond it, whatever the learner and at
whatever number of threads. Testing a row takes a minute or two.
"""

import argparse
import sys
from pathlib import Path

from wanderlearn.learners.resnet12 import ResNet12, ResNet12Config
from wanderlearn.presets import IMAGENET_PRESETS
from wanderlearn.report.forgetting import read_forgetting_table
from wanderlearn.report.methods import markdown, read_method_table
from wanderlearn.report.pairs import pairs_markdown, pairs_of, result_of
from wanderlearn.report.parts import parts_markdown
from wanderlearn.results import fill, markdown_table, seeded
from wanderlearn.table_rows import compared, pages, pretrained, tested, trained

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results", ROOT / "docs" / "imagenet.md"
ALL = [name for name in IMAGENET_PRESETS if "-small" in name]
ROWS = [
    f"{learner}-imagenet-small{end}" for end in ("", "-semi") for learner in ("protonet", "cpm", "wayfarer")
]
SMALL, ENCODER = "imagenet-small", "encoder-imagenet-small"


def main() -> None:
    own, _, words_for_train = _parted(sys.argv[1:])
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("world", nargs="?", help="imagenet:PATH or folder:PATH")
    asked.add_argument("rows", nargs="*", metavar="PRESET", help=f"of {', '.join(ALL)}")
    asked.add_argument("--runs", type=Path, default=ROOT / "runs", help="where run folders are kept")
    asked.add_argument("--results", type=Path, default=RESULTS, help="where results are written")
    asked.add_argument("--encoder", help="a run folder or a file of weights, instead of pretraining one")
    asked.add_argument("--seed", type=int, default=0, help="of training; others than 0 end in -seedN")
    asked.add_argument("--threads", type=int, default=0, help="to train with; 0 for as many as torch chooses")
    asked.add_argument("--sequences", type=int, default=2000, help="to test on")
    asked.add_argument("--tables", action="store_true", help="train nothing")
    words = asked.parse_args(own)
    if unknown := set(words.rows) - set(ALL):
        asked.error(f"there is no row {', '.join(sorted(unknown))}")
    if words.world is None and not words.tables:
        asked.error("say which pictures: imagenet:PATH or folder:PATH")
    extra = ["--train.threads", str(words.threads), *words_for_train]
    extra += ["--train.seed", str(words.seed)] * bool(words.seed)
    for name in [] if words.tables else words.rows or ROWS:
        row(name, words, extra)
    for one, other in [] if words.tables else pairs_of(SMALL):
        compared(words.runs / one, words.runs / other, words.results / result_of(one, other))
    if words.results == RESULTS:
        tables(words.results)
        pages(ROOT)


def _parted(args: list[str]) -> tuple[list[str], str, list[str]]:
    """What is before and after --."""
    at = args.index("--") if "--" in args else len(args)
    return args[:at], "--", args[at + 1 :]


def row(name: str, words: argparse.Namespace, extra: list[str]) -> None:
    """Train and evaluate one row, unless its result is there."""
    run, result = (seeded(x, words.seed) for x in (words.runs / name, words.results / f"{name}.json"))
    if result.exists():
        return
    options = ["--world", words.world, *extra]
    first = seeded(words.runs / ENCODER, words.seed)
    encoder = words.encoder or str(pretrained("protonet-imagenet-small", first, *options))
    trained(name, run, *options, "--encoder", encoder)
    tested(run, result, "--sequences", str(words.sequences))


def encoders() -> str:
    """What the encoders of both kinds of presets weigh."""
    rows: list[list[object]] = []
    for name in ("cpm-imagenet", "cpm-imagenet-small"):
        config = IMAGENET_PRESETS[name].model.encoder
        assert isinstance(config, ResNet12Config)
        parameters = sum(parameter.numel() for parameter in ResNet12(config).parameters())
        size, channels = config.image_size, ", ".join(map(str, config.channels))
        millions = f"{config.multiplications / 1e6:.0f}"
        rows.append([name, f"{size} x {size}", channels, config.feature_dim, f"{parameters:,}", millions])
    columns = ["preset", "pictures", "channels", "feature", "parameters", "million multiply-adds per picture"]
    return markdown_table(columns, rows)


def tables(results: Path = RESULTS, page: Path = PAGE) -> None:
    """Fill docs/imagenet.md in."""
    fill(page, "resnet12", encoders())
    fill(page, "imagenet-table", markdown(read_method_table(results, "imagenet")))
    fill(page, "imagenet-pairs", pairs_markdown(results, SMALL))
    forgetting = read_forgetting_table(results, "imagenet")
    fill(page, "imagenet-forgetting", parts_markdown(forgetting.parts(), forgetting.warnings))


if __name__ == "__main__":
    main()
