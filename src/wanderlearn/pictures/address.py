"""Worlds that lie in a place of the user's: `folder:PATH?size=64,channels=1` and the like, read and written.

>>> address = read_address("folder:my pictures?size=32,least=6")
>>> address.kind, address.path, address.options.size, address.options.least
('folder', 'my pictures', 32, 6)
>>> str(address)
'folder:my pictures?size=32,least=6'
"""

import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from wanderlearn.errors import WanderError

__all__ = ["KINDS", "Address", "Crop", "PlaceOptions", "is_address", "read_address"]

Crop = Literal["center", "squash", "pad"]

KINDS: Final = {
    "folder": "your own pictures, in folders of classes or of families of classes",
    "imagenet": "tiered-ImageNet: the published .pkl or .npz files, or ILSVRC folders with a split file",
    "features": "vectors instead of pictures: an .npy file and the labels beside it",
    "rooms": "recorded walks through rooms (`wander rooms record`, or the authors' RoamingRooms)",
}


@dataclass(frozen=True)
class PlaceOptions:
    """What may follow a `?` in the address of a world, with what holds if it does not."""

    size: int | None = None
    """Side of the square that every picture is brought to (default: what the encoder wants, else 64)."""
    channels: int | None = None
    """1 for grey, 3 for colour (default: what the encoder wants, else 3)."""
    crop: Crop = "center"
    """How a picture becomes a square: its middle, the whole squashed, or the whole with black around."""
    layout: Literal["auto", "family", "class"] = "auto"
    """Whether folders of pictures stand in folders of families (default: as most pictures lie)."""
    split: Literal["auto", "families", "classes"] = "auto"
    """Without folders train, val and test: whether whole families or classes are shared among them."""
    seed: int = 0
    """Of the rule that shares out splits and families where the folders do not."""
    families: int | None = None
    """Make this many families by chance, whatever the folders say."""
    merge: int | None = None
    """Put families with fewer classes than this together."""
    least: int | None = None
    """Leave out classes with fewer pictures than this."""
    classes: str | None = None
    """A file that says split and family of every class (ILSVRC folders)."""

    def __post_init__(self) -> None:
        for name, low, high in (("size", 4, 1024), ("families", 1, 10**6), ("merge", 2, 10**6)):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise WanderError(f"{name} must be from {low} to {high}, not {value}.")
        if self.channels not in (None, 1, 3):
            raise WanderError(f"channels must be 1 (grey) or 3 (colour), not {self.channels}.")
        if not 0 <= self.seed < 2**63 or (self.least is not None and self.least < 0):
            raise WanderError("seed and least must be whole numbers from 0 on.")


@dataclass(frozen=True)
class Address:
    """A kind of place, where it is, and how it is to be read. `str` gives the address back."""

    kind: str
    path: str
    options: PlaceOptions = PlaceOptions()

    def __str__(self) -> str:
        given = [f for f in fields(self.options) if getattr(self.options, f.name) != f.default]
        told = ",".join(f"{f.name}={getattr(self.options, f.name)}" for f in given)
        return f"{self.kind}:{self.path}" + (f"?{told}" if told else "")

    @property
    def name(self) -> str:
        """A word for the collection that can be part of a file's name."""
        own = Path(self.path).absolute().name.removesuffix(".npy")
        word = re.sub(r"[^\w.-]+", "-", own).strip("-.") or "root"
        return f"{self.kind}-{word}"

    def filled(self, size: int, channels: int) -> "Address":
        """With an absolute path, and with size and channels where they were left open."""
        return self.with_absolute_path().with_options(
            size=self.options.size or size, channels=self.options.channels or channels
        )

    def with_absolute_path(self) -> "Address":
        """The same place from wherever one looks."""
        classes = self.options.classes and str(Path(self.options.classes).absolute())
        return replace(
            self, path=str(Path(self.path).absolute()), options=replace(self.options, classes=classes)
        )

    def without_folders(self) -> "Address":
        """To be told to others, whom it does not concern in which folder of mine the place is."""
        classes = self.options.classes and Path(self.options.classes).name
        return replace(self, path=Path(self.path).name, options=replace(self.options, classes=classes))

    def with_options(self, **changes: Any) -> "Address":
        """The same place, read in another way."""
        return replace(self, options=replace(self.options, **changes))


def is_address(world: str) -> bool:
    """Whether this is the address of a place rather than the name of a world."""
    return world.partition(":")[0] in KINDS and ":" in world


def read_address(text: str) -> Address:
    """An address from what a user wrote. Options are parted by commas (or by &, as in a web address)."""
    kind, _, rest = text.partition(":")
    if kind not in KINDS:
        raise WanderError(
            f"{text!r} is not the address of a world. It begins with one of {', '.join(KINDS)}:"
        )
    path, mark, told = rest.rpartition("?")
    if not mark or Path(rest).exists():  # a name may have a question mark in it
        path, told = rest, ""
    if not path:
        raise WanderError(f"{text!r} names no place. Write {kind}:PATH.")
    hints = get_type_hints(PlaceOptions)
    given: dict[str, Any] = {}
    for pair in filter(None, re.split("[,&]", told)):
        name, _, value = pair.partition("=")
        if name not in hints:
            raise WanderError(
                f"{text!r}: there is no option {name!r}. Choose among {', '.join(hints)}, "
                f"as in '{kind}:PATH?size=64,channels=3'."
            )
        given[name] = _value(hints[name], value, name)
    return Address(kind, path, PlaceOptions(**given))


def _value(hint: Any, text: str, name: str) -> Any:
    if get_origin(hint) is Literal:
        if text not in get_args(hint):
            raise WanderError(f"{name} cannot be {text!r}. Choose one of {', '.join(get_args(hint))}.")
        return text
    if hint == str | None:
        return text
    try:
        return int(text)
    except ValueError as error:
        raise WanderError(f"{name} must be a whole number, not {text!r}.") from error
