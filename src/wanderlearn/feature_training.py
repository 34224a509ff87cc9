"""A stage between pretraining and whole sequences: the learner alone, on features that were computed before.

With the encoder frozen its features can be kept, a few copies of every picture, each cropped and hidden in
its own way. A training step then costs a tenth, and the learner has found its way before the encoder is
touched again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wanderlearn.distributed.compute import Compute
from wanderlearn.double_training import KeptBackgrounds, picture_half
from wanderlearn.errors import WanderError
from wanderlearn.learners.chance import part_of
from wanderlearn.learners.double import Double
from wanderlearn.loss import Loss, no_loss, sequence_loss
from wanderlearn.model import Model
from wanderlearn.optimiser import Trained, trained
from wanderlearn.pictures.mirrored import with_mirrored
from wanderlearn.progress import bar
from wanderlearn.rarity import Rarity, rarity_of
from wanderlearn.schedule import Schedule, refuse_budget
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.singles import singles_of
from wanderlearn.worlds.draws import Purpose, uniforms
from wanderlearn.worlds.returning import with_returning
from wanderlearn.worlds.roaming import Roaming
from wanderlearn.worlds.sequence import Ints
from wanderlearn.worlds.world import World

__all__ = ["FeatureTraining", "FeaturesConfig", "kept_features"]

PICTURES_AT_ONCE: Final = 512
SHORTEST: Final = 10  # meetings, where sequences grow


@dataclass(frozen=True)
class FeaturesConfig:
    """How the learner is trained on kept features. Neither steps nor minutes: it is not."""

    steps: int | None = None
    """Budget of steps (with minutes: whichever ends first)."""
    minutes: float | None = None
    """Budget of wall-clock minutes, from when the features are made; the learning rate follows it."""
    copies: int = 4
    """Features kept of every picture, each of another crop and another hidden part."""
    crop: bool = True
    """Crop them at random, where the world does so in training; otherwise they are seen as in a test."""
    mirror: bool = False
    """Meet mirrored pictures, too, as classes of their own: for characters."""
    batch_size: int = 16
    """Sequences per step."""
    grow: int = 0
    """Steps over which sequences grow from their first ten meetings to all; 0: they start whole."""
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
        refuse_budget("features", self.steps, self.minutes)

    @property
    def wanted(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.steps or self.minutes)


class FeatureTraining:
    """The stage of a run in which the learner lives through sequences of kept features."""

    name: Final = "features"

    def __init__(
        self,
        model: Model,
        world: World,
        config: FeaturesConfig,
        whole: TrainConfig,
        compute: Compute | None = None,
        begun: bool = False,
    ) -> None:
        """`whole`: how all is trained afterwards; the seed, what is met and what counts is the same here.

        `begun`: the learner knows something already, so it needs no look at the features first.
        """
        self.model, self.config, self.steps, self.begun = model, config, config.steps, begun
        self.seed, self.novelty_weight, self.balance = whole.seed, whole.novelty_weight, whole.balance
        self.world = with_returning(_mirrored(world) if config.mirror else world, whole.returning)
        self.compute = compute or Compute()
        self.share = self.compute.group.share(config.batch_size)

    def prepare(self, stopped: Callable[[], bool] | None = None) -> None:
        """Make what is kept. Once it is `stopped` it gives up half-way, and then no step must be taken."""
        self.features = self._kept(stopped)
        _ = self.backgrounds  # by all processes of a group, whichever was stopped: they share the work

    @cached_property
    def features(self) -> Float[Tensor, "N copies D"]:
        """What is kept of the pictures."""
        return self._kept()

    def _kept(self, stopped: Callable[[], bool] | None = None) -> Float[Tensor, "N copies D"]:
        model, config = picture_half(self.model), self.config
        return kept_features(
            model, self.world, config.copies, self.seed, self.compute, crop=config.crop, stopped=stopped
        )

    @cached_property
    def backgrounds(self) -> KeptBackgrounds | None:
        """What is kept of the textures behind the pictures, for a double encoder."""
        if isinstance(self.model.encoder, Double) and isinstance(self.world, Roaming):
            return KeptBackgrounds(self.model, self.world, self.seed, self.compute)
        if self.world.backgrounds is not None:
            raise WanderError(
                "Features are kept of pictures alone, and here each comes with another background. Leave "
                "that stage out (--features.steps None), or take a double encoder and --background channel."
            )
        return None

    @cached_property
    def rarity(self) -> Rarity | None:
        """How much each step counts in naming, if not all count the same."""
        return rarity_of(self.world, self.seed, self.balance)

    def tensors(self) -> list[Trained]:
        """What is trained: the learner alone."""
        self.model.encoder.requires_grad_(False)
        return trained(self.model.learner, "learner", muon=self.config.lr if self.config.muon else 0.0)

    def losses(self, step: int) -> dict[str, Tensor]:
        """The loss of a step and its parts."""
        features, behind = self.features, self.backgrounds  # computed together, by those without a share too
        if step == 0 and not self.begun and behind is None:
            self._look(features[:, 0])
        if schedule_writing := getattr(self.model.learner, "schedule_writing", None):
            schedule_writing(step)
        loss = self._of(step, features) if self.share else self._of_nothing()
        return {"loss": loss.total, "naming": loss.naming, "novelty": loss.novelty}

    def _look(self, features: Float[Tensor, "N D"]) -> None:
        """Show a learner that wants to see them first what it will be trained on."""
        if look_at := getattr(self.model.learner, "look_at", None):
            look_at(features)
            for parameter in self.model.learner.parameters():
                self.compute.group.spread(parameter.data)  # machines round in their own ways

    def _of(self, step: int, features: Float[Tensor, "N copies D"]) -> Loss:
        """The loss of this process's share of the batch."""
        first, here = step * self.config.batch_size, self.compute.here
        meetings = [self.world.meetings(self.seed, first + i) for i in self.share]
        batch = self.world.batch(meetings, pixels=False)
        met = np.concatenate([each.picture for each in meetings])  # [N] in the order of `valid`
        copy = np.concatenate([self._copies(each.index, len(each)) for each in meetings])  # [N]
        valid = here(batch.valid)
        found = features[here(torch.from_numpy(met)), here(torch.from_numpy(copy))]  # [N, D]
        if self.backgrounds is not None:
            found = torch.cat([found, self.backgrounds.of(meetings)], 1)
        placed = found.new_zeros(*valid.shape, found.shape[-1])  # [B, T, D]
        placed[valid] = found
        end = self.length(step)
        given, target, valid = here(batch.given)[:, :end], here(batch.target)[:, :end], valid[:, :end]
        with part_of(self.share.start, self.config.batch_size):
            answers = self.model.learner(placed[:, :end], given, self.world.slots)
        rarity = None if self.rarity is None else self.rarity(given, target)
        return sequence_loss(answers, target, valid, self.novelty_weight, self.compute, rarity)

    def length(self, step: int) -> int:
        """So many meetings of its sequences a step sees."""
        longest, grow = self.world.config.length, self.config.grow
        if step >= grow:
            return longest
        return min(longest, SHORTEST + (longest - SHORTEST) * step // grow)

    def _copies(self, index: int, length: int) -> Ints:
        """Which copy of every picture a sequence meets: by its number, whoever lives through it."""
        draws = uniforms(self.seed, "copies", index, Purpose.PIXELS, length)
        return (draws * self.config.copies).astype(np.int64)

    def _of_nothing(self) -> Loss:
        parameters = (p for p in self.model.learner.parameters() if p.requires_grad)
        return no_loss(next(parameters), self.novelty_weight, self.compute)


def _mirrored(world: World) -> World:
    if isinstance(world, Roaming) and world.backgrounds is None and world.pictures.images.dtype == np.uint8:
        return Roaming(with_mirrored(world.pictures), world.config)
    raise WanderError(
        "Only pictures can be mirrored to be others, not vectors, things in rooms or pictures with something "
        "behind them: leave --features.mirror off."
    )


def kept_features(
    model: Model,
    world: World,
    copies: int,
    seed: int,
    compute: Compute | None = None,
    *,
    crop: bool = True,
    stopped: Callable[[], bool] | None = None,
) -> Float[Tensor, "N copies D"]:
    """Features of all pictures of a world, in so many copies, by the encoder as it is in evaluation.

    The processes of a group share the work, by whole pieces: so no feature depends on how many they are.
    What is left to do once `stopped` says so stays 0.
    """
    compute, count = compute or Compute(), len(world.pictures.class_of)
    data = singles_of(world, seed, batch_size=1, crop=crop)
    was_training, pieces = model.encoder.training, range(0, count, PICTURES_AT_ONCE)
    mine = [pieces[n] for n in compute.group.share(len(pieces))]
    width = model.config.encoder.feature_dim
    kept = torch.zeros(count, copies, width, device=compute.device)  # what others compute stays 0 here
    model.encoder.eval()
    with torch.no_grad(), bar("features", count * copies, shown=compute.group.first) as shown:
        for start in mine:
            if stopped and stopped():
                break
            chosen = np.arange(start, min(start + PICTURES_AT_ONCE, count))
            for n in range(copies):
                pictures = data.shown(chosen, f"copy {n}", start).to(compute.device)
                kept[start : start + len(chosen), n] = model.encoder(pictures)
            shown.advance(len(chosen) * copies * compute.group.size)
    model.encoder.train(was_training)
    return compute.group.sum(kept)
