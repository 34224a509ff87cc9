"""`wander figure`: the paper's figures, of any learner, and some of ours."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from wanderlearn.cli.output import put_json
from wanderlearn.errors import WanderError

if TYPE_CHECKING:
    from wanderlearn.figures.curve import Curve
    from wanderlearn.figures.learners import Loaded
    from wanderlearn.worlds import Meetings, Roaming

__all__ = ["FIGURES", "Answers", "Calibration", "Controls", "Embedding", "Growth", "OverTime", "main"]

SETTINGS = {"Supervised": False, "Semi-supervised": True}


@dataclass(frozen=True)
class _World:
    """Which sequences, and where the figure goes."""

    world: str | None = None
    """glyphs or omniglot (default: where the first learner was trained)."""
    split: str = "test"
    """train, val or test."""
    seed: int = 0
    """Sequence i of a seed is always the same."""
    out: Path | None = None
    """The file to draw: .png, .svg or .pdf (default: figure-NAME.png)."""
    json: str | None = None
    """Write the numbers behind the figure as JSON to this file, or to standard output for -."""
    source: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Folder with the original files (omniglot)."""

    def path(self, name: str) -> Path:
        """Where the figure goes, after checking what can be checked before the work."""
        from wanderlearn.figures.style import canvas, check_name

        path = self.out or Path(f"figure-{name}.png")
        check_name(path)
        if not 0 <= self.seed < 2**63:
            raise WanderError(f"--seed must be between 0 and 2^63 - 1, not {self.seed}.")
        with canvas(1, 1):  # is matplotlib here? better asked before the work than after it
            return path

    def open(self, learners: Sequence[Loaded], *, semi: bool) -> Roaming:
        """The world by name, or the one all the learners were trained in."""
        from wanderlearn.worlds import RoamingConfig, open_world

        trained = {str(one.about["world"]) for one in learners if "world" in one.about}
        if self.world is None and len(trained) != 1:
            found = f"in {' and '.join(sorted(trained))}" if trained else "nobody knows where"
            raise WanderError(f"These learners were trained {found}. Name one world with --world.")
        return open_world(self.world or trained.pop(), self.split, RoamingConfig(semi=semi), self.source)

    def where(self, world: Roaming) -> str:
        """The world in words."""
        return f"{world.pictures.name} {world.pictures.split}"

    def finish(self, name: str, path: Path, learners: Sequence[Loaded], numbers: dict[str, Any]) -> None:
        """Give the numbers out, and say where the figure is."""
        head = {"format": 1, "kind": "figure", "figure": name, "split": self.split, "seed": self.seed}
        head["learners"] = [
            {"learner": one.given, "name": one.name, "weights_sha256": one.sha256} for one in learners
        ]
        put_json(head | numbers, self.json)
        print(f"written to {path}", file=sys.stderr)


@dataclass(frozen=True)
class _Setting(_World):
    """One setting: as the first learner was trained, or as told."""

    semi: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Hide most labels of frequent classes (default: as the first learner was trained)."""
    supervised: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Tell every label (default: as the first learner was trained)."""

    def is_semi(self, learners: Sequence[Loaded]) -> bool:
        """Whether labels are hidden."""
        if self.semi and self.supervised:
            raise WanderError("--semi hides labels and --supervised tells all of them: choose one.")
        return self.semi or (bool(learners[0].about.get("semi")) and not self.supervised)


@dataclass(frozen=True)
class OverTime(_World):
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

        _at_least(1, sequences=self.sequences, window=self.window)
        _at_least(0, offline_sequences=self.offline_sequences)
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
class Embedding(_Setting):
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

        _at_least(0, sequence=self.sequence)
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
class Controls(_Setting):
    """What CPM's RNN controls as a sequence goes on: thresholds, temperatures, and how much context it adds.

    Examples:
      wander figure controls
      wander figure controls runs/cpm-omniglot-semi --sequences 500
    """

    learner: tyro.conf.Positional[str] = "cpm-glyphs"
    """A run folder, a .safetensors file, or the name of weights in the package; a CPM."""
    sequences: int = 200
    """How many sequences the mean is over."""

    def run(self) -> None:
        """Look inside, average, draw."""
        from wanderlearn.figures.controls import control_curves, draw_controls
        from wanderlearn.figures.curve import to_lists
        from wanderlearn.figures.learners import load_learners

        _at_least(1, sequences=self.sequences)
        path, learners = self.path("controls"), load_learners([self.learner])
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
        self.finish("controls", path, learners, numbers)


@dataclass(frozen=True)
class Growth(_World):
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
        from wanderlearn.worlds import RoamingConfig, open_world

        _at_least(1, sequences=self.sequences)
        path = self.path("growth")
        named: dict[bool, list[Any]] = {}
        for hides in SETTINGS.values():
            world = open_world(self.world or "glyphs", self.split, RoamingConfig(semi=hides), self.source)
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
class Answers(_Setting):
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

        _at_least(0, sequence=self.sequence)
        path, learners = self.path("answers"), load_learners([self.learner])
        world = self.open(learners, semi=self.is_semi(learners))
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
class Calibration(_Setting):
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

        _at_least(1, sequences=self.sequences)
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


FIGURES: Mapping[str, tuple[type[OverTime | Embedding | Controls | Growth | Answers | Calibration], str]] = {
    "over-time": (OverTime, "accuracy as a sequence goes on, both settings, beside offline LR"),
    "embedding": (Embedding, "one sequence in the learners' feature spaces (t-SNE), by environment"),
    "controls": (Controls, "CPM's thresholds, temperatures and context over time"),
    "growth": (Growth, "how many classes have been met and named over time"),
    "answers": (Answers, "one sequence of pictures with what a learner said"),
    "calibration": (Calibration, "confidences against the truth, and the errors among accepted labels"),
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
        "\nEach takes learners, --out FILE.png|.svg|.pdf and --json; see wander figure NAME --help."
    )


def _at_least(least: int, **options: int) -> None:
    for name, value in options.items():
        if value < least:
            raise WanderError(f"--{name.replace('_', '-')} must be at least {least}, not {value}.")


def _sequence_numbers(world: Roaming, m: Meetings) -> dict[str, Any]:
    return {
        "world": world.pictures.name,
        "semi": world.config.semi,
        "sequence": m.index,
        "classes": int(m.truth.max()) + 1,
        "environment": m.environment.tolist(),
    }
