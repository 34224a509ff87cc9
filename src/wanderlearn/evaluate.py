"""Score a learner on sequences it has never seen: gather every answer, then count."""

import io
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import nn

from wanderlearn._version import __version__
from wanderlearn.answers import SavedAnswers
from wanderlearn.configs import to_json
from wanderlearn.distributed import ALONE, Group
from wanderlearn.errors import WanderError
from wanderlearn.learners.offline import OfflineConfig, OfflineLR
from wanderlearn.metrics import Record, summary
from wanderlearn.model import Model
from wanderlearn.progress import bar
from wanderlearn.results import FORMAT, commit
from wanderlearn.worlds import Manifest, Meetings, World

__all__ = ["Origin", "evaluate", "evaluate_with_answers", "gather", "offline_reference"]


def gather(
    model: nn.Module,
    world: World,
    meetings: Sequence[Meetings],
    batch_size: int = 16,
    *,
    progress: bool = False,
    group: Group = ALONE,
) -> Record:
    """Everything a model answers to these sequences of the world, beside what was right.

    The model is run in evaluation mode (and put back as it was), so a picture's feature does not depend on
    the pictures met with it and the answers do not depend on `batch_size`, up to rounding. The processes of
    a group share the work by whole batches, so what comes out does not depend on how many they are, to the
    last bit.
    """
    if batch_size < 1:
        raise WanderError(f"The batch size must be at least 1, not {batch_size}.")
    records, starts = [], range(0, len(meetings), batch_size)
    progress = progress and group.first
    with _eval_mode(model), torch.inference_mode(), bar("evaluating", len(meetings), shown=progress) as shown:
        for n in group.share(len(starts)):
            some = meetings[starts[n] : starts[n] + batch_size]
            records.append(_answered(model, world, some))
            shown.advance(len(some) * group.size)
    return _together(records, group)


def _together(records: list[Record], group: Group) -> Record:
    """The records of all processes, in order, in every one of them."""
    if group.size == 1:
        return Record.concat(records)
    names, mine = [field.name for field in fields(Record)], io.BytesIO()
    if records:
        whole = Record.concat(records)
        np.savez(mine, **{name: getattr(whole, name) for name in names})
    found = []
    for data in group.gather_bytes(mine.getvalue()):
        if data:  # there may be more processes than batches
            with np.load(io.BytesIO(data), allow_pickle=False) as kept:
                found.append(Record(**{name: kept[name] for name in names}))
    return Record.concat(found)


@dataclass(frozen=True)
class Origin:
    """Where a model came from, as far as it is known. A result repeats it."""

    preset: str | None = None
    learner: str | None = None
    weights_sha256: str | None = None
    train: Mapping[str, Any] | None = None
    """Of the run it was trained in: seconds, steps and config."""


def evaluate(
    model: nn.Module,
    world: World,
    manifest: Manifest,
    batch_size: int = 16,
    *,
    origin: Origin | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """The result of a model on a manifest, ready to be written as JSON: figures, and all they depend on.

    `world` must be the one the manifest was drawn from.
    """
    return evaluate_with_answers(model, world, manifest, batch_size, origin=origin, progress=progress)[0]


def evaluate_with_answers(
    model: nn.Module,
    world: World,
    manifest: Manifest,
    batch_size: int = 16,
    *,
    origin: Origin | None = None,
    progress: bool = False,
    group: Group = ALONE,
) -> tuple[dict[str, Any], SavedAnswers]:
    """As `evaluate`, with the raw answers: two learners on one manifest are compared by theirs."""
    if (world.pictures.digest, world.config) != (manifest.pictures_digest, manifest.config):
        raise WanderError(
            f"The manifest was not drawn from this world: it is of {manifest.pictures}/{manifest.split}, "
            f"this is {world.pictures.name}/{world.pictures.split}. "
            "Take the world from `manifest.world(pictures)`."
        )
    origin = origin or Origin()
    start = time.perf_counter()
    record = gather(model, world, manifest.sequences, batch_size, progress=progress, group=group)
    seconds = time.perf_counter() - start
    config = getattr(model, "config", None)
    result: dict[str, Any] = {
        "format": FORMAT,
        "kind": "evaluation",
        "preset": origin.preset,
        "learner": origin.learner,
        "world": manifest.pictures,
        "split": manifest.split,
        "semi": manifest.config.semi,
        "shuffle": manifest.config.shuffle,
        "sequences": len(manifest.sequences),
        "seed": manifest.seed,
        "manifest_sha256": manifest.sha256,
        "weights_sha256": origin.weights_sha256,
        "commit": commit(),
        "version": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "config": to_json(config) if is_dataclass(config) else None,
        "train": None if origin.train is None else dict(origin.train),
        "seconds": seconds,
        "seconds_per_sequence": seconds / len(manifest.sequences),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "threads": torch.get_num_threads(),
        "processes": group.size,
        "metrics": summary(record),
    }
    if manifest.config.background is not None:
        result["background"] = to_json(manifest.config.background)
    if getattr(model, "transductive", False):
        result["transductive"] = "features depend on the whole sequence, on pictures met later too"
    name = origin.preset or origin.learner or type(model).__name__
    return result, SavedAnswers(manifest.sha256, name, record)


def offline_reference(model: Model) -> Model:
    """The same encoder, with offline logistic regression in the learner's place."""
    config = OfflineConfig(features=model.config.learner.features)
    return Model(replace(model.config, learner=config), model.encoder, OfflineLR(config)).eval()


@contextmanager
def _eval_mode(model: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while. Every part gets its own mode back: some may be frozen on purpose."""
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


def _answered(model: nn.Module, world: World, meetings: Sequence[Meetings]) -> Record:
    batch = world.batch(meetings)
    tensors = chain(model.parameters(), model.buffers())
    device = next((tensor.device for tensor in tensors), torch.device("cpu"))
    shown = (tensor.to(device) for tensor in (batch.seen, batch.given, batch.valid))
    answers = model(*shown, world.slots)
    predicted = answers.scores.argmax(-1)  # [B, T]; of equal scores the lowest slot
    confidence = answers.scores.log_softmax(-1).gather(-1, predicted[..., None])[..., 0]  # [B, T]
    return Record(
        novelty=answers.novelty.double().cpu().numpy(),
        predicted=predicted.cpu().numpy(),
        confidence=confidence.double().cpu().numpy(),
        target=batch.target.numpy(),
        truth=batch.truth.numpy(),
        given=batch.given.numpy(),
        valid=batch.valid.numpy(),
    )
