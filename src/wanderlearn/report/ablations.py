"""The paper's two ablation tables, ours beside the paper's: semi-supervised AP on validation sequences.

Ours are `ablations/{slug}-omniglot-semi.json` in the folder of results; a row of both tables is one file.
"""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from wanderlearn.configs import differences, from_json, to_json
from wanderlearn.errors import WanderError
from wanderlearn.learners.ablations import (
    ARCHITECTURE_ABLATIONS,
    SEMI_ABLATIONS,
    AblationConfig,
    as_built,
    slug_of,
)
from wanderlearn.paper import ARCHITECTURE_ABLATION_AP, SEMI_ABLATION_AP
from wanderlearn.presets import ablation_preset
from wanderlearn.report.methods import mixed, span, wrong_world
from wanderlearn.report.parts import Part
from wanderlearn.results import FORMAT, load_results

__all__ = ["AblationRow", "AblationTables", "ablation_command", "ablation_file", "read_ablation_tables"]

WORLD: Final = "omniglot"
TABLES: Final[dict[str, tuple[str, dict[str, AblationConfig], dict[str, float]]]] = {
    "architecture": ("Architecture", ARCHITECTURE_ABLATIONS, ARCHITECTURE_ABLATION_AP),
    "semi_supervised": ("What learns from unlabelled items", SEMI_ABLATIONS, SEMI_ABLATION_AP),
}


@dataclass(frozen=True)
class AblationRow:
    """One row: ours (None where there is no result) beside the paper's, in percent."""

    name: str
    slug: str
    ap: float | None
    ap_interval: Mapping[str, float] | None
    paper_ap: float
    sequences: int | None
    seconds: float | None  # of training
    manifest_sha256: str | None
    command: str


@dataclass(frozen=True)
class AblationTables:
    """Both tables by name, "architecture" and "semi_supervised"."""

    tables: Mapping[str, tuple[AblationRow, ...]]
    missing: tuple[str, ...]
    warnings: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """The tables for scripts; what is not there is None."""
        head = {"format": FORMAT, "kind": "ablation-tables", "world": WORLD, "split": "val", "semi": True}
        tables = {name: [asdict(row) for row in rows] for name, rows in self.tables.items()}
        return head | tables | {"missing": list(self.missing), "warnings": list(self.warnings)}

    def parts(self) -> list[Part]:
        """The tables for readers."""
        columns = ("row", "AP", "95 % interval", "AP, paper", "difference", "minutes")
        parts = []
        for name, rows in self.tables.items():
            tested = [row.sequences for row in rows if row.sequences is not None]
            note = "None of ours yet."
            if tested:
                note = f"Ours on {span(tested, '{:,.0f}')} validation sequences."
            parts.append(Part(f"Ablation: {TABLES[name][0]}", columns, tuple(map(_line, rows)), note))
        return parts


def ablation_file(config: AblationConfig) -> str:
    """Where the result of a row is, in the folder of results."""
    return f"ablations/{slug_of(config)}-{WORLD}-semi.json"


def ablation_command(config: AblationConfig, folder: Path) -> str:
    """What trains a row and leaves its result where the table looks for it."""
    preset = ablation_preset(slug_of(config)).name
    result = shlex.quote((folder / ablation_file(config)).as_posix())
    return f"wander train {preset} && wander evaluate runs/{preset} --split val --json {result}"


def read_ablation_tables(folder: Path, world: str = WORLD) -> AblationTables:
    """Both tables from the results in `folder`.

    A file with a row's name that is of another model or of other sequences is passed over, with a warning.
    """
    if world != WORLD:
        raise WanderError(f"The paper's ablations are of {WORLD}: there are none of {world!r}.")
    results = load_results(folder, "evaluation")
    tables: dict[str, tuple[AblationRow, ...]] = {}
    missing: dict[str, None] = {}  # in order, and once: the tables share rows
    warnings: dict[str, None] = {}
    for table, (_, configs, paper) in TABLES.items():
        rows = []
        for name, config in configs.items():
            file, how = ablation_file(config), ablation_command(config, folder)
            result = results.get(file)
            if result is not None and (wrong := _objection(result, config)):
                warnings[f"{folder / file} is passed over: {wrong}."] = None
                result = None
            if result is None:
                missing[how] = None
            rows.append(_row(name, config, paper[name], result, folder / file, how))
        tables[table] = tuple(rows)
    digests = {
        f"{row.slug}-{WORLD}-semi.json": row.manifest_sha256
        for rows_ in tables.values()
        for row in rows_
        if row.manifest_sha256 is not None
    }
    warnings |= dict.fromkeys(mixed(folder, "ablations", digests))
    return AblationTables(tables, tuple(missing), tuple(warnings))


def _objection(result: dict[str, Any], config: AblationConfig) -> str | None:
    """Why a result is not what its name says, or None if it is."""
    if wrong := wrong_world(result, WORLD, "val", semi=True):
        return wrong
    learner = (result.get("config") or {}).get("learner")
    try:
        found = from_json(type(config), learner)
    except WanderError:
        return "its learner is another one"
    other = [name for name, _, _ in differences(to_json(as_built(found)), to_json(config))]
    return f"its learner differs from the row's in {', '.join(other)}" if other else None


def _row(
    name: str,
    config: AblationConfig,
    paper: float,
    result: dict[str, Any] | None,
    path: Path,
    how: str,
) -> AblationRow:
    if result is None:
        return AblationRow(name, slug_of(config), None, None, paper, None, None, None, how)
    try:
        return AblationRow(
            name=name,
            slug=slug_of(config),
            ap=result["metrics"]["ap"],
            ap_interval=result["metrics"].get("ap_interval"),
            paper_ap=paper,
            sequences=result["sequences"],
            seconds=(result["train"] or {}).get("seconds"),
            manifest_sha256=result["manifest_sha256"],
            command=how,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise WanderError(
            f"{path} says it is an evaluation but lacks figures of one ({error}). Make it again: {how}"
        ) from error


def _line(row: AblationRow) -> tuple[str | None, ...]:
    interval = row.ap_interval
    return (
        row.name,
        None if row.ap is None else f"{row.ap:.2f}",
        None if interval is None else f"{interval['low']:.2f} to {interval['high']:.2f}",
        f"{row.paper_ap:.2f}",
        None if row.ap is None else f"{row.ap - row.paper_ap:+.2f}",
        None if row.seconds is None else f"{row.seconds / 60:.0f}",
    )
