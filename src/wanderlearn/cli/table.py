"""`wander table`: the paper's main table, ours beside the paper's."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from wanderlearn.cli.output import put_json
from wanderlearn.errors import WanderError
from wanderlearn.paper import LEARNERS, SETTINGS, TABLES, Setting
from wanderlearn.report.methods import WORDS, MethodTable, figures_of, markdown, read_method_table

__all__ = ["Command"]

KEYS = ("ap", "one_shot", "three_shot")
WIDTH = 100  # where standard output is no terminal that could say how wide it is
ROOM = 93  # the columns that the table with standard errors takes


@dataclass(frozen=True)
class Command:
    """The paper's main table, our results beside the paper's.

    A method's row is read from LEARNER-WORLD.json and LEARNER-WORLD-semi.json in the folder of results. Below
    the table stand the commands that fill what is missing.

    Examples:
      wander table omniglot
      wander table omniglot --json -
      wander table glyphs --markdown
    """

    world: tyro.conf.Positional[str]
    """omniglot, or glyphs (which the paper does not have)."""
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
        if not self.results.is_dir():
            raise WanderError(
                f"There is no folder {self.results} here. Name the folder of results with --results, or make "
                "the first result with `wander evaluate RUN --json FILE`."
            )
        table = read_method_table(self.results, self.world)
        put_json(table.json(), self.json)
        if self.json == "-":
            for warning in table.warnings:  # they are in the JSON, too, but must not go unnoticed
                print(f"warning: {warning}", file=sys.stderr)
        elif self.markdown:
            print(markdown(table))
        else:
            _show(table)


def _show(table: MethodTable) -> None:
    """Two lines per method, ours and the paper's, so that the figures stand above each other."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    errors = console.width >= ROOM  # better no standard errors than figures cut short
    shown = Table(box=None, padding=(0, 2, 0, 0), title=f"{table.world}, percent", title_justify="left")
    shown.add_column("\nmethod", no_wrap=True)
    for words in WORDS.values():
        for column in ("\nAP", f"{words}\n1-shot", "\n3-shot"):
            shown.add_column(column, justify="right", no_wrap=True)
    for learner, name in LEARNERS.items():
        mine: list[Text] = []
        for setting in SETTINGS:
            ours = table.ours[learner][setting]
            for key, text in zip(KEYS, figures_of(ours, errors=errors), strict=True):
                best = text is not None and getattr(ours, key) == _best(table, setting, key)
                mine.append(Text(text or "-", style="bold" if best else ""))
        shown.add_row(name, *mine)
        if table.world in TABLES:
            theirs = [table.paper(learner, setting) for setting in SETTINGS]
            texts = [text or "-" for one in theirs for text in figures_of(one, errors=errors)]
            shown.add_row("  paper", *texts, style="dim")
    console.print(shown)
    console.print()
    for setting, words in WORDS.items():
        console.print(f"{words}: {table.caption(setting)}")
    for warning in table.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    if table.missing:
        console.print("\nWhat is missing (-) is filled by")
        for command in table.missing:  # whole lines, however long, to be copied
            console.print(Text(f"  {command}"), soft_wrap=True)


def _best(table: MethodTable, setting: Setting, key: str) -> float | None:
    return max((v for one in table.of(setting) if (v := getattr(one, key)) is not None), default=None)
