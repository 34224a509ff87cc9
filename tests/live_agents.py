"""Small agents of every kind, and things for them to look at."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from wanderlearn.agent import Agent
from wanderlearn.learners.cpm import CPM, CPMConfig
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.imp import IMPConfig
from wanderlearn.learners.matchingnet import MatchingNetConfig
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.wayfarer import Wayfarer, WayfarerConfig
from wanderlearn.model import LearnerConfig, Model, ModelConfig, build

WIDTH, SIDE, CENTRES = 8, 8, 6

KINDS: dict[str, LearnerConfig] = {
    "cpm": CPMConfig(features=WIDTH, units=12, beta_read=-4.0, beta_write=-6.0),
    "cpm average euclidean": CPMConfig(
        features=WIDTH, units=12, memory="average", similarity="euclidean", unit_features=True, beta_read=1.0
    ),
    "cpm gated euclidean": CPMConfig(
        features=WIDTH, units=12, memory="gau", similarity="euclidean", metric=False, write_thresholds=False
    ),
    "cpm that only moves when told": CPMConfig(
        features=WIDTH, units=12, context="replace", recurrent_on_unlabelled=False, self_write=False
    ),
    "cpm fixed thresholds": CPMConfig(features=WIDTH, units=12, predicted_thresholds=False, context="none"),
    "protonet": ProtoNetConfig(features=WIDTH, beta_read=6.0, beta_write=4.0),
    "protonet cosine": ProtoNetConfig(
        features=WIDTH, similarity="cosine", unit_features=True, beta_read=-6.0, write_thresholds=False
    ),
    "protonet told": ProtoNetConfig(features=WIDTH, self_write=False),
    "matchingnet": MatchingNetConfig(features=WIDTH, beta=5.0),
    "matchingnet cosine": MatchingNetConfig(features=WIDTH, similarity="cosine", beta=-4.0),
    "imp": IMPConfig(features=WIDTH, beta=5.0),
    "imp cosine": IMPConfig(features=WIDTH, beta=5.0, similarity="cosine"),
    "imp unlabelled": IMPConfig(features=WIDTH, beta=5.0, unlabelled_join="unlabelled", sigma_unlabelled=2.0),
    "wayfarer": WayfarerConfig(features=WIDTH, units=12, guesses=6),
    "wayfarer of a short window": WayfarerConfig(features=WIDTH, units=12, guesses=6, window=7),
    "wayfarer bare": WayfarerConfig(
        features=WIDTH, units=12, guesses=6, context_keys=False, nearest=False, age_and_count=False
    ),
    "wayfarer without company": WayfarerConfig(features=WIDTH, units=12, guesses=6, company=False),
    "wayfarer told": WayfarerConfig(features=WIDTH, units=12, guesses=6, plain_keys=False, late_credit=False),
}


@cache
def small_model(kind: str) -> Model:
    """Weights drawn once. The context matters: what the RNN reads out is of the size of the features."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        encoder = Conv4Config(image_size=SIDE, channels=WIDTH, blocks=3)
        model = build(ModelConfig(encoder, KINDS[kind])).eval()
        if isinstance(model.learner, CPM):
            with torch.no_grad():
                model.learner.lstm.gates.weight.mul_(8)
                model.learner.readout.weight.mul_(3)
        if isinstance(model.learner, Wayfarer):
            with torch.no_grad():
                model.learner.lstm.gates.weight.mul_(8)
                model.learner.scorer.get_parameter("2.weight").normal_(0, 0.3)
                if model.learner.config.context_keys:
                    model.learner.readout.weight.mul_(5)
    return model


def agent_of(kind: str = "protonet") -> Agent:
    """An agent that knows nothing yet."""
    return Agent(small_model(kind))


@cache
def _centres() -> npt.NDArray[np.float64]:
    return np.random.default_rng(5).standard_normal((CENTRES, WIDTH)) * 1.5


def feature(seed: int) -> npt.NDArray[np.float32]:
    """A feature near one of a few centres. No two seeds give the same."""
    noise = np.random.default_rng(seed).standard_normal(WIDTH)
    made: npt.NDArray[np.float32] = (_centres()[seed % CENTRES] + 0.5 * noise).astype(np.float32)
    return made


def said(answer: Any) -> tuple[Any, ...]:
    """All that an answer says, rounded: what floating point may change is not compared."""
    return answer.label, round(answer.p_new, 4), {label: round(p, 4) for label, p in answer.ranking}
