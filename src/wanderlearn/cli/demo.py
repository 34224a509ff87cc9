"""`wander demo`: the main job in a minute."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console
from rich.table import Table

from wanderlearn.errors import WanderError

if TYPE_CHECKING:
    from wanderlearn.metrics import Record
    from wanderlearn.worlds import Manifest, Roaming

__all__ = ["Command"]

WINDOW = 15  # meetings averaged for one point of the curve


@dataclass(frozen=True)
class Command:
    """Watch learners wander through the embedded world, compare them, and leave a report. Offline.

    The learners are those shipped with the package and, as a floor, one that compares raw pixels.
    """

    out: Path = Path("demo")
    """Folder for report.html and meetings.png."""
    sequences: int = 40
    """How many sequences the comparison is over."""
    seed: int = 0
    """Which sequences."""
    semi: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Hide most labels of frequent classes."""

    def run(self) -> None:
        """Wander, compare, report."""
        if self.sequences < 1:
            raise WanderError(f"--sequences must be at least 1, not {self.sequences}.")
        start = time.perf_counter()
        print("Making the embedded world (procedural handwriting; kept for next time) ...", file=sys.stderr)
        from wanderlearn.evaluate import gather
        from wanderlearn.shipped import demo_learners
        from wanderlearn.worlds import RoamingConfig, draw_manifest, open_roaming

        world = open_roaming("glyphs", "test", RoamingConfig(semi=self.semi))
        manifest = draw_manifest(world, self.seed, self.sequences)
        records = {}
        for name, model in demo_learners().items():
            print(f"{name} meets {self.sequences} sequences ...", file=sys.stderr)
            records[name] = gather(model, world, manifest.sequences, progress=True)
        console = Console()
        _watch(console, records, manifest)
        _compare(console, records)
        page = self._report(world, manifest, records)
        console.print(
            f"\n{time.perf_counter() - start:.0f} seconds. Look at [bold]{page}[/bold]", highlight=False
        )

    def _report(self, world: "Roaming", manifest: "Manifest", records: dict[str, "Record"]) -> Path:
        from wanderlearn.report import html
        from wanderlearn.report.sequences import draw_sequences

        best = list(records)[-1]
        png, page = self.out / "meetings.png", self.out / "report.html"
        first = manifest.sequences[0]
        answers = records[best].answer[0][: len(first)]
        draw_sequences(png, world, [first], [answers])
        curves = {name: _over_time(record) for name, record in records.items()}
        setting = (
            "semi-supervised: most names of frequent classes are hidden"
            if self.semi
            else "every name is told"
        )
        html.write_page(
            page,
            "A walk through the embedded world",
            [
                html.paragraph(
                    "A learner meets one character at a time. It says at once which known class it is, or "
                    f"that it is new, and then learns ({setting}). Test characters come from alphabets no "
                    "learner was trained on."
                ),
                html.paragraph(f"Average over {self.sequences} sequences.", heading="Who does how well"),
                html.table(*_figures(records)),
                html.paragraph("The more has been met, the more there is to confuse.", heading="Over time"),
                html.line_chart(
                    curves, across="meeting", up="Right answers on known classes, percent", low=0, high=100
                ),
                html.paragraph(
                    "The band is the hidden environment; a red frame means the name is told; the number "
                    "is the class, by when it was first named. Wrong answers are orange.",
                    heading=f"One sequence with the answers of {best}",
                ),
                html.picture(
                    png, "The meetings of one sequence in order, with the learner's mistakes marked"
                ),
                html.paragraph(
                    f"Sequences: glyphs, test, seed {self.seed}, manifest SHA-256 {manifest.sha256[:16]}.",
                    quiet=True,
                ),
            ],
        )
        return page


def _watch(console: Console, records: dict[str, "Record"], manifest: "Manifest") -> None:
    """The first meetings of one sequence, and what each learner said."""
    from wanderlearn.worlds import NEW, UNLABELED

    m = manifest.sequences[0]
    shown = Table(title=f"The first meetings of sequence {m.index}", title_justify="left", box=None)
    for column in ("meeting", "environment", "right answer", "told", *records):
        shown.add_column(column, justify="right")
    for t in range(min(24, len(m))):
        target = int(m.target[t])
        said = []
        for record in records.values():
            answer = int(record.answer[0, t])
            colour = "green" if answer == target else "red"
            said.append(f"[{colour}]{'new' if answer == NEW else answer + 1}[/{colour}]")
        told = "" if m.given[t] == UNLABELED else str(m.given[t] + 1)
        right = "new" if target == NEW else str(target + 1)
        shown.add_row(str(t + 1), "ABCDEFGH"[m.environment[t] % 8], right, told, *said)
    console.print(shown)


def _compare(console: Console, records: dict[str, "Record"]) -> None:
    header, rows = _figures(records)
    shown = Table(box=None)
    for n, column in enumerate(header):
        shown.add_column(column, justify="left" if n == 0 else "right")
    for row in rows:
        shown.add_row(*row)
    console.print()
    console.print(shown)


def _figures(records: dict[str, "Record"]) -> tuple[list[str], list[list[str]]]:
    from wanderlearn.metrics import summary

    header = ["learner", "AP", "AP-joint", "1-shot", "3-shot", "new or known"]
    rows = []
    for name, record in records.items():
        found = summary(record)
        shots = found["shots"]["labelled"]
        figures = (
            found["ap"],
            found["ap_joint"],
            shots[0]["mean"],
            shots[2]["mean"],
            found["novelty_accuracy"],
        )
        rows.append([name, *("–" if f is None else f"{f:.1f}" for f in figures)])
    return header, rows


def _over_time(record: "Record") -> list[tuple[float, float]]:
    import numpy as np

    asked, right = record.known.sum(axis=0), record.correct.sum(axis=0)
    points = []
    for start in range(0, len(asked), WINDOW):
        window = slice(start, start + WINDOW)
        share = right[window].sum() / asked[window].sum() if asked[window].sum() else np.nan
        points.append((start + WINDOW / 2, 100 * float(share)))
    return points
