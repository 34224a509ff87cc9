"""`wander data`: the picture sources."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from wanderlearn.cli.output import put_json
from wanderlearn.errors import WanderError

__all__ = ["Command", "Get", "List"]


@dataclass(frozen=True)
class List:
    """Which picture sources there are, and which of them are on this machine."""

    json: str | None = None
    """Write the list as JSON to this file, or to standard output for -."""

    def run(self) -> None:
        """Show the list."""
        from wanderlearn.pictures import omniglot
        from wanderlearn.worlds.named import WORLDS

        found = omniglot.status()
        if found.cached:
            state = f"ready ({found.size / 1e6:.0f} MB cached)"
        else:
            state = f"found in {found.where}" if found.where else "not here yet"
        where = {"glyphs": "embedded", "omniglot": state}
        put_json([{"name": name, "about": WORLDS[name], "where": where[name]} for name in WORLDS], self.json)
        if self.json == "-":
            return
        table = Table(box=None, show_header=False, padding=(0, 2))
        for name, about in WORLDS.items():
            table.add_row(name, where[name], about)
        Console().print(table)


@dataclass(frozen=True)
class Get:
    """Fetch a source (resumable, checksummed) or read it from a folder, verify it, and keep it ready."""

    name: tyro.conf.Positional[str]
    """omniglot (glyphs needs nothing)."""
    source: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Folder that already has the published zips or the unpacked folders; without it they are downloaded."""

    def run(self) -> None:
        """Fetch and verify."""
        if self.name == "glyphs":
            print("glyphs is embedded: nothing to get.")
            return
        if self.name != "omniglot":
            raise WanderError(f"There is no source {self.name!r}. `wander data list` shows them.")
        from wanderlearn.pictures import omniglot

        print(f"omniglot is ready: {omniglot.get(self.source)}")


Command = Annotated[List, tyro.conf.subcommand("list")] | Annotated[Get, tyro.conf.subcommand("get")]
