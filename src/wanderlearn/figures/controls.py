"""What CPM's RNN controls, over the meetings of a sequence (the paper's figure of beta and gamma)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from wanderlearn.errors import WanderError
from wanderlearn.figures.curve import Curve, mean_curve
from wanderlearn.figures.inside import Inside, look_inside
from wanderlearn.figures.style import (
    BLUE,
    GREEN,
    INK,
    PAGE,
    VERMILION,
    canvas,
    end_labels,
    note,
    over_meetings,
    save,
    title,
)
from wanderlearn.learners.cpm import CPM
from wanderlearn.metrics.record import Bools, Floats
from wanderlearn.model import Model
from wanderlearn.worlds.sequence import Meetings
from wanderlearn.worlds.world import World

__all__ = ["PANELS", "control_curves", "controls_of", "draw_controls"]

ONLY_CPM = (
    "Only CPM has control parameters, and this learner is another one. "
    "Give a run or weights of CPM, as `wander figure controls cpm-glyphs`."
)
# {panel: (what its axis says, {line: (words at its end, colour)})}
PANELS: Mapping[str, tuple[str, Mapping[str, tuple[str, str]]]] = {
    "Threshold": ("β", {"beta_read": ("read", BLUE), "beta_write": ("write", VERMILION)}),
    "Temperature": ("γ", {"gamma_read": ("read", BLUE), "gamma_write": ("write", VERMILION)}),
    "Feature and context": (
        "distance from the mean",
        {"h_cnn": ("feature\n$h^\\mathrm{CNN}$", INK), "h_rnn": ("context\n$h^\\mathrm{RNN}$", GREEN)},
    ),
}


def controls_of(inside: Inside) -> dict[str, Floats]:
    """The controls by name, [B, T] each: thresholds, temperatures, and how much feature and context move.

    The context is measured from its own mean over all meetings: what it adds to every feature alike says
    nothing about where one is. The feature is measured the same way.
    """
    if inside.beta is None or inside.gamma is None:
        raise WanderError(ONLY_CPM)
    found = {"beta_read": inside.beta[..., 0], "beta_write": inside.beta[..., 1]}
    found |= {"gamma_read": inside.gamma[..., 0], "gamma_write": inside.gamma[..., 1]}
    if inside.h_rnn is not None:
        found["h_cnn"] = _from_mean(inside.h, inside.valid)
        found["h_rnn"] = _from_mean(inside.h_rnn, inside.valid)
    return found


def control_curves(model: Model, world: World, meetings: Sequence[Meetings]) -> dict[str, Curve]:
    """Mean of every control at every meeting, one standard deviation over sequences as the band."""
    if not isinstance(model.learner, CPM):
        raise WanderError(ONLY_CPM)
    inside = look_inside(model, world, meetings)
    return {name: mean_curve(values, inside.valid) for name, values in controls_of(inside).items()}


def draw_controls(path: Path, curves: Mapping[str, Curve], words: str = "") -> None:
    """A panel each for thresholds, temperatures, and feature and context."""
    panels = {panel: about for panel, about in PANELS.items() if set(about[1]) <= set(curves)}
    shown = {name: curve.drawn() for name, curve in curves.items()}
    with canvas(PAGE, 2.4) as figure:
        across = figure.subplots(1, len(panels), squeeze=False)[0]
        ends = []
        for axes, (panel, (label, names)) in zip(across, panels.items(), strict=True):
            for name, (_, colour) in names.items():
                curve = shown[name]
                axes.fill_between(curve.t, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
                axes.plot(curve.t, curve.mean, color=colour)  # named at its end: needs no dashes
            title(axes, panel)
            axes.set_ylabel(label, rotation=90 if len(label) > 1 else 0)
            over_meetings(axes, [shown[name] for name in names])
            if "h_rnn" in names:
                axes.set_ylim(bottom=0)  # lengths are compared as ratios
            ends.append([(shown[n].t[-1], shown[n].mean[-1], *names[n]) for n in names])
        note(figure, words)
        figure.draw_without_rendering()  # the layout must be known before labels are moved apart
        for axes, of_panel in zip(across, ends, strict=True):
            end_labels(axes, of_panel)
        save(path, figure)


def _from_mean(vectors: Floats, valid: Bools) -> Floats:
    """How far every vector is from the mean of all valid ones, [B, T]."""
    return np.asarray(np.linalg.norm(vectors - vectors[valid].mean(0, dtype=np.float64), axis=-1))
