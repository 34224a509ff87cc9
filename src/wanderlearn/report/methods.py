"""The paper's main table: every method in both settings, ours beside the paper's.

Ours come from result files by name: `{learner}-{world}[-semi].json` in the folder of results is a method's
row, `{learner}-{world}[-semi]-seedN.json` are further seeds of that row, and no other file is either.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final

from wanderlearn.errors import WanderError
from wanderlearn.paper import METHOD_NAMES, SETTINGS, TABLES, Figures, Setting
from wanderlearn.report.recipe import recipe
from wanderlearn.report.rows import (
    ELSEWHERE,
    WORLDS,
    command,
    further_seeds,
    row_name,
    row_of,
    table_worlds,
    wrong_world,
)
from wanderlearn.results import FORMAT, load_results, markdown_table

__all__ = [
    "WORDS",
    "WORLDS",
    "MethodTable",
    "Ours",
    "Seeds",
    "command",
    "figures_of",
    "markdown",
    "method_markdown",
    "mixed",
    "read_method_table",
    "row_of",
    "seeds_of",
    "span",
    "wrong_world",
]

WORDS: Final[dict[Setting, str]] = {"supervised": "supervised", "semi": "semi-supervised"}
"""The settings as a table names them."""


@dataclass(frozen=True)
class Seeds:
    """AP of the same recipe from several seeds, the row's own first."""

    ap: tuple[float, ...]
    mean: float
    spread: float  # standard deviation of the seeds (n - 1)
    count: int

    @classmethod
    def among(cls, aps: Sequence[float]) -> "Seeds | None":
        """What these come to; None where there is but one."""
        return cls(tuple(aps), mean(aps), stdev(aps), len(aps)) if len(aps) > 1 else None

    def in_words(self, *, count: bool = True) -> str:
        """Mean and standard deviation, and how many."""
        return f"{self.mean:.2f} ± {self.spread:.2f}" + f" ({self.count})" * count


@dataclass(frozen=True)
class Ours:
    """What one result file says of a method, in percent; None where it could not be measured."""

    ap: float | None
    ap_interval: Mapping[str, float] | None  # low, high and level; None in results made before there was one
    ap_joint: float | None
    one_shot: float | None
    one_shot_se: float | None
    three_shot: float | None
    three_shot_se: float | None
    seconds: float | None  # of training, all stages; None where the result does not know
    parameters: int | None
    sequences: int
    manifest_sha256: str
    weights_sha256: str | None
    commit: str | None
    recipe: str | None
    command: str
    world: str | None = None  # the collection of pictures it was tested on
    seeds: Seeds | None = None  # None with one seed only


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

    def has_seeds(self, setting: Setting) -> bool:
        """Whether any row of a setting has more than one seed."""
        return any(one.seeds for one in self.of(setting))

    def caption(self, setting: Setting) -> str:
        """On how many sequences ours were tested, and how long they were trained."""
        if not (found := self.of(setting)):
            return "none of ours yet"
        sequences = span([one.sequences for one in found], "{:,.0f}")
        minutes = [one.seconds / 60 for one in found if one.seconds is not None]
        trained = f", trained for {span(minutes, '{:.0f}')} minutes" if minutes else ""
        where = ""
        if self.world in ELSEWHERE:
            where = f" of {' and '.join(sorted({str(one.world) for one in found}))}"
        return f"ours on {sequences} test sequences{where}{trained}"

    @property
    def printed(self) -> str:
        """What the paper's figures are called: where they are of another dataset, that is said."""
        return f"paper, {ELSEWHERE[self.world]}" if self.world in ELSEWHERE else "paper"

    @property
    def note(self) -> str | None:
        """What a reader must know who compares ours with the paper's."""
        if self.world not in ELSEWHERE:
            return None
        starred = any(row.pretrained for row in TABLES.get(self.world, {}).values())
        return (
            f"The paper's figures are of another dataset, {ELSEWHERE[self.world]}, and stand here for "
            "orientation only."
        ) + " Starred: there the encoder was pretrained by classification." * starred

    def paper_name(self, learner: str) -> str:
        """`printed`, with the paper's star."""
        row = TABLES.get(self.world, {}).get(learner)
        return self.printed.replace("paper", "paper*", 1) if row and row.pretrained else self.printed

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
    if world not in table_worlds():
        raise WanderError(f"There is no table of {world!r}. Choose one of {', '.join(table_worlds())}.")
    results = load_results(folder, "evaluation")
    ours: dict[str, dict[Setting, Ours | None]] = {}
    missing: list[str] = []
    warnings: list[str] = []
    for learner in METHOD_NAMES:
        ours[learner] = {}
        for setting in SETTINGS:
            name = row_name(results, learner, world, setting)
            how, result = command(name, folder), row_of(results, folder, learner, world, setting, warnings)
            if result is None:
                missing.append(how)
                ours[learner][setting] = None
                continue
            row = _ours(result, folder / f"{name}.json", how)
            further = further_seeds(results, folder, learner, world, setting, warnings)
            ours[learner][setting] = replace(row, seeds=_seeds(row, further.values()))
    for setting in SETTINGS:
        digests = {
            f"{row_name(results, learner, world, setting)}.json": one.manifest_sha256
            for learner, settings in ours.items()
            if (one := settings[setting]) is not None
        }
        warnings += mixed(folder, f"{WORDS[setting]} rows", digests)
    return MethodTable(world, ours, tuple(missing), tuple(warnings))


