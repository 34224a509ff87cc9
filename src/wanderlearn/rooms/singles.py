"""Single frames with all that is met in them, for pretraining and for features that are kept."""

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from wanderlearn.errors import WanderError
from wanderlearn.rooms.world import Rooms
from wanderlearn.worlds.draws import Purpose, uniforms
from wanderlearn.worlds.frames import Frames
from wanderlearn.worlds.sequence import Ints

__all__ = ["SingleFrames"]


class SingleFrames:
    """Batches of single frames, cropped as in training, with every thing that is met in them.

    Batch n of a seed is always the same. Every epoch is a new order; its incomplete last batch is left out.
    """

    def __init__(self, world: Rooms, seed: int, batch_size: int, flip: bool = False) -> None:
        self.world, self.seed, self.batch_size, self.flip = world, seed, batch_size, flip
        self.count, self.classes = len(world.pictures.frames), world.pictures.classes
        if self.count < batch_size:
            raise WanderError(
                f"{world.pictures.name} has {self.count} training frames, fewer than a batch of "
                f"{batch_size}. Lower --pretrain.batch-size."
            )
        self._epoch = -1
        self._order: Ints = np.empty(0, dtype=np.int64)

    def batch(self, step: int, share: range | None = None) -> tuple[Frames, Int[Tensor, " N"]]:
        """All that is met in the frames of a step, and which things they are; of a `share` of the frames."""
        frames = self._chosen(step)
        own = frames if share is None else frames[share.start : share.stop]
        rows = self._rows(own)
        return self.shown(rows, "pretrain", step), torch.from_numpy(self.world.pictures.class_of[rows])

    def whole(self, step: int) -> int:
        """How many things are met in the whole batch of a step."""
        return len(self._rows(self._chosen(step)))

    def shown(self, chosen: Ints, stream: str, index: int, share: range | None = None) -> Frames:
        """These sightings, cropped by the random numbers of a stream at an index."""
        chosen = chosen if share is None else chosen[share.start : share.stop]
        world, frame = self.world, self.world.pictures.frame[chosen]
        u = uniforms(self.seed, stream, index, Purpose.PIXELS, 2 * self.count).reshape(-1, 2)
        v = uniforms(self.seed, stream, index, Purpose.MASKS, 2 * len(world.pictures.class_of)).reshape(-1, 2)
        seen = world.seen(chosen, *world.crops_of(u[frame], v[chosen]))
        if not self.flip:
            return seen
        mirrored = uniforms(self.seed, stream, index, Purpose.FLIP, self.count) < 0.5
        own = torch.from_numpy(mirrored[frame])  # [N]
        of_frame = torch.zeros(len(seen.rgb), dtype=torch.bool).index_put((seen.of,), own)
        for pictures, turned in ((seen.rgb, of_frame), (seen.masks, own)):
            pictures[turned] = pictures[turned].flip(3)
        return seen

    def _chosen(self, step: int) -> Ints:
        epoch, at = divmod(step, self.count // self.batch_size)
        if epoch != self._epoch:
            draws = uniforms(self.seed, "pretrain", epoch, Purpose.ORDER, self.count)
            self._epoch, self._order = epoch, np.argsort(draws, kind="stable")
        return self._order[at * self.batch_size : (at + 1) * self.batch_size]

    def _rows(self, frames: Ints) -> Ints:
        """All sightings in these frames."""
        first = self.world.pictures.first_of_frame
        return np.concatenate([np.arange(first[f], first[f + 1]) for f in frames.tolist()])
