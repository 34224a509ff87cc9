"""Ten minutes on the embedded world: CPM against Online ProtoNet, with and without temporal context.

    python benchmarks/ten_minutes.py

Trains two learners at a time, one core each, so that both have the same conditions; evaluates all on the same
2,000 test sequences; writes results/*-glyphs*.json and the tables of README.md and docs/training.md. What is
there already (runs, results) is not done again: delete it to start over.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wanderlearn.answers import compare, read_answers
from wanderlearn.files import write_json
from wanderlearn.results import commit, fill, markdown_table, read_result

ROOT = Path(__file__).parent.parent
RUNS, RESULTS = ROOT / "runs", ROOT / "results"
WANDER = [sys.executable, "-c", "from wanderlearn.cli import main; main()"]
# As in the paper's own control, the plain CPM has ProtoNet's memory, metric and encoder: it differs by the
# context alone. The full one also has the gated memory, the cosine and no last ReLU.
PLAIN = [
    "--model.learner.memory",
    "average",
    "--model.learner.similarity",
    "euclidean",
    "--model.encoder.last-relu",
]
LEARNERS = {
    "protonet-glyphs": ("Online ProtoNet", "protonet-glyphs", []),
    "cpm-glyphs": ("CPM", "cpm-glyphs", []),
    "cpm-plain-glyphs": ("CPM, averaging, Euclidean", "cpm-glyphs", PLAIN),
}
CONDITIONS = {"": "As the world is", "-shuffle": "Every sequence shuffled: no temporal context"}
BASE = "protonet-glyphs"
COLUMNS = ("learner", "AP", "AP-joint", "1-shot", "3-shot", "steps", "minutes", "AP over Online ProtoNet")


def main() -> None:
    todo = [(name, condition) for condition in CONDITIONS for name in LEARNERS]
    for pair in ([todo[0], todo[1]], [todo[3], todo[4]], [todo[2], todo[5]]):
        _together(_training(*one) for one in pair)
        _together(_evaluation(*one) for one in pair)
    found = {name + condition: _over_base(name, condition) for name, condition in todo if name != BASE}
    comparison = {"format": 1, "kind": "comparison", "commit": commit(), "over": BASE, "ap": found}
    write_json(RESULTS / "glyphs-context.json", comparison)
    rows = {condition: [_row(name, condition, found) for name in LEARNERS] for condition in CONDITIONS}
    words = (
        "What ten minutes on one core give on the embedded world, from scratch, on 2,000 test sequences; "
        "intervals are 95 %, by a paired bootstrap over sequences (`python benchmarks/ten_minutes.py`):"
    )
    fill(ROOT / "README.md", "glyphs-results", f"{words}\n\n{markdown_table(COLUMNS, rows[''][:2])}")
    tables = [f"**{CONDITIONS[c]}**\n\n{markdown_table(COLUMNS, rows[c])}" for c in CONDITIONS]
    fill(ROOT / "docs/training.md", "context-control", "\n\n".join([words, *tables]))


def _training(name: str, condition: str) -> list[str] | None:
    run = name + condition
    if (RESULTS / f"{run}.json").exists():
        return None
    _, preset, options = LEARNERS[name]
    shuffle, resume = ["--shuffle"] * bool(condition), ["--resume"] * (RUNS / run).exists()
    return ["train", preset, "--name", run, "--runs", str(RUNS), *options, *shuffle, *resume]


def _evaluation(name: str, condition: str) -> list[str] | None:
    run = name + condition
    if (RESULTS / f"{run}.json").exists() and (RUNS / run / "answers.npz").exists():
        return None
    files = ["--json", str(RESULTS / f"{run}.json"), "--answers", str(RUNS / run / "answers.npz")]
    return ["evaluate", str(RUNS / run), *["--shuffle"] * bool(condition), *files]


def _together(commands: Iterable[list[str] | None]) -> None:
    """Run commands side by side, one thread each."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    running = [subprocess.Popen([*WANDER, *command], env=environment) for command in commands if command]
    codes = [process.wait() for process in running]  # all of them, before any is judged
    if any(codes):
        raise SystemExit("A command failed; see above.")


def _over_base(name: str, condition: str) -> dict[str, Any]:
    ours, theirs = (read_answers(RUNS / f"{one}{condition}" / "answers.npz") for one in (name, BASE))
    return compare(ours, theirs, "ap")


def _row(name: str, condition: str, found: dict[str, dict[str, Any]]) -> tuple[object, ...]:
    result = read_result(RESULTS / f"{name}{condition}.json", "evaluation")
    metrics, train = result["metrics"], result["train"]
    shots = metrics["shots"]["labelled"]
    over = found.get(name + condition)
    return (
        LEARNERS[name][0],
        f"{metrics['ap']:.1f}",
        f"{metrics['ap_joint']:.1f}",
        *(f"{shots[n]['mean']:.1f} ± {shots[n]['standard_error']:.1f}" for n in (0, 2)),
        train["steps"],
        f"{train['seconds'] / 60:.1f}",
        f"{over['difference']:+.2f} ({over['low']:+.2f} to {over['high']:+.2f})" if over else "",
    )


if __name__ == "__main__":
    main()
