"""Worlds by name or by address, as the command line knows them."""

from collections.abc import Sequence
from pathlib import Path

from wanderlearn.errors import WanderError
from wanderlearn.pictures.address import KINDS, is_address, read_address
from wanderlearn.pictures.collection import SPLITS, Pictures
from wanderlearn.worlds.fitting import advice
from wanderlearn.worlds.roaming import Roaming, RoamingConfig

__all__ = ["PLACE_ROAMING", "WORLDS", "check_fit", "open_pictures", "open_world"]

WORLDS = {
    "glyphs": "procedural handwriting, embedded: needs no download",
    "omniglot": "RoamingOmniglot, the paper's handwritten characters (`wander data get omniglot`)",
}
PLACE_ROAMING = RoamingConfig(crop="none", occlusion=0.0)
"""The process in places of the user's, as the authors' on ImageNet: nothing cropped, nothing hidden."""


def open_pictures(name: str, split: str, source: Path | None = None) -> Pictures:
    """The pictures of a world's split; `source` is a folder with the original files, where there are any.

    A world is a name (`glyphs`) or an address (`folder:PATH?size=64`).
    """
    if split not in SPLITS:
        raise WanderError(f"There is no split {split!r}. Choose one of {', '.join(SPLITS)}.")
    if name == "omniglot":
        from wanderlearn.pictures.omniglot import omniglot

        return omniglot(split, source)
    if name == "glyphs":
        from wanderlearn.pictures.glyphs import glyphs

        return glyphs(split)
    if is_address(name):
        address = read_address(name)
        if address.kind == "features":
            from wanderlearn.pictures.features import features

            return features(address, split)
        if address.kind == "imagenet":
            from wanderlearn.pictures.imagenet import imagenet

            return imagenet(address, split)
        from wanderlearn.pictures.folder import folder

        return folder(address, split)
    places = ", ".join(f"{kind}:PATH" for kind in KINDS)
    raise WanderError(f"There is no world {name!r}. Choose one of {', '.join(WORLDS)}, {places}.")


def open_world(
    name: str, split: str, config: RoamingConfig | None = None, source: Path | None = None
) -> Roaming:
    """A world to wander in, by name or address and split."""
    pictures = open_pictures(name, split, source)
    if is_address(name):
        config = config or PLACE_ROAMING
        check_fit(name, [pictures], config)
    return Roaming(pictures, config)


def check_fit(name: str, pictures: Sequence[Pictures], config: RoamingConfig) -> None:
    """Whether a place of the user's has all that the process needs; if not, say what would help."""
    for some in pictures:
        try:
            Roaming(some, config)
        except WanderError as error:
            raise WanderError(f"{error} {advice(name, pictures, config)}") from error
