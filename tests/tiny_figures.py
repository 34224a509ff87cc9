"""A small world and a small model for the tests of figures."""

from dataclasses import replace
from typing import Any

import torch

from tests.tiny_runs import CPM, pictures, tiny_model
from wanderlearn.model import Model, build
from wanderlearn.worlds import Roaming, RoamingConfig

TINY = RoamingConfig(environments=2, classes=8, length=20, per_class=4)


def world(*, semi: bool = False) -> Roaming:
    return Roaming(pictures("test"), replace(TINY, semi=semi))


def model(learner: Any = CPM, seed: int = 0) -> Model:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(tiny_model(learner)).eval()
