"""`wander table`: the paper's main table, its forgetting and its ablations, ours beside the paper's."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Protocol

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from wanderlearn.cli.output import put_json
from wanderlearn.errors import WanderError
from wanderlearn.paper import METHOD_NAMES, SETTINGS, TABLES, Setting
from wanderlearn.report.forgetting import read_forgetting_table
from wanderlearn.report.methods import (
    WORDS,
    MethodTable,
    figures_of,
    markdown,
    read_method_table,
    seeds_of,
    span,
)
from wanderlearn.report.parts import Part, parts_markdown

__all__ = ["Command"]

FORGETTING = "-forgetting"
KEYS = ("ap", "one_shot", "three_shot")
WIDTH = 100  # where standard output is no terminal that could say how wide it is
ROOM = 93  # the columns that the table with standard errors takes
SEEDS_ROOM = 16  # and what a column of seeds adds


class _Tables(Protocol):
    """What the tables beside the main one can do."""

    @property
    def missing(self) -> tuple[str, ...]: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    def json(self) -> dict[str, Any]: ...
    def parts(self) -> list[Part]: ...


@dataclass(frozen=True)
class Command:
    """The paper's tables, our results beside the paper's.

    A method's row is read from LEARNER-WORLD.json and LEARNER-WORLD-semi.json in the folder of results,
    further seeds of it from the same names with -seed1, -seed2, ... Below the table stand the commands that
    fill what is missing.

    Examples:
      wander table omniglot
      wander table omniglot --json -
      wander table omniglot --forgetting
      wander table omniglot --ablations
      wander table glyphs --markdown
      wander table imagenet
      wander table imagenet-forgetting
      wander table rooms
      wander table rooms-forgetting
    """

    world: tyro.conf.Positional[str]
    """omniglot, glyphs (which the paper does not have), imagenet (natural pictures, whichever ours were
    trained on, beside the paper's on tiered-ImageNet), or rooms (recorded walks, beside the paper's in
    Matterport3D). omniglot-forgetting is omniglot --forgetting."""
    forgetting: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """The table of accuracy by how long ago a class was last met, instead of the main one."""
    ablations: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """The two ablation tables instead (semi-supervised AP on validation sequences; from results in the
    folder's ablations/)."""
    results: Path = Path("results")
    """The folder of results."""
    markdown: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print it as markdown, for a document."""
    json: str | None = None
    """Write the table as JSON to this file, or to standard output for -."""

    def run(self) -> None:
        """Read, show."""
        if self.markdown and self.json == "-":
            raise WanderError("--markdown and --json - both want standard output: choose one.")
        if self.forgetting and self.ablations:
            raise WanderError("--forgetting and --ablations are two tables: choose one.")
        if not self.results.is_dir():
            raise WanderError(
                f"There is no folder {self.results} here. Name the folder of results with --results, or make "
                "the first result with `wander evaluate RUN --json FILE`."
            )
        if self.world.endswith(FORGETTING):
            replace(self, world=self.world.removesuffix(FORGETTING), forgetting=True).run()
            return
        if self.forgetting or self.ablations:
            self._beside()
            return
        table = read_method_table(self.results, self.world)
        put_json(table.json(), self.json)
        if self.json == "-":
            _warn(table.warnings)
        elif self.markdown:
            print(markdown(table))
        else:
            _show(table)

    def _beside(self) -> None:
        """One of the tables beside the main one."""
        table: _Tables
        if self.forgetting:
            table = read_forgetting_table(self.results, self.world)
        else:
            from wanderlearn.report.ablations import read_ablation_tables

            table = read_ablation_tables(self.results, self.world)
        put_json(table.json(), self.json)
        if self.json == "-":
            _warn(table.warnings)
        elif self.markdown:
            print(parts_markdown(table.parts(), table.warnings))
        else:
            console = _console()
            for part in table.parts():
                _show_part(console, part)
            _show_rest(console, table.warnings, table.missing)


def _warn(warnings: Sequence[str]) -> None:
    for warning in warnings:  # they are in the JSON, too, but must not go unnoticed
        print(f"warning: {warning}", file=sys.stderr)


def _console() -> Console:
    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)


def _show_part(console: Console, part: Part) -> None:
    shown = Table(box=None, padding=(0, 2, 0, 0), title=f"{part.title}, percent", title_justify="left")
    for n, column in enumerate(part.columns):
        shown.add_column(column, justify="right" if n else "left", no_wrap=n > 0)
    for row in part.rows:
        shown.add_row(
            *(text or "-" for text in row), style="dim" if str(row[2]).startswith("paper") else None
        )
    console.print(shown)
    console.print(f"{part.note}\n")


def _show_rest(console: Console, warnings: Sequence[str], missing: Sequence[str]) -> None:
    for warning in warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    if missing:
        console.print("\nWhat is missing (-) is filled by")
        for command in missing:  # whole lines, however long, to be copied
            console.print(Text(f"  {command}"), soft_wrap=True)


def _show(table: MethodTable) -> None:
    """Two lines per method, ours and the paper's, so that the figures stand above each other."""
    console = _console()
    seeds = [setting for setting in SETTINGS if table.has_seeds(setting)]
    # Better no standard errors than figures cut short.
    errors = console.width >= ROOM + SEEDS_ROOM * len(seeds)
    shown = Table(box=None, padding=(0, 2, 0, 0), title=f"{table.world}, percent", title_justify="left")
    shown.add_column("\nmethod", no_wrap=True)
    for setting, words in WORDS.items():
        columns = ["AP", "seeds", "1-shot", "3-shot"] if setting in seeds else ["AP", "1-shot", "3-shot"]
        for n, column in enumerate(columns):  # the setting stands above the second
            shown.add_column(f"{words if n == 1 else ''}\n{column}", justify="right", no_wrap=True)
    for learner, name in METHOD_NAMES.items():
        mine: list[Text] = []
        for setting in SETTINGS:
            ours = table.ours[learner][setting]
            for key, text in zip(KEYS, figures_of(ours, errors=errors), strict=True):
                best = text is not None and getattr(ours, key) == _best(table, setting, key)
                mine.append(Text(text or "-", style="bold" if best else ""))
                if key == "ap" and setting in seeds:
                    mine.append(Text(seeds_of(ours, count=False) or "-"))
        shown.add_row(name, *mine)
        if learner in TABLES.get(table.world, {}):
            texts: list[str] = []
            for setting in SETTINGS:
                ap, *shots = figures_of(table.paper(learner, setting), errors=errors)
                texts += [ap or "-", *([""] if setting in seeds else []), *(text or "-" for text in shots)]
            shown.add_row(f"  {table.paper_name(learner)}", *texts, style="dim")
    console.print(shown)
    console.print()
    for setting, words in WORDS.items():
        console.print(f"{words}: {table.caption(setting)}")
    if table.note:
        console.print(table.note)
    if seeds:
        counts = [one.seeds.count for setting in seeds for one in table.of(setting) if one.seeds]
        console.print(f"seeds: mean ± standard deviation of AP over {span(counts, '{:.0f}')} seeds")
    _show_rest(console, table.warnings, table.missing)


def _best(table: MethodTable, setting: Setting, key: str) -> float | None:
    return max((v for one in table.of(setting) if (v := getattr(one, key)) is not None), default=None)
