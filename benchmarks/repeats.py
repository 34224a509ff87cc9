"""How much the ratios of `wander bench train` and `step` vary: eight runs each, all of them kept.

    python benchmarks/repeats.py             about five minutes on an idle machine

One run of a ratio near its mark says little. Writes results/bench-repeats.json and fills in the table of
docs/performance.md.
"""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from wanderlearn.bench.measure import measured_on
from wanderlearn.results import fill, markdown_table, write_result

ROOT = Path(__file__).parents[1]
RUNS = 8
WANDER = [sys.executable, "-c", "from wanderlearn.cli import main; main()"]
# Which bench, which key, what it is called, and the most it should be.
RATIOS = (
    ("train", "step_over_encoder", "training step over encoder, all labels", 1.15),
    ("train", "step_over_encoder_semi", "training step over encoder, few labels", 1.35),
    ("step", "meeting_over_encoder", "one live meeting over encoder, 50 classes", 1.5),
)


def main() -> None:
    found: dict[str, list[float]] = {key: [] for _, key, _, _ in RATIOS}
    for _ in range(RUNS):
        for bench in ("train", "step"):
            command = [*WANDER, "bench", bench, "--json", "-"]
            told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            for name, key, _, _ in RATIOS:
                if name == bench:
                    found[key].append(told[key])
    result = {"kind": "bench-repeats", "runs": RUNS, "ratios": found, "measured_on": measured_on()}
    write_result(ROOT / "results" / "bench-repeats.json", result)
    rows = [
        (words, f"{median(found[key]):.2f}", f"{min(found[key]):.2f} to {max(found[key]):.2f}",
         f"{sum(ratio <= most for ratio in found[key])} of {RUNS}", f"{most:g} or less")
        for _, key, words, most in RATIOS
    ]  # fmt: skip
    columns = ("what", "median", "lowest to highest", "runs within", "wanted")
    fill(ROOT / "docs" / "performance.md", "repeats", markdown_table(columns, rows))


if __name__ == "__main__":
    main()
