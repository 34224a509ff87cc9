"""Training, from sampling to checkpoints: `wander train PRESET`, or from Python

    from wanderlearn.presets import PRESETS
    from wanderlearn.train import train

    train(PRESETS["cpm-glyphs"], Path("runs/mine"))

A run goes through up to three stages: pretraining of the encoder on single pictures (`pretrain.py`), the
learner alone on kept features (`feature_training.py`), then the whole model on sequences. Everything random
in step n is a function of the seed and n, so a run that was interrupted and resumed equals one that was not,
to the bit (on one thread).
"""

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import torch
from torch import Tensor

from wanderlearn.checkpoint import Progress, Run, open_run
from wanderlearn.checkpoint import Stage as StageName
from wanderlearn.configs import to_json
from wanderlearn.curves import Curves
from wanderlearn.errors import WanderError
from wanderlearn.evaluate import gather
from wanderlearn.feature_training import FeatureTraining
from wanderlearn.files import digest_of
from wanderlearn.interrupt import Interrupt, interruptible
from wanderlearn.metrics import ap, ap_joint, known_accuracy
from wanderlearn.model import build, take_encoder
from wanderlearn.optimiser import DivergedError, Optimiser, Trained
from wanderlearn.pictures.collection import Pictures, Split
from wanderlearn.pretrain import Pretraining
from wanderlearn.progress import bar
from wanderlearn.schedule import rate_factor, spent
from wanderlearn.sequence_training import SequenceTraining, TrainConfig
from wanderlearn.worlds import Roaming, open_pictures

if TYPE_CHECKING:
    from wanderlearn.presets import Preset

__all__ = ["Outcome", "train"]

Stage = Pretraining | FeatureTraining | SequenceTraining

VALIDATION_SEED: Final = 0


@dataclass(frozen=True)
class Outcome:
    """How a call of `train` ended."""

    status: Literal["finished", "interrupted"]
    run_dir: Path
    stage: str
    step: int
    seconds: float
    best_ap: float | None  # of all validations, in percent
    best_step: int | None


def train(
    preset: "Preset",
    run_dir: Path,
    *,
    resume: bool = False,
    encoder: Path | None = None,
    pictures: Callable[[Split], Pictures] | None = None,
) -> Outcome:
    """Train by a preset in a run folder, or go on with a run that was interrupted.

    Ctrl-C and SIGTERM end the current step, save and return. `encoder` is a file of weights whose encoder
    to start with, instead of pretraining one; the seconds that it took count. `pictures` gives the pictures
    of a split; without it they are those of the preset's world.
    """
    if encoder is not None:
        preset = replace(preset, pretrain=None)
    config = preset.train
    spent(0, 0, config.steps, config.minutes)  # a run without a budget is an error now, not later
    find = pictures or partial(open_pictures, preset.world)
    seen = {split: find(split) for split in ("train", "val")}
    identity = to_json(preset) | {"pictures": {split: some.digest for split, some in seen.items()}}
    if encoder is not None:
        identity |= {"encoder": digest_of(encoder)}
    about = {
        "preset": preset.name,
        "world": preset.world,
        "semi": preset.roaming.semi,
        "roaming": to_json(preset.roaming),
        "seed": config.seed,
    }
    with ExitStack() as stack:
        run = stack.enter_context(open_run(run_dir, identity, about, resume=resume))
        interrupt = stack.enter_context(interruptible())
        stack.enter_context(_threads(config.threads))
        stack.enter_context(torch.random.fork_rng(devices=[]))
        torch.manual_seed(config.seed)
        return _Training(preset, run, interrupt, seen["train"], seen["val"]).through(encoder)


