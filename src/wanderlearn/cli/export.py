"""`wander export`: a trained learner as ONNX, for machines without Python."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.console import Console
from rich.table import Table

from wanderlearn.cli.output import put_json

if TYPE_CHECKING:
    from wanderlearn.export import Exported

__all__ = ["Command"]


@dataclass(frozen=True)
class Command:
    """Write a trained learner as ONNX: encoder and one meeting, with its memory going in and coming out.

    Two files: OUT.onnx is one meeting, OUT.begin.onnx gives the empty memory. Before they are put in place,
    both live through random meetings in onnxruntime beside the learner itself; the largest difference of
    all answers is shown, and above 0.0001 nothing is written. docs/export.md has an example that needs only
    numpy and onnxruntime. Needs the extra `onnx`.

    Examples:
      wander export cpm-glyphs robot.onnx
      wander export runs/mine mine.onnx --slots 200
    """

    learner: tyro.conf.Positional[str]
    """A run folder (its best weights), a .safetensors file, or the name of weights in the package."""
    out: tyro.conf.Positional[Path]
    """Where to write, ending in .onnx."""
    slots: int | None = None
    """Room for how many classes (default: what the learner was built for, else 50)."""
    opset: int = 18
    """Version of ONNX's operators. The least is understood by the most runtimes."""
    json: str | None = None
    """Write what was exported as JSON to this file, or to standard output for -."""

    def run(self) -> None:
        """Load, export, show."""
        from wanderlearn.export import export_model
        from wanderlearn.export.origin import origin_of
        from wanderlearn.model import load_model
        from wanderlearn.shipped import find_weights

        weights = find_weights(self.learner)
        model = load_model(weights)
        exported = export_model(model, self.out, slots=self.slots, opset=self.opset, about=origin_of(weights))
        put_json({name: _plain(value) for name, value in asdict(exported).items()}, self.json)
        if self.json != "-":
            _show(exported)


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


def _show(exported: Exported) -> None:
    console = Console(highlight=False)
    console.print(f"[bold]{exported.step}[/bold]: one meeting (opset {exported.opset})", soft_wrap=True)
    table = Table(box=None, show_header=False, padding=(0, 2))
    for way, tensors in (("in", exported.inputs), ("out", exported.outputs)):
        for n, (name, shape) in enumerate(tensors.items()):
            table.add_row(way if n == 0 else "", name, shape.replace("[", r"\["))
    console.print(table)
    console.print(f"[bold]{exported.begin}[/bold]: the empty memory (in: batch, int64 \\[1])", soft_wrap=True)
    console.print(
        f"largest difference from the learner in {exported.meetings} random meetings: "
        f"{exported.largest_difference:.1e}"
    )
