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
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import torch
from torch import Tensor

from wanderlearn.checkpoint import Progress, Run, open_run, progress_of
from wanderlearn.clock import Clock
from wanderlearn.configs import to_json
from wanderlearn.curves import Curves
from wanderlearn.distributed import launched, restarted
from wanderlearn.distributed.compute import Compute
from wanderlearn.distributed.exchange import GroupBackward
from wanderlearn.distributed.state import spread_state
from wanderlearn.double_training import lacks_background
from wanderlearn.errors import WanderError
from wanderlearn.evaluate import gather
from wanderlearn.files import digest_of
from wanderlearn.interrupt import Interrupt, interruptible
from wanderlearn.learners.together import synchronise
from wanderlearn.metrics import Record, ap, ap_joint, known_accuracy
from wanderlearn.model import Model, about_model, build, take_encoder, take_learner
from wanderlearn.optimiser import DivergedError, Optimiser, Trained
from wanderlearn.pictures.collection import Pictures, Split
from wanderlearn.pictures.textures import open_textures
from wanderlearn.progress import bar
from wanderlearn.schedule import rate_factor, spent
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.shipped import find_encoder
from wanderlearn.stages import Stage, following, stage_of
from wanderlearn.worlds import Collection, RoamingConfig, open_collection, world_of
from wanderlearn.worlds.families import with_families

if TYPE_CHECKING:
    from wanderlearn.presets import Preset

__all__ = ["Outcome", "train"]

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
    start: Path | None = None,
    pictures: Callable[[Split], Collection] | None = None,
    compute: Compute | None = None,
) -> Outcome:
    """Train by a preset in a run folder, or go on with a run that was interrupted.

    Ctrl-C and SIGTERM end the current step, save and return. `encoder` is a file of weights whose encoder
    to start with, instead of pretraining one (a preset with a teacher goes on with it); the seconds that it
    took count. `start`, in its place, is one whose learner to start with, too: a training that goes on from
    another, perhaps with other labels or in another world. `pictures` gives the pictures of a split; without
    it they are those of the preset's world. `compute` says on which device, and with which other processes:
    all of them call this, share every batch, and end with the same weights.
    """
    encoder = encoder if start is None else start
    if encoder is not None:  # what does not fit is refused before a folder is made
        with torch.random.fork_rng(devices=[]):
            _take(encoder, build(preset.model), learner=start is not None)
    half = encoder is not None and lacks_background(encoder, preset.model)  # the other is still to pretrain
    teacher = find_encoder(preset.pretrain.teacher) if preset.pretrain and preset.pretrain.teacher else None
    if encoder is not None and not half and teacher is None:
        preset = replace(preset, pretrain=None)
    config = preset.train
    if config.wanted:
        spent(0, 0, config.steps, config.minutes)  # a run without a budget is an error now, not later
    elif not any(stage and stage.wanted for stage in (preset.pretrain, preset.features)):
        raise WanderError("Nothing is left to train: give --train.steps or --train.minutes, above 0.")
    compute = replace(compute or Compute(), precision=config.precision)
    group = compute.group
    find = pictures or partial(open_collection, preset.world)
    with group.first_here_before():  # pictures may have to be decoded once for every machine
        seen = {split: find(split) for split in ("train", "val")}
    identity = to_json(preset) | {"pictures": {split: some.digest for split, some in seen.items()}}
    if preset.roaming.background is not None:
        source = preset.roaming.background.textures
        identity |= {
            "textures": {split: open_textures(source, some.split).digest for split, some in seen.items()}
        }
    if encoder is not None:
        identity |= {"start" if start is not None else "encoder": digest_of(encoder)}
    if teacher is not None:
        identity |= {"teacher": digest_of(teacher)}
    about = {
        "preset": preset.name,
        "world": preset.world,
        "semi": preset.roaming.semi,
        "roaming": to_json(preset.roaming),
        "seed": config.seed,
    }
    if teacher is not None:
        about["teacher"] = digest_of(teacher)
    with ExitStack() as stack:
        opened = open_run(
            run_dir,
            identity,
            about,
            resume=resume,
            processes=group.size,
            launch=launched(),
            again=restarted(),
        )
        run = group.by_first(lambda: stack.enter_context(opened)) or Run(run_dir, about, writes=False)
        interrupt = stack.enter_context(interruptible())
        stack.enter_context(_threads(config.threads))
        on_gpu = [compute.device] if compute.device.type == "cuda" else []
        stack.enter_context(torch.random.fork_rng(devices=on_gpu))
        torch.manual_seed(config.seed)
        training = _Training(preset, run, interrupt, seen["train"], seen["val"], compute, half)
        return training.through(encoder, teacher, learns_on=start is not None)


