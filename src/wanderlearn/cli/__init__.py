"""`wander`: the command line. One module per command, imported only when it is asked for."""

import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import tyro
from rich.console import Console
from rich.table import Table

from wanderlearn._version import __version__
from wanderlearn.errors import WanderError

__all__ = ["main"]

COMMANDS = {
    "demo": "watch a learner wander through the embedded world, offline, about a minute",
    "data": "list the picture sources, fetch and verify them",
    "sample": "draw sequences of meetings: their statistics, a picture, a manifest",
    "train": "train a learner from a preset",
    "evaluate": "score a trained learner on sequences it has never seen",
    "table": "the paper's main table, ours beside the paper's",
    "figure": "the paper's figures, of any learner",
    "export": "write a trained learner as ONNX, for machines without Python",
    "serve": "sort your own pictures in the browser, with an assistant that learns",
    "rooms": "homes to wander in: build one, record walks, count what was seen",
    "check": "does your own learner keep the contract?",
    "bench": "how fast is it, as ratios taken in one run",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the `wander` command. Exits with 2 where it could not do what was asked."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        _overview()
        return
    name, *rest = arguments
    if name in ("--version", "-V"):
        print(f"wanderlearn {__version__}")
        return
    try:
        if name not in COMMANDS:
            raise WanderError(f"There is no command {name!r}. Choose one of {', '.join(COMMANDS)}.")
        module = importlib.import_module(f"wanderlearn.cli.{name}")
        if hasattr(module, "main"):  # a command that reads its own words
            module.main(rest)
        else:  # `Command` is a dataclass with a `run` method, or a union of such dataclasses
            command, prog = module.Command, f"wander {name}"
            tyro.cli(command, prog=prog, args=rest, config=(tyro.conf.OmitArgPrefixes,)).run()
    except WanderError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("Interrupted. Nothing half-written was left behind.")
    except BrokenPipeError:
        # The reader of our output (head, less) went away: not an error of ours, and nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _overview() -> None:
    console = Console()
    console.print(
        "[bold]wander[/bold]: meet one thing at a time, name it or say it is new, learn on the spot.\n"
    )
    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, about in COMMANDS.items():
        table.add_row(f"wander {name}", about)
    console.print(table)
    console.print(
        "\nEvery command explains itself with --help. First time here? Try: wander demo", highlight=False
    )


def _fail(sentence: str) -> NoReturn:
    print(f"wander: {sentence}", file=sys.stderr)
    raise SystemExit(2)
