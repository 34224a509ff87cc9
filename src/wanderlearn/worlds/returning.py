"""A world in which, in a share of the sequences, a class may return as often as it has pictures.

The benchmark meets no class more than `per_class` times. A learner that counts learns that limit, which no
other world has: that what was met so often never comes again. It is trained here instead.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from wanderlearn.errors import WanderError
from wanderlearn.worlds.draws import Purpose, uniforms
from wanderlearn.worlds.roaming import Roaming
from wanderlearn.worlds.sequence import Meetings

if TYPE_CHECKING:
    from wanderlearn.worlds.world import World

__all__ = ["Returning", "with_returning"]


class Returning(Roaming):
    """A roaming world whose sequences have no limit on how often a class returns, in that share of them."""

    def __init__(self, world: Roaming, share: float) -> None:
        """What is met, and how else, is as in `world`."""
        textures = world.backgrounds.textures if world.backgrounds else None
        super().__init__(world.pictures, world.config, textures)
        unlimited = replace(world.config, per_class=world.most_per_class)
        self.share, self.without_limit = share, Roaming(world.pictures, unlimited, textures)

    def meetings(self, seed: int, index: int) -> Meetings:
        """Sequence number `index` of the world with this seed."""
        if uniforms(seed, "returning", index, Purpose.ORDER, 1)[0] < self.share:
            return self.without_limit.meetings(seed, index)
        return super().meetings(seed, index)


def with_returning(world: "World", share: float) -> "World":
    """The world in which things return as they like in this share of the sequences; at 0 the world itself."""
    if not share:
        return world
    if isinstance(world, Roaming):
        return Returning(world, share)
    raise WanderError("In recorded walks things return as they do: leave --train.returning at 0.")
