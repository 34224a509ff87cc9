"""`wander rooms`: homes to wander in."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tyro
from rich.console import Console
from rich.table import Table

from wanderlearn.cli.output import put_json
from wanderlearn.errors import WanderError

__all__ = ["Preview", "main"]


@dataclass(frozen=True)
class Preview:
    """Build a furnished home and show it: plan, views of its rooms, its things with their names.

    Everything is drawn by the program from the seed. Homes 0 to 59 are the training worlds, 60 to 69 are for
    validation, 70 to 89 for testing.

    Examples:
      wander rooms preview --seed 3 --png home.png
      wander rooms preview --seed 70 --json -
    """

    seed: int = 3
    """Which home; the same seed is always the same home."""
    png: Path | None = None
    """Draw the contact sheet into this picture file."""
    names: bool = True
    """Write the names of things into the views."""
    json: str | None = None
    """Write what is in the home as JSON to this file, or to standard output for -."""

    def run(self) -> None:
        """Build, count, draw."""
        if self.png is not None and self.png.suffix.lower() != ".png":
            raise WanderError(
                f"The picture is a PNG: give it a name that ends in .png, not {self.png.name!r}."
            )
        from wanderlearn.rooms.home import build_home

        home = build_home(self.seed)
        counts = Counter(thing.category for thing in home.counted)
        rooms = [room.kind for room in home.plan.rooms]
        put_json(
            {
                "seed": home.seed,
                "rooms": rooms,
                "viewpoints": len(home.viewpoints),
                "things": dict(counts.most_common()),
                "others": len(home.things) - len(home.counted),
                "dropped": [d._asdict() | {"room": rooms[d.room]} for d in home.dropped],
            },
            self.json,
        )
        if self.json != "-":
            _show(rooms, counts, [f"{d.kind} ({rooms[d.room]}): {d.reason}" for d in home.dropped])
        if self.png is not None:
            from wanderlearn.rooms.preview import draw_preview

            draw_preview(self.png, home, names=self.names)
            print(f"{self.png}: home {home.seed}", file=sys.stderr)


def _show(rooms: list[str], counts: Counter[str], dropped: list[str]) -> None:
    console = Console()
    console.print(f"{len(rooms)} rooms: {', '.join(rooms)}", highlight=False)
    table = Table(box=None, show_header=False)
    for category, count in counts.most_common():
        table.add_row(category, str(count))
    console.print(table)
    console.print(f"{sum(counts.values())} things of {len(counts)} categories", highlight=False)
    for words in dropped:
        console.print(f"did not fit: {words}", highlight=False)


COMMANDS: Final[dict[str, Callable[..., Preview]]] = {
    "preview": Preview
}  # one class for every word that may follow `wander rooms`


def main(arguments: Sequence[str]) -> None:
    """Run what the first word names."""
    about = "Homes to wander in: generated, furnished, drawn by the processor."
    command = tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        prog="wander rooms",
        description=about,
        args=list(arguments),
        config=(tyro.conf.OmitArgPrefixes,),
    )
    command.run()
