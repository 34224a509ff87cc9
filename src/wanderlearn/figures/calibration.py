"""How far confidences can be trusted: what they promise, and the errors among the labels one accepts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wanderlearn.figures.style import PAGE, QUIET, canvas, end_labels, lines_for, note, save, title
from wanderlearn.metrics import Record, Reliability, RiskCoverage, naming_reliability, naming_risk
from wanderlearn.metrics import new_reliability as reliability_of_new
from wanderlearn.metrics.record import Floats

__all__ = ["POINTS", "Trust", "draw_calibration", "to_numbers", "trust_of"]

POINTS = 100  # of a curve as it is drawn: every percent of coverage


class Trust(NamedTuple):
    """What the figure shows of one learner."""

    naming: Reliability
    new: Reliability
    coverage: Floats  # [P] share of meetings whose label is accepted, the surest first
    risk: Floats  # [P] errors among them
    excess: float  # area under the curve beyond the best possible


def trust_of(record: Record) -> Trust:
    """Count it from all that a learner answered."""
    curve = naming_risk(record)
    return Trust(
        naming_reliability(record), reliability_of_new(record), *_thinned(curve), excess=curve.excess_area
    )


def _thinned(curve: RiskCoverage) -> tuple[Floats, Floats]:
    """Of the points of a curve those that reach the next percent first."""
    wanted = np.arange(1, POINTS + 1) / POINTS
    places = np.unique(np.minimum(np.searchsorted(curve.coverage, wanted - 1e-12), len(curve.coverage) - 1))
    return curve.coverage[places], curve.risk[places]


def draw_calibration(path: Path, learners: Mapping[str, Trust], words: str = "") -> None:
    """Left and middle: what was promised and what came true. Right: risk over coverage."""
    lines = lines_for(list(learners))
    with canvas(PAGE, 2.6) as figure:
        naming, new, risk = figure.subplots(1, 3)
        for axes, words_over in ((naming, "Its label is right"), (new, "It is new")):
            axes.plot([0, 100], [0, 100], color=QUIET, linewidth=0.8, linestyle=(0, (1.2, 1.2)))
            axes.set(xlim=(0, 100), ylim=(0, 100), xlabel="promised (%)")
            title(axes, words_over)
        for name, trust in learners.items():
            colour, dashes = lines[name]
            for axes, found in ((naming, trust.naming), (new, trust.new)):
                axes.plot(
                    100 * found.promised, 100 * found.came_true, color=colour, linestyle=dashes,
                    marker="o", markersize=2.5, clip_on=False,
                )  # fmt: skip
            risk.plot(100 * trust.coverage, 100 * trust.risk, color=colour, linestyle=dashes)
        naming.set_ylabel("came true (%)")
        risk.set(xlabel="accepted (%)", ylabel="wrong among them (%)", xlim=(0, 100), ylim=(0, None))
        title(risk, "Accept the surest")
        note(figure, words)
        figure.draw_without_rendering()  # the layout must be known before labels are moved apart
        ends = [
            (100 * trust.coverage[-1], 100 * trust.risk[-1], name, lines[name].colour)
            for name, trust in learners.items()
        ]
        end_labels(risk, ends)
        save(path, figure)


def to_numbers(trust: Trust) -> dict[str, Any]:
    """The numbers behind the figure, in percent."""

    def bins(found: Reliability) -> dict[str, Any]:
        return {
            "promised": (100 * found.promised).round(3).tolist(),
            "came_true": (100 * found.came_true).round(3).tolist(),
            "meetings": found.meetings.tolist(),
            "error": round(100 * found.error, 3),
        }

    return {
        "naming": bins(trust.naming),
        "new": bins(trust.new),
        "coverage": (100 * trust.coverage).round(3).tolist(),
        "risk": (100 * trust.risk).round(3).tolist(),
        "excess_aurc": round(100 * trust.excess, 3),
    }
