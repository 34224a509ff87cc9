"""`wander rooms`: homes to wander in."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import tyro
from rich.console import Console
from rich.table import Table

from wanderlearn.cli.output import put_json
from wanderlearn.cli.rooms_matterport import Matterport
from wanderlearn.errors import WanderError

__all__ = ["Preview", "Record", "Stats", "main"]


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


@dataclass(frozen=True)
class Record:
    """Let an agent walk through many homes and write down what it sees, in the RoamingRooms file format.

    Every home gives h5 files with up to 200 frames each (pictures and instance ids as PNG) and JSON files
    that say what is met in each frame. Each file is written whole or not at all: a recording that was
    stopped or killed goes on where it was when the same command is given again. The files do not depend on
    the number of processes, also under torchrun, which shares the homes out (docs/scaling.md).
    `wander rooms stats DIR` counts what was recorded.

    Examples:
      wander rooms record --worlds 12 --frames 600 --out my/rooms
      wander rooms record --worlds 20 --split test --out my/rooms
    """

    out: Path = Path("rooms")
    """Folder for the recording; the files of a split come into a folder of its name in it."""
    worlds: int | None = None
    """How many homes, the first ones of the split (default: all, 60, 10 or 20)."""
    frames: int = 600
    """Steps of a walk; steps that show no object are left out."""
    split: Literal["train", "val", "test"] = "train"
    """Which homes: no home is in two splits."""
    walks: int = 1
    """Walks through every home."""
    processes: int | None = None
    """How many homes are recorded at once, each by a process of its own (default: 2; under torchrun 1 in each
    of its processes)."""
    seed: int = 0
    """Another seed gives another ninety homes."""
    reduced: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Draw at 800 x 600 and shrink to 160 x 120, as the paper's frames were made; several times slower."""
    edge: float = 0.05
    """The middle of an object that is met is not in this part of the frame at each side (the paper: 0.15)."""
    capped: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """At most 1 to 9 objects of a frame are met, drawn for every frame, as in the paper's recording (whose
    homes are fuller than ours)."""
    any_room: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Objects of other rooms, seen through a door, are met too; in the paper's recording they are not."""
    json: str | None = None
    """Write what was recorded as JSON to this file, or to standard output for -."""

    def run(self) -> None:
        """Record what is missing."""
        from wanderlearn.distributed import joined
        from wanderlearn.rooms.home import world_seeds
        from wanderlearn.rooms.recorder import record_worlds
        from wanderlearn.rooms.recording import RecordConfig, counted

        if not 0 <= self.seed < 2**32:
            raise WanderError(f"--seed must be between 0 and 2^32 - 1, not {self.seed}.")
        seeds = world_seeds(self.split, self.seed)
        worlds = len(seeds) if self.worlds is None else self.worlds
        if not 1 <= worlds <= len(seeds):
            raise WanderError(
                f"--worlds must be between 1 and {len(seeds)} for the split {self.split}, not {worlds}. "
                "More walks (--walks) or another --seed give more files."
            )
        config = RecordConfig(
            frames=self.frames,
            walks=self.walks,
            reduced=self.reduced,
            edge=self.edge,
            any_room=self.any_room,
            capped=self.capped,
        )
        folder = self.out / self.split
        with joined() as group:
            processes = self.processes if self.processes is not None else 2 if group.size == 1 else 1
            done = record_worlds(seeds[:worlds], folder, config, processes, group)
        if not group.first:
            return
        walks = [walked for each in done.values() for walked in each]
        told = {"folder": str(folder), "worlds": len(done), **counted(walks)}
        put_json(told, self.json)
        print(
            f"{folder}: {told['frames']} frames in {told['files']} files of {told['worlds']} homes. "
            f"{told['empty']} steps showed no object, {told['left_out']} frames at the ends of walks were "
            "too few for a file.",
            file=sys.stderr,
        )


@dataclass(frozen=True)
class Stats:
    """Count what was recorded, beside what the paper says of its own recording.

    Examples:
      wander rooms stats my/rooms
      wander rooms stats my/rooms --png rooms.png --json -
    """

    folder: tyro.conf.Positional[Path]
    """Folder of a recording, ours or the authors'."""
    json: str | None = None
    """Write the statistics as JSON to this file, or to standard output for -."""
    png: Path | None = None
    """Draw them into this file (PNG, SVG or PDF)."""

    def run(self) -> None:
        """Count, show, draw."""
        if self.png is not None:
            from wanderlearn.figures.style import check_name

            check_name(self.png)
        from wanderlearn.paper import ROOMS_STATISTICS
        from wanderlearn.rooms.stats import rooms_statistics

        numbers = rooms_statistics(self.folder)
        put_json(numbers | {"paper": ROOMS_STATISTICS}, self.json)
        if self.json != "-":
            _compare(numbers, ROOMS_STATISTICS)
        if self.png is not None:
            from wanderlearn.rooms.stats_figure import draw_statistics

            draw_statistics(self.png, numbers)
            print(f"{self.png}: {numbers['meetings']} meetings", file=sys.stderr)


def _compare(numbers: dict[str, Any], paper: dict[str, Any]) -> None:
    from wanderlearn.rooms.stats import READINGS

    console, table = Console(), Table(box=None)
    table.add_column("")
    table.add_column("here", justify="right")
    table.add_column("paper (Matterport3D)", justify="right")
    names = {"files": "files (the paper: sequences)", "viewpoints_per_100": "viewpoints per 100 meetings"}
    names |= {name: f"same instance next, %: {words}" for name, words in READINGS.items()}
    names["met_again"] = "met again in the same file, %"
    for name, value in numbers.items():
        if isinstance(value, dict):
            continue
        reported = paper.get("same_next" if name in READINGS else name)
        table.add_row(names.get(name, name.replace("_", " ")), _number(value), _number(reported))
    for name in ("meetings_per_instance", "meetings_per_viewpoint"):
        tail, words = numbers[name], name.replace("_", " ")
        table.add_row(f"{words}: median", _number(tail["median"]), "")
        table.add_row(f"{words}: most", _number(tail["most"]), "")
        table.add_row(f"{words}: % of the first tenth", _number(tail["share_of_first_tenth"]), "long tail")
    console.print(table)
    table = Table("category", "instances", "meetings", box=None)
    for category, count in numbers["instances_of_category"].items():
        table.add_row(category, str(count), str(numbers["meetings_of_category"][category]))
    console.print(table)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.1f}"


COMMANDS: Final[dict[str, Callable[..., Preview | Record | Stats | Matterport]]] = {
    "preview": Preview,
    "record": Record,
    "stats": Stats,
    "matterport": Matterport,
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
