"""Ten minutes on the embedded world: CPM against Online ProtoNet, with and without temporal context.

    python benchmarks/ten_minutes.py

Trains two learners at a time, one core each, so that both have the same conditions; evaluates all four on the
same 2,000 test sequences; writes results/glyphs-*.json and the tables of README.md and docs/training.md. What
is there already (runs, results) is not done again: delete it to start over.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from wanderlearn.answers import compare, read_answers
from wanderlearn.files import write_json
from wanderlearn.results import fill, markdown_table, read_result

ROOT = Path(__file__).parent.parent
RUNS, RESULTS = ROOT / "runs", ROOT / "results"
LEARNERS = {"protonet": "Online ProtoNet", "cpm": "CPM"}
CONDITIONS = {"": "as the world is", "-shuffle": "every sequence shuffled (no temporal context)"}
WANDER = [sys.executable, "-c", "from wanderlearn.cli import main; main()"]


def main() -> None:
    for condition in CONDITIONS:
        _together(_training(f"{learner}-glyphs", condition) for learner in LEARNERS)
        _together(_evaluation(f"{learner}-glyphs", condition) for learner in LEARNERS)
    differences = {condition: _difference(condition) for condition in CONDITIONS}
    write_json(
        RESULTS / "glyphs-context.json", {"format": 1, "kind": "comparison", "cpm over protonet": differences}
    )
    rows = [_row(learner, condition) for condition in CONDITIONS for learner in LEARNERS]
    columns = ("learner", "AP", "AP-joint", "1-shot", "3-shot", "steps", "minutes")
    main_table = markdown_table(columns, [row[1:] for row in rows if row[0] == ""])
    fill(ROOT / "README.md", "glyphs-results", _readme(main_table, differences[""]))
    parts = []
    for condition, words in CONDITIONS.items():
        found = differences[condition]
        parts.append(f"**{words[0].upper()}{words[1:]}**\n")
        parts.append(markdown_table(columns, [row[1:] for row in rows if row[0] == condition]) + "\n")
        parts.append(f"CPM over Online ProtoNet: {_interval(found)}.\n")
    fill(ROOT / "docs/training.md", "context-control", "\n".join(parts).strip())


def _training(preset: str, condition: str) -> list[str] | None:
    name = preset + condition
    if (RESULTS / f"{name}.json").exists():
        return None
    extra = ["--shuffle", "--name", name] if condition else []
    resume = ["--resume"] if (RUNS / name).exists() else []
    return ["train", preset, *extra, "--runs", str(RUNS), *resume]


def _evaluation(preset: str, condition: str) -> list[str] | None:
    name = preset + condition
    if (RESULTS / f"{name}.json").exists() and (RUNS / name / "answers.npz").exists():
        return None
    files = ["--json", str(RESULTS / f"{name}.json"), "--answers", str(RUNS / name / "answers.npz")]
    return ["evaluate", str(RUNS / name), *(["--shuffle"] if condition else []), *files]


def _together(commands: Any) -> None:
    """Run commands side by side, one thread each."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    running = [subprocess.Popen([*WANDER, *command], env=environment) for command in commands if command]
    codes = [process.wait() for process in running]  # all of them, before any is judged
    if any(codes):
        raise SystemExit("A command failed; see above.")


def _difference(condition: str) -> dict[str, Any]:
    ours, theirs = (
        read_answers(RUNS / f"{learner}-glyphs{condition}/answers.npz") for learner in ("cpm", "protonet")
    )
    return compare(ours, theirs, "ap")


def _row(learner: str, condition: str) -> tuple[object, ...]:
    result = read_result(RESULTS / f"{learner}-glyphs{condition}.json", "evaluation")
    found, train = result["metrics"], result["train"] or {}
    shots = found["shots"]["labelled"]
    seconds = train.get("seconds")
    return (
        condition, LEARNERS[learner], f"{found['ap']:.1f}", f"{found['ap_joint']:.1f}",
        *(f"{shots[n]['mean']:.1f} ± {shots[n]['standard_error']:.1f}" for n in (0, 2)),
        train.get("steps"), None if seconds is None else f"{seconds / 60:.1f}",
    )  # fmt: skip


def _interval(found: dict[str, Any]) -> str:
    low, high = found["low"], found["high"]
    return f"{found['difference']:+.2f} AP (95 % interval {low:+.2f} to {high:+.2f}, paired bootstrap)"


def _readme(table: str, found: dict[str, Any]) -> str:
    return (
        "What ten minutes of one core give on the embedded world, from scratch, on 2,000 test sequences "
        "(`python benchmarks/ten_minutes.py`):\n\n"
        f"{table}\n\nCPM over Online ProtoNet: {_interval(found)}."
    )


if __name__ == "__main__":
    main()
