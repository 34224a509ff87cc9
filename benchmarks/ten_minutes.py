"""Ten minutes on the embedded world: CPM against Online ProtoNet, with and without temporal context.

    python benchmarks/ten_minutes.py
    python benchmarks/ten_minutes.py --seed 1      # CPM and Online ProtoNet once more, from another seed

Trains two learners at a time, one core each, so that both have the same conditions; evaluates all on the same
2,000 test sequences; writes results/*-glyphs*.json and the tables of README.md and docs/training.md. What is
there already (runs, results) is not done again: delete it to start over.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wanderlearn.answers import compare, read_answers
from wanderlearn.files import write_json
from wanderlearn.results import commit, fill, load_results, markdown_table, read_result

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
# What is added to a run's name, to its result's name, and the words for it.
CONDITIONS = {
    "as-is": ("", "", "Trained and tested as the world is"),
    "shuffled": (
        "-shuffle",
        "-shuffle",
        "Trained and tested on shuffled sequences: no temporal context to learn",
    ),
    "met-shuffled": (
        "",
        "-met-shuffled",
        "Trained as the world is, tested on shuffled sequences: the context is gone",
    ),
}
BASE, FULL, OTHER = LEARNERS
COLUMNS = ("learner", "AP", "AP-joint", "1-shot", "3-shot", "steps", "minutes", "AP over Online ProtoNet")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("--seed", type=int, default=0, help="of training; the test sequences stay the same")
    seed = asked.parse_args().seed
    pairs = [
        [(BASE, "as-is"), (FULL, "as-is")],
        [(BASE, "shuffled"), (FULL, "shuffled")],
        [(BASE, "met-shuffled"), (FULL, "met-shuffled")],
    ]
    if seed == 0:
        pairs += [[(OTHER, "as-is"), (OTHER, "shuffled")], [(OTHER, "met-shuffled")]]
    for pair in pairs:
        _together(_training(*one, seed) for one in pair)
        _together(_evaluation(*one, seed) for one in pair)
    names = (FULL, OTHER) if seed == 0 else (FULL,)
    found = {c: {name: _over_base(name, c, seed) for name in names} for c in CONDITIONS}
    comparison = {
        "format": 1,
        "kind": "comparison",
        "commit": commit(),
        "over": BASE,
        "seed": seed,
        "ap": found,
    }
    write_json(RESULTS / f"glyphs-context{_ending(seed)}.json", comparison)
    if seed == 0:
        _tables(found)
    _seeds()


def _tables(found: dict[str, dict[str, dict[str, Any]]]) -> None:
    rows = {c: [_row(name, c, found[c].get(name)) for name in LEARNERS] for c in CONDITIONS}
    words = (
        "What ten minutes on one core give on the embedded world, from scratch, on 2,000 test sequences; "
        "intervals are 95 %, by a paired bootstrap over sequences (`python benchmarks/ten_minutes.py`):"
    )
    fairness = (
        "The averaging, Euclidean CPM has ProtoNet's memory, metric and encoder and differs by its context "
        "alone. Online ProtoNet and CPM of one table were trained side by side; mind the steps. One seed of "
        "training each: the intervals speak of the test sequences, not of how another run would come out. "
        "The second table is the paper's control. The averaging CPM and the third table were added after "
        "its first two rows had been seen."
    )
    fill(ROOT / "README.md", "glyphs-results", f"{words}\n\n{markdown_table(COLUMNS, rows['as-is'][:2])}")
    tables = [f"**{CONDITIONS[c][2]}**\n\n{markdown_table(COLUMNS, rows[c])}" for c in CONDITIONS]
    fill(ROOT / "docs/training.md", "context-control", "\n\n".join([words, *tables, fairness]))


def _seeds() -> None:
    """CPM's advantage over Online ProtoNet, by seed of training."""
    found = load_results(RESULTS, "comparison").values()
    by_seed = {one.get("seed", 0): one["ap"] for one in found if one.get("over") == BASE}
    rows = [
        (f"seed {seed}", *(_interval(by_seed[seed][condition][FULL]) for condition in CONDITIONS))
        for seed in sorted(by_seed)
    ]
    columns = (
        "CPM over Online ProtoNet, AP",
        "as it is",
        "trained and tested shuffled",
        "only tested shuffled",
    )
    fill(ROOT / "docs/training.md", "context-seeds", markdown_table(columns, rows))


def _ending(seed: int) -> str:
    return f"-seed{seed}" if seed else ""


def _training(name: str, condition: str, seed: int) -> list[str] | None:
    suffix, kind, _ = CONDITIONS[condition]
    run = name + suffix + _ending(seed)
    if suffix != kind or (RESULTS / f"{run}.json").exists():
        return None
    _, preset, options = LEARNERS[name]
    shuffle, resume = ["--shuffle"] * bool(suffix), ["--resume"] * (RUNS / run).exists()
    other = ["--train.seed", str(seed)] * bool(seed)
    return ["train", preset, "--name", run, "--runs", str(RUNS), *options, *other, *shuffle, *resume]


def _evaluation(name: str, condition: str, seed: int) -> list[str] | None:
    suffix, kind, _ = CONDITIONS[condition]
    result, answers = RESULTS / f"{name}{kind}{_ending(seed)}.json", _answers(name, condition, seed)
    if result.exists() and answers.exists():
        return None
    shuffle = ["--shuffle"] * bool(kind)
    return [
        "evaluate",
        str(RUNS / f"{name}{suffix}{_ending(seed)}"),
        *shuffle,
        "--json",
        str(result),
        "--answers",
        str(answers),
    ]


def _answers(name: str, condition: str, seed: int) -> Path:
    suffix, kind, _ = CONDITIONS[condition]
    return RUNS / f"{name}{suffix}{_ending(seed)}" / f"answers{kind if kind != suffix else ''}.npz"


def _together(commands: Iterable[list[str] | None]) -> None:
    """Run commands side by side, one thread each."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    running = [subprocess.Popen([*WANDER, *command], env=environment) for command in commands if command]
    codes = [process.wait() for process in running]  # all of them, before any is judged
    if any(codes):
        raise SystemExit("A command failed; see above.")


def _over_base(name: str, condition: str, seed: int) -> dict[str, Any]:
    ours, theirs = (read_answers(_answers(one, condition, seed)) for one in (name, BASE))
    return compare(ours, theirs, "ap")


def _row(name: str, condition: str, over: dict[str, Any] | None) -> tuple[object, ...]:
    result = read_result(RESULTS / f"{name}{CONDITIONS[condition][1]}.json", "evaluation")
    metrics, train = result["metrics"], result["train"]
    shots = metrics["shots"]["labelled"]
    return (
        LEARNERS[name][0],
        f"{metrics['ap']:.1f}",
        f"{metrics['ap_joint']:.1f}",
        *(f"{shots[n]['mean']:.1f} ± {shots[n]['standard_error']:.1f}" for n in (0, 2)),
        train["steps"],
        f"{train['seconds'] / 60:.1f}",
        _interval(over) if over else "",
    )


def _interval(over: dict[str, Any]) -> str:
    return f"{over['difference']:+.2f} ({over['low']:+.2f} to {over['high']:+.2f})"


if __name__ == "__main__":
    main()
