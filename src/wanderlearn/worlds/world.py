"""What training, evaluation, manifests and figures need of a world, whatever it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.pictures.collection import Pictures, Split
from wanderlearn.rooms.process import RoomsConfig
from wanderlearn.worlds.roaming import Roaming, RoamingConfig

if TYPE_CHECKING:
    from wanderlearn.worlds.backgrounds import Backgrounds
    from wanderlearn.worlds.sequence import Batch, Meetings

__all__ = ["Collection", "Process", "World", "world_of"]

Process = RoamingConfig | RoomsConfig
"""Of which kind a world is, and how it goes about it."""


class Collection(Protocol):
    """What is met in a world: pictures, or things in frames, with their classes."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def split(self) -> Split:
        """Which part of it this is."""

    @property
    def digest(self) -> str:
        """Two collections with one digest are the same."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of what is met."""

    @property
    def classes(self) -> int:
        """How many classes there are."""

    @property
    def class_of(self) -> npt.NDArray[np.int64]:
        """The class of every item."""

    @property
    def family(self) -> npt.NDArray[np.int64]:
        """The family of every class."""


class World(Protocol):
    """A world to wander in: `Roaming` over pictures, `Rooms` over recorded walks."""

    @property
    def pictures(self) -> Collection:
        """What there is to meet."""

    @property
    def config(self) -> Process:
        """How it is met."""

    @property
    def backgrounds(self) -> Backgrounds | None:
        """What lies behind the pictures, if anything does."""

    @property
    def channels(self) -> int:
        """How many channels a met picture has."""

    @property
    def slots(self) -> int:
        """How many class slots a learner needs."""

    def meetings(self, seed: int, index: int) -> Meetings:
        """Sequence number `index` of the world with this seed."""

    def batch(self, meetings: Sequence[Meetings], *, pixels: bool = True) -> Batch:
        """Stack sequences, with their pixels or without."""


def world_of(pictures: Collection, config: Process, textures: Pictures | None = None) -> World:
    """The world that a process makes of what there is to meet."""
    if isinstance(config, RoomsConfig):
        from wanderlearn.rooms.sightings import Sightings
        from wanderlearn.rooms.world import Rooms

        if isinstance(pictures, Sightings):
            return Rooms(pictures, config)
        raise WanderError(
            f"{pictures.name} holds pictures, but this is for walks through rooms: --world rooms:PATH."
        )
    if isinstance(pictures, Pictures):
        return Roaming(pictures, config, textures)
    raise WanderError(
        f"{pictures.name} holds walks through rooms, which need a preset of their own, such as cpm-rooms or "
        "cpm-rooms-small (`wander train` lists them)."
    )
