"""The paper's context experiment: two learners, with and without a spatial and a temporal cue.

    python benchmarks/context.py                            Omniglot, photographed textures: eight cells
    python benchmarks/context.py --world glyphs             the embedded world, drawn textures
    python benchmarks/context.py cpm-context-both-omniglot  this cell only

Each cell is trained by its preset (an interrupted run goes on where it was), evaluated on the 2,000 test
sequences of seed 0 in its own condition, and written to results/NAME.json; then docs/context.md and its
figure are made anew. A cell whose result is there is not done again: delete it to start over. On Omniglot all
cells start with one encoder of pictures, and those with textures with one encoder of textures, which the
first of them pretrains. Photographs are found in WANDERLEARN_DATA (docs/context.md).
"""

import argparse
import os
from pathlib import Path

from wanderlearn.cli.figure import main as figure
from wanderlearn.figures.context import WORDS, Cells, effects, missing_cells, read_cells
from wanderlearn.paper import LEARNERS
from wanderlearn.presets import CONTEXT_PRESETS
from wanderlearn.presets.context import CONDITIONS, CONTEXT_LEARNERS, context_name
from wanderlearn.report.pairs import in_words
from wanderlearn.results import fill, markdown_table
from wanderlearn.table_rows import compared, pages, tested, trained

ROOT = Path(__file__).parents[1]
TEXTURES = {"omniglot": "photos", "glyphs": "procedural"}
ENCODER = {"omniglot": "omniglot", "glyphs": None}  # what comes with the package


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("cells", nargs="*", metavar="PRESET", help="only these cells")
    asked.add_argument("--world", choices=TEXTURES, default="omniglot", help="(default: omniglot)")
    asked.add_argument("--textures", help="procedural, photos, a folder or a .zip (default: as above)")
    asked.add_argument("--runs", type=Path, default=ROOT / "runs", help="where run folders are kept")
    asked.add_argument("--results", type=Path, default=ROOT / "results", help="where results go")
    asked.add_argument("--sequences", type=int, default=2000, help="of the test")
    asked.add_argument("--option", action="append", default=[], help="passed on to wander train, as A=B")
    words = asked.parse_args()
    names = [context_name(learner, c, words.world) for c in CONDITIONS for learner in CONTEXT_LEARNERS]
    if unknown := set(words.cells) - set(names):
        asked.error(f"there is no cell {', '.join(sorted(unknown))} in {words.world}")
    for name in words.cells or names:
        cell(name, words)
    if words.results == ROOT / "results":  # anything else is a trial
        document(words.world, words.results, words.runs)
        pages(ROOT)


def cell(name: str, words: argparse.Namespace) -> None:
    """Train and evaluate one cell, unless its result is there."""
    run, result = words.runs / name, words.results / f"{name}.json"
    if result.exists():
        return
    os.environ["OMP_NUM_THREADS"] = "1"  # the same for every cell
    trained(name, run, *training(name, words))
    shuffle = ["--shuffle"] * CONTEXT_PRESETS[name].roaming.shuffle
    tested(run, result, "--sequences", str(words.sequences), *shuffle)


def training(name: str, words: argparse.Namespace) -> list[str]:
    """What is said to `wander train` beside the preset."""
    said = ["--train.threads", "1"]
    if CONTEXT_PRESETS[name].roaming.background is not None:
        said += ["--textures", words.textures or TEXTURES[words.world]]
    if start := _encoder(name, words):
        said += ["--encoder", start]
    for option in words.option:
        key, _, value = option.partition("=")
        said += [f"--{key}", value]
    return said


def _encoder(name: str, words: argparse.Namespace) -> str | None:
    """What a cell starts with: with textures, what the first such cell has pretrained."""
    first = _with_textures(words.world)[0]
    others = words.runs / first / "pretrained" / "model.safetensors"
    own = words.runs / name / "pretrained"  # it was begun before there was another's
    if name in _with_textures(words.world) and name != first and others.exists() and not own.exists():
        return str(others)
    return ENCODER[words.world]


def _with_textures(world: str) -> list[str]:
    names = [context_name(learner, c, world) for c in CONDITIONS for learner in CONTEXT_LEARNERS]
    return [name for name in names if CONTEXT_PRESETS[name].roaming.background is not None]


def document(world: str, results: Path, runs: Path) -> None:
    """The table, the findings and the figure of docs/context.md, as far as there are results."""
    cells = read_cells(results, world)
    if not cells:
        return
    text = [table(cells, world, results, runs), findings(cells)]
    fill(ROOT / "docs/context.md", f"context-{world}", "\n\n".join(filter(None, text)))
    if not missing_cells(cells, world):
        image = ROOT / "docs/images" / f"figure-context-{world}.png"
        figure(["context", "--world", world, "--results", str(results), "--out", str(image)])


def table(cells: Cells, world: str, results: Path, runs: Path) -> str:
    """AP of both learners in every condition, and the difference where the answers are still there."""
    rows = []
    for condition in CONDITIONS:
        row: list[object] = [WORDS[condition]]
        for learner in CONTEXT_LEARNERS:
            found = cells.get(learner, {}).get(condition)
            row += [None, None] if found is None else [f"{found.ap:.1f}", _minutes(found.minutes)]
        rows.append([*row, _over(condition, world, results, runs)])
    names = [LEARNERS[learner] for learner in CONTEXT_LEARNERS]
    columns = ["cues", names[0], "minutes", names[1], "minutes", "CPM over Online ProtoNet"]
    return markdown_table(columns, rows)


def _minutes(minutes: float | None) -> str | None:
    return None if minutes is None else f"{minutes:.0f}"


def _over(condition: str, world: str, results: Path, runs: Path) -> str:
    """The difference with its interval, which is kept beside the results: answers stay with the runs."""
    theirs, ours = (runs / context_name(one, condition, world) for one in CONTEXT_LEARNERS)
    found = compared(ours, theirs, results / f"context-{world}-{condition}-difference.json")
    return "" if found is None else in_words(found)


def findings(cells: Cells) -> str:
    """What each cue adds, beside what the paper says of it."""
    lines = []
    for learner in CONTEXT_LEARNERS:
        if len(cells.get(learner, {})) < len(CONDITIONS):
            continue
        gained = effects(cells[learner])
        lines.append(
            f"- {LEARNERS[learner]}: the spatial cue adds {gained['spatial']:+.1f} to AP, the temporal cue "
            f"{gained['temporal']:+.1f}; beside the other, {gained['spatial_beside_temporal']:+.1f} and "
            f"{gained['temporal_beside_spatial']:+.1f}; both together {gained['both']:+.1f}."
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
