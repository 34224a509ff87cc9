"""`wander figure`: the paper's figures, of any learner, and some of ours."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import tyro
from rich.console import Console
from rich.table import Table

from wanderlearn.cli.figure_context import Context
from wanderlearn.cli.figure_options import FigureSetting, FigureWorld, at_least
from wanderlearn.cli.figure_rooms import RoomsWalk
from wanderlearn.errors import WanderError

if TYPE_CHECKING:
    from wanderlearn.figures.curve import Curve
    from wanderlearn.worlds import Meetings, World

__all__ = [
    "FIGURES",
    "Answers",
    "Calibration",
    "Context",
    "Controls",
    "Embedding",
    "Growth",
    "OverTime",
    "RoomsControls",
    "RoomsWalk",
    "main",
]

SETTINGS = {"Supervised": False, "Semi-supervised": True}


@dataclass(frozen=True)
class OverTime(FigureWorld):
    """Accuracy on known classes as a sequence goes on, in both settings, beside offline logistic regression.

    Examples:
      wander figure over-time
      wander figure over-time runs/cpm runs/protonet --semi-learners runs/cpm-semi runs/protonet-semi
    """

    learners: tyro.conf.Positional[tuple[str, ...]] = ("cpm-glyphs", "protonet-glyphs")
    """Run folders, .safetensors files, or names of weights in the package."""
    semi_learners: tuple[str, ...] = ()
    """Learners for the semi-supervised panel, where those were trained on their own (default: the same)."""
    sequences: int = 200
    """How many sequences a learner answers in each setting."""
    offline_sequences: int = 50
    """How many of them offline logistic regression answers (it is slow); 0 leaves it out."""
    window: int = 5
    """Meetings that make one point."""

    def run(self) -> None:
        """Answer, count, draw."""
        from wanderlearn.evaluate import gather, offline_reference
        from wanderlearn.figures.curve import to_lists
        from wanderlearn.figures.learners import load_learners
        from wanderlearn.figures.over_time import accuracy_curve, draw_over_time

        at_least(1, sequences=self.sequences, window=self.window)
        at_least(0, offline_sequences=self.offline_sequences)
        path = self.path("over-time")
        supervised = load_learners(self.learners)
        semi = load_learners(self.semi_learners) if self.semi_learners else supervised
        panels: dict[str, dict[str, Curve]] = {}
        references = {}
        for setting, hides in SETTINGS.items():
            learners = semi if hides else supervised
            world = self.open(learners, semi=hides)
            meetings = [world.meetings(self.seed, i) for i in range(self.sequences)]
            curves = panels[setting] = {}
            for one in learners:
                print(f"{one.name}, {setting.lower()} ...", file=sys.stderr)
                curves[one.name] = accuracy_curve(
                    gather(one.model, world, meetings, progress=True), self.window
                )
            if self.offline_sequences:
                # The paper's reference reads the features of ProtoNet; without one, those of the first.
                whose = next((one for one in learners if one.name == "Online ProtoNet"), learners[0])
                references[setting] = whose.given
                print(f"Offline LR on the features of {whose.given}, {setting.lower()} ...", file=sys.stderr)
                some = meetings[: self.offline_sequences]
                record = gather(offline_reference(whose.model), world, some, progress=True)
                curves["Offline LR"] = accuracy_curve(record, self.window)
        rests_on = f"{self.where(world)}, {self.sequences} sequences"
        if fewer := min(self.offline_sequences, self.sequences):
            rests_on += f" (Offline LR: {fewer})"
        draw_over_time(path, panels, f"{rests_on}; bands: one standard error")
        numbers = {
            "world": world.pictures.name,
            "sequences": self.sequences,
            "offline_sequences": min(self.offline_sequences, self.sequences),
            "offline_features_of": references,
            "window": self.window,
            "curves": {s: {n: to_lists(c) for n, c in curves.items()} for s, curves in panels.items()},
        }
        both = supervised if semi is supervised else [*supervised, *semi]
        self.finish("over-time", path, both, numbers)


@dataclass(frozen=True)
class Embedding(FigureSetting):
    """One sequence as each learner's memory sees it, flattened by t-SNE and coloured by environment.

    Examples:
      wander figure embedding
      wander figure embedding runs/protonet-omniglot runs/cpm-omniglot --sequence 3 --out tsne.pdf
    """

    learners: tyro.conf.Positional[tuple[str, ...]] = ("protonet-glyphs", "cpm-glyphs")
    """Run folders, .safetensors files, or names of weights in the package."""
    sequence: int = 0
    """Which sequence of the seed."""

    def run(self) -> None:
        """Look inside, flatten, draw."""
        from wanderlearn.figures.embedding import NEIGHBOURS, draw_embedding, embed
        from wanderlearn.figures.learners import load_learners

        at_least(0, sequence=self.sequence)
        path, learners = self.path("embedding"), load_learners(self.learners)
        world = self.open(learners, semi=self.is_semi(learners))
        m = world.meetings(self.seed, self.sequence)
        found = [embed(one.name, one.model, world, m) for one in learners]
        draw_embedding(path, found, m)
        numbers = _sequence_numbers(world, m) | {
            "neighbours": NEIGHBOURS,
            "embeddings": [
                {
                    "name": one.name,
                    "same_environment": one.same_environment,
                    "chance": one.chance,
                    "points": one.points.round(4).tolist(),
                }
                for one in found
            ],
        }
        self.finish("embedding", path, learners, numbers)


@dataclass(frozen=True)
class Controls(FigureSetting):
    """What CPM's RNN controls as a sequence goes on: thresholds, temperatures, and how much context it adds.

    Examples:
      wander figure controls
      wander figure controls runs/cpm-omniglot-semi --sequences 500
    """

    figure: ClassVar = "controls"
    learner: tyro.conf.Positional[str] = "cpm-glyphs"
    """A run folder, a .safetensors file, or the name of weights in the package; a CPM."""
    sequences: int = 200
    """How many sequences the mean is over."""

    def run(self) -> None:
        """Look inside, average, draw."""
        from wanderlearn.figures.controls import control_curves, draw_controls
        from wanderlearn.figures.curve import to_lists
        from wanderlearn.figures.learners import load_learners

        at_least(1, sequences=self.sequences)
        path, learners = self.path(self.figure), load_learners([self.learner])
        world = self.open(learners, semi=self.is_semi(learners))
        meetings = [world.meetings(self.seed, i) for i in range(self.sequences)]
        curves = control_curves(learners[0].model, world, meetings)
        words = f"{self.where(world)}, {self.sequences} sequences; bands: one standard deviation"
        if not learners[0].about.get("semi", True):
            words += "; trained with every name told, so the thresholds of writing were never learned"
        draw_controls(path, curves, words)
        numbers = {
            "world": world.pictures.name,
            "semi": world.config.semi,
            "sequences": self.sequences,
            "curves": {name: to_lists(curve) for name, curve in curves.items()},
        }
        self.finish(self.figure, path, learners, numbers)


@dataclass(frozen=True)
class RoomsControls(Controls):
    """As `controls`, of a CPM that was trained on recorded walks through rooms.

    Examples:
      wander figure rooms-controls runs/cpm-rooms-small-semi
    """

    figure: ClassVar = "rooms-controls"
    learner: tyro.conf.Positional[str] = "runs/cpm-rooms-small"
    """A run folder or a .safetensors file; a CPM."""


@dataclass(frozen=True)
class Growth(FigureWorld):
    """How many classes there are to know as a sequence goes on, in both settings. Needs no learner.

    Examples:
      wander figure growth
      wander figure growth --world omniglot --json -
    """

    world: str | None = "glyphs"
    """glyphs or omniglot."""
    sequences: int = 500
    """How many sequences the mean is over."""

    def run(self) -> None:
        """Draw sequences, count, draw."""
        from wanderlearn.figures.curve import to_lists
        from wanderlearn.figures.growth import classes_met, classes_named, draw_growth, growth_curve
        from wanderlearn.worlds import open_world
        from wanderlearn.worlds.named import default_process

        at_least(1, sequences=self.sequences)
        path = self.path("growth")
        named: dict[bool, list[Any]] = {}
        for hides in SETTINGS.values():
            process = replace(default_process(self.world or "glyphs"), semi=hides)
            world = open_world(self.world or "glyphs", self.split, process, self.source)
            meetings = [world.meetings(self.seed, i) for i in range(self.sequences)]
            named[hides] = [classes_named(m) for m in meetings]
        curves = {
            "met": growth_curve([classes_met(m) for m in meetings]),
            "named_supervised": growth_curve(named[False]),
            "named_semi": growth_curve(named[True]),
        }
        # Where every name is told, a class is named when it is met: one line for both.
        shown = {"met (= named, supervised)": curves["met"], "named, semi-supervised": curves["named_semi"]}
        words = f"{self.where(world)}, {self.sequences} sequences; bands: one standard deviation"
        draw_growth(path, shown, words)
        numbers = {
            "world": world.pictures.name,
            "sequences": self.sequences,
            "curves": {name: to_lists(curve) for name, curve in curves.items()},
        }
        self.finish("growth", path, [], numbers)


@dataclass(frozen=True)
class Answers(FigureSetting):
    """One sequence with what a learner said at every meeting, its mistakes marked.

    Examples:
      wander figure answers
      wander figure answers runs/cpm-omniglot --semi --sequence 7
    """

    learner: tyro.conf.Positional[str] = "cpm-glyphs"
    """A run folder, a .safetensors file, or the name of weights in the package."""
    sequence: int = 0
    """Which sequence of the seed."""

    def run(self) -> None:
        """Answer, draw."""
        from wanderlearn.figures.answers import draw_answers, said
        from wanderlearn.figures.learners import load_learners
        from wanderlearn.worlds import NEW, UNLABELED

        at_least(0, sequence=self.sequence)
        path, learners = self.path("answers"), load_learners([self.learner])
        world = self.open_roaming(learners, semi=self.is_semi(learners))
        m = world.meetings(self.seed, self.sequence)
        found = said(learners[0].model, world, m)
        draw_answers(path, learners[0].name, world, m, found)
        numbers = _sequence_numbers(world, m) | {
            "right": int(found.right.sum()),
            "meetings": [
                {
                    "environment": int(m.environment[t]),
                    "told": None if m.given[t] == UNLABELED else int(m.given[t]) + 1,
                    "right_answer": "new" if m.target[t] == NEW else int(m.target[t]) + 1,
                    "answer": "new" if found.answer[t] == NEW else int(found.answer[t]) + 1,
                    "novelty": round(float(found.novelty[t]), 4),
                }
                for t in range(len(m))
            ],
        }
        self.finish("answers", path, learners, numbers)


@dataclass(frozen=True)
class Calibration(FigureSetting):
    """How far confidences can be trusted: what they promise, and the errors among the labels one accepts.

    Examples:
      wander figure calibration
      wander figure calibration runs/mine --sequences 1000 --json -
    """

    learners: tyro.conf.Positional[tuple[str, ...]] = ("cpm-glyphs", "protonet-glyphs")
    """Run folders, .safetensors files, or names of weights in the package."""
    sequences: int = 200
    """How many sequences a learner answers."""

    def run(self) -> None:
        """Answer, count, draw."""
        from wanderlearn.evaluate import gather
        from wanderlearn.figures.calibration import draw_calibration, to_numbers, trust_of
        from wanderlearn.figures.learners import load_learners

        at_least(1, sequences=self.sequences)
        path, learners = self.path("calibration"), load_learners(self.learners)
        world = self.open(learners, semi=self.is_semi(learners))
        meetings = [world.meetings(self.seed, i) for i in range(self.sequences)]
        found = {one.name: trust_of(gather(one.model, world, meetings, progress=True)) for one in learners}
        draw_calibration(path, found, f"{self.where(world)}, {self.sequences} sequences; dotted: ideal")
        numbers = {
            "world": world.pictures.name,
            "semi": world.config.semi,
            "sequences": self.sequences,
            "trust": {name: to_numbers(trust) for name, trust in found.items()},
        }
        self.finish("calibration", path, learners, numbers)


Figure = OverTime | Embedding | Controls | Growth | Answers | Calibration | Context | RoomsWalk
FIGURES: Mapping[str, tuple[type[Figure], str]] = {
    "over-time": (OverTime, "accuracy as a sequence goes on, both settings, beside offline LR"),
    "embedding": (Embedding, "one sequence in the learners' feature spaces (t-SNE), by environment"),
    "controls": (Controls, "CPM's thresholds, temperatures and context over time"),
    "growth": (Growth, "how many classes have been met and named over time"),
    "answers": (Answers, "one sequence of pictures with what a learner said"),
    "calibration": (Calibration, "confidences against the truth, and the errors among accepted labels"),
    "rooms-walk": (RoomsWalk, "a walk through rooms with what is met, told and said"),
    "rooms-controls": (RoomsControls, "the same as controls, in rooms"),
    "context": (Context, "what spatial and temporal cues are worth, from results"),
}


def main(args: list[str]) -> None:
    """Run the command with the words after `wander figure`."""
    if not args or args[0] in ("-h", "--help"):
        _overview()
        return
    name, *rest = args
    if name not in FIGURES:
        raise WanderError(f"There is no figure {name!r}. Choose one of {', '.join(FIGURES)}.")
    command = tyro.cli(
        FIGURES[name][0], prog=f"wander figure {name}", args=rest, config=(tyro.conf.OmitArgPrefixes,)
    )
    command.run()


def _overview() -> None:
    console = Console(highlight=False)
    console.print("[bold]wander figure NAME[/bold]: the paper's figures, of any learner.\n")
    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, (_, about) in FIGURES.items():
        table.add_row(f"wander figure {name}", about)
    console.print(table)
    console.print(
        "\nMost take learners, all --out FILE.png|.svg|.pdf and --json; see wander figure NAME --help."
    )


def _sequence_numbers(world: World, m: Meetings) -> dict[str, Any]:
    return {
        "world": world.pictures.name,
        "semi": world.config.semi,
        "sequence": m.index,
        "classes": int(m.truth.max()) + 1,
        "environment": m.environment.tolist(),
    }
