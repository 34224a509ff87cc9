"""Measure what docs/scaling.md says of two processes, and fill its tables in.

python benchmarks/scaling.py             measure (a minute on two idle cores), then fill in
python benchmarks/scaling.py --tables    only fill in, from the result that is there
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from wanderlearn.results import fill, markdown_table, read_result

ROOT = Path(__file__).parents[1]
RESULT, PAGE = ROOT / "results" / "bench-distributed.json", ROOT / "docs" / "scaling.md"
GIGABIT = 125e6  # bytes per second
NETWORKS = {"1 Gbit/s": GIGABIT, "10 Gbit/s": 10 * GIGABIT, "100 Gbit/s": 100 * GIGABIT}
SIZES = (2, 4, 8)


def measure(result: Path = RESULT) -> None:
    command = [sys.executable, "-c", "from wanderlearn.cli import main; main()", "bench", "distributed"]
    subprocess.run([*command, "--json", str(result)], check=True, stdout=sys.stderr)


def tables(result: Path = RESULT, page: Path = PAGE) -> None:
    """Fill every table of the page in from the result."""
    found = read_result(result, "bench")
    fill(page, "two-processes", _measured(found))
    fill(page, "networks", _networks(found))


def message_seconds(size: int, count: int, bandwidth: float) -> float:
    """A ring all-reduce of so many bytes: every process sends 2 (N - 1) / N of them."""
    return 2 * (count - 1) / count * size / bandwidth


def expected(seconds: float, size: int, count: int, bandwidth: float) -> float:
    """The speedup the cost model gives: N shares of the step, then the message."""
    return seconds / (seconds / count + message_seconds(size, count, bandwidth))


def _measured(found: dict[str, Any]) -> str:
    rows = [
        ["one process, whole batch: seconds per step", found["seconds"]],
        ["two processes together: seconds per step", found["seconds_together"]],
        ["one process, its share alone: seconds", found["part_seconds"]],
        ["adding up gradients: seconds", found["exchange_seconds"]],
        ["parameters", found["parameters"]],
        ["bytes added up per step", found["exchange_bytes"]],
        ["speedup by the cost model", found["predicted_speedup"]],
        ["speedup measured, median of neighbouring rounds", found["speedup"]],
        ["efficiency measured", found["efficiency"]],
    ]
    on, size = found["measured_on"], found["batch_size"]
    text = (
        f"CPM, {size} sequences per step, one thread per process, {on['cores']} cores, torch {on['torch']}:"
    )
    return f"{text}\n\n{markdown_table(['what', 'value'], rows)}"


def _networks(found: dict[str, Any]) -> str:
    rows = [
        [name, *(f"{expected(found['seconds'], found['exchange_bytes'], n, speed):.2f}" for n in SIZES)]
        for name, speed in NETWORKS.items()
    ]
    head = ["network between machines", *(f"{n} processes" for n in SIZES)]
    return f"{markdown_table(head, rows)}\n\nBy the model, from the step measured above; not measured."


if __name__ == "__main__":
    if "--tables" not in sys.argv[1:]:
        measure()
    tables()
