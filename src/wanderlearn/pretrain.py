"""Pretraining: name single pictures of all training classes, with a cosine softmax on the encoder's feature.

The encoder learns in minutes here what it would take hours to learn from sequences; the classifier is then
thrown away. BatchNorm's statistics stay.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from wanderlearn.distributed.compute import Compute
from wanderlearn.errors import WanderError
from wanderlearn.model import Model, load_model
from wanderlearn.optimiser import Trained, trained
from wanderlearn.schedule import Schedule
from wanderlearn.shipped import find_encoder
from wanderlearn.singles import SinglePictures, singles_of
from wanderlearn.teaching import Lessons, class_means
from wanderlearn.worlds.world import World

__all__ = ["CosineClassifier", "PretrainConfig", "Pretraining"]

MOST_WARP: Final = 3.0  # beyond, pictures turn inside out


@dataclass(frozen=True)
class PretrainConfig:
    """How the encoder is pretrained. Neither epochs nor minutes: it is not."""

    epochs: float | None = None
    """Passes over all training pictures (with minutes: whichever ends first)."""
    minutes: float | None = None
    """Budget of wall-clock minutes, from when a teacher was asked; the learning rate follows it."""
    batch_size: int = 256
    """Pictures per step."""
    scale: float = 20.0
    """What the cosines are multiplied with before the softmax."""
    warp: float = 0.0
    """How strongly half of the pictures are turned, stretched and bent: 0 not at all, 1 as if redrawn."""
    flip: bool = False
    """Mirror half of the pictures, left to right: for natural ones, not for characters."""
    mirror: bool = False
    """Mirror half of the pictures, and take the mirrored for classes of their own: for characters."""
    crop: bool = True
    """Crop pictures at random, where the world does so in training; otherwise they are seen as in a test."""
    teacher: str = ""
    """Learn from the encoder of these weights what every picture may be taken for, instead of its name alone:
    a run folder, a file of weights, or one that comes with the package. Its time counts, too."""
    sharpness: float = 16.0
    """What the teacher's cosines are multiplied with before the softmax."""
    margin: float = 0.1
    """What is taken off the right class's cosine, so that it has to be right by more than a hair (not with a
    teacher)."""
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
        if self.flip and self.mirror:
            raise WanderError(
                "Mirrored pictures are of the same class (flip) or of another (mirror), not both."
            )

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
        *,
        begun: bool = False,
    ) -> None:
        """`begun`: the encoder knows something already, so the classifier begins with what it knows."""
        self.model, self.encoder, self.config, self.begun = model, model.encoder, config, begun
        self.compute = compute or Compute()
        self.share = self.compute.group.share(config.batch_size)
        if config.batch_size < self.compute.group.size:
            raise WanderError(
                f"Pretraining has {config.batch_size} pictures per step for {self.compute.group.size} "
                "processes: start fewer of them, or raise --pretrain.batch-size."
            )
        self.data = singles_of(
            world, seed, config.batch_size, config.warp, config.flip, config.mirror, config.crop
        )
        if config.teacher and not isinstance(self.data, SinglePictures):
            raise WanderError("Only single pictures have a teacher, frames of rooms have none.")
        self.steps = config.steps(self.data.count)
        features = model.config.encoder.feature_dim
        self.classifier = CosineClassifier(features, self.data.classes, config.scale, config.margin)
        self.classifier.to(self.compute.device)

    def prepare(self, stopped: Callable[[], bool] | None = None) -> None:
        """Ask the teacher, if there is one."""
        _ = self.lessons

    @cached_property
    def lessons(self) -> Lessons | None:
        """What the teacher says."""
        if not self.config.teacher:
            return None
        assert isinstance(self.data, SinglePictures)
        path = find_encoder(self.config.teacher)
        teacher = load_model(path)
        if (theirs := _sees(teacher)) != (ours := _sees(self.model)):
            raise WanderError(
                f"The teacher in {path} looks at pictures of {theirs}, but these are of {ours}. "
                "Take one that was trained on such pictures."
            )
        return Lessons(teacher.encoder, self.data, self.config.sharpness, self.compute)

    def tensors(self) -> list[Trained]:
        """What is trained."""
        config = self.config
        encoder = trained(self.encoder, "encoder", muon=config.turn)
        return encoder + trained(self.classifier, "classifier", config.classifier_lr / config.lr)

    def losses(self, step: int) -> dict[str, Tensor]:
        """The loss of a step, and how often it was right."""
        compute, lessons = self.compute, self.lessons
        if step == 0 and self.begun and isinstance(self.data, SinglePictures):
            with torch.no_grad():
                means = class_means(self.encoder, self.data, compute)  # [classes, D]
                self.classifier.weight.copy_(means * self.classifier.weight.norm(dim=-1, keepdim=True))
        images, truth = self.data.batch(step, self.share)
        truth = compute.here(truth)
        scores = self.classifier(compute.encode(self.encoder, images))  # [N, classes]
        accuracy = (scores.detach().argmax(-1) == truth).float().mean()
        part = len(truth) / self.data.whole(step)  # of the mean over the whole batch
        if lessons is None:
            loss = self.classifier.loss(scores, truth)
        else:
            assert isinstance(self.data, SinglePictures)
            loss = F.cross_entropy(scores, lessons.of(*self.data.drawn(step, self.share)))
        return {"loss": compute.whole(loss * part), "accuracy": compute.whole(accuracy * part)}


def _sees(model: Model) -> str:
    """The pictures an encoder looks at, in words."""
    config = model.config.encoder
    size, channels = getattr(config, "image_size", 1), getattr(config, "in_channels", config.feature_dim)
    return f"{size} x {size} in {channels} channel{'s' * (channels > 1)}"
