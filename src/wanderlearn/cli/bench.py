"""`wander bench`: how fast it is, as ratios taken in one run."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from wanderlearn.cli.output import put_json
from wanderlearn.errors import WanderError

__all__ = ["BENCHES", "Command"]

BENCHES = {
    "sampler": "sequences drawn per second on one core, without and with pictures",
    "encoder": "pictures encoded and trained on per second",
    "train": "a whole training step over the encoder's own forward and backward",
    "evaluate": "sequences evaluated per second, over the encoder's own forward",
    "step": "one live meeting over the encoder on one picture, and how it grows with classes",
    "rooms": "frames of a home drawn per second on one core, and how many ids a ray cast agrees with",
    "agent": "look and tell of a live agent, over the encoder and at 100,000 classes, on one thread",
    "distributed": "training by two processes of one thread over one, on the same batch (two idle cores)",
}


@dataclass(frozen=True)
class Command:
    """Measure speed, as ratios taken in one run: the encoder is the floor everything is measured by.

    sampler, encoder, train, evaluate, step, rooms, agent and distributed; without a name, all of them (some
    minutes).
    Pictures are random pixels, so nothing needs to be downloaded. Leave the machine alone meanwhile.

    Examples:
      wander bench sampler
      wander bench train --learner protonet --json -
      wander bench distributed --json -
      wander bench --json bench.json
    """

    name: tyro.conf.Positional[str] = "all"
    """sampler, encoder, train, evaluate, step, rooms, agent, distributed or all."""
    learner: tuple[str, ...] = ()
    """For train: measure these too (protonet, matchingnet, imp, lstm, dnc, oml-u, oml-u-plus, wayfarer)."""
    threads: int | None = None
    """How many threads torch may use (default: as many as it likes)."""
    json: str | None = None
    """Write the figures as JSON to this file, or to standard output for -."""

    def run(self) -> None:
        """Measure, show."""
        if self.name not in (*BENCHES, "all"):
            raise WanderError(
                f"There is no benchmark {self.name!r}. Choose one of {', '.join(BENCHES)} or all."
            )
        if self.learner and self.name not in ("train", "all"):
            raise WanderError("--learner is for the benchmark train: `wander bench train --learner ...`.")
        import torch

        from wanderlearn.bench.measure import measured_on
        from wanderlearn.progress import track

        if self.threads is not None:
            if self.threads < 1:
                raise WanderError(f"--threads must be at least 1, not {self.threads}.")
            torch.set_num_threads(self.threads)
        names = list(BENCHES) if self.name == "all" else [self.name]
        figures = {}
        for name in track(names, "measuring", len(names)):
            figures[name] = _bench(name)(**({"learners": self.learner} if name == "train" else {}))
            if self.json != "-":
                _show(name, figures[name])
        head = {"format": 1, "kind": "bench", "name": self.name}
        told = figures if self.name == "all" else figures[self.name]
        put_json(head | told | {"measured_on": measured_on()}, self.json)


def _bench(name: str) -> Callable[..., dict[str, Any]]:
    found: Callable[..., dict[str, Any]] = getattr(
        importlib.import_module(f"wanderlearn.bench.{name}"), f"bench_{name}"
    )
    return found


def _show(name: str, figures: dict[str, Any]) -> None:
    table = Table(title=f"{name}: {BENCHES[name]}", title_justify="left", show_header=False, box=None)
    for key, value in _flat(figures):
        table.add_row(key, f"{value:.4g}" if isinstance(value, float) else str(value))
    console = Console()
    console.print(table)
    console.print()


def _flat(figures: dict[str, Any], under: str = "") -> list[tuple[str, Any]]:
    rows = []
    for key, value in figures.items():
        words = f"{under}{key}".replace("_", " ")
        rows += _flat(value, f"{words} ") if isinstance(value, dict) else [(words, value)]
    return rows
