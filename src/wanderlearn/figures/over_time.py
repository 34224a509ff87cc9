"""Accuracy on known classes over the meetings of a sequence, in both settings (the paper's Figure 4)."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from wanderlearn.figures.curve import Curve
from wanderlearn.figures.style import PAGE, canvas, end_labels, lines_for, note, over_meetings, save, title
from wanderlearn.metrics import Record

__all__ = ["accuracy_curve", "draw_over_time"]


def accuracy_curve(record: Record, window: int = 5) -> Curve:
    """Percent right on known classes, every `window` meetings together, with one standard error either way.

    Right means that the highest class score is the right one; the novelty has no say. A window pools all
    known meetings of all sequences. Meetings of one sequence are not independent, so the error is that of a
    ratio over sequences: sqrt(sum (hits - p asked)^2) / sum asked, for a window of 1 sqrt(p (1 - p) / n).
    """
    steps = record.valid.shape[1]
    starts = np.arange(0, steps, window)
    asked = np.add.reduceat(record.known.astype(np.int64), starts, axis=1)  # [N, P]
    hits = np.add.reduceat(record.correct.astype(np.int64), starts, axis=1)  # [N, P]
    all_asked = asked.sum(axis=0)  # [P]
    some = all_asked > 0
    mean, error = np.full((2, len(starts)), math.nan)
    mean[some] = hits.sum(axis=0)[some] / all_asked[some]
    away = (hits - np.nan_to_num(mean) * asked)[:, some]
    error[some] = np.sqrt((away**2).sum(axis=0)) / all_asked[some]
    middle = (starts + np.minimum(starts + window, steps) + 1) / 2  # of the meetings, counted from 1
    sequences = (asked > 0).sum(axis=0)
    return Curve(middle, 100 * mean, 100 * (mean - error), 100 * (mean + error), sequences.astype(np.int32))


def draw_over_time(path: Path, panels: Mapping[str, Mapping[str, Curve]], words: str = "") -> None:
    """One panel per setting with a curve per learner; `panels` is {setting: {learner: curve}}."""
    lines = lines_for([name for curves in panels.values() for name in curves])
    shown = [{name: curve.drawn() for name, curve in curves.items()} for curves in panels.values()]
    with canvas(PAGE, 2.6) as figure:
        across = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, setting, curves in zip(across, panels, shown, strict=True):
            for name, curve in curves.items():
                colour, dashes = lines[name]
                low, high = curve.low.clip(0), curve.high.clip(max=100)
                axes.fill_between(curve.t, low, high, color=colour, alpha=0.18, linewidth=0)
                axes.plot(curve.t, curve.mean, color=colour, linestyle=dashes)
            title(axes, setting)
            over_meetings(axes, list(curves.values()))
        across[0].set_ylabel("right on known classes (%)")
        note(figure, words)
        figure.draw_without_rendering()  # the layout must be known before labels are moved apart
        for place, (axes, curves) in enumerate(zip(across, shown, strict=True)):
            later = {name for others in shown[place + 1 :] for name in others}
            ends = [
                (curve.t[-1], curve.mean[-1], name, lines[name].colour)
                for name, curve in curves.items()
                if name not in later and len(curve.t)  # named once, in the last panel that has it
            ]
            end_labels(axes, ends)
        save(path, figure)
