"""The paper's forgetting table: accuracy by how long ago a class was last met, ours beside the paper's."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Final

from wanderlearn.errors import WanderError
from wanderlearn.metrics import BINS
from wanderlearn.paper import FORGETTING, METHOD_NAMES, SETTINGS, Setting
from wanderlearn.report.methods import WORDS, mixed, span
from wanderlearn.report.parts import Part
from wanderlearn.report.rows import ELSEWHERE, command, further_seeds, row_name, row_of, table_worlds
from wanderlearn.results import FORMAT, load_results

__all__ = ["Cell", "ForgettingRow", "ForgettingTable", "read_forgetting_table"]

METHODS: Final = ("protonet", "cpm", "wayfarer")  # the paper has the first two
SHOTS: Final = (1, 3)
# The paper's words are "since the last label", but the authors' code counts from the last appearance,
# labelled or not. With all labels given the two are the same.
SINCE: Final = "appearance"


@dataclass(frozen=True)
class Cell:
    """Accuracy in percent on classes last met `first` to `last` steps ago."""

    first: int
    last: int
    ours: float | None  # the mean over seeds
    queries: int | None  # that each seed was asked
    paper: float | None


@dataclass(frozen=True)
class ForgettingRow:
    """One method in one setting after so many labels."""

    learner: str
    setting: Setting
    shots: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class ForgettingTable:
    """A world's table, a row per method, setting and number of labels."""

    world: str
    rows: tuple[ForgettingRow, ...]
    sequences: Mapping[Setting, tuple[int, ...]]  # how many ours were tested on
    seeds: Mapping[Setting, tuple[int, ...]]  # how many ours are the mean of
    missing: tuple[str, ...]
    warnings: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """The table for scripts; what is not there is None."""
        head = {"format": FORMAT, "kind": "forgetting-table", "world": self.world, "since": SINCE}
        lists = {"missing": list(self.missing), "warnings": list(self.warnings)}
        return head | {"rows": [asdict(row) for row in self.rows]} | lists

    def parts(self) -> list[Part]:
        """The table for readers, a part per setting."""
        columns = ("method", "labels", "", *(f"{first}-{last}" for first, last in BINS))
        parts, printed = [], "paper"
        if self.world in ELSEWHERE:
            printed = f"paper, {ELSEWHERE[self.world]}"
        for setting, words in WORDS.items():
            note = "Percent right by steps since the class was last met. "
            tested = self.sequences[setting]
            note += f"Ours on {span(tested, '{:,.0f}')} test sequences" if tested else "None of ours yet"
            seeds = self.seeds[setting]
            note += f", the mean of {span(seeds, '{:.0f}')} seeds." if max(seeds, default=1) > 1 else "."
            if self.world in ELSEWHERE:
                note += f" The paper's are of another dataset, {ELSEWHERE[self.world]}."
            lines: list[tuple[str | None, ...]] = []
            for row in self.rows:
                if row.setting != setting:
                    continue
                head = (METHOD_NAMES[row.learner], str(row.shots))
                lines.append((*head, "ours", *(_text(cell.ours) for cell in row.cells)))
                if row.learner in FORGETTING.get(self.world, {}):
                    lines.append((*head, printed, *(_text(cell.paper) for cell in row.cells)))
            for shots in SHOTS:
                asked = self._asked(setting, shots)
                lines += [("queries", str(shots), "each seed", *asked)] if any(asked) else []
            parts.append(Part(f"Forgetting, {words}", columns, tuple(lines), note))
        return parts

    def _asked(self, setting: Setting, shots: int) -> list[str | None]:
        """How many queries there are in each column: what is asked rarely is known only roughly."""
        rows = [row.cells for row in self.rows if (row.setting, row.shots) == (setting, shots)]
        counts = [
            [cell.queries for cell in cells if cell.queries is not None] for cells in zip(*rows, strict=True)
        ]
        return [f"{min(found):,}" if found else None for found in counts]


def read_forgetting_table(folder: Path, world: str) -> ForgettingTable:
    """The table of a world from the results in `folder`, the same files as the main table's."""
    if world not in table_worlds():
        raise WanderError(f"There is no table of {world!r}. Choose one of {', '.join(table_worlds())}.")
    results = load_results(folder, "evaluation")
    rows: list[ForgettingRow] = []
    sequences: dict[Setting, tuple[int, ...]] = dict.fromkeys(SETTINGS, ())
    seeds: dict[Setting, tuple[int, ...]] = dict.fromkeys(SETTINGS, ())
    missing: list[str] = []
    warnings: list[str] = []
    for setting in SETTINGS:
        digests = {}
        for learner in METHODS:
            name = row_name(results, learner, world, setting)
            result = row_of(results, folder, learner, world, setting, warnings)
            measured = []
            if result is None:
                missing.append(command(name, folder))
            else:
                further = further_seeds(results, folder, learner, world, setting, warnings)
                files = {f"{name}.json": result} | further
                how = command(name, folder)
                measured = [_measured(one, folder / file, how) for file, one in files.items()]
                seeds[setting] += (len(measured),)
                digests[f"{name}.json"] = str(result.get("manifest_sha256"))
                sequences[setting] += (int(result.get("sequences") or 0),)
            for shots in SHOTS:
                paper = _paper(world, learner, shots, setting)
                cells = []
                for (first, last), printed in zip(BINS, paper, strict=True):
                    accuracy, queries = _mean([one.get((first, shots), (None, None)) for one in measured])
                    cells.append(Cell(first, last, accuracy, queries, printed))
                rows.append(ForgettingRow(learner, setting, shots, tuple(cells)))
        warnings += mixed(folder, f"{WORDS[setting]} rows", digests)
    return ForgettingTable(world, tuple(rows), sequences, seeds, tuple(missing), tuple(warnings))


def _paper(world: str, learner: str, shots: int, setting: Setting) -> tuple[float | None, ...]:
    if learner not in FORGETTING.get(world, {}):
        return (None,) * len(BINS)
    printed: tuple[float, ...] = getattr(FORGETTING[world][learner][shots], setting)
    return printed


def _measured(
    result: dict[str, Any], path: Path, how: str
) -> dict[tuple[int, int], tuple[float | None, int | None]]:
    """Accuracy and number of queries by first step of the interval and number of labels."""
    try:
        cells = result["metrics"]["forgetting"][SINCE]
        return {(cell["first"], cell["shots"]): (cell["accuracy"], cell["queries"]) for cell in cells}
    except (KeyError, TypeError) as error:
        raise WanderError(
            f"{path} says it is an evaluation but lacks figures of one ({error}). Make it again: {how}"
        ) from error


def _mean(seeds: Sequence[tuple[float | None, int | None]]) -> tuple[float | None, int | None]:
    """The mean accuracy of the seeds that have one, and how many queries each was asked."""
    known = [accuracy for accuracy, _ in seeds if accuracy is not None]
    return (mean(known) if known else None), (seeds[0][1] if seeds else None)


def _text(accuracy: float | None) -> str | None:
    return None if accuracy is None else f"{accuracy:.1f}"