class _Training:
    """One process's part of a run."""

    def __init__(
        self, preset: "Preset", run: Run, interrupt: Interrupt, pictures: Pictures, validation: Pictures
    ) -> None:
        self.preset, self.config, self.run, self.interrupt = preset, preset.train, run, interrupt
        self.world = Roaming(pictures, preset.roaming)
        self.validation = Roaming(validation, preset.roaming)
        self.exam = [
            self.validation.meetings(VALIDATION_SEED, i) for i in range(self.config.validate_sequences)
        ]
        self.model = build(preset.model)
        self.checkpoint_at = time.monotonic()
        self.curves = Curves(run.folder) if self.config.tensorboard else None

    def through(self, encoder: Path | None) -> Outcome:
        """Start or go on, and run to the end or to an interruption."""
        restored = self.run.restore(self.model)
        if restored is None:
            beside: dict[str, Tensor] = {}
            before = 0.0 if encoder is None else take_encoder(encoder, self.model)
            first = Progress(self._following(None), total_seconds=before)
            progress = self.run.save(self.model, first, beside)
        else:
            progress, beside = restored
        while progress.stage != "finished" and not self.interrupt.asked:
            progress, beside = self._live(self._stage(progress.stage), progress, beside)
        status: Literal["finished", "interrupted"] = (
            "finished" if progress.stage == "finished" else "interrupted"
        )
        return Outcome(
            status=status,
            run_dir=self.run.folder,
            stage=progress.stage,
            step=progress.step,
            seconds=progress.total_seconds,
            best_ap=progress.best_ap,
            best_step=progress.best_step,
        )

    def _stage(self, name: StageName) -> Stage:
        preset, seed = self.preset, self.config.seed
        if name == "pretrain" and preset.pretrain is not None:
            return Pretraining(self.model, self.world, preset.pretrain, seed)
        if name == "features" and preset.features is not None:
            weight = self.config.novelty_weight
            return FeatureTraining(self.model, self.world, preset.features, seed, weight)
        return SequenceTraining(self.model, self.world, self.config)

    def _following(self, stage: StageName | None) -> StageName:
        """The stage after this one, of those the preset wants."""
        preset = self.preset
        order: list[StageName] = []
        order += ["pretrain"] if preset.pretrain and preset.pretrain.wanted else []
        order += ["features"] if preset.features and preset.features.wanted else []
        order += ["sequences", "finished"]
        return order[0 if stage is None else order.index(stage) + 1]

    def _live(
        self, stage: Stage, progress: Progress, beside: Mapping[str, Tensor]
    ) -> tuple[Progress, dict[str, Tensor]]:
        """Take the steps of one stage, until its budget is spent or somebody interrupts."""
        config, minutes = stage.config, stage.config.minutes
        tensors = stage.tensors()
        optimiser = Optimiser(tensors, config)
        self._restore(optimiser, tensors, beside)
        self.model.train()
        clock = _Clock(progress)
        done = False
        seconds_left = 60 * minutes if minutes else None
        with bar(stage.name, stage.steps or seconds_left) as shown:
            shown.advance(progress.step if stage.steps else progress.seconds)
            while not done and not self.interrupt.asked:
                step, before = progress.step, progress.seconds
                torch.manual_seed(_mixed(self.config.seed, step))
                factor = rate_factor(
                    config.schedule, spent(step, before, stage.steps, minutes), step, config.warmup
                )
                losses = stage.losses(step)
                try:
                    norm = optimiser.step(losses["loss"], factor)
                except DivergedError as error:
                    raise WanderError(self._diverged(stage.name, step, str(error))) from error
                progress = clock.at(replace(progress, step=step + 1))
                numbers = {name: float(value.detach()) for name, value in losses.items()}
                self._log(progress, **numbers, lr=config.lr * factor, grad_norm=norm)
                done = spent(progress.step, progress.seconds, stage.steps, minutes) >= 1
                validated = False
                if stage.name != "pretrain" and (done or progress.step % self.config.validate_every == 0):
                    progress, validated = clock.at(self._validate(progress, numbers["loss"])), True
                    done = done or (isinstance(config, TrainConfig) and _is_stale(progress, config))
                shown.advance(1 if stage.steps else progress.seconds - before)
                shown.caption(_caption(stage.name, numbers["loss"], progress))
                if not done and (validated or self._checkpoint_due()):
                    progress = self._save(progress, self._state(optimiser, tensors))
        if not done:  # interrupted
            state = self._state(optimiser, tensors)
            return self._save(progress, state), state
        if stage.name == "pretrain":
            self.run.save_pretrained(self.model, progress)
        over = replace(progress, stage=self._following(stage.name))
        if over.stage != "finished":
            over = replace(over, step=0, seconds=0.0, stale=0)
        return self._save(over, {}), {}

    def _restore(self, optimiser: Optimiser, tensors: list[Trained], beside: Mapping[str, Tensor]) -> None:
        if not beside:
            return
        optimiser.restore(beside)
        for each in tensors:  # what the stage trains beside the model
            if each.name in beside:
                each.tensor.data.copy_(beside[each.name])

    def _state(self, optimiser: Optimiser, tensors: list[Trained]) -> dict[str, Tensor]:
        own = {id(parameter) for parameter in self.model.parameters()}
        extra = {each.name: each.tensor.detach() for each in tensors if id(each.tensor) not in own}
        return optimiser.state() | extra

    def _save(self, progress: Progress, state: Mapping[str, Tensor]) -> Progress:
        saved = self.run.save(self.model, progress, state)
        self.checkpoint_at = time.monotonic()
        return saved

    def _checkpoint_due(self) -> bool:
        return time.monotonic() - self.checkpoint_at >= 60 * self.config.checkpoint_minutes

    def _validate(self, progress: Progress, loss: float) -> Progress:
        """Score the model on the validation sequences; the best so far is kept."""
        record = gather(self.model, self.validation, self.exam, self.config.batch_size)
        figures = {
            "ap": _percent(ap(record)),
            "ap_joint": _percent(ap_joint(record)),
            "known_accuracy": _percent(known_accuracy(record)),
        }
        self._log(progress, validation=figures)
        found = figures["ap"]
        better = found is not None and (progress.best_ap is None or found > progress.best_ap)
        if better:
            progress = replace(progress, best_ap=found, best_step=progress.step, stale=0)
            self.run.save_best(self.model, progress)
        else:
            progress = replace(progress, stale=progress.stale + 1)
        if not sys.stderr.isatty():  # where no bar is shown
            shown = "-" if found is None else f"{found:.2f}"
            print(
                f"step {progress.step}  loss {loss:.4f}  validation AP {shown}  "
                f"{progress.total_seconds / 60:.1f} min",
                file=sys.stderr,
            )
        return progress

    def _log(self, progress: Progress, **figures: Any) -> None:
        self.run.log(stage=progress.stage, step=progress.step, **figures, seconds=round(progress.seconds, 3))
        if self.curves:
            self.curves.add(progress, figures)

    def _diverged(self, stage: str, step: int, what: str) -> str:
        return (
            f"Step {step + 1} of stage {stage}: {what}. The step was not taken. The last good checkpoint is "
            f"{self.run.last}. Start a new run with a lower learning rate (--train.lr) or a lower cap on the "
            "gradient (--train.clip)."
        )


class _Clock:
    """Counts the seconds of a stage, from what earlier processes had spent."""

    def __init__(self, progress: Progress) -> None:
        self.before, self.start = progress, time.monotonic()

    def at(self, progress: Progress) -> Progress:
        passed = time.monotonic() - self.start
        return replace(
            progress,
            seconds=self.before.seconds + passed,
            total_seconds=self.before.total_seconds + passed,
        )


def _is_stale(progress: Progress, config: TrainConfig) -> bool:
    return config.patience is not None and progress.stale >= config.patience


def _percent(fraction: float) -> float | None:
    return None if math.isnan(fraction) else 100 * fraction


def _caption(stage: str, loss: float, progress: Progress) -> str:
    best = "" if progress.best_ap is None else f", validation AP {progress.best_ap:.1f} at best"
    return f"{stage}: loss {loss:.3f}{best}"


def _mixed(seed: int, step: int) -> int:
    """One seed from two numbers: whatever a step draws from torch's generator depends on these alone."""
    return (seed * 0x9E3779B97F4A7C15 + step) % 2**63


@contextmanager
def _threads(wanted: int) -> Iterator[None]:
    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)
