"""What spatial and temporal cues are worth to two learners (the paper's figure of its context experiment)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from wanderlearn.errors import WanderError
from wanderlearn.figures.style import BLUE, COLUMN, INK, QUIET, VERMILION, canvas, note, save
from wanderlearn.paper import LEARNERS
from wanderlearn.presets.context import CONDITIONS, CONTEXT_LEARNERS, context_name
from wanderlearn.results import read_result

__all__ = ["WORDS", "Cell", "Cells", "draw_context", "effects", "missing_cells", "read_cells", "to_numbers"]

WORDS: Final = {"none": "None", "spatial": "+Spatial", "temporal": "+Temporal", "both": "+Both"}
"""The conditions as the paper's figure calls them."""
# A second cue beside the colour, for print in grey.
LOOKS: Final = {"protonet": (BLUE, ""), "cpm": (VERMILION, "//")}
WIDTH: Final = 0.38  # of a bar, where two conditions are 1 apart


class Cell(NamedTuple):
    """AP of one learner in one condition, in percent, with its 95 % interval over sequences."""

    ap: float
    low: float | None
    high: float | None
    sequences: int
    minutes: float | None  # of training, the encoder it began with included


Cells = Mapping[str, Mapping[str, Cell]]
"""By learner and condition; what has no result is not there."""


def read_cells(results: Path, world: str) -> dict[str, dict[str, Cell]]:
    """What a folder of results has of the experiment in a world."""
    cells: dict[str, dict[str, Cell]] = {}
    for learner in CONTEXT_LEARNERS:
        for condition in CONDITIONS:
            path = results / f"{context_name(learner, condition, world)}.json"
            if path.exists():
                cells.setdefault(learner, {})[condition] = _cell(path, condition)
    return cells


def _cell(path: Path, condition: str) -> Cell:
    result = read_result(path, "evaluation")
    spatial, temporal = CONDITIONS[condition]
    if result["shuffle"] == temporal or ("background" in result) != spatial:
        raise WanderError(
            f"{path} was evaluated in another condition than its name says: shuffled {result['shuffle']}, "
            f"with a background {'background' in result}. Evaluate it again: benchmarks/context.py."
        )
    metrics: dict[str, Any] = result["metrics"]
    interval = metrics.get("ap_interval") or {}
    seconds = (result.get("train") or {}).get("seconds")
    return Cell(
        ap=metrics["ap"],
        low=interval.get("low"),
        high=interval.get("high"),
        sequences=result["sequences"],
        minutes=None if seconds is None else seconds / 60,
    )


def missing_cells(cells: Cells, world: str) -> list[str]:
    """The presets that have no result yet."""
    return [
        context_name(learner, condition, world)
        for learner in CONTEXT_LEARNERS
        for condition in CONDITIONS
        if condition not in cells.get(learner, {})
    ]


def effects(of: Mapping[str, Cell]) -> dict[str, float]:
    """What each cue adds to a learner's AP, alone and beside the other; all four cells are needed."""
    return {
        "spatial": of["spatial"].ap - of["none"].ap,
        "temporal": of["temporal"].ap - of["none"].ap,
        "spatial_beside_temporal": of["both"].ap - of["temporal"].ap,
        "temporal_beside_spatial": of["both"].ap - of["spatial"].ap,
        "both": of["both"].ap - of["none"].ap,
    }


def to_numbers(cells: Cells) -> dict[str, Any]:
    """The numbers behind the figure, as JSON holds them."""
    return {
        learner: {
            "cells": {condition: cell._asdict() for condition, cell in of.items()},
            "effects": effects(of) if len(of) == len(CONDITIONS) else None,
        }
        for learner, of in cells.items()
    }


def draw_context(path: Path, cells: Cells, words: str = "") -> None:
    """Two bars per condition, with values and intervals; a bar without a result is left out and named."""
    every = [cell for of in cells.values() for cell in of.values()]
    if not every:
        raise WanderError("There is no result of the context experiment to draw.")
    floor = max(0, 10 * int((min(cell.ap for cell in every) - 8) // 10))
    with canvas(COLUMN, 2.5) as figure:
        axes = figure.subplots()
        for n, learner in enumerate(CONTEXT_LEARNERS):
            colour, hatch = LOOKS[learner]
            for place, condition in enumerate(CONDITIONS):
                x, cell = place + (n - 0.5) * WIDTH, cells.get(learner, {}).get(condition)
                if cell is None:
                    axes.text(
                        x, 0.02, "no result", transform=axes.get_xaxis_transform(), rotation=90, ha="center",
                        va="bottom", fontsize=6.5, color=QUIET,
                    )  # fmt: skip
                    continue
                named = next(iter(cells[learner])) == condition  # once in the legend
                axes.bar(
                    x, cell.ap - floor, WIDTH - 0.03, bottom=floor, color=colour, hatch=hatch,
                    edgecolor="white", linewidth=0, label=LEARNERS[learner] if named else None,
                )  # fmt: skip
                top = cell.ap
                if cell.low is not None and cell.high is not None:
                    axes.plot([x, x], [cell.low, cell.high], color=INK, linewidth=0.9, solid_capstyle="butt")
                    top = max(top, cell.high)
                axes.annotate(
                    f"{cell.ap:.1f}", (x, top), (0, 1.5), textcoords="offset points", ha="center",
                    va="bottom", fontsize=6.5,
                )  # fmt: skip
        highest = max(cell.high or cell.ap for cell in every)
        axes.set_ylim(floor, highest + 0.14 * (highest - floor))
        axes.set_xlim(-0.6, len(CONDITIONS) - 0.4)
        axes.set_xticks(range(len(CONDITIONS)), [WORDS[condition] for condition in CONDITIONS])
        axes.tick_params(axis="x", length=0)
        axes.set_ylabel("AP (%)")
        figure.legend(
            loc="outside upper left", ncols=2, handlelength=1.4, columnspacing=1.2, borderaxespad=0.2
        )
        note(figure, "\n".join(filter(None, (words, f"The axis begins at {floor}." if floor else ""))))
        save(path, figure)
