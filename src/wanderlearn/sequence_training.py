"""The last stage of training: the whole model, on sequences."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from torch import Tensor

from wanderlearn.distributed.compute import Compute, Precision
from wanderlearn.errors import WanderError
from wanderlearn.learners.chance import part_of
from wanderlearn.loss import Loss, no_loss, sequence_loss
from wanderlearn.model import Model
from wanderlearn.optimiser import Trained, trained
from wanderlearn.rarity import Rarity, rarity_of
from wanderlearn.schedule import Schedule, refuse_budget
from wanderlearn.worlds import Batch, World, batches
from wanderlearn.worlds.returning import with_returning

__all__ = ["SequenceTraining", "TrainConfig"]


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained on sequences. Defaults are the authors' for RoamingOmniglot, budget aside."""

    steps: int | None = None
    """Budget of steps (the authors: 80,000; with minutes: whichever ends first); 0 leaves the stage out."""
    minutes: float | None = None
    """Budget of wall-clock minutes, validation included; the learning rate follows it."""
    batch_size: int = 16
    """Sequences per step."""
    lr: float = 1e-3
    """Learning rate at the start."""
    schedule: Schedule = "piecewise"
    """How the learning rate falls: piecewise (a tenth after 1/2, a hundredth after 3/4), cosine, constant."""
    warmup: int = 0
    """Steps over which the learning rate grows at the start."""
    weight_decay: float = 1e-5
    """L2 decay of weights (not of biases, norms, thresholds and temperature)."""
    clip: float = 5.0
    """Cap on the norm of the gradient; 0 for none."""
    adam_eps: float = 1e-7
    """Adam's epsilon (the authors', Keras' default)."""
    encoder_lr: float = 1.0
    """What the encoder's learning rate is multiplied with; 0 freezes its weights."""
    novelty_weight: float = 1.0
    """Weight of the novelty part of the loss."""
    returning: float = 0.0
    """Share of sequences in which a class may return as often as it has pictures, not `per_class` times at
    most: else who can count learns that what was met so often is never met again."""
    balance: float = 0.0
    """Share of what naming counts that is divided among all kinds of steps alike, however rarely they are
    asked about, as of a class told often and long ago (see `rarity.py`)."""
    validate_every: int = 250
    """Steps between validations."""
    validate_sequences: int = 120
    """Sequences per validation (always the same ones)."""
    patience: int | None = None
    """Stop after this many validations without a better AP."""
    checkpoint_minutes: float = 5.0
    """Minutes between checkpoints (there is one after every validation anyway)."""
    seed: int = 0
    """Seed of the weights and of the sequences."""
    threads: int = 0
    """Threads to compute with; 0 for as many as torch chooses."""
    workers: int = 1
    """Background processes that draw sequences; 0 to draw them in between."""
    tensorboard: bool = False
    """Write TensorBoard curves beside the log (extra: tensorboard)."""
    sync_batch_norm: bool = False
    """Under torchrun: BatchNorm uses the statistics of the whole batch, not of each process's share."""
    precision: Precision = "float32"
    """What the encoder computes in while training: float32, bfloat16, or float16 (on GPUs)."""

    def __post_init__(self) -> None:
        for name in ("batch_size", "validate_every", "validate_sequences"):
            if getattr(self, name) < 1:
                raise WanderError(f"{name} must be at least 1, not {getattr(self, name)}.")
        for name in ("returning", "balance"):
            if not 0 <= getattr(self, name) <= 1:
                raise WanderError(f"{name} must lie between 0 and 1, not {getattr(self, name)}.")
        for name in ("lr", "adam_eps"):
            if not getattr(self, name) > 0:
                raise WanderError(f"{name} must be above 0, not {getattr(self, name)}.")
        for name in (
            "warmup",
            "weight_decay",
            "clip",
            "encoder_lr",
            "checkpoint_minutes",
            "threads",
            "workers",
        ):
            if getattr(self, name) < 0:
                raise WanderError(f"{name} must not be below 0, but it is {getattr(self, name)}.")
        refuse_budget("train", self.steps, self.minutes)
        if self.steps == 0 and self.minutes:
            raise WanderError(
                f"train.steps is 0, which leaves sequences out, but train.minutes is {self.minutes:g}: give "
                "--train.steps None to train for so long, or --train.minutes None to leave them out."
            )
        if not 0 <= self.seed < 2**63:
            raise WanderError(f"seed must be between 0 and 2^63 - 1, not {self.seed}.")

    @property
    def wanted(self) -> bool:
        """Whether anything is trained on sequences; without a word about a budget it is, and needs one."""
        return self.steps != 0


class SequenceTraining:
    """Stage two: the whole model, on sequences."""

    name: Final = "sequences"

    def __init__(
        self, model: Model, world: World, config: TrainConfig, compute: Compute | None = None
    ) -> None:
        self.model, self.config, self.steps = model, config, config.steps
        self.world = with_returning(world, config.returning)
        self.compute = compute or Compute()
        self.share = self.compute.group.share(config.batch_size)
        self._next = -1
        self._stream: Iterator[Batch] = iter(())

    def tensors(self) -> list[Trained]:
        """What is trained, and how fast."""
        rate = self.config.encoder_lr
        self.model.encoder.requires_grad_(rate > 0)
        return trained(self.model.encoder, "encoder", rate) + trained(self.model.learner, "learner")

    def losses(self, step: int) -> dict[str, Tensor]:
        """The loss of a step and its parts."""
        if schedule_writing := getattr(self.model.learner, "schedule_writing", None):
            schedule_writing(step)
        loss = self._of(self._batch(step)) if self.share else self._of_nothing()
        return {"loss": loss.total, "naming": loss.naming, "novelty": loss.novelty}

    def _batch(self, step: int) -> Batch:
        config = self.config
        if step != self._next:  # the first step of this process
            self._stream = batches(
                self.world,
                config.seed,
                config.batch_size,
                start=step,
                workers=config.workers,
                share=self.share,
            )
        self._next = step + 1
        return next(self._stream)

    @cached_property
    def rarity(self) -> Rarity | None:
        """How much each step counts in naming, if not all count the same."""
        return rarity_of(self.world, self.config.seed, self.config.balance)

    def _of(self, batch: Batch) -> Loss:
        """The loss of this process's share of the batch."""
        here = self.compute.here
        given, target, valid = here(batch.given), here(batch.target), here(batch.valid)
        features = self.compute.encode(self.model.encoder, batch.pictures)  # [N, D]
        placed = features.new_zeros(*valid.shape, features.shape[-1])  # [B, T, D]
        with part_of(self.share.start, self.config.batch_size):
            answers = self.model.learner(placed.index_put((valid,), features), given, self.world.slots)
        rarity = self.rarity(given, target) if self.rarity else None
        return sequence_loss(answers, target, valid, self.config.novelty_weight, self.compute, rarity)

    @cached_property
    def _no_pictures(self) -> Tensor:
        return self.world.batch([self.world.meetings(self.config.seed, 0)]).images[0, :0]  # [0, C, H, W]

    def _of_nothing(self) -> Loss:
        """More processes than sequences: take part in what all do together, with no pictures."""
        over: Tensor = next(p for p in self.model.parameters() if p.requires_grad)
        if any(getattr(module, "total", None) for module in self.model.encoder.modules()):
            features = self.compute.encode(self.model.encoder, self._no_pictures)
            over = features if features.requires_grad else over
        return no_loss(over, self.config.novelty_weight, self.compute)
