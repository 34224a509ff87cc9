"""Online MatchingNet: the equations by hand and by a slow version, and the fast path against steps."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from tests.learner_data import assert_close, few_classes, stepped
from wanderlearn.checks import check_learner
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.learners.matchingnet import MatchingNetConfig, OnlineMatchingNet, pairwise_squared_distance
from wanderlearn.worlds.sequence import UNLABELED

CONFIGS = [
    MatchingNetConfig(features=6),
    MatchingNetConfig(features=6, beta=3.0, gamma=0.7),
    MatchingNetConfig(features=6, similarity="cosine", beta=-4.0),
]
U = UNLABELED


def slow(config: MatchingNetConfig, features: Tensor, given: Tensor, slots: int) -> Answers:
    """The definition with dictionaries and loops, in float64."""
    B, T = given.shape
    scores, novelty = np.full((B, T, slots), UNUSED), np.full((B, T), CERTAINLY_NEW)
    for b in range(B):
        kept: list[tuple[np.ndarray, int]] = []
        for t in range(T):
            h, y = features[b, t].double().numpy(), int(given[b, t])
            if kept:
                d = []
                for e, _ in kept:
                    if config.similarity == "euclidean":
                        d.append(float(((h - e) ** 2).sum()))
                    else:
                        cos = h @ e / ((np.sqrt(h @ h) + 1e-5) * (np.sqrt(e @ e) + 1e-5))
                        d.append(-config.temperature * float(cos))
                total = sum(math.exp(min(d) - x) for x in d)
                p: dict[int, float] = {}
                for x, (_, label) in zip(d, kept, strict=True):
                    p[label] = p.get(label, 0.0) + math.exp(min(d) - x) / total
                for label, share in p.items():
                    scores[b, t, label] = math.log(max(share, 1e-6))
                novelty[b, t] = max(math.log(1e-6), (min(d) - config.beta) / config.gamma)
            if y != UNLABELED:
                kept.append((h, y))
    return Answers(torch.from_numpy(scores).float(), torch.from_numpy(novelty).float())


@settings(deadline=None, max_examples=25)
@over(st.integers(0, 10**6), st.sampled_from([1.0, 0.4, 0.0]), st.sampled_from(CONFIGS))
def test_whole_sequences_steps_and_slow_version_agree(
    seed: int, labelled: float, config: MatchingNetConfig
) -> None:
    learner = OnlineMatchingNet(config)
    features, given = few_classes(seed, labelled)
    expected = slow(config, features, given, slots=6)
    assert_close(learner(features, given, 6), expected)
    assert_close(stepped(learner, features, given, 6)[0], expected)


@pytest.mark.parametrize("labelled", [1.0, 0.4])
@pytest.mark.parametrize("config", CONFIGS)
def test_gradients_of_whole_sequences_and_steps_agree(config: MatchingNetConfig, labelled: float) -> None:
    learner = OnlineMatchingNet(config)
    features, given = few_classes(1, labelled)
    weight = torch.randn(3, 15, 6)

    def gradients(run: str) -> tuple[Tensor, ...]:
        leaf = features.clone().requires_grad_()
        scores, novelty = learner(leaf, given, 6) if run == "whole" else stepped(learner, leaf, given, 6)[0]
        loss = (weight * scores.clamp_min(-20)).sum() + (weight[..., 0] * torch.tanh(novelty / 5)).sum()
        return torch.autograd.grad(loss, [leaf, learner.beta, learner.gamma])

    for fast, step in zip(gradients("whole"), gradients("steps"), strict=True):
        assert step.abs().max() > 0
        torch.testing.assert_close(fast, step, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("config", [MatchingNetConfig(), *CONFIGS])
def test_the_contract_is_kept(config: MatchingNetConfig) -> None:
    check_learner(OnlineMatchingNet(config)).assert_ok()


def test_a_small_example_by_hand() -> None:
    learner = OnlineMatchingNet(MatchingNetConfig(features=1, beta=0.5, gamma=2.0))
    features = torch.tensor([[[0.0], [1.0], [9.0], [2.0]]])
    given = torch.tensor([[0, 1, U, 0]])
    scores, novelty = learner(features, given, 3)
    # t=1: only class 0 at 0, squared distance 1. t=2: 0 and 1, squared distances 81 and 64.
    # t=3: the unlabelled 9 was skipped; squared distances to 0 and 1 are 4 and 1.
    e = math.exp
    assert scores[0, 0].tolist() == [UNUSED] * 3
    assert scores[0, 1].tolist() == [0.0, UNUSED, UNUSED]
    assert scores[0, 2].tolist() == pytest.approx([math.log(1e-6), math.log1p(-e(-17)), UNUSED], abs=1e-5)
    total = e(-4) + e(-1)
    assert scores[0, 3].tolist() == pytest.approx([math.log(e(-4) / total), math.log(e(-1) / total), UNUSED])
    assert novelty[0].tolist() == pytest.approx([CERTAINLY_NEW, 0.25, 31.75, 0.25])


def test_novelty_has_a_floor() -> None:
    learner = OnlineMatchingNet(MatchingNetConfig(features=1, beta=100.0))
    answers = learner(torch.zeros(1, 2, 1), torch.tensor([[0, 0]]), 1)
    assert answers.novelty[0, 1].item() == pytest.approx(math.log(1e-6))


def test_unlabelled_examples_take_no_room() -> None:
    learner = OnlineMatchingNet(MatchingNetConfig(features=2))
    state = learner.begin(1, 3)
    for label in (U, 2, U, U, 0):
        _, state = learner.step(state, torch.randn(1, 2), torch.tensor([label]))
    assert state.labels.tolist() == [[2, 0]]
    assert state.told.tolist() == [[True, False, True]]


def test_distances_of_close_vectors_far_from_the_origin_do_not_cancel() -> None:
    a = torch.tensor([[[1000.0, 1000.0]]])
    b = a + torch.tensor([0.0625, 0.0])
    assert pairwise_squared_distance(a, b).item() == 0.0625**2
