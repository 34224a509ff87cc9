"""The rows of the Omniglot table, one after the other, from one pretrained encoder (...-resnet: its teacher).

    python benchmarks/omniglot.py                        every method, supervised and semi-supervised
    python benchmarks/omniglot.py cpm-omniglot           this row only
    python benchmarks/omniglot.py --runs DIR --encoder NAME

Each row is trained by its preset (an interrupted run goes on where it was), evaluated on the 2,000 sequences
of seed 0, and written to results/NAME.json. Rows are compared on the same sequences where the answers of both
are still there (results/A-over-B.json). Then docs/methods/, REPRODUCIBILITY.md and README are made anew.
A row whose result is there is not done again: delete it to start over.
"""

import argparse
from pathlib import Path

from wanderlearn.presets import GOES_ON_FROM, PRESETS, RESNET_PRESETS, SCRATCH_PRESETS
from wanderlearn.report.pairs import pairs_of, result_of
from wanderlearn.results import seeded
from wanderlearn.table_rows import compared, pages, tested, trained

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
ROWS = [name for name in PRESETS if "-omniglot" in name] + list(RESNET_PRESETS | SCRATCH_PRESETS)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("rows", nargs="*", metavar="PRESET", help=f"of {', '.join(ROWS)}")
    asked.add_argument("--runs", type=Path, default=ROOT / "runs", help="where run folders are kept")
    asked.add_argument(
        "--encoder", default="omniglot", help="what all rows start with (see `wander train --help`)"
    )
    asked.add_argument("--seed", type=int, default=0, help="of training; others than 0 end in -seedN")
    words = asked.parse_args()
    if unknown := set(words.rows) - set(ROWS):
        asked.error(f"there is no row {', '.join(sorted(unknown))}")
    for name in words.rows or ROWS:
        row(name, words.runs, words.encoder, words.seed)
    for one, other in pairs_of("omniglot") + pairs_of("omniglot-resnet"):
        compared(words.runs / one, words.runs / other, RESULTS / result_of(one, other))
    pages(ROOT)


def row(name: str, runs: Path, encoder: str, seed: int) -> None:
    """Train and evaluate one row, unless its result is there."""
    run, result = seeded(runs / name, seed), seeded(RESULTS / f"{name}.json", seed)
    if result.exists():
        return
    words = ["--train.seed", str(seed)] * bool(seed)
    if name in RESNET_PRESETS:  # an encoder of their own
        words += ["--encoder", "omniglot-resnet"]
    elif name not in SCRATCH_PRESETS:
        words += begun(name, runs, encoder)
    trained(name, run, *words)
    tested(run, result)


def begun(name: str, runs: Path, encoder: str) -> list[str]:
    """What a command says of where a run begins; what it goes on from is trained first."""
    if name not in GOES_ON_FROM:
        return ["--encoder", encoder]
    before, *changes = GOES_ON_FROM[name]
    trained(name.partition("-omniglot")[0] + "-omniglot", runs / before, *begun(before, runs, encoder))
    return ["--start", str(runs / before), *changes]


if __name__ == "__main__":
    main()
