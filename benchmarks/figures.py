"""Draw the figures of docs/figures.md again, of the shipped learners on Omniglot (calibration: on glyphs).

    python benchmarks/figures.py            all of them, some minutes
    python benchmarks/figures.py growth     only those named

They need its files (WANDERLEARN_DATA, or `wander data get omniglot`). The pictures in docs/images/ have few
colours, so that the repository stays small.
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image

from wanderlearn.cli.figure import main
from wanderlearn.figures.style import DPI
from wanderlearn.files import writing

IMAGES = Path(__file__).parents[1] / "docs" / "images"
COLOURS = 64
OPTIONS = {
    "over-time": [
        *("cpm-omniglot", "protonet-omniglot", "wayfarer-omniglot"),
        *("--semi-learners", "cpm-omniglot-semi", "protonet-omniglot"),
        *("--sequences", "300", "--offline-sequences", "40"),
    ],
    "embedding": ["protonet-omniglot", "cpm-omniglot"],
    "controls": ["cpm-omniglot-semi"],
    "growth": ["--world", "omniglot"],
    "answers": ["wayfarer-omniglot", "--semi"],
    "calibration": [],
}


def draw(name: str, into: Path = IMAGES) -> Path:
    """One figure, reduced to few colours."""
    path = into / f"figure-{name}.png"
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "figure.png"
        main([name, *OPTIONS[name], "--out", str(whole)])
        with Image.open(whole) as picture, writing(path) as part:
            few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
            few.save(part, format="PNG", optimize=True, dpi=(DPI, DPI))
    return path


if __name__ == "__main__":
    for chosen in sys.argv[1:] or OPTIONS:
        made = draw(chosen)
        print(f"{made.name}: {made.stat().st_size / 1000:.0f} kB")
