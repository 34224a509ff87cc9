"""`wander sample`: draw sequences of meetings."""

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from wanderlearn.cli.output import put_json
from wanderlearn.cli.process import Behind, ProcessOptions, with_background
from wanderlearn.errors import WanderError

__all__ = ["Command"]


@dataclass(frozen=True)
class Command:
    """Draw sequences of meetings: their statistics, a picture of them, a manifest that fixes them.

    Examples:
      wander sample glyphs --png meetings.png
      wander sample omniglot --split test --semi --count 2000 --json -
      wander sample omniglot --split test --count 2000 --manifest test.npz
      wander sample glyphs --background channel --shuffle --png spatial.png
      wander sample folder:my/pictures --png mine.png
      wander sample 'folder:my/pictures?size=32,channels=1,least=6' --roaming.environments 3
    """

    world: tyro.conf.Positional[str]
    """glyphs (embedded, offline), omniglot, or a place of yours: folder:PATH (docs/folder.md),
    imagenet:PATH, features:PATH.npy."""
    split: str = "test"
    """train, val or test."""
    semi: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Hide most labels of frequent classes (the semi-supervised setting)."""
    shuffle: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Destroy temporal context by shuffling each sequence (the paper's control)."""
    background: Behind | None = None
    """Put textures behind the pictures, one kind for each environment: a spatial cue (docs/context.md). They
    come as a channel of their own, or with the drawing on them as an overlay (default: none)."""
    textures: str | None = None
    """Where textures come from: procedural (default), photos (in WANDERLEARN_DATA), a folder or a .zip."""
    count: int = 100
    """How many sequences."""
    seed: int = 0
    """Sequence i of a seed is always the same."""
    png: Path | None = None
    """Draw the first sequences into this picture file."""
    drawn: int = 2
    """How many sequences the picture shows."""
    json: str | None = None
    """Write the statistics as JSON to this file, or to standard output for -."""
    manifest: Path | None = None
    """Write a manifest: a file that fixes these sequences exactly."""
    source: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Folder with the original files (omniglot)."""
    roaming: ProcessOptions = field(default_factory=ProcessOptions)

    def run(self) -> None:
        """Draw, count, show."""
        if self.count < 1:
            raise WanderError(f"--count must be at least 1, not {self.count}.")
        if not 0 <= self.seed < 2**63:
            raise WanderError(f"--seed must be between 0 and 2^63 - 1, not {self.seed}.")
        from wanderlearn.progress import track
        from wanderlearn.worlds import Roaming, draw_manifest, open_world, statistics, write_manifest
        from wanderlearn.worlds.named import default_process

        base = default_process(self.world)
        config = replace(self.roaming.applied(base), semi=self.semi, shuffle=self.shuffle)
        config = with_background(config, self.background, self.textures)
        world = open_world(self.world, self.split, config, self.source)
        drawn = track(range(self.count), "drawing sequences", self.count)
        numbers = statistics((world.meetings(self.seed, i) for i in drawn), world.pictures)
        put_json(
            {"world": self.world, "split": self.split, "semi": self.semi, "seed": self.seed} | numbers,
            self.json,
        )
        if self.json != "-":
            _show(numbers)
        if self.manifest is not None:
            manifest = draw_manifest(world, self.seed, self.count)
            write_manifest(self.manifest, manifest)
            print(f"{self.manifest}: {self.count} sequences, SHA-256 {manifest.sha256}", file=sys.stderr)
        if self.png is not None and not isinstance(world, Roaming):
            raise WanderError(
                "Walks are drawn with what a learner says: wander figure rooms-walk RUN --out walk.png."
            )
        if self.png is not None and isinstance(world, Roaming):
            from wanderlearn.report.sequences import draw_sequences

            shown = [world.meetings(self.seed, i) for i in range(min(self.drawn, self.count))]
            draw_sequences(self.png, world, shown)
            print(f"{self.png}: {len(shown)} sequences", file=sys.stderr)


def _show(numbers: dict[str, float | int | list[float]]) -> None:
    table = Table(box=None, show_header=False)
    for name, value in numbers.items():
        shown = ", ".join(f"{v:.2f}" for v in value) if isinstance(value, list) else f"{value:.4g}"
        table.add_row(name.replace("_", " "), shown)
    Console().print(table)
