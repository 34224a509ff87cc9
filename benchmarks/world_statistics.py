"""What our sequences are like beside the authors' (facts 1.3), for every world that is on this machine.

    python benchmarks/world_statistics.py

Writes results/world-statistics.json and the table of docs/worlds.md.
"""

import time
from pathlib import Path

from wanderlearn.errors import WanderError
from wanderlearn.files import write_json
from wanderlearn.results import commit, fill
from wanderlearn.worlds import RoamingConfig, draw_manifest, open_world, statistics

ROOT = Path(__file__).parent.parent
SEQUENCES, SEED = 2000, 0
KEYS = ("mean_length", "classes", "new_fraction", "labelled_fraction", "environment_change_rate", "families")
# A Monte Carlo of the authors' code (4,000 sequences), not ours.
AUTHORS = {
    ("test", False): (145.8, 43.1, 0.30, 1.0, 0.16, 9.9, 28.9, 23.0, 19.4, 16.7, 14.6),
    ("test", True): (145.8, 43.1, 0.49, 0.49, 0.16, 9.9, 47.4, 19.3, 5.85, 1.06, 0.08),
    ("val", False): (145.8, 25.0, 0.17, 1.0, 0.16, 5.0, 24.2, 21.8, 19.6, 17.6, 15.8),
    ("val", True): (145.8, 25.0, 0.39, 0.38, 0.16, 5.0, 48.9, 25.1, 10.4, 3.3, 0.8),
}


def main() -> None:
    rows = []
    for name in ("omniglot", "glyphs"):
        for split, semi in AUTHORS:
            start = time.perf_counter()
            try:
                world = open_world(name, split, RoamingConfig(semi=semi))
            except WanderError as error:
                print(f"{name} left out: {error}")
                break
            manifest = draw_manifest(world, SEED, SEQUENCES)
            numbers = statistics(manifest.sequences, world.pictures)
            rows.append(
                {
                    "world": name,
                    "split": split,
                    "semi": semi,
                    "seed": SEED,
                    "manifest_sha256": manifest.sha256,
                }
                | {"seconds": time.perf_counter() - start}
                | numbers
            )
    write_json(ROOT / "results/world-statistics.json", {"commit": commit(), "rows": rows})
    fill(ROOT / "docs/worlds.md", "world-statistics", _table(rows))


def _table(rows: list[dict[str, object]]) -> str:
    names = [key.replace("_", " ") for key in KEYS] + [f"{n}-shot queries" for n in range(1, 6)]
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for (split, semi), theirs in AUTHORS.items():
        setting = f"{split}{', semi' if semi else ''}"
        lines.append(f"| {setting}: authors' code | " + " | ".join(f"{v:g}" for v in theirs) + " |")
        for row in rows:
            if (row["split"], row["semi"]) == (split, semi):
                values = [row[key] for key in KEYS] + list(row["queries_per_shot"])  # type: ignore[call-overload]
                lines.append(
                    f"| {setting}: {row['world']} | " + " | ".join(f"{v:.4g}" for v in values) + " |"
                )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
