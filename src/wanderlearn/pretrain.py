"""Pretraining: name single pictures of all training classes, with a cosine softmax on the encoder's feature.

The encoder learns in minutes here what it would take hours to learn from sequences; the classifier is then
thrown away. BatchNorm's statistics stay.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor, nn
from torch.nn import functional as F

from wanderlearn.distributed.compute import Compute
from wanderlearn.errors import WanderError
from wanderlearn.model import Model
from wanderlearn.optimiser import Trained, trained
from wanderlearn.pictures.collection import Pictures
from wanderlearn.pictures.warp import DRAWS, warped
from wanderlearn.schedule import Schedule
from wanderlearn.worlds.draws import Purpose, uniforms
from wanderlearn.worlds.frames import Frames
from wanderlearn.worlds.roaming import Roaming, RoamingConfig
from wanderlearn.worlds.world import World

__all__ = ["CosineClassifier", "PretrainConfig", "Pretraining", "SinglePictures", "Singles", "singles_of"]

MOST_WARP: Final = 3.0  # beyond, pictures turn inside out


@dataclass(frozen=True)
class PretrainConfig:
    """How the encoder is pretrained. Neither epochs nor minutes: it is not."""

    epochs: float | None = None
    """Passes over all training pictures (with minutes: whichever ends first)."""
    minutes: float | None = None
    """Budget of wall-clock minutes; the learning rate follows it."""
    batch_size: int = 256
    """Pictures per step."""
    scale: float = 20.0
    """What the cosines are multiplied with before the softmax."""
    warp: float = 0.0
    """How strongly half of the pictures are turned, stretched and bent: 0 not at all, 1 as if redrawn."""
    flip: bool = False
    """Mirror half of the pictures, left to right: for natural ones, not for characters."""
    margin: float = 0.1
    """What is taken off the right class's cosine, so that it has to be right by more than a hair."""
    lr: float = 3e-3
    """Learning rate at the start."""
    classifier_lr: float = 1e-2
    """Learning rate of the classifier, which is thrown away afterwards."""
    turn: float = 0.1
    """How far a step of Muon turns a kernel at the start, as a share of its length; 0: all is Adam's."""
    schedule: Schedule = "cosine"
    """How the learning rate falls over the budget."""
    warmup: int = 0
    """Steps over which the learning rate grows at the start."""
    weight_decay: float = 1e-5
    """L2 decay of weights (not of biases and norms)."""
    clip: float = 0.0
    """Cap on the norm of the gradient; 0 for none."""
    adam_eps: float = 1e-7
    """Adam's epsilon (the authors', Keras' default)."""

    def __post_init__(self) -> None:
        if self.batch_size < 2:
            raise WanderError(f"Pretraining needs at least 2 pictures per step, not {self.batch_size}.")
        if not 0 <= self.warp <= MOST_WARP:
            raise WanderError(f"The warp of pretraining is from 0 to {MOST_WARP:g}, not {self.warp:g}.")

    @property
    def wanted(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.epochs or self.minutes)

    def steps(self, pictures: int) -> int | None:
        """The budget in steps, for so many pictures."""
        return max(1, round(self.epochs * (pictures // self.batch_size))) if self.epochs else None


class CosineClassifier(nn.Module):
    """One direction per class; the score is the cosine with the feature, times a fixed scale."""

    def __init__(self, features: int, classes: int, scale: float, margin: float) -> None:
        super().__init__()
        self.scale, self.margin = scale, margin
        # Small, so that steps of the size of the learning rate turn it: only its direction counts.
        self.weight = nn.Parameter(torch.randn(classes, features) * 0.05)

    def forward(self, features: Float[Tensor, "N D"]) -> Float[Tensor, "N classes"]:
        """The scores of all classes."""
        return self.scale * F.linear(F.normalize(features, dim=-1), F.normalize(self.weight, dim=-1))

    def loss(self, scores: Float[Tensor, "N classes"], truth: Int[Tensor, " N"]) -> Float[Tensor, ""]:
        """Cross-entropy with the right class's cosine lowered by the margin."""
        lowered = scores.scatter_add(
            1, truth[:, None], scores.new_full((len(truth), 1), -self.scale * self.margin)
        )
        return F.cross_entropy(lowered, truth)


class Singles(Protocol):
    """Batches of single things of a world: pictures, or frames with all that is met in them."""

    @property
    def count(self) -> int:
        """How many there are of what the size of a batch counts."""

    def batch(
        self, step: int, share: range | None = None
    ) -> tuple[Float[Tensor, "N C H W"] | Frames, Int[Tensor, " N"]]:
        """What is seen at a step, and its classes; with `share` only those of the batch."""

    def whole(self, step: int) -> int:
        """How many are seen in the whole batch of a step."""

    def shown(
        self, chosen: npt.NDArray[np.int64], stream: str, index: int, share: range | None = None
    ) -> Float[Tensor, "N C H W"] | Frames:
        """These, cropped and hidden by the random numbers of a stream at an index."""


def singles_of(world: World, seed: int, batch_size: int, warp: float = 0.0, flip: bool = False) -> Singles:
    """The single things of a world."""
    if isinstance(world, Roaming):
        return SinglePictures(world.pictures, world.config, seed, batch_size, warp, flip)
    from wanderlearn.rooms.singles import SingleFrames
    from wanderlearn.rooms.world import Rooms

    assert isinstance(world, Rooms)
    if warp:
        raise WanderError("Frames of rooms are not bent in pretraining: leave --pretrain.warp at 0.")
    return SingleFrames(world, seed, batch_size, flip)


class SinglePictures:
    """Batches of single pictures, cropped and partly hidden as in a sequence, but each in its own way.

    Batch n of a seed is always the same. Every epoch is a new order; its incomplete last batch is left out.
    """

    def __init__(
        self,
        pictures: Pictures,
        config: RoamingConfig,
        seed: int,
        batch_size: int,
        warp: float = 0.0,
        flip: bool = False,
    ) -> None:
        self.count = len(pictures.images)
        if self.count < batch_size:
            raise WanderError(
                f"{pictures.name} has {self.count} training pictures, fewer than a batch of {batch_size}. "
                "Lower --pretrain.batch-size."
            )
        self.seed, self.batch_size, self.warp, self.flip = seed, batch_size, warp, flip
        self.class_of = pictures.class_of
        self.margin = config.crop_padding if config.crop != "none" else 0
        self.side = int(config.occlusion * pictures.images.shape[2])
        self.vectors = pictures.images.dtype == np.float32
        around = (self.margin, self.margin)
        padded = pictures.images  # if nothing is to be cropped it stays where it is, perhaps in a file
        if self.margin:
            padded = np.pad(padded, ((0, 0), (0, 0), around, around))  # [N, C, H + 2m, W + 2m]
        self.windows = sliding_window_view(
            padded, pictures.images.shape[2:], axis=(2, 3)
        )  # [N, C, 2m+1, 2m+1, H, W]
        self._epoch = -1
        self._order: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def batch(
        self, step: int, share: range | None = None
    ) -> tuple[Float[Tensor, "N C H W"], Int[Tensor, " N"]]:
        """The pictures of a step in [-1, 1], and their classes; with `share` only those of the batch."""
        size = self.batch_size
        epoch, at = divmod(step, self.count // size)
        if epoch != self._epoch:
            draws = uniforms(self.seed, "pretrain", epoch, Purpose.ORDER, self.count)
            self._epoch, self._order = epoch, np.argsort(draws, kind="stable")
        chosen = self._order[at * size : (at + 1) * size]  # [N]
        share = range(size) if share is None else share
        classes = torch.from_numpy(self.class_of[chosen[share.start : share.stop]])
        return self.shown(chosen, "pretrain", step, share), classes

    def whole(self, step: int) -> int:
        """How many pictures the whole batch of a step has."""
        return self.batch_size

    def shown(
        self, chosen: npt.NDArray[np.int64], stream: str, index: int, share: range | None = None
    ) -> Float[Tensor, "N C H W"]:
        """These pictures in [-1, 1], cropped and hidden by the random numbers of a stream at an index.

        Of a `share` the pictures are the same as in the whole.
        """
        size, shifts = len(chosen), 2 * self.margin + 1
        own = slice(0, size) if share is None else slice(share.start, share.stop)
        chosen = chosen[own]
        if self.vectors:  # nothing to crop, to bend or to hide
            return torch.from_numpy(self.windows[chosen, :, self.margin, self.margin])
        places = uniforms(self.seed, stream, index, Purpose.PIXELS, 4 * size).reshape(4, size)
        down, right, top, left = places[:, own]
        row, column = (down * shifts).astype(int), (right * shifts).astype(int)
        cropped = self.windows[chosen, :, row, column]  # [N, C, H, W]
        images = np.multiply(cropped, np.float32(1 / 127.5), dtype=np.float32)
        images -= 1
        shown = torch.from_numpy(images)
        if self.flip:
            mirrored = uniforms(self.seed, stream, index, Purpose.FLIP, size)[own] < 0.5
            shown[mirrored] = shown[mirrored].flip(3)
        if self.warp:  # before the box: that is in front of the picture, not on it
            # Half of the pictures, so that strokes as sharp as those of a sequence stay in sight.
            half = size // 2
            draws = uniforms(self.seed, stream, index, Purpose.WARP, half * DRAWS).reshape(half, DRAWS)
            first = draws[own]  # those of our own that are in the first half
            if len(first):
                shown[: len(first)] = warped(shown[: len(first)], first, self.warp)
        if self.side:
            rows, columns = self._within(top, images.shape[2]), self._within(left, images.shape[3])
            hidden = torch.from_numpy(rows[:, None, :, None] & columns[:, None, None, :])
            shown.masked_fill_(hidden, 0)  # mid-grey
        return shown

    def _within(self, draw: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.bool_]:
        """Which of `size` places lie in a box of our side that starts at a random place, [N, size]."""
        start = (draw * (size - self.side)).astype(int)[:, None]
        place = np.arange(size)
        return (place >= start) & (place < start + self.side)


class Pretraining:
    """The stage of a run in which the encoder names single pictures."""

    name: Final = "pretrain"

    def __init__(
        self,
        model: Model,
        world: World,
        config: PretrainConfig,
        seed: int,
        compute: Compute | None = None,
    ) -> None:
        self.encoder, self.config = model.encoder, config
        self.compute = compute or Compute()
        self.share = self.compute.group.share(config.batch_size)
        if config.batch_size < self.compute.group.size:
            raise WanderError(
                f"Pretraining has {config.batch_size} pictures per step for {self.compute.group.size} "
                "processes: start fewer of them, or raise --pretrain.batch-size."
            )
        self.data = singles_of(world, seed, config.batch_size, config.warp, config.flip)
        self.steps = config.steps(self.data.count)
        features, classes = model.config.encoder.feature_dim, world.pictures.classes
        self.classifier = CosineClassifier(features, classes, config.scale, config.margin)
        self.classifier.to(self.compute.device)

    def tensors(self) -> list[Trained]:
        """What is trained."""
        config = self.config
        encoder = trained(self.encoder, "encoder", muon=config.turn)
        return encoder + trained(self.classifier, "classifier", config.classifier_lr / config.lr)

    def losses(self, step: int) -> dict[str, Tensor]:
        """The loss of a step, and how often it was right."""
        compute = self.compute
        images, truth = self.data.batch(step, self.share)
        truth = compute.here(truth)
        scores = self.classifier(compute.encode(self.encoder, images))  # [N, classes]
        accuracy = (scores.detach().argmax(-1) == truth).float().mean()
        part = len(truth) / self.data.whole(step)  # of the mean over the whole batch
        loss = self.classifier.loss(scores, truth)
        return {"loss": compute.whole(loss * part), "accuracy": compute.whole(accuracy * part)}
