"""Worlds by name, as the command line knows them."""

from pathlib import Path

from wanderlearn.errors import WanderError
from wanderlearn.pictures.collection import SPLITS, Pictures
from wanderlearn.worlds.roaming import Roaming, RoamingConfig

__all__ = ["WORLDS", "open_pictures", "open_world"]

WORLDS = {
    "glyphs": "procedural handwriting, embedded: needs no download",
    "omniglot": "RoamingOmniglot, the paper's handwritten characters (`wander data get omniglot`)",
}


def open_pictures(name: str, split: str, source: Path | None = None) -> Pictures:
    """The pictures of a world's split; `source` is a folder with the original files, where there are any."""
    if split not in SPLITS:
        raise WanderError(f"There is no split {split!r}. Choose one of {', '.join(SPLITS)}.")
    if name == "omniglot":
        from wanderlearn.pictures.omniglot import omniglot

        return omniglot(split, source)
    if name == "glyphs":
        from wanderlearn.pictures.glyphs import glyphs

        return glyphs(split)
    raise WanderError(f"There is no world {name!r}. Choose one of {', '.join(WORLDS)}.")


def open_world(
    name: str, split: str, config: RoamingConfig | None = None, source: Path | None = None
) -> Roaming:
    """A world to wander in, by name and split."""
    return Roaming(open_pictures(name, split, source), config)
