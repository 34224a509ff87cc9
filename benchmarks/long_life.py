"""A long life: does a learner still know what it has been told often? On Omniglot's test characters.

    python benchmarks/long_life.py                  the shipped learners, some minutes; fills docs/wayfarer.md
    python benchmarks/long_life.py --sequences 2    fewer lives
    python benchmarks/long_life.py --tables         only fill the page in

In the benchmark a class is met six times at most and a sequence ends after 150 meetings. Whoever uses a
learner knows no such limits. Here a life has 1,500 meetings in ten environments, and a class returns as often
as it has pictures, twenty times. All labels are told. Writes results/long-life.json.
"""

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wanderlearn.evaluate import gather
from wanderlearn.files import digest_of
from wanderlearn.metrics import Record, ap
from wanderlearn.model import load_model
from wanderlearn.paper import METHOD_NAMES
from wanderlearn.results import commit, fill, markdown_table, read_result, write_result
from wanderlearn.shipped import find_weights
from wanderlearn.worlds import RoamingConfig, draw_manifest, open_pictures, world_of
from wanderlearn.worlds.families import with_families

ROOT = Path(__file__).parents[1]
RESULT, PAGE, KIND = ROOT / "results" / "long-life.json", ROOT / "docs" / "wayfarer.md", "long-life"
LEARNERS = ("protonet", "cpm", "wayfarer")
LIFE = RoamingConfig(environments=10, classes=200, length=1500, per_class=20)
TOLD = ((1, 1), (2, 5), (6, 10), (11, 19))  # how often a class had been told


def counted(record: Record) -> list[dict[str, Any]]:
    """Of what is known, by how often it was told: how much is named right, and how much is called new."""
    rows = []
    for first, last in TOLD:
        asked = record.known & (record.labels >= first) & (record.labels <= last)
        rows.append(
            {
                "first": first,
                "last": last,
                "queries": int(asked.sum()),
                "named": 100 * float(record.correct[asked].mean()),
                "called_new": 100 * float((record.novelty[asked] > 0).mean()),
            }
        )
    return rows


def measure(sequences: int, seed: int) -> dict[str, Any]:
    """All learners on the same lives."""
    world = world_of(with_families(open_pictures("omniglot", "test"), LIFE), LIFE)
    manifest, rows = draw_manifest(world, seed, sequences), []
    for name in LEARNERS:
        weights, start = find_weights(f"{name}-omniglot"), time.perf_counter()
        record = gather(load_model(weights), world, manifest.sequences, batch_size=1, progress=True)
        row = {"learner": name, "weights_sha256": digest_of(weights), "ap": 100 * ap(record)}
        rows.append(row | {"told": counted(record), "seconds": time.perf_counter() - start})
        print(f"{name}: AP {row['ap']:.2f}", file=sys.stderr)
    about = {"kind": KIND, "commit": commit(), "seed": seed, "sequences": sequences}
    return about | {"manifest_sha256": manifest.sha256, "config": asdict(LIFE), "rows": rows}


def table(found: dict[str, Any]) -> str:
    """A line for each learner."""
    spans = [str(a) if a == b else f"{a} to {b}" for a, b in TOLD]
    columns = ["learner", "AP", *(f"named, told {span}" for span in spans)]
    columns += [f"called new, told {span}" for span in spans]
    lines = [
        [METHOD_NAMES[row["learner"]], f"{row['ap']:.2f}"]
        + [f"{one[what]:.1f}" for what in ("named", "called_new") for one in row["told"]]
        for row in found["rows"]
    ]
    said = f"{found['sequences']} lives of up to {LIFE.length:,} meetings; percent of what is known."
    return f"{markdown_table(columns, lines)}\n\n{said}"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--sequences", type=int, default=20, help="lives")
    asked.add_argument("--seed", type=int, default=0, help="of the lives")
    asked.add_argument("--tables", action="store_true", help="measure nothing")
    words = asked.parse_args()
    if not words.tables:
        write_result(RESULT, measure(words.sequences, words.seed))
    fill(PAGE, "long-life", table(read_result(RESULT, KIND)))


if __name__ == "__main__":
    main()
