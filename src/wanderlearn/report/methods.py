"""The paper's main table: every method in both settings, ours beside the paper's.

Ours come from result files by name: `{learner}-{world}[-semi].json` in the folder of results is a method's
row, and no other file is (variants and further seeds have longer names).
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from wanderlearn.errors import WanderError
from wanderlearn.paper import LEARNERS, SETTINGS, TABLES, Figures, Setting
from wanderlearn.results import FORMAT, load_results, markdown_table

__all__ = [
    "WORDS",
    "WORLDS",
    "MethodTable",
    "Ours",
    "command",
    "figures_of",
    "markdown",
    "method_markdown",
    "read_method_table",
]

WORLDS: Final = ("omniglot", "glyphs")
"""The worlds there is a table of; the paper has only the first."""
WORDS: Final[dict[Setting, str]] = {"supervised": "supervised", "semi": "semi-supervised"}
"""The settings as a table names them."""


@dataclass(frozen=True)
class Ours:
    """What one result file says of a method, in percent; None where it could not be measured."""

    ap: float | None
    ap_joint: float | None
    one_shot: float | None
    one_shot_se: float | None
    three_shot: float | None
    three_shot_se: float | None
    seconds: float | None  # of training, all stages; None where the result does not know
    parameters: int | None
    sequences: int
    manifest_sha256: str
    command: str


@dataclass(frozen=True)
class MethodTable:
    """A world's table: our results by learner and setting, and what is wrong with them as a table."""

    world: str
    ours: Mapping[str, Mapping[Setting, Ours | None]]
    missing: tuple[str, ...]  # the commands that fill the empty cells
    warnings: tuple[str, ...]

    def paper(self, learner: str, setting: Setting) -> Figures | None:
        """The paper's figures, or None where the paper has none."""
        row = TABLES.get(self.world, {}).get(learner)
        return None if row is None else getattr(row, setting)

    def of(self, setting: Setting) -> list[Ours]:
        """Our results of a setting, as far as there are any."""
        return [found for row in self.ours.values() if (found := row[setting]) is not None]

    def caption(self, setting: Setting) -> str:
        """On how many sequences ours were tested, and how long they were trained."""
        if not (found := self.of(setting)):
            return "none of ours yet"
        sequences = _span([one.sequences for one in found], "{:,.0f}")
        minutes = [one.seconds / 60 for one in found if one.seconds is not None]
        trained = f", trained for {_span(minutes, '{:.0f}')} minutes" if minutes else ""
        return f"ours on {sequences} test sequences{trained}"

    def json(self) -> dict[str, Any]:
        """The table for scripts; a setting without a result is None."""
        rows = []
        for learner, settings in self.ours.items():
            row: dict[str, Any] = {"learner": learner}
            row |= {s: None if (ours := settings[s]) is None else asdict(ours) for s in SETTINGS}
            known = {s: figures._asdict() for s in SETTINGS if (figures := self.paper(learner, s))}
            rows.append(row | {"paper": known or None})
        head = {"format": FORMAT, "kind": "table", "world": self.world, "rows": rows}
        return head | {"missing": list(self.missing), "warnings": list(self.warnings)}


def read_method_table(folder: Path, world: str) -> MethodTable:
    """The table of a world from the results in `folder`.

    A file with a row's name that is something else (another world, shuffled, other labels) is passed over,
    with a warning. Another warning names the rows of a setting that were not tested on the same sequences.
    """
    if world not in WORLDS:
        raise WanderError(f"There is no table of {world!r}. Choose one of {', '.join(WORLDS)}.")
    results = load_results(folder, "evaluation")
    ours: dict[str, dict[Setting, Ours | None]] = {}
    missing, warnings = [], []
    for learner in LEARNERS:
        ours[learner] = {}
        for setting, suffix in SETTINGS.items():
            name = f"{learner}-{world}{suffix}"
            how, result = command(name, folder), results.get(f"{name}.json")
            if result is not None and (wrong := _objection(result, learner, world, setting)):
                warnings.append(f"{folder / name}.json is passed over: {wrong}.")
                result = None
            if result is None:
                missing.append(how)
            ours[learner][setting] = None if result is None else _ours(result, folder / f"{name}.json", how)
    for setting in SETTINGS:
        warnings += _mixed(folder, world, setting, ours)
    return MethodTable(world, ours, tuple(missing), tuple(warnings))


def command(preset: str, folder: Path) -> str:
    """What trains a preset and leaves its result where the table looks for it."""
    result = shlex.quote((folder / f"{preset}.json").as_posix())
    return f"wander train {preset} && wander evaluate runs/{preset} --json {result}"


def _objection(result: dict[str, Any], learner: str, world: str, setting: Setting) -> str | None:
    """Why a result is not what its name says, or None if it is."""
    wanted = {"world": world, "split": "test", "semi": setting == "semi", "shuffle": False}
    for key, value in wanted.items():
        if result.get(key) != value:
            return f"its {key} is {result.get(key)!r}, not {value!r}"
    preset, kind = result.get("preset"), result.get("learner")
    if preset is not None and preset != (name := f"{learner}-{world}{SETTINGS[setting]}"):
        return f"it was trained by the preset {preset}, not {name}"
    if kind in LEARNERS and kind != learner:
        return f"its learner is {kind}, not {learner}"
    return None


