"""Runs small enough to be made many times: tiny pictures, a narrow encoder, a few short sequences."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from torch import Tensor

from tests.tiny_world import tiny_pictures
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.imp import IMPConfig
from wanderlearn.learners.lstm import LSTMConfig
from wanderlearn.learners.matchingnet import MatchingNetConfig
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.wayfarer import WayfarerConfig
from wanderlearn.model import ModelConfig
from wanderlearn.optimiser import Optimiser
from wanderlearn.pictures.collection import Pictures, Split
from wanderlearn.presets import Preset
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.train import Outcome, train
from wanderlearn.worlds import RoamingConfig

CHANNELS = 8
CPM = CPMConfig(features=CHANNELS, units=12)
PROTONET = ProtoNetConfig(features=CHANNELS)
LOOKS_FIRST = LSTMConfig(features=CHANNELS, units=24, slots=8, look_up=2.0)
LEARNERS = (
    CPM,
    PROTONET,
    MatchingNetConfig(features=CHANNELS),
    IMPConfig(features=CHANNELS),
    WayfarerConfig(features=CHANNELS, units=12),
)


def pictures(split: Split) -> Pictures:
    return tiny_pictures(split, families=4, classes_per_family=3)


def tiny_model(learner: Any = CPM) -> ModelConfig:
    return ModelConfig(Conv4Config(channels=CHANNELS, last_relu=False, batch_norm_momentum=0.1), learner)


def tiny_preset(
    learner: Any = CPM, *, semi: bool = False, pretrain: PretrainConfig | None = None, **changes: Any
) -> Preset:
    train = TrainConfig(
        steps=6, batch_size=2, schedule="cosine", validate_every=3, validate_sequences=3, threads=1, workers=0
    )
    roaming = RoamingConfig(environments=2, classes=8, length=20, per_class=4, semi=semi)
    return Preset("tiny", "tiny", roaming, tiny_model(learner), replace(train, **changes), pretrain)


def run(preset: Preset, folder: Path, *, resume: bool = False) -> Outcome:
    return train(preset, folder, resume=resume, pictures=pictures)


def clock_by_steps(monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[float]:
    """Let a run's clock stand still but for so many seconds a step; add to what is returned to move it."""
    now, taken = [0.0], Optimiser.step

    def step(self: Optimiser, loss: Tensor, factor: float) -> float:
        now[0] += seconds
        return taken(self, loss, factor)

    monkeypatch.setattr("wanderlearn.clock.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(Optimiser, "step", step)
    return now


def log_of(folder: Path) -> list[dict[str, Any]]:
    """The log without what depends on the clock."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def weights_of(folder: Path, which: str = "last") -> dict[str, str]:
    """A digest per tensor of a checkpoint, the optimiser's included."""
    from wanderlearn.tensors import load_tensors

    tensors, _ = load_tensors(folder / which / "model.safetensors")
    return {name: hashlib.sha256(tensor.numpy().tobytes()).hexdigest() for name, tensor in tensors.items()}
