"""The folder of a run: its config, its log, where it stands (`last/`), the best it has been (`best/`), and if
it had to pretrain an encoder, what that gave (`pretrained/`).

`last/model.safetensors` holds everything needed to go on, the optimiser's state and the progress included, in
one file that is replaced in one move: whatever kills the run, there is a whole checkpoint. It is also a model
like any other (`load_model` reads it).
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from torch import Tensor

from wanderlearn.configs import differences
from wanderlearn.errors import WanderError
from wanderlearn.files import read_json, write_json
from wanderlearn.model import Model, about_model, restore_model, save_model

if sys.platform != "win32":
    import fcntl

__all__ = ["Progress", "Run", "Stage", "open_run", "progress_of"]

Stage = Literal["pretrain", "features", "sequences", "finished"]

# How a run is carried out, not what it is: these may differ when it is resumed.
FREE: Final = ("train.threads", "train.workers", "train.checkpoint_minutes", "train.tensorboard")
# Fields that came later or are gone, and what they were where they are not there.
ADDED: Final[dict[str, Any]] = {
    "train.sync_batch_norm": False,
    "train.precision": "float32",
    "train.returning": 0.0,
    "train.balance": 0.0,
    "features.returning": 0.0,
    "features.balance": 0.0,
}
# A killed process may leave helpers behind that hold its lock for some seconds more.
PATIENCE: Final = 30.0


@dataclass(frozen=True)
class Progress:
    """Where a run stands."""

    stage: Stage
    step: int = 0  # steps done in this stage
    seconds: float = 0.0  # spent in this stage, over all interruptions
    total_seconds: float = 0.0  # spent in all stages
    log_bytes: int = 0  # how long the log was
    best_ap: float | None = None  # of all validations so far, in percent
    best_step: int | None = None
    stale: int = 0  # validations since the best one


def progress_of(run: Path) -> dict[str, Any]:
    """How far a run has got, by its last checkpoint, as `Progress` has it; nothing, if there is none."""
    last = run / "last" / "model.safetensors"
    return dict(about_model(last).get("progress") or {}) if last.exists() else {}


class Run:
    """An open run folder. Made by `open_run`.

    Of several processes only the first `writes`; in the others nothing reaches the disk.
    """

    def __init__(
        self, folder: Path, about: Mapping[str, Any], *, processes: int = 1, writes: bool = True
    ) -> None:
        self.folder, self.about, self.processes, self.writes = folder, dict(about), processes, writes
        self.processes_before = 1
        self.last = folder / "last" / "model.safetensors"
        self.best = folder / "best" / "model.safetensors"
        self.pretrained = folder / "pretrained" / "model.safetensors"
        self._log_path = folder / "log.jsonl"

    def restore(self, model: Model) -> tuple[Progress, dict[str, Tensor]] | None:
        """Put the last checkpoint into the model and cut the log back to it; None if there is none yet."""
        if not self.last.exists():
            self._cut_log(0)
            return None
        about, beside = restore_model(self.last, model)
        try:
            progress = Progress(**about["progress"])
        except (KeyError, TypeError) as error:
            raise WanderError(
                f"{self.last} is a model but not a checkpoint: it holds no progress."
            ) from error
        self.processes_before = int(about.get("processes") or 1)
        self._cut_log(progress.log_bytes)
        return progress, beside

    def save(self, model: Model, progress: Progress, beside: Mapping[str, Tensor]) -> Progress:
        """Make this the last checkpoint. The log is brought to the disk first: it is never behind."""
        if not self.writes:
            return progress
        try:
            if self._log_path.exists():
                with self._log_path.open("rb+") as file:
                    os.fsync(file.fileno())
                    size = os.fstat(file.fileno()).st_size
            else:
                size = 0
        except OSError as error:
            raise WanderError(self._cannot_log(error)) from error
        progress = replace(progress, log_bytes=size)
        about = self.about | {"stage": progress.stage, "step": progress.step, "progress": asdict(progress)}
        about |= {"processes": self.processes} if self.processes > 1 else {}
        save_model(self.last, model, about, beside)
        return progress

    def save_best(self, model: Model, progress: Progress) -> None:
        """Keep this model as the best so far."""
        standing = {"stage": progress.stage, "step": progress.step, "seconds": progress.total_seconds}
        if self.writes:
            save_model(self.best, model, self.about | standing | {"validation_ap": progress.best_ap})

    def save_pretrained(self, model: Model, progress: Progress) -> None:
        """Keep the model as pretraining left it: other runs can start with its encoder."""
        standing = {"stage": progress.stage, "step": progress.step, "seconds": progress.total_seconds}
        if self.writes:
            save_model(self.pretrained, model, self.about | standing)

    def log(self, **line: Any) -> None:
        """Add one line of JSON to the log."""
        if not self.writes:
            return
        try:
            with self._log_path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, allow_nan=False) + "\n")
        except OSError as error:
            raise WanderError(self._cannot_log(error)) from error

    def _cut_log(self, size: int) -> None:
        if not self._log_path.exists() and size == 0:
            return
        try:
            with self._log_path.open("rb+") as file:
                if os.fstat(file.fileno()).st_size < size:
                    raise WanderError(
                        f"{self._log_path} is shorter than the checkpoint remembers ({size} bytes): part of "
                        "the log was lost. Put it back, or start a new run."
                    )
                file.truncate(size)
        except OSError as error:
            raise WanderError(self._cannot_log(error)) from error

    def _cannot_log(self, error: OSError) -> str:
        return (
            f"Cannot write {self._log_path}: {error.strerror or error}. The last checkpoint is {self.last}; "
            "make room and go on with --resume."
        )


@contextmanager
def open_run(
    folder: Path,
    config: Mapping[str, Any],
    about: Mapping[str, Any],
    *,
    resume: bool,
    processes: int = 1,
    launch: str = "",
    again: bool = False,
) -> Iterator[Run]:
    """Open a run folder to train in: a new one, or with `resume` one that was begun with the same config.

    `launch` is whatever tells this launch from others. If it was started `again` by itself, because a process
    had ended, it goes on with what it has begun itself, but never with anything else.
    """
    written = folder / "config.json"
    again = again and _launch_of(folder) == launch
    resume = resume or (again and written.exists())
    if not resume and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise WanderError(
            f"{folder} is not empty. Go on with it (--resume), choose another name (--name), or remove it."
        )
    if resume:
        if not written.exists():
            raise WanderError(f"There is no run to resume in {folder}. Start it without --resume.")
        _check_same(written, config)
    else:
        write_json(written, config)
    with _alone(folder, launch, PATIENCE if again else 0.0):
        yield Run(folder, about, processes=processes)


def _check_same(written: Path, config: Mapping[str, Any]) -> None:
    before = read_json(written)
    changed = [
        f"{name} was {one!r} and is now {other!r}"
        for name, one, other in differences(before, json.loads(json.dumps(config)))
        if name not in FREE
        and not (name in ADDED and (one, other) in ((None, ADDED[name]), (ADDED[name], None)))
    ]
    if changed:
        raise WanderError(
            f"{written.parent} was begun with another config: {'; '.join(changed)}. "
            "Give the same options as before, or start a new run under another name."
        )


def _launch_of(folder: Path) -> str | None:
    """Which launch has last trained in a folder."""
    try:
        return (folder / ".lock").read_text(encoding="utf-8")
    except OSError:
        return None


@contextmanager
def _alone(folder: Path, launch: str, patience: float) -> Iterator[None]:
    """Refuse to train in a folder that another process still trains in after so many seconds."""
    if sys.platform == "win32":
        yield
        return
    until = time.monotonic() + patience if patience else 0.0
    with (folder / ".lock").open("a", encoding="utf-8") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if not patience or time.monotonic() > until:
                    raise WanderError(
                        f"Another process is training in {folder}. Wait for it or stop it."
                    ) from error
                time.sleep(0.2)
        lock.truncate(0)
        lock.write(launch)
        lock.flush()
        yield
