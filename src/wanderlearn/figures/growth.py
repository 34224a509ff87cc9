"""How many classes there are to know as a sequence goes on (the paper's Figure 2C)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from wanderlearn.figures.curve import Curve, mean_curve
from wanderlearn.figures.style import COLUMN, canvas, lines_for, note, over_meetings, save
from wanderlearn.metrics.record import Bools, Floats
from wanderlearn.worlds.sequence import UNLABELED, Ints, Meetings

__all__ = ["classes_met", "classes_named", "draw_growth", "growth_curve"]


def classes_met(m: Meetings) -> Ints:
    """How many classes have been met after each meeting, [T]."""
    first = np.zeros(len(m), dtype=np.int64)
    first[np.unique(m.truth, return_index=True)[1]] = 1
    return np.cumsum(first)


def classes_named(m: Meetings) -> Ints:
    """How many classes have been met with their name after each meeting, [T].

    Slots are numbered by first labelled appearance, so this is the highest slot told so far, plus one.
    """
    told: Ints = np.maximum.accumulate(np.where(m.given == UNLABELED, -1, m.given)) + 1
    return told


def growth_curve(counts: Sequence[Ints]) -> Curve:
    """Mean number of classes at every meeting over the sequences that go on so far, and its spread."""
    return mean_curve(*_padded(counts))


def draw_growth(path: Path, curves: Mapping[str, Curve], words: str = "") -> None:
    """One line per count of classes, with a band of one standard deviation over sequences."""
    lines = lines_for(list(curves))
    with canvas(COLUMN, 2.6) as figure:
        axes = figure.subplots()
        for name, curve in ((name, curve.drawn()) for name, curve in curves.items()):
            colour, dashes = lines[name]
            axes.fill_between(curve.t, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(curve.t, curve.mean, color=colour, linestyle=dashes, label=name)
        # The lines meet at the end, so they are not named there.
        axes.legend(loc="upper left", labelcolor="linecolor", handlelength=2.4, borderaxespad=0)
        axes.set(ylabel="classes so far", ylim=(0, None))
        over_meetings(axes, [curve.drawn() for curve in curves.values()])
        note(figure, words)
        save(path, figure)


def _padded(counts: Sequence[Ints]) -> tuple[Floats, Bools]:
    shape = (len(counts), max(map(len, counts)))
    values, valid = np.zeros(shape), np.zeros(shape, dtype=bool)
    for row, count in enumerate(counts):
        values[row, : len(count)] = count
        valid[row, : len(count)] = True
    return values, valid
