"""One sequence as its learner's memory sees it, flattened by t-SNE and coloured by environment."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wanderlearn.errors import WanderError
from wanderlearn.figures.inside import by_cosine, look_inside
from wanderlearn.figures.style import INK, PAGE, QUIET, canvas, markers, save, title
from wanderlearn.metrics.record import Floats, Ints
from wanderlearn.model import Model
from wanderlearn.worlds.sequence import UNLABELED, Meetings
from wanderlearn.worlds.world import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["NEIGHBOURS", "Embedded", "draw_embedding", "embed", "memory_features", "same_environment", "tsne"]

NEIGHBOURS = 10
PERPLEXITY = 20.0  # for the 150 meetings of a sequence; less for shorter ones
STRAY = 0.12  # of the width of the picture: so far from the middle of its class a meeting stands alone


@dataclass(frozen=True, eq=False)
class Embedded:
    """A sequence in the plane, and how well its environments hold together before it was flattened."""

    name: str  # of the learner
    points: Floats  # [T, 2]
    same_environment: float  # share of nearest neighbours of other classes that share the environment
    chance: float  # what that share would be if environments were dealt out at random


def memory_features(model: Model, world: World, m: Meetings) -> Floats:
    """What the learner compares with its memory, [T, D]; of length 1 where it compares by cosine."""
    f = look_inside(model, world, [m]).f[0].astype(np.float64)
    return np.asarray(f / np.linalg.norm(f, axis=1, keepdims=True).clip(1e-12)) if by_cosine(model) else f


def same_environment(
    features: Floats, environment: Ints, truth: Ints, neighbours: int = NEIGHBOURS
) -> tuple[float, float]:
    """Share of every meeting's nearest neighbours that are of its environment, and the share by chance.

    Only neighbours of other classes count: those of the same class are near for what they look like.
    """
    other = truth[:, None] != truth[None]  # [T, T]
    if not other.any():
        raise WanderError("All meetings of this sequence are of one class: there are no neighbours to count.")
    same = environment[:, None] == environment[None]  # [T, T]
    apart = ((features[:, None] - features[None]) ** 2).sum(-1)  # [T, T]
    nearest = np.argsort(np.where(other, apart, np.inf), axis=1, kind="stable")[:, :neighbours]  # [T, k]
    counts = np.take_along_axis(other, nearest, 1)  # fewer than k where there are fewer of other classes
    return float(np.take_along_axis(same, nearest, 1)[counts].mean()), float(same[other].mean())


def tsne(features: Floats, seed: int = 0) -> Floats:
    """Features in the plane, [T, 2]. Exact, from a principal-axes start: the same numbers every time."""
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise WanderError(
            "t-SNE comes from scikit-learn, which is not installed. "
            "Install the extra, `pip install 'wanderlearn[figures]'`."
        ) from error
    if len(features) < 4:
        raise WanderError(f"t-SNE needs a sequence of at least 4 meetings, not {len(features)}.")
    flat = TSNE(
        perplexity=min(PERPLEXITY, (len(features) - 1) / 3), init="pca", method="exact",
        learning_rate="auto", random_state=seed % 2**32,
    )  # fmt: skip
    return np.asarray(flat.fit_transform(features), dtype=np.float64)


def embed(name: str, model: Model, world: World, m: Meetings, seed: int = 0) -> Embedded:
    """One sequence under one learner."""
    features = memory_features(model, world, m)
    share, chance = same_environment(features, m.environment, m.truth)
    return Embedded(name, tsne(features, seed), share, chance)


def draw_embedding(path: Path, found: Sequence[Embedded], m: Meetings) -> None:
    """A panel per learner: a shape and colour per environment, small and pale where no name was told."""
    looks = markers(int(m.environment.max()) + 1)
    told = m.given != UNLABELED
    with canvas(PAGE if len(found) > 1 else PAGE / 2, 3.6 if len(found) < 3 else 2.9) as figure:
        across = figure.subplots(1, len(found), squeeze=False)[0]
        for axes, one in zip(across, found, strict=True):
            _classes(axes, one.points, m, looks)
            for e, (shape, colour) in enumerate(looks):
                for labelled, size, alpha in ((False, 10, 0.5), (True, 24, 1.0)):
                    x, y = one.points[(m.environment == e) & (told == labelled)].T
                    axes.scatter(x, y, s=size, marker=shape, color=colour, alpha=alpha, linewidths=0)
            share = f"{100 * one.same_environment:.0f} % (chance {100 * one.chance:.0f} %)"
            title(axes, one.name, f"neighbours of the same environment: {share}")
            axes.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
            axes.margins(0.06)
            axes.grid(visible=False)
            for side in axes.spines.values():
                side.set(visible=True, color="#cfcfcf")
        _legend(figure, looks, unlabelled=not told.all())
        save(path, figure)


def _classes(axes: "Axes", points: Floats, m: Meetings, looks: Sequence[tuple[str, str]]) -> None:
    """Tie the meetings of a class together and write its number beside them; strays have one of their own."""
    near = STRAY * np.ptp(points, axis=0).max()
    for slot in range(int(m.truth.max()) + 1):
        of_class = points[m.truth == slot]
        colour = looks[m.environment[m.truth == slot][0]][1]
        middle = np.median(of_class, axis=0)
        tied = np.linalg.norm(of_class - middle, axis=1) < near
        for x, y in of_class[tied]:
            axes.plot((x, middle[0]), (y, middle[1]), color=colour, linewidth=0.6, alpha=0.55, zorder=1)
        numbered = list(of_class[~tied])
        if tied.any():
            numbered.append(of_class[tied][of_class[tied][:, 0].argmax()])
        for x, y in numbered:
            axes.annotate(
                str(slot + 1), (x, y), (3.2, 0), textcoords="offset points", va="center",
                fontsize=6, color=INK,
            )  # fmt: skip


def _legend(figure: "Figure", looks: Sequence[tuple[str, str]], *, unlabelled: bool) -> None:
    from matplotlib.lines import Line2D

    names = ["environment A", *"BCDEFGHIJKLMNOPQRSTUVWXYZ"][: len(looks)]
    drawn = [
        Line2D([], [], linestyle="", marker=shape, color=colour, markersize=5, markeredgewidth=0)
        for shape, colour in looks
    ]
    if unlabelled:
        names.append("small: no name told")
        drawn.append(Line2D([], [], linestyle="", marker="o", color=QUIET, markersize=3, alpha=0.5))
    figure.legend(
        drawn, names, loc="outside lower center", ncols=len(names), handletextpad=0.1, columnspacing=1.4
    )
