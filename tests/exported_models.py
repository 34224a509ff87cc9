"""Small models of every kind as ONNX, made once, and what onnxruntime makes of them."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from wanderlearn.export import Exported, begin_path, export_model
from wanderlearn.export.parity import Runner
from wanderlearn.learners.cpm import CPM, CPMConfig
from wanderlearn.learners.dnc import DNCConfig
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.imp import IMPConfig
from wanderlearn.learners.lstm import LSTMConfig
from wanderlearn.learners.matchingnet import MatchingNetConfig
from wanderlearn.learners.oml import OMLConfig
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.wayfarer import WayfarerConfig
from wanderlearn.model import LearnerConfig, Model, ModelConfig, build

WIDTH, SIDE, SLOTS = 8, 8, 5

KINDS: dict[str, LearnerConfig] = {
    "cpm": CPMConfig(features=WIDTH, units=12, beta_read=-7.0, beta_write=-8.0),
    "matchingnet": MatchingNetConfig(features=WIDTH, beta=1.0),
    "imp": IMPConfig(features=WIDTH, beta=0.6),
    "imp cosine": IMPConfig(features=WIDTH, beta=0.6, similarity="cosine"),
    "dnc": DNCConfig(features=WIDTH, units=12, cells=16, width=6, reads=2, writes=2, slots=SLOTS + 1),
    "oml cosine": OMLConfig(features=WIDTH, classifier="cosine", slots=SLOTS + 1, inner_lr=0.1),
    "wayfarer": WayfarerConfig(features=WIDTH, units=12, guesses=6, window=8),
}
MORE_KINDS: dict[str, LearnerConfig] = {
    "protonet": ProtoNetConfig(features=WIDTH, beta_read=2.0, beta_write=1.0),
    "lstm": LSTMConfig(features=WIDTH, units=12, slots=SLOTS + 1),
    "cpm average euclidean": CPMConfig(features=WIDTH, units=12, memory="average", similarity="euclidean"),
    "cpm gated euclidean": CPMConfig(features=WIDTH, units=12, similarity="euclidean", metric=False),
    "cpm average cosine": CPMConfig(features=WIDTH, units=12, memory="average", unit_features=True),
    "cpm that only moves when told": CPMConfig(
        features=WIDTH, units=12, context="replace", recurrent_on_unlabelled=False, self_write=False
    ),
    "cpm fixed thresholds": CPMConfig(features=WIDTH, units=12, predicted_thresholds=False, context="none"),
    "protonet cosine": ProtoNetConfig(features=WIDTH, similarity="cosine", write_thresholds=False),
    "protonet told": ProtoNetConfig(features=WIDTH, self_write=False, unit_features=True),
    "matchingnet cosine": MatchingNetConfig(features=WIDTH, similarity="cosine", beta=-7.0),
    "imp unlabelled": IMPConfig(features=WIDTH, beta=0.6, unlabelled_join="unlabelled", sigma_unlabelled=2.0),
    "wayfarer without company": WayfarerConfig(features=WIDTH, units=12, guesses=6, window=8, company=False),
    "oml": OMLConfig(features=WIDTH, slots=SLOTS + 1, inner_lr=0.1, novelty="sum"),
}


class Made(NamedTuple):
    model: Model
    exported: Exported
    step: bytes
    begin: bytes
    runner: Runner


@cache
def model_of(kind: str) -> Model:
    """Fresh weights whose context matters, behind an encoder that has seen pictures."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        encoder = Conv4Config(
            image_size=SIDE, channels=WIDTH, blocks=3, last_relu=False, batch_norm_momentum=0.5
        )
        model = build(ModelConfig(encoder, (KINDS | MORE_KINDS)[kind]))
        with torch.no_grad():
            for _ in range(3):
                model.encoder(torch.randn(16, 1, SIDE, SIDE))
            if isinstance(model.learner, CPM):
                model.learner.lstm.gates.weight.mul_(8)
                model.learner.readout.weight.mul_(3)
    return model.eval()


@cache
def made(kind: str, **options: Any) -> Made:
    """The model of this kind, exported into memory."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "model.onnx"
        exported = export_model(model_of(kind), out, slots=SLOTS, **options)
        step, begin = out.read_bytes(), begin_path(out).read_bytes()
    return Made(model_of(kind), exported, step, begin, Runner(step, begin))
