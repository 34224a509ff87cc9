"""The worlds at a glance: Online ProtoNet, CPM and ours in all of them, for the first page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from wanderlearn.paper import METHOD_NAMES, SETTINGS, Setting
from wanderlearn.report.methods import WORDS, MethodTable, read_method_table
from wanderlearn.report.rows import ELSEWHERE
from wanderlearn.results import markdown_table

__all__ = ["overview"]

SHOWN: Final[Mapping[str, str]] = {
    "omniglot": "[Omniglot](REPRODUCIBILITY.md)",
    "rooms": "[rooms](docs/rooms.md#results)",
    "imagenet": "[natural pictures](docs/imagenet.md#ours-beside-the-papers)",
}
LEARNERS: Final = ("protonet", "cpm", "wayfarer")
OURS_ONLY: Final = "wayfarer"  # a column only where it has been run


def overview(results: Path) -> str:
    """A table of AP on test sequences, ours and the paper's, and the sentence under it."""
    tables = {world: read_method_table(results, world) for world in SHOWN}
    learners = [
        learner
        for learner in LEARNERS
        if learner != OURS_ONLY or any(any(t.ours[learner].values()) for t in tables.values())
    ]
    printed = [learner for learner in learners if learner != OURS_ONLY]
    columns = ["world", "labels", *(METHOD_NAMES[learner] for learner in learners)]
    columns += [f"{METHOD_NAMES[learner]}, paper" for learner in printed]
    rows: list[list[object]] = []
    for world, words in SHOWN.items():
        for setting in SETTINGS:
            row: list[object] = [words, WORDS[setting]]
            row += [_ours(tables[world], learner, setting) for learner in learners]
            rows.append([*row, *(_paper(tables[world], learner, setting) for learner in printed)])
    others = " and ".join(ELSEWHERE[world] for world in SHOWN if world in ELSEWHERE)
    words = f"AP on test sequences, percent. Starred: of other data than ours, {others}."
    return f"{markdown_table(columns, rows)}\n\n{words}"


def _ours(table: MethodTable, learner: str, setting: Setting) -> str | None:
    found = table.ours[learner][setting]
    return None if found is None or found.ap is None else f"{found.ap:.2f}"


def _paper(table: MethodTable, learner: str, setting: Setting) -> str | None:
    figures = table.paper(learner, setting)
    star = "\\*" if table.world in ELSEWHERE else ""
    return None if figures is None or figures.ap is None else f"{figures.ap:.2f}{star}"
