"""Worlds by name or by address, as the command line knows them."""

from collections.abc import Sequence
from pathlib import Path

from wanderlearn.errors import WanderError
from wanderlearn.pictures.address import KINDS, is_address, read_address
from wanderlearn.pictures.collection import SPLITS, Pictures, Split
from wanderlearn.rooms.process import RoomsConfig
from wanderlearn.worlds.fitting import advice
from wanderlearn.worlds.roaming import Roaming, RoamingConfig
from wanderlearn.worlds.world import Collection, Process, World, world_of

__all__ = [
    "PLACE_ROAMING", "WORLDS", "check_fit", "default_process", "is_rooms", "open_collection",
    "open_pictures", "open_roaming", "open_world",
]  # fmt: skip

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
    split = _split(split)
    if is_rooms(name):
        raise WanderError(f"{name} holds frames of walks, not single pictures.")
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


def is_rooms(name: str) -> bool:
    """Whether this is the address of recorded walks."""
    return is_address(name) and read_address(name).kind == "rooms"


def open_collection(name: str, split: str, source: Path | None = None) -> Collection:
    """What is met in a world's split: pictures (see `open_pictures`), or things in the frames of walks."""
    if not is_rooms(name):
        return open_pictures(name, split, source)
    from wanderlearn.rooms.sightings import sightings

    return sightings(read_address(name), _split(split))


def open_world(name: str, split: str, config: Process | None = None, source: Path | None = None) -> World:
    """A world to wander in, by name or address and split."""
    pictures = open_collection(name, split, source)
    config = config or default_process(name)
    if is_address(name):
        check_fit(name, [pictures], config)
    return world_of(pictures, config)


def open_roaming(
    name: str, split: str, config: RoamingConfig | None = None, source: Path | None = None
) -> Roaming:
    """As `open_world`, of pictures."""
    world = open_world(name, split, config, source)
    if not isinstance(world, Roaming):
        raise WanderError(f"{name} holds walks through rooms, and this needs a world of pictures.")
    return world


def default_process(name: str) -> Process:
    """The process of a world if nobody asks for another."""
    if is_rooms(name):
        return RoomsConfig()
    return PLACE_ROAMING if is_address(name) else RoamingConfig()


def check_fit(name: str, pictures: Sequence[Collection], config: Process) -> None:
    """Whether a place of the user's has all that the process needs; if not, say what would help."""
    for some in pictures:
        try:
            world_of(some, config)
        except WanderError as error:
            those = [each for each in pictures if isinstance(each, Pictures)]
            if len(those) < len(pictures) or not isinstance(config, RoamingConfig):
                raise
            raise WanderError(f"{error} {advice(name, those, config)}") from error


def _split(name: str) -> Split:
    for split in SPLITS:
        if split == name:
            return split
    raise WanderError(f"There is no split {name!r}. Choose one of {', '.join(SPLITS)}.")