def _ours(result: dict[str, Any], path: Path, how: str) -> Ours:
    try:
        metrics, train = result["metrics"], result["train"] or {}
        # As in the paper's tables: the class was *labelled* N times before, and the mean is over all such
        # queries of all sequences. (With hidden labels, counting appearances would give other figures.)
        shots = {entry["shots"]: entry for entry in metrics["shots"]["labelled"]}
        return Ours(
            ap=metrics["ap"],
            ap_joint=metrics["ap_joint"],
            one_shot=shots[1]["mean"],
            one_shot_se=shots[1]["standard_error"],
            three_shot=shots[3]["mean"],
            three_shot_se=shots[3]["standard_error"],
            seconds=train.get("seconds"),
            parameters=result.get("parameters"),
            sequences=result["sequences"],
            manifest_sha256=result["manifest_sha256"],
            command=how,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise WanderError(
            f"{path} says it is an evaluation but lacks figures of one ({error}). Make it again: {how}"
        ) from error


def _mixed(
    folder: Path, world: str, setting: Setting, ours: Mapping[str, Mapping[Setting, Ours | None]]
) -> list[str]:
    files: dict[str, list[str]] = {}
    for learner, row in ours.items():
        if (one := row[setting]) is not None:
            files.setdefault(one.manifest_sha256, []).append(f"{learner}-{world}{SETTINGS[setting]}.json")
    if len(files) < 2:
        return []
    told = "; ".join(f"{', '.join(names)} on {digest[:12]}" for digest, names in files.items())
    return [
        f"The {WORDS[setting]} rows in {folder} were not tested on the same sequences and cannot be compared "
        f"(by manifest: {told})."
    ]


def markdown(table: MethodTable) -> str:
    """The whole table for a document, a part per setting, then the warnings."""
    parts, paper = [], table.world in TABLES
    for setting, words in WORDS.items():
        rows = [[name, *_cells(table, learner, setting, paper)] for learner, name in LEARNERS.items()]
        parts.append(f"**{words.capitalize()}**\n\n{markdown_table(['method', *_columns(paper)], rows)}")
        parts.append(f"{table.caption(setting).capitalize()}.")
    parts += [f"**Warning.** {warning}" for warning in table.warnings]
    return "\n\n".join(parts)


def method_markdown(tables: Sequence[MethodTable], learners: Sequence[str]) -> str:
    """The rows of one page's learners in several tables; a dash where there is no figure."""
    rows: list[list[object]] = []
    for table in tables:
        for learner in learners:
            method = [LEARNERS[learner]] if len(learners) > 1 else []
            for setting, words in WORDS.items():
                rows.append([*method, table.world, words, *_cells(table, learner, setting, paper=True)])
    head = ["method"] if len(learners) > 1 else []
    shown = markdown_table([*head, "world", "labels", *_columns(paper=True)], rows)
    ours = [one for table in tables for name in learners for one in table.ours[name].values() if one]
    tested = _span([one.sequences for one in ours], "{:,.0f}") if ours else ""
    return f"{shown}\n\nOurs on {tested} test sequences." if ours else f"{shown}\n\nNone of ours yet."


def _columns(paper: bool) -> list[str]:
    figures = ("AP", "1-shot", "3-shot")
    both = [column for name in figures for column in ([name, f"{name}, paper"] if paper else [name])]
    return [*both, "AP-joint", "minutes"]


def _cells(table: MethodTable, learner: str, setting: Setting, paper: bool) -> list[object]:
    ours = table.ours[learner][setting]
    cells: list[object] = []
    for mine, printed in zip(figures_of(ours), figures_of(table.paper(learner, setting)), strict=True):
        cells += [mine, printed] if paper else [mine]
    joint = None if ours is None or ours.ap_joint is None else f"{ours.ap_joint:.2f}"
    minutes = None if ours is None or ours.seconds is None else f"{ours.seconds / 60:.0f}"
    return [*cells, joint, minutes]


def figures_of(figures: Ours | Figures | None, *, errors: bool = True) -> list[str | None]:
    """AP, 1-shot and 3-shot as text, with standard errors if wanted; None for what is not there."""
    if figures is None:
        return [None, None, None]
    ap = None if figures.ap is None else f"{figures.ap:.2f}"
    pairs = ((figures.one_shot, figures.one_shot_se), (figures.three_shot, figures.three_shot_se))
    shots = (
        None if m is None else f"{m:.2f}" + (f" ± {se:.2f}" if errors and se is not None else "")
        for m, se in pairs
    )
    return [ap, *shots]


def _span(numbers: Sequence[float], form: str) -> str:
    low, high = form.format(min(numbers)), form.format(max(numbers))
    return low if low == high else f"{low} to {high}"
