"""Pretraining: name single pictures of all training classes, with a cosine softmax on the encoder's feature.

The encoder learns in minutes here what it would take hours to learn from sequences; the classifier is then
thrown away. BatchNorm's statistics stay.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor, nn
from torch.nn import functional as F

from wanderlearn.errors import WanderError
from wanderlearn.model import Model
from wanderlearn.optimiser import Trained, trained
from wanderlearn.pictures.collection import Pictures
from wanderlearn.pictures.warp import DRAWS, warped
from wanderlearn.schedule import Schedule
from wanderlearn.worlds.draws import Purpose, uniforms
from wanderlearn.worlds.roaming import Roaming, RoamingConfig

__all__ = ["CosineClassifier", "PretrainConfig", "Pretraining", "SinglePictures"]

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


class SinglePictures:
    """Batches of single pictures, cropped and partly hidden as in a sequence, but each in its own way.

    Batch n of a seed is always the same. Every epoch is a new order; its incomplete last batch is left out.
    """

    def __init__(
        self, pictures: Pictures, config: RoamingConfig, seed: int, batch_size: int, warp: float = 0.0
    ) -> None:
        self.count = len(pictures.images)
        if self.count < batch_size:
            raise WanderError(
                f"{pictures.name} has {self.count} training pictures, fewer than a batch of {batch_size}. "
                "Lower --pretrain.batch-size."
            )
        self.seed, self.batch_size, self.warp = seed, batch_size, warp
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

    def batch(self, step: int) -> tuple[Float[Tensor, "N C H W"], Int[Tensor, " N"]]:
        """The pictures of a step in [-1, 1], and their classes."""
        size = self.batch_size
        epoch, at = divmod(step, self.count // size)
        if epoch != self._epoch:
            draws = uniforms(self.seed, "pretrain", epoch, Purpose.ORDER, self.count)
            self._epoch, self._order = epoch, np.argsort(draws, kind="stable")
        chosen = self._order[at * size : (at + 1) * size]  # [N]
        return self.shown(chosen, "pretrain", step), torch.from_numpy(self.class_of[chosen])

    def shown(self, chosen: npt.NDArray[np.int64], stream: str, index: int) -> Float[Tensor, "N C H W"]:
        """These pictures in [-1, 1], cropped and hidden by the random numbers of a stream at an index."""
        if self.vectors:  # nothing to crop, to bend or to hide
            return torch.from_numpy(self.windows[chosen, :, self.margin, self.margin])
        size, shifts = len(chosen), 2 * self.margin + 1
        down, right, top, left = uniforms(self.seed, stream, index, Purpose.PIXELS, 4 * size).reshape(4, size)
        row, column = (down * shifts).astype(int), (right * shifts).astype(int)
        cropped = self.windows[chosen, :, row, column]  # [N, C, H, W]
        images = np.multiply(cropped, np.float32(1 / 127.5), dtype=np.float32)
        images -= 1
        shown = torch.from_numpy(images)
        if self.warp:  # before the box: that is in front of the picture, not on it
            # Half of the pictures, so that strokes as sharp as those of a sequence stay in sight.
            half = size // 2
            draws = uniforms(self.seed, stream, index, Purpose.WARP, half * DRAWS).reshape(half, DRAWS)
            shown[:half] = warped(shown[:half], draws, self.warp)
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

    def __init__(self, model: Model, world: Roaming, config: PretrainConfig, seed: int) -> None:
        self.encoder, self.config = model.encoder, config
        self.data = SinglePictures(world.pictures, world.config, seed, config.batch_size, config.warp)
        self.steps = config.steps(self.data.count)
        features, classes = model.config.encoder.feature_dim, world.pictures.classes
        self.classifier = CosineClassifier(features, classes, config.scale, config.margin)

    def tensors(self) -> list[Trained]:
        """What is trained."""
        config = self.config
        encoder = trained(self.encoder, "encoder", muon=config.turn)
        return encoder + trained(self.classifier, "classifier", config.classifier_lr / config.lr)

    def losses(self, step: int) -> dict[str, Tensor]:
        """The loss of a step, and how often it was right."""
        images, truth = self.data.batch(step)
        scores = self.classifier(self.encoder(images))  # [N, classes]
        accuracy = (scores.detach().argmax(-1) == truth).float().mean()
        return {"loss": self.classifier.loss(scores, truth), "accuracy": accuracy}
