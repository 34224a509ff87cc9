"""How every figure looks: widths, colours, lines, and how it becomes a file.

Nothing here touches matplotlib's global state, so figures can be drawn from anywhere. Drawing the same
numbers again gives the same bytes.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from wanderlearn.errors import WanderError
from wanderlearn.files import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL import Image

    from wanderlearn.figures.curve import Curve

__all__ = [
    "BLUE", "COLUMN", "DPI", "GREEN", "INK", "PAGE", "QUIET", "VERMILION", "Line", "canvas", "check_name",
    "end_labels", "lines_for", "markers", "note", "over_meetings", "save", "save_sheet", "title",
]  # fmt: skip

PAGE: Final = 6.8  # inches: both columns of a paper
COLUMN: Final = 3.4  # inches: one column
DPI: Final = 200
NOTE_LETTERS: Final = 18  # of a note, to the inch
KINDS: Final = (".png", ".svg", ".pdf")
INK, QUIET, GRID = "#1a1a1a", "#6b6b6b", "#e4e4e4"

# Okabe and Ito's colours, told apart by colour-blind readers too; dark ones first, the pale yellow left out.
BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00",
)  # fmt: skip
COLOURS: Final = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
# A second cue beside the colour, for print in grey: dashes of lines, shapes of points.
DASHES: Final[tuple[Any, ...]] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (8, 3)))
SHAPES: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
ENVIRONMENTS: Final = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)

STYLE: Final[dict[Any, Any]] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same letters on every machine
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "mathtext.fontset": "dejavusans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "svg.hashsalt": "wanderlearn",  # otherwise an SVG has other ids every time
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


class Line(NamedTuple):
    """How one thing is drawn wherever it comes up in a figure."""

    colour: str
    dashes: Any


def check_name(path: Path) -> None:
    """A figure's file is a PNG, SVG or PDF by its name: say so before any work is done."""
    if path.suffix.lower() not in KINDS:
        raise WanderError(
            f"A figure is written as {', '.join(KINDS[:-1])} or {KINDS[-1]}: "
            f"give it a name that ends so, not {path.name!r}."
        )


@contextmanager
def canvas(width: float, height: float) -> Iterator[Figure]:
    """An empty figure of so many inches, in our style while the block runs."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise WanderError(
            "Figures are drawn with matplotlib, which is not installed. "
            "Install the extra, `pip install 'wanderlearn[figures]'`."
        ) from error
    with mpl.rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def save(path: Path, figure: Figure) -> None:
    """Write a figure as what its name says, at once or not at all. Call it inside `canvas`."""
    check_name(path)
    kind = path.suffix.lower()[1:]
    undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    with writing(path) as part:
        figure.savefig(part, format=kind, dpi=DPI, metadata=undated)


def save_sheet(path: Path, sheet: Image.Image, colours: int, dither: Image.Dither) -> None:
    """Write a picture as what its name says; a PNG with so many colours, which keeps it small.

    In an SVG or PDF the pixels are embedded.
    """
    if path.suffix.lower() == ".png":
        with writing(path) as part:
            few = sheet.quantize(colours, dither=dither)
            few.save(part, format="PNG", optimize=True, dpi=(DPI, DPI))
        return
    with canvas(sheet.width / DPI, sheet.height / DPI) as figure:
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.imshow(np.asarray(sheet), interpolation="none")
        axes.set_axis_off()
        save(path, figure)


def lines_for(names: Sequence[str]) -> dict[str, Line]:
    """A colour and dashes for each name: offline logistic regression is always ink, the first name blue."""
    lines = {}
    for name in dict.fromkeys(names):
        if name.startswith("Offline"):
            lines[name] = Line(INK, DASHES[2])
            continue
        n = sum(line.colour != INK for line in lines.values())
        lines[name] = Line(COLOURS[n % len(COLOURS)], DASHES[(0, 1, 3, 4)[n % 4]])
    return lines


def markers(environments: int) -> list[tuple[str, str]]:
    """Shape and colour of the points of each environment."""
    return [(SHAPES[e % len(SHAPES)], ENVIRONMENTS[e % len(ENVIRONMENTS)]) for e in range(environments)]


def title(axes: Axes, words: str, quiet: str = "") -> None:
    """Words over a panel at its left, a quieter second line below them."""
    axes.set_title(words + ("\n" if quiet else ""), loc="left", fontweight="bold", pad=5)
    if quiet:
        told = axes.annotate(
            quiet, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points",
            fontsize=7.5, color=QUIET,
        )  # fmt: skip
        told.set_in_layout(False)  # it may be a little wider than its panel


def note(figure: Figure, words: str) -> None:
    """Quiet words under the whole figure, in as many lines as they need: what it rests on, and the like."""
    if words:
        letters = int(NOTE_LETTERS * figure.get_figwidth())
        lines = [textwrap.fill(line, letters) for line in words.splitlines()]
        figure.supxlabel("\n".join(lines), fontsize=7, color=QUIET, x=0.01, ha="left")


def over_meetings(axes: Axes, drawn: Sequence[Curve]) -> None:
    """The axis of time: meetings from 0 to the last one drawn."""
    last = max((curve.t[-1] for curve in drawn if len(curve.t)), default=1.0)
    axes.set(xlabel="meeting", xlim=(0, 1.01 * 10 * math.ceil(last / 10)))
    axes.locator_params(axis="x", nbins=4)


def end_labels(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Name lines at their right ends, `(x, y, words, colour)` each, moved apart where they would collide.

    Call it when the limits of the axes are final.
    """
    low, high = axes.get_ylim()
    gap = (high - low) * 10.5 / 72 / (axes.bbox.height / axes.get_figure(root=True).dpi)  # type: ignore[union-attr]
    places = _apart([y for _, y, _, _ in ends], gap, low, high)
    right = max((x for x, _, _, _ in ends), default=0)
    for (_, _, words, colour), y in zip(ends, places, strict=True):
        axes.annotate(
            words, (right, y), (5, 0), textcoords="offset points", va="center", color=colour,
            fontsize=7.5, annotation_clip=False,
        )  # fmt: skip


def _apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The nearest places in the same order that are `gap` apart, inside the limits where they fit.

    With the i-th label moved down by i gaps, "apart" means "not falling": neighbours that fall are pooled
    at their mean until none do.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    pools: list[list[float]] = []
    for n, i in enumerate(order):
        pools.append([wanted[i] - n * gap])
        while len(pools) > 1 and _mean(pools[-2]) > _mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    level = [_mean(pool) for pool in pools for _ in pool]
    most = max(low, high - (len(wanted) - 1) * gap)
    places = [0.0] * len(wanted)
    for n, i in enumerate(order):
        places[i] = min(max(level[n], low), most) + n * gap
    return places


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)
