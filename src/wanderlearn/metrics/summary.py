"""All figures of a record in one dictionary, ready to be written as JSON."""

import math
from dataclasses import asdict
from typing import Any

from wanderlearn.metrics.accuracy import (
    Forgetting,
    Shot,
    forgetting,
    known_accuracy,
    novelty_accuracy,
    shot_accuracy,
)
from wanderlearn.metrics.bootstrap import LEVEL, ap_interval
from wanderlearn.metrics.precision import ap, ap_joint
from wanderlearn.metrics.record import Record
from wanderlearn.metrics.reliability import Reliability, naming_reliability, new_reliability
from wanderlearn.metrics.risk import RISKS, naming_risk

__all__ = ["summary"]

_NO_KNOWN = "no step has a known target"
_NO_STEP = "there is no valid step"


def summary(record: Record) -> dict[str, Any]:
    """The figures of an evaluation, in percent and unrounded.

    What cannot be measured is None. The why stands beside it: under the same name with `_reason`, or for the
    entries of the lists under `reason`. `ap_interval` is the 95 % interval of AP over resampled sequences.
    `calibration` has the expected calibration errors of naming and of "new", and what accepting the surest
    labels costs: area under risk over coverage, its excess over the best possible, coverage at some risks.
    """
    figures = (
        ("ap", ap(record), _NO_KNOWN),
        ("ap_joint", ap_joint(record), _NO_KNOWN),
        ("known_accuracy", known_accuracy(record), _NO_KNOWN),
        ("novelty_accuracy", novelty_accuracy(record), _NO_STEP),
    )
    result: dict[str, Any] = {"sequences": len(record), "steps": record.steps}
    for name, figure, reason in figures:
        result[name] = _percent(figure)
        if math.isnan(figure):
            result[f"{name}_reason"] = reason
    interval = ap_interval(record)
    ends = {"low": _percent(interval.low), "high": _percent(interval.high), "level": LEVEL}
    result["ap_interval"] = None if math.isnan(interval.low) else ends
    if interval.reason:
        result["ap_interval_reason"] = interval.reason
    result["shots"] = {
        "labelled": [_entry(shot) for shot in shot_accuracy(record, "labelled")],
        "appearances": [_entry(shot) for shot in shot_accuracy(record, "appearances")],
    }
    result["forgetting"] = {
        "appearance": [_entry(cell) for cell in forgetting(record, "appearance")],
        "label": [_entry(cell) for cell in forgetting(record, "label")],
    }
    result["calibration"] = _calibration(record)
    return result


def _calibration(record: Record) -> dict[str, Any]:
    """How far confidences can be trusted, in percent."""
    naming, new, curve = naming_reliability(record), new_reliability(record), naming_risk(record)
    result: dict[str, Any] = {
        "naming_error": _percent(naming.error),
        "new_error": _percent(new.error),
        "aurc": _percent(curve.area),
        "excess_aurc": _percent(curve.excess_area),
        "coverage_at_risk": [
            {"risk": 100 * risk, "coverage": _percent(curve.coverage_at(risk))} for risk in RISKS
        ],
        "naming_bins": _bins(naming),
        "new_bins": _bins(new),
    }
    if math.isnan(naming.error):
        result["reason"] = _NO_STEP
    return result


def _bins(found: Reliability) -> list[dict[str, Any]]:
    return [
        {"promised": 100 * promised, "came_true": 100 * came_true, "meetings": meetings}
        for promised, came_true, meetings in zip(*(part.tolist() for part in found), strict=True)
    ]


def _entry(figures: Shot | Forgetting) -> dict[str, Any]:
    """The fields of a shot or a cell, its fractions in percent, and the reason only where there is one."""
    entry = {
        name: _percent(value) if isinstance(value, float) else value
        for name, value in asdict(figures).items()
    }
    if not entry["reason"]:
        del entry["reason"]
    return entry


def _percent(fraction: float) -> float | None:
    return None if math.isnan(fraction) else 100 * fraction
