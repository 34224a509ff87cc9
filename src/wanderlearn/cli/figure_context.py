"""`wander figure context`: the paper's context experiment as a bar chart, from results."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wanderlearn.cli.figure_options import checked_path
from wanderlearn.cli.output import put_json
from wanderlearn.errors import WanderError

__all__ = ["Context"]


@dataclass(frozen=True)
class Context:
    """What spatial and temporal cues are worth to Online ProtoNet and CPM: AP in four conditions.

    Reads LEARNER-context-CONDITION-WORLD.json in the folder of results, which benchmarks/context.py makes.
    The paper shows its own only as a picture, without numbers, so none stand beside ours (docs/context.md).

    Examples:
      wander figure context
      wander figure context --world glyphs --out cues.pdf --json -
    """

    world: Literal["omniglot", "glyphs"] = "omniglot"
    """Which world's results."""
    results: Path = Path("results")
    """The folder of results."""
    out: Path | None = None
    """The file to draw: .png, .svg or .pdf (default: figure-context.png)."""
    json: str | None = None
    """Write the numbers behind the figure as JSON to this file, or to standard output for -."""

    def run(self) -> None:
        """Read, draw."""
        from wanderlearn.figures.context import draw_context, missing_cells, read_cells, to_numbers

        path = checked_path(self.out, "context")
        cells = read_cells(self.results, self.world)
        missing = missing_cells(cells, self.world)
        if not cells:
            raise WanderError(
                f"{self.results} has no result of the context experiment in {self.world}, such as "
                f"{missing[0]}.json. Make them: python benchmarks/context.py --world {self.world}."
            )
        if missing:
            print(f"Not there yet: {', '.join(missing)} (benchmarks/context.py).", file=sys.stderr)
        counts = {cell.sequences for of in cells.values() for cell in of.values()}
        told = f"{min(counts):,}" if len(counts) == 1 else f"{min(counts):,} to {max(counts):,}"
        draw_context(path, cells, f"{self.world} test, few labels, {told} sequences; lines: 95 % intervals")
        head = {"format": 1, "kind": "figure", "figure": "context", "world": self.world}
        put_json(head | {"learners": to_numbers(cells), "missing": missing}, self.json)
        print(f"written to {path}", file=sys.stderr)
