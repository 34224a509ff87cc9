"""The rows of the paper's two ablation tables on Omniglot, one after the other, from one pretrained encoder.

    python benchmarks/ablations.py                       every row
    python benchmarks/ablations.py no-metric cpm-avg-cos these rows only
    python benchmarks/ablations.py --sequences 2000

Each row is trained by its preset (an interrupted run goes on where it was), evaluated on validation sequences
with few labels, and written to results/ablations/. Then the pages that show the tables are made anew
(`wander table omniglot --ablations`). A row whose result is there is not done again: delete it to start over.
"""

import argparse
from pathlib import Path

from wanderlearn.learners.ablations import ABLATIONS
from wanderlearn.presets import ablation_preset
from wanderlearn.report.ablations import ablation_file
from wanderlearn.table_rows import pages, tested, trained

ROOT = Path(__file__).parents[1]
SEQUENCES = 1000


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ABLATIONS)}")
    asked.add_argument("--runs", type=Path, default=ROOT / "runs", help="where run folders are kept")
    asked.add_argument("--encoder", default="omniglot", help="what all rows start with")
    asked.add_argument("--sequences", type=int, default=SEQUENCES, help="of validation")
    words = asked.parse_args()
    if unknown := set(words.rows) - set(ABLATIONS):
        asked.error(f"there is no row {', '.join(sorted(unknown))}")
    for slug in words.rows or ABLATIONS:
        result = ROOT / "results" / ablation_file(ABLATIONS[slug])
        if result.exists():
            continue
        name = ablation_preset(slug).name
        trained(name, words.runs / name, "--encoder", words.encoder)
        result.parent.mkdir(exist_ok=True)
        tested(words.runs / name, result, "--split", "val", "--sequences", str(words.sequences))
    pages(ROOT)


if __name__ == "__main__":
    main()
