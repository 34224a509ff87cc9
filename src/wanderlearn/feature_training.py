"""A stage between pretraining and whole sequences: the learner alone, on features that were computed before.

With the encoder frozen its features can be kept, a few copies of every picture, each cropped and hidden in
its own way. A training step then costs a tenth, and the learner has found its way before the encoder is
touched again.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

from wanderlearn.errors import WanderError
from wanderlearn.loss import sequence_loss
from wanderlearn.model import Model
from wanderlearn.optimiser import Trained, trained
from wanderlearn.pretrain import SinglePictures
from wanderlearn.progress import bar
from wanderlearn.schedule import Schedule
from wanderlearn.worlds.roaming import Roaming

__all__ = ["FeatureTraining", "FeaturesConfig", "kept_features"]

PICTURES_AT_ONCE: Final = 512


@dataclass(frozen=True)
class FeaturesConfig:
    """How the learner is trained on kept features. Neither steps nor minutes: it is not."""

    steps: int | None = None
    """Budget of steps (with minutes: whichever ends first)."""
    minutes: float | None = None
    """Budget of wall-clock minutes; the learning rate follows it."""
    copies: int = 4
    """Features kept of every picture, each of another crop and another hidden part."""
    batch_size: int = 16
    """Sequences per step."""
    lr: float = 2e-3
    """Learning rate at the start."""
    muon: bool = True
    """Matrices are learned by Muon; otherwise all is Adam's."""
    schedule: Schedule = "cosine"
    """How the learning rate falls over the budget."""
    warmup: int = 0
    """Steps over which the learning rate grows at the start."""
    weight_decay: float = 1e-5
    """L2 decay of weights (not of biases, norms, thresholds and temperature)."""
    clip: float = 5.0
    """Cap on the norm of the gradient; 0 for none."""
    adam_eps: float = 1e-7
    """Adam's epsilon (the authors', Keras' default)."""

    def __post_init__(self) -> None:
        for name in ("copies", "batch_size"):
            if getattr(self, name) < 1:
                raise WanderError(f"features.{name} must be at least 1, not {getattr(self, name)}.")

    @property
    def wanted(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.steps or self.minutes)


class FeatureTraining:
    """The stage of a run in which the learner lives through sequences of kept features."""

    name: Final = "features"

    def __init__(
        self, model: Model, world: Roaming, config: FeaturesConfig, seed: int, novelty_weight: float
    ) -> None:
        self.model, self.world, self.config, self.seed = model, world, config, seed
        self.steps, self.novelty_weight = config.steps, novelty_weight

    @cached_property
    def features(self) -> Float[Tensor, "N copies D"]:
        """What is kept. Computed in the first step, so that the stage's clock counts it."""
        return kept_features(self.model, self.world, self.config.copies, self.seed)

    def tensors(self) -> list[Trained]:
        """What is trained: the learner alone."""
        self.model.encoder.requires_grad_(False)
        return trained(self.model.learner, "learner", muon=self.config.lr if self.config.muon else 0.0)

    def losses(self, step: int) -> dict[str, Tensor]:
        """The loss of a step and its parts."""
        size = self.config.batch_size
        meetings = [self.world.meetings(self.seed, i) for i in range(step * size, (step + 1) * size)]
        batch = self.world.batch(meetings, pixels=False)
        met = torch.cat([torch.from_numpy(each.picture) for each in meetings])  # [N] in the order of `valid`
        copy = torch.randint(self.config.copies, met.shape)  # the engine seeds torch's generator at each step
        placed = self.features.new_zeros(*batch.valid.shape, self.features.shape[-1])  # [B, T, D]
        placed[batch.valid] = self.features[met, copy]
        if schedule_writing := getattr(self.model.learner, "schedule_writing", None):
            schedule_writing(step)
        answers = self.model.learner(placed, batch.given, self.world.slots)
        loss = sequence_loss(answers, batch.target, batch.valid, self.novelty_weight)
        return {"loss": loss.total, "naming": loss.naming, "novelty": loss.novelty}


def kept_features(model: Model, world: Roaming, copies: int, seed: int) -> Float[Tensor, "N copies D"]:
    """Features of all pictures of a world, in so many copies, by the encoder as it is in evaluation."""
    count = len(world.pictures.images)
    data = SinglePictures(world.pictures, world.config, seed, batch_size=1)
    was_training, kept = model.encoder.training, []
    model.encoder.eval()
    with torch.no_grad(), bar("features", count * copies) as shown:
        for start in range(0, count, PICTURES_AT_ONCE):
            chosen = torch.arange(start, min(start + PICTURES_AT_ONCE, count)).numpy()
            kept.append(
                torch.stack([model.encoder(data.shown(chosen, f"copy {n}", start)) for n in range(copies)], 1)
            )
            shown.advance(len(chosen) * copies)
    model.encoder.train(was_training)
    return torch.cat(kept)
