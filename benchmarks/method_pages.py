"""Fill the tables of docs/methods/ in: the paper's figures, ours from results/, and what the presets use.

    python benchmarks/method_pages.py

Measures nothing. A page gets the tables it has markers for; where we have no result there is a dash.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from wanderlearn.model import build
from wanderlearn.paper import METHOD_NAMES, SETTINGS
from wanderlearn.presets import PRESETS, Preset
from wanderlearn.report.methods import WORLDS, markdown, method_markdown, read_method_table
from wanderlearn.results import fill, markdown_table

ROOT = Path(__file__).parents[1]
RESULTS, PAGES = ROOT / "results", ROOT / "docs" / "methods"
# The page of a learner has its name; one page may be of several.
SHARED = {"oml": ("oml-u", "oml-u-plus")}
COLUMNS = (
    "preset",
    "budget",
    "batch",
    "learning rate",
    "schedule",
    "of it, the encoder's",
    "weight decay",
    "gradient cap",
    "last ReLU",
)


def tables(results: Path = RESULTS, pages: Path = PAGES) -> None:
    """Fill every table of every page."""
    found = {world: read_method_table(results, world) for world in WORLDS}
    for page in sorted(pages.glob("*.md")):
        parts: dict[str, Callable[[], str]]
        parts = {f"{world}-table": partial(markdown, table) for world, table in found.items()}
        if learners := [name for name in SHARED.get(page.stem, (page.stem,)) if name in METHOD_NAMES]:
            parts["presets"] = partial(presets, learners)
            parts["results"] = partial(method_markdown, list(found.values()), learners)
        text = page.read_text(encoding="utf-8")
        for marker, part in parts.items():
            if f"<!-- {marker}:begin -->" in text:
                fill(page, marker, part())


def presets(learners: Sequence[str]) -> str:
    """What the presets of these learners use, and how many numbers are trained."""
    names = [f"{one}-{world}{end}" for one in learners for world in WORLDS for end in SETTINGS.values()]
    found = [PRESETS[name] for name in names if name in PRESETS]
    return f"{markdown_table(COLUMNS, [_preset(one) for one in found])}\n\n{_parameters(found)}"


def _preset(preset: Preset) -> list[object]:
    train = preset.train
    return [
        f"`{preset.name}`",
        preset.about.partition(", ")[2].partition(" (")[0],
        train.batch_size,
        f"{train.lr:g}",
        train.schedule,
        f"{train.encoder_lr:g}",
        f"{train.weight_decay:g}",
        f"{train.clip:g}" if train.clip else None,
        "yes" if getattr(preset.model.encoder, "last_relu", False) else "no",
    ]


def _parameters(found: Sequence[Preset]) -> str:
    sizes = set()
    for preset in found:
        model = build(preset.model)
        sizes.add(tuple(sum(p.numel() for p in part.parameters()) for part in (model, model.encoder)))
    return " ".join(
        f"{whole:,} parameters, {encoder:,} of them the encoder's." for whole, encoder in sorted(sizes)
    )


if __name__ == "__main__":
    tables()