class _Training:
    """One process's part of a run."""

    def __init__(
        self,
        preset: "Preset",
        run: Run,
        interrupt: Interrupt,
        pictures: Collection,
        validation: Collection,
        compute: Compute,
        half: bool,
    ) -> None:
        self.half = half
        self.preset, self.config, self.run, self.interrupt = preset, preset.train, run, interrupt
        self.compute, self.group, self._all_stop = compute, compute.group, False
        self.world = world_of(pictures, preset.roaming)
        if isinstance(validation, Pictures) and isinstance(preset.roaming, RoamingConfig):
            # A small split has fewer families than a sequence draws from; it should not be easier for that.
            validation = with_families(validation, preset.roaming)
        self.validation = world_of(validation, preset.roaming)
        self.exam = [
            self.validation.meetings(VALIDATION_SEED, i) for i in range(self.config.validate_sequences)
        ]
        self.model = build(preset.model).to(compute.device)
        wanted = self.config.sync_batch_norm and self.group.size > 1
        synchronise(self.model.encoder, self.group.sum if wanted else None)
        self.checkpoint_at = time.monotonic()
        self.curves = Curves(run.folder) if self.config.tensorboard and self.group.first else None

    def through(self, encoder: Path | None, teacher: Path | None, *, learns_on: bool = False) -> Outcome:
        """Start or go on, and run to the end or to an interruption.

        `learns_on`: the learner, too, is that of the file the encoder comes from.
        """
        started = self.group.by_first(lambda: self._start(encoder, teacher, learns_on))
        progress, beside = self._spread(started)
        if self.group.size != self.run.processes_before and progress.stage != "finished":
            self._log(progress, processes=self.group.size)
        while progress.stage != "finished" and not self._stopping:
            stage = stage_of(
                progress.stage,
                self.preset,
                self.model,
                self.world,
                self.compute,
                only_background=self.half,
                encoder_begun=encoder is not None,
                learner_begun=learns_on,
            )
            progress, beside = self._live(stage, progress, beside)
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

    def _start(
        self, encoder: Path | None, teacher: Path | None, learns_on: bool
    ) -> tuple[Progress, dict[str, Tensor]]:
        """The last checkpoint, or a first one."""
        restored = self.run.restore(self.model)
        if restored is not None:
            return restored
        before = 0.0 if encoder is None else _take(encoder, self.model, learner=learns_on)
        if teacher is not None and not _taught_by(encoder, teacher):
            before += float(about_model(teacher).get("seconds") or 0.0)
        first = Progress(following(self.preset, None), total_seconds=before)
        return self.run.save(self.model, first, {}), {}

    def _spread(
        self, started: tuple[Progress, dict[str, Tensor]] | None
    ) -> tuple[Progress, dict[str, Tensor]]:
        """What the first process starts from, in all of them."""
        if self.group.size == 1 and started is not None:
            return started
        progress, beside = started or (None, {})
        about = None if progress is None else asdict(progress)
        about, beside = spread_state(self.group, about, self.model.state_dict().values(), beside)
        return progress or Progress(**about), beside

    @property
    def _stopping(self) -> bool:
        """Whether somebody asked this process to stop, or (as all agreed at the last step) any of them."""
        return self.interrupt.asked if self.group.size == 1 else self._all_stop

    def _now(self, clock: Clock, progress: Progress) -> Progress:
        """The time by the first process's clock, and whether any is asked to stop: all go by the same."""
        passed, asked = self.group.numbers(
            clock.passed() if self.group.first else 0.0, float(self.interrupt.asked)
        )
        self._all_stop = asked > 0
        return clock.at(progress, passed)

    def _live(
        self, stage: Stage, progress: Progress, beside: Mapping[str, Tensor]
    ) -> tuple[Progress, dict[str, Tensor]]:
        """Take the steps of one stage, until its budget is spent or somebody interrupts."""
        config, minutes = stage.config, stage.config.minutes
        tensors = stage.tensors()
        backward = None
        if self.group.size > 1 or self.compute.precision == "float16":
            backward = GroupBackward(self.compute, self.model.encoder.buffers(), config.batch_size)
            backward.restore(beside)
        optimiser = Optimiser(tensors, config, backward)
        self._restore(optimiser, tensors, beside)
        self.model.train()
        progress = self._prepared(stage, progress)
        clock = Clock(progress)
        done = False
        seconds_left = 60 * minutes if minutes else None
        with bar(stage.name, stage.steps or seconds_left, shown=self.group.first) as shown:
            shown.advance(progress.step if stage.steps else progress.seconds)
            while not done and not self._stopping:
                step, before = progress.step, progress.seconds
                torch.manual_seed(_mixed(self.config.seed, step))
                factor = rate_factor(
                    config.schedule, spent(step, before, stage.steps, minutes), step, config.warmup
                )
                losses = stage.losses(step)
                try:
                    norm = optimiser.step(losses["loss"], factor)
                except DivergedError as error:
                    self.group.fail(WanderError(self._diverged(stage.name, step, str(error))))
                progress = self._now(clock, replace(progress, step=step + 1))
                numbers = {name: float(value.detach()) for name, value in losses.items()}
                taken = norm if math.isfinite(norm) else None  # None: left out, see `LossScale`
                self._log(progress, **numbers, lr=config.lr * factor, grad_norm=taken)
                done = spent(progress.step, progress.seconds, stage.steps, minutes) >= 1
                validated = False
                if stage.name != "pretrain" and (done or progress.step % self.config.validate_every == 0):
                    progress = self._now(clock, self._validate(progress, numbers["loss"]))
                    validated = True
                    done = done or (isinstance(config, TrainConfig) and _is_stale(progress, config))
                shown.advance(1 if stage.steps else progress.seconds - before)
                shown.caption(_caption(stage.name, numbers["loss"], progress))
                if not done and (validated or self._checkpoint_due()):
                    progress = self._save(progress, self._state(optimiser, tensors, backward))
        if not done:  # interrupted
            state = self._state(optimiser, tensors, backward)
            return self._save(progress, state), state
        if stage.name == "pretrain":
            self.run.save_pretrained(self.model, progress)
        over = replace(progress, stage=following(self.preset, stage.name))
        if over.stage != "finished":
            over = replace(over, step=0, seconds=0.0, stale=0)
        return self._save(over, {}), {}

    def _prepared(self, stage: Stage, progress: Progress) -> Progress:
        """Let a stage make what it needs first. That takes time, but not of its budget: by the clock most of
        a falling rate would be spent before the first step."""
        if prepare := getattr(stage, "prepare", None):
            clock = Clock(progress)
            prepare(lambda: self.interrupt.asked)
            progress = replace(self._now(clock, progress), seconds=progress.seconds)
        return progress

    def _restore(self, optimiser: Optimiser, tensors: list[Trained], beside: Mapping[str, Tensor]) -> None:
        if not beside:
            return
        optimiser.restore(beside)
        for each in tensors:  # what the stage trains beside the model
            if each.name in beside:
                each.tensor.data.copy_(beside[each.name])

    def _state(
        self, optimiser: Optimiser, tensors: list[Trained], backward: GroupBackward | None
    ) -> dict[str, Tensor]:
        own = {id(parameter) for parameter in self.model.parameters()}
        extra = {each.name: each.tensor.detach() for each in tensors if id(each.tensor) not in own}
        return optimiser.state() | extra | (backward.state() if backward else {})

    def _save(self, progress: Progress, state: Mapping[str, Tensor]) -> Progress:
        saved = self.run.save(self.model, progress, state)
        self.checkpoint_at = time.monotonic()
        return saved

    def _checkpoint_due(self) -> bool:
        return time.monotonic() - self.checkpoint_at >= 60 * self.config.checkpoint_minutes

    def _validate(self, progress: Progress, loss: float) -> Progress:
        """Score the model on the validation sequences; the best so far is kept."""
        record = gather(self.model, self.validation, self.exam, self.config.batch_size, group=self.group)
        figures = self.group.from_first(_figures(record) if self.group.first else None)
        self._log(progress, validation=figures)
        found = figures["ap"]
        better = found is not None and (progress.best_ap is None or found > progress.best_ap)
        if better:
            progress = replace(progress, best_ap=found, best_step=progress.step, stale=0)
            self.run.save_best(self.model, progress)
        else:
            progress = replace(progress, stale=progress.stale + 1)
        if self.group.first and not sys.stderr.isatty():  # where no bar is shown
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


def _take(weights: Path, model: Model, *, learner: bool) -> float:
    """Put the encoder of a file into a model, perhaps the learner too; gives the seconds that it took."""
    seconds = take_encoder(weights, model)
    if not learner:
        return seconds
    take_learner(weights, model)
    return float(progress_of(weights.parent.parent).get("total_seconds") or seconds)


def _taught_by(encoder: Path | None, teacher: Path) -> bool:
    """Whether the teacher's time is in an encoder's own: it has learned from it before, or is the same."""
    told = digest_of(teacher)
    return encoder is not None and told in (about_model(encoder).get("teacher"), digest_of(encoder))


def _is_stale(progress: Progress, config: TrainConfig) -> bool:
    return config.patience is not None and progress.stale >= config.patience


def _figures(record: Record) -> dict[str, float | None]:
    return {
        "ap": _percent(ap(record)),
        "ap_joint": _percent(ap_joint(record)),
        "known_accuracy": _percent(known_accuracy(record)),
    }


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
