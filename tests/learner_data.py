"""Random sequences of features for learners, and a learner's answers by whole sequence and step by step."""

import dataclasses
from typing import Any, NamedTuple

import torch
from torch import Tensor

from wanderlearn.learners.ablations import ARCHITECTURE_ABLATIONS, SEMI_ABLATIONS
from wanderlearn.learners.answer import Answers
from wanderlearn.learners.cpm import CPM, CPMConfig
from wanderlearn.learners.protonet import OnlineProtoNet, ProtoNetConfig
from wanderlearn.worlds.sequence import UNLABELED

FEATURES, SLOTS = 6, 9

# Every row of both tables once: some rows are the same model.
ABLATIONS = {config: name for name, config in (SEMI_ABLATIONS | ARCHITECTURE_ABLATIONS).items()}


class Sequences(NamedTuple):
    features: Tensor  # [B, T, D] zero where padded
    given: Tensor  # [B, T]
    valid: Tensor  # [B, T]


def sequences(
    labelled: float,
    *,
    batch: int = 3,
    steps: int = 24,
    slots: int = SLOTS,
    features: int = FEATURES,
    padding: int = 5,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> Sequences:
    """Classes are clouds; slots are numbered by first labelled appearance; row 1 ends in `padding`."""
    random = torch.Generator().manual_seed(seed)
    truth = torch.randint(slots - 2, (batch, steps), generator=random)
    centres = torch.randn(slots, features, generator=random, dtype=torch.float64)
    noise = torch.randn(batch, steps, features, generator=random, dtype=torch.float64)
    told = torch.rand(batch, steps, generator=random) < labelled
    valid = torch.ones(batch, steps, dtype=torch.bool)
    if padding and batch > 1:
        valid[1, -padding:] = False
    given = torch.full_like(truth, UNLABELED)
    for row in range(batch):
        slot_of: dict[int, int] = {}
        for t in range(steps):
            if told[row, t] and valid[row, t]:
                given[row, t] = slot_of.setdefault(int(truth[row, t]), len(slot_of))
    drawn = (centres[truth] + 0.7 * noise) * valid[..., None]
    return Sequences(drawn.to(dtype), given, valid)


def build(config: CPMConfig | ProtoNetConfig, *, small: bool = True, seed: int = 0) -> CPM | OnlineProtoNet:
    """A learner of few features, in double precision, whose thresholds leave neither sigmoid saturated."""
    torch.manual_seed(seed)
    if not small:
        return CPM(config) if isinstance(config, CPMConfig) else OnlineProtoNet(config)
    beta = 6.0 if config.similarity == "euclidean" else -5.0
    if isinstance(config, ProtoNetConfig):
        return OnlineProtoNet(
            dataclasses.replace(config, features=FEATURES, beta_read=beta, beta_write=beta + 1)
        ).double()
    return CPM(
        dataclasses.replace(config, features=FEATURES, units=7, beta_read=beta, beta_write=beta + 1)
    ).double()


def stepped(learner: Any, features: Tensor, given: Tensor, slots: int = SLOTS) -> tuple[Answers, Any]:
    """The answers of repeated `step`, and the last state."""
    state, answers = learner.begin(len(given), slots), []
    for feature, told in zip(features.unbind(1), given.unbind(1), strict=True):
        answer, state = learner.step(state, feature, told)
        answers.append(answer)
    scores, novelty = zip(*answers, strict=True)
    return Answers(torch.stack(scores, 1), torch.stack(novelty, 1)), state


def few_classes(seed: int, labelled: float, rows: int = 3, length: int = 15) -> tuple[Tensor, Tensor]:
    """Features of width 6 around the centres of 5 classes, and labels of which a share is told."""
    random = torch.Generator().manual_seed(seed)
    truth = torch.randint(5, (rows, length), generator=random)
    centres = torch.randn(5, 6, generator=random)
    features = centres[truth] + 0.5 * torch.randn(rows, length, 6, generator=random)
    told = torch.rand(rows, length, generator=random) < labelled
    return features, torch.where(told, truth, UNLABELED)


def assert_close(a: Answers, b: Answers) -> None:
    torch.testing.assert_close(a.scores, b.scores, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(a.novelty, b.novelty, atol=1e-4, rtol=1e-5)