def _ours(result: dict[str, Any], path: Path, how: str) -> Ours:
    try:
        metrics, train = result["metrics"], result["train"] or {}
        # As in the paper's tables: the class was *labelled* N times before, and the mean is over all such
        # queries of all sequences. (With hidden labels, counting appearances would give other figures.)
        shots = {entry["shots"]: entry for entry in metrics["shots"]["labelled"]}
        return Ours(
            ap=metrics["ap"],
            ap_interval=metrics.get("ap_interval"),
            ap_joint=metrics["ap_joint"],
            one_shot=shots[1]["mean"],
            one_shot_se=shots[1]["standard_error"],
            three_shot=shots[3]["mean"],
            three_shot_se=shots[3]["standard_error"],
            seconds=train.get("seconds"),
            parameters=result.get("parameters"),
            sequences=result["sequences"],
            manifest_sha256=result["manifest_sha256"],
            weights_sha256=result.get("weights_sha256"),
            commit=result.get("commit"),
            recipe=recipe(train.get("config")),
            command=how,
            world=result.get("world"),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise WanderError(
            f"{path} says it is an evaluation but lacks figures of one ({error}). Make it again: {how}"
        ) from error


def _seeds(row: Ours, further: Iterable[dict[str, Any]]) -> Seeds | None:
    """AP of a row and of its further seeds."""
    aps = [] if row.ap is None else [row.ap]
    return Seeds.among([*aps, *(result["metrics"]["ap"] for result in further)])


def mixed(folder: Path, rows: str, digests: Mapping[str, str]) -> list[str]:
    """A warning if the files of one table were not tested on the same sequences (`digests`, of manifests)."""
    files: dict[str, list[str]] = {}
    for file, digest in digests.items():
        files.setdefault(digest, []).append(file)
    if len(files) < 2:
        return []
    told = "; ".join(f"{', '.join(names)} on {digest[:12]}" for digest, names in files.items())
    return [
        f"The {rows} in {folder} were not tested on the same sequences and cannot be compared "
        f"(by manifest: {told})."
    ]


def markdown(table: MethodTable) -> str:
    """The whole table for a document, a part per setting, then the warnings."""
    parts, paper = [], table.world in TABLES
    for setting, words in WORDS.items():
        columns = ["method", *_columns(paper, table.printed)]
        rows = [
            [f"{name}{_star(table, learner)}", *_cells(table, learner, setting, paper)]
            for learner, name in METHOD_NAMES.items()
        ]
        if table.has_seeds(setting):
            columns.append("AP, mean ± sd of seeds")
            rows = [
                [*row, seeds_of(table.ours[learner][setting])]
                for learner, row in zip(METHOD_NAMES, rows, strict=True)
            ]
        parts.append(f"**{words.capitalize()}**\n\n{markdown_table(columns, rows)}")
        parts.append(f"{table.caption(setting).capitalize()}.")
    parts += [table.note] if table.note else []
    parts += [f"**Warning.** {warning}" for warning in table.warnings]
    return "\n\n".join(parts)


def method_markdown(tables: Sequence[MethodTable], learners: Sequence[str]) -> str:
    """The rows of one page's learners in several tables; a dash where there is no figure."""
    rows: list[list[object]] = []
    for table in tables:
        for learner in learners:
            method = [METHOD_NAMES[learner]] if len(learners) > 1 else []
            for setting, words in WORDS.items():
                rows.append([*method, table.world, words, *_cells(table, learner, setting, paper=True)])
    head = ["method"] if len(learners) > 1 else []
    shown = markdown_table([*head, "world", "labels", *_columns(paper=True)], rows)
    ours = [one for table in tables for name in learners for one in table.ours[name].values() if one]
    tested = span([one.sequences for one in ours], "{:,.0f}") if ours else ""
    return f"{shown}\n\nOurs on {tested} test sequences." if ours else f"{shown}\n\nNone of ours yet."


def _star(table: MethodTable, learner: str) -> str:
    return "\\*" if "*" in table.paper_name(learner) and table.note else ""


def _columns(paper: bool, printed: str = "paper") -> list[str]:
    figures = ("AP", "1-shot", "3-shot")
    both = [column for name in figures for column in ([name, f"{name}, {printed}"] if paper else [name])]
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


def seeds_of(ours: Ours | None, *, count: bool = True) -> str | None:
    """Mean and standard deviation over seeds as text, and how many; None where there is but one."""
    return None if ours is None or ours.seeds is None else ours.seeds.in_words(count=count)


def span(numbers: Sequence[float], form: str) -> str:
    """ "500 to 2,000", or one number where all are alike."""
    low, high = form.format(min(numbers)), form.format(max(numbers))
    return low if low == high else f"{low} to {high}"
