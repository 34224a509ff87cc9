"""What the commands of `wander figure` share: which sequences, which setting, and where the figure goes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from wanderlearn.cli.output import put_json
from wanderlearn.errors import WanderError

if TYPE_CHECKING:
    from wanderlearn.figures.learners import Loaded
    from wanderlearn.worlds import Roaming, World

__all__ = ["FigureSetting", "FigureWorld", "at_least", "checked_path"]


@dataclass(frozen=True)
class FigureWorld:
    """Which sequences, and where the figure goes."""

    world: str | None = None
    """glyphs, omniglot or a place of yours (default: where the first learner was trained)."""
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
        if not 0 <= self.seed < 2**63:
            raise WanderError(f"--seed must be between 0 and 2^63 - 1, not {self.seed}.")
        return checked_path(self.out, name)

    def open(self, learners: Sequence[Loaded], *, semi: bool) -> World:
        """The world by name, or the one all the learners were trained in."""
        from dataclasses import replace

        from wanderlearn.pictures.address import is_address
        from wanderlearn.places import at_place, place_process
        from wanderlearn.worlds import open_world
        from wanderlearn.worlds.named import default_process

        trained = {str(one.about["world"]) for one in learners if "world" in one.about}
        if self.world is None and len(trained) != 1:
            found = f"in {' and '.join(sorted(trained))}" if trained else "nobody knows where"
            raise WanderError(f"These learners were trained {found}. Name one world with --world.")
        name = self.world or trained.pop()
        process = default_process(name)
        if is_address(name) and learners:
            name, process = at_place(name, learners[0].model.config), place_process(name, learners[0].about)
        return open_world(name, self.split, replace(process, semi=semi), self.source)

    def open_roaming(self, learners: Sequence[Loaded], *, semi: bool) -> Roaming:
        """As `open`, for figures of single pictures."""
        from wanderlearn.worlds import Roaming

        world = self.open(learners, semi=semi)
        if not isinstance(world, Roaming):
            raise WanderError(
                "This figure shows single pictures; of rooms there is: wander figure rooms-walk."
            )
        return world

    def where(self, world: World) -> str:
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
class FigureSetting(FigureWorld):
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


def at_least(least: int, **options: int) -> None:
    """An error that names the option, for a value below the least."""
    for name, value in options.items():
        if value < least:
            raise WanderError(f"--{name.replace('_', '-')} must be at least {least}, not {value}.")


def checked_path(out: Path | None, name: str) -> Path:
    """Where a figure goes, after checking that it can be drawn: better before the work than after it."""
    from wanderlearn.figures.style import canvas, check_name

    path = out or Path(f"figure-{name}.png")
    check_name(path)
    with canvas(1, 1):  # is matplotlib here?
        return path
