"""How much the ratios of `wander bench train`, `step` and `agent` vary: eight runs each, all of them kept.

    python benchmarks/repeats.py             about eight minutes on an idle machine
    python benchmarks/repeats.py --tables    only fill docs/performance.md in

One run of a ratio near its mark says little. Writes results/bench-repeats.json and fills in the table of
docs/performance.md.
"""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from wanderlearn.bench.measure import measured_on
from wanderlearn.results import fill, markdown_table, read_result, write_result

ROOT = Path(__file__).parents[1]
RESULT, KIND = ROOT / "results" / "bench-repeats.json", "bench-repeats"
RUNS = 8
WANDER = [sys.executable, "-c", "from wanderlearn.cli import main; main()"]
BENCHES = {"train": ["--learner", "wayfarer"], "step": [], "agent": []}
# Which bench, which key (of which learner), what it is called, and the most it should be.
RATIOS = (
    ("train", "step_over_encoder", "CPM's training step over encoder, all labels", 1.15),
    ("train", "step_over_encoder_semi", "... few labels", 1.35),
    ("train", "wayfarer.step_over_encoder", "Wayfarer's training step over encoder, all labels", 1.3),
    ("train", "wayfarer.step_over_encoder_semi", "... few labels", 1.3),
    ("step", "meeting_over_encoder", "CPM's live meeting over encoder, 50 classes", 1.5),
    ("agent", "wayfarer.meeting_over_encoder", "an agent's, of a Wayfarer, over encoder, 50 classes", 2.0),
)


def main() -> None:
    if "--tables" not in sys.argv[1:]:
        result = {"kind": KIND, "runs": RUNS, "ratios": measured(), "measured_on": measured_on()}
        write_result(RESULT, result)
    fill(ROOT / "docs" / "performance.md", "repeats", table(read_result(RESULT, KIND)["ratios"]))


def measured() -> dict[str, list[float]]:
    """Every ratio of every run."""
    found: dict[str, list[float]] = {key: [] for _, key, _, _ in RATIOS}
    for _ in range(RUNS):
        for bench, options in BENCHES.items():
            command = [*WANDER, "bench", bench, *options, "--json", "-"]
            told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            for name, key, _, _ in RATIOS:
                if name == bench:
                    found[key].append(value(told, key))
    return found


def value(told: dict[str, Any], key: str) -> float:
    """What stands at a.b of figures."""
    *under, last = key.split(".")
    for name in under:
        told = told[name]
    return float(told[last])


def table(found: dict[str, list[float]]) -> str:
    """The ratios of all runs beside the most they should be."""
    rows = [
        (words, f"{median(found[key]):.2f}", f"{min(found[key]):.2f} to {max(found[key]):.2f}",
         f"{sum(ratio <= most for ratio in found[key])} of {len(found[key])}", f"{most:g} or less")
        for _, key, words, most in RATIOS
        if key in found  # a result may be older
    ]  # fmt: skip
    return markdown_table(("what", "median", "lowest to highest", "runs within", "wanted"), rows)


if __name__ == "__main__":
    main()
