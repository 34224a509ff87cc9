"""Online IMP: clusters by hand and by a slow version, and the fast path against steps."""

import math
from dataclasses import replace
from typing import Any

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
from wanderlearn.learners.imp import IMPConfig, OnlineIMP
from wanderlearn.worlds.sequence import UNLABELED

PAPER = IMPConfig(features=6, beta=3.0)
CONFIGS = [
    PAPER,
    replace(PAPER, unlabelled_join="unlabelled"),
    replace(PAPER, sigma_labelled=1.5, sigma_unlabelled=0.7, gamma=2.0),
    replace(PAPER, sigma_labelled=0.6, sigma_unlabelled=2.0, unlabelled_join="unlabelled"),
    replace(PAPER, similarity="cosine"),
    replace(PAPER, similarity="cosine", sigma_unlabelled=0.7, beta=6.0),
    replace(PAPER, beta=0.0),  # nothing ever joins
    replace(PAPER, beta=1e4),  # everything joins
]
U = UNLABELED


def slow(config: IMPConfig, features: Tensor, given: Tensor, slots: int) -> Answers:
    """The definition with lists of members and loops, in float64."""
    B, T = given.shape
    scores, novelty = np.full((B, T, slots), UNUSED), np.full((B, T), CERTAINLY_NEW)
    for b in range(B):
        clusters: list[dict[str, Any]] = []
        for t in range(T):
            h, y = features[b, t].double().numpy(), int(given[b, t])
            for c in clusters:
                mean = np.mean(c["members"], 0)
                if config.similarity == "cosine":
                    mean = mean / np.linalg.norm(mean) * np.linalg.norm(h)
                c["d"] = float(((h - mean) ** 2).sum())
                sigma = config.sigma_unlabelled if c["label"] == U else config.sigma_labelled
                c["logit"] = -c["d"] / (2 * sigma**2)
            if any(c["label"] != U for c in clusters):
                top = max(c["logit"] for c in clusters)
                total = sum(math.exp(c["logit"] - top) for c in clusters)
                p: dict[int, float] = {U: 0.0}
                for c in clusters:
                    p[c["label"]] = p.get(c["label"], 0.0) + math.exp(c["logit"] - top) / total
                for label in p.keys() - {U}:
                    scores[b, t, label] = math.log(max(p[label], 1e-6))
                far = (min(c["d"] for c in clusters) - config.beta) / config.gamma
                novelty[b, t] = max(math.log(max(p[U], 1e-6)), far)
            may = [c for c in clusters if c["label"] in (y, U)]
            if y == U and config.unlabelled_join == "any":
                may = clusters
            if may and (min(c["d"] for c in may) - config.beta) / config.gamma < 0:
                home = max(may, key=lambda c: float(c["logit"]))
                home["members"].append(h)
                home["label"] = y if home["label"] == U else home["label"]
            else:
                clusters.append({"members": [h], "label": y})
    return Answers(torch.from_numpy(scores).float(), torch.from_numpy(novelty).float())


@settings(deadline=None, max_examples=40)
@over(st.integers(0, 10**6), st.sampled_from([1.0, 0.4, 0.0]), st.sampled_from(CONFIGS))
def test_whole_sequences_steps_and_slow_version_agree(seed: int, labelled: float, config: IMPConfig) -> None:
    learner = OnlineIMP(config)
    features, given = few_classes(seed, labelled)
    expected = slow(config, features, given, slots=6)
    assert_close(learner(features, given, 6), expected)
    assert_close(stepped(learner, features, given, 6)[0], expected)


@pytest.mark.parametrize("labelled", [1.0, 0.4])
@pytest.mark.parametrize("config", CONFIGS)
def test_gradients_of_whole_sequences_and_steps_agree(config: IMPConfig, labelled: float) -> None:
    learner = OnlineIMP(config)
    features, given = few_classes(1, labelled)
    weight = torch.randn(3, 15, 6)

    def gradients(run: str) -> list[Tensor]:
        leaf = features.clone().requires_grad_()
        answers = learner(leaf, given, 6) if run == "whole" else stepped(learner, leaf, given, 6)[0]
        loss = (weight * answers.scores.clamp_min(-20)).sum()
        loss = loss + (weight[..., 0] * torch.tanh(answers.novelty / 5)).sum()
        inputs = [leaf, *learner.parameters()]
        return list(torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True))

    fast, step = gradients("whole"), gradients("steps")
    assert step[0].abs().max() > 0
    for one, other in zip(fast, step, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("config", [IMPConfig(), *CONFIGS[1:4]])
def test_the_contract_is_kept(config: IMPConfig) -> None:
    check_learner(OnlineIMP(config)).assert_ok()


def line(*places: float) -> Tensor:
    return torch.tensor(places)[None, :, None]


def test_an_unnamed_cluster_takes_a_name_later() -> None:
    learner = OnlineIMP(IMPConfig(features=1, beta=4.0))
    # Something unnamed at 0 and 1; then at 2 (1.5 from their mean) it is named; 10 is far from all.
    features, given = line(0.0, 1.0, 2.0, 1.0, 10.0), torch.tensor([[U, U, 1, U, U]])
    answers, state = stepped(learner, features, given, 3)
    assert state.mean[0, :, 0].tolist() == [1.0, 10.0]
    assert state.items.tolist() == [[4.0, 1.0]]
    assert state.label.tolist() == [[1, U]]
    assert (answers.novelty[0, :3] == CERTAINLY_NEW).all(), "no name told yet, whatever clusters there are"
    assert answers.scores[0, 3].tolist() == [UNUSED, 0.0, UNUSED]  # the one cluster is all the mixture
    assert answers.novelty[0, 3:].tolist() == pytest.approx([-4.0, 77.0])  # 0 - 4, and 9^2 - 4
    assert_close(learner(features, given, 3), answers)


def test_unnamed_clusters_take_their_share_of_the_mixture() -> None:
    learner = OnlineIMP(IMPConfig(features=1, beta=1.0, sigma_labelled=2.0, sigma_unlabelled=0.5))
    features, given = line(0.0, 3.0, 2.0), torch.tensor([[0, U, U]])
    answers = learner(features, given, 2)
    # At 2: the named cluster at 0 has logit -4/8, the unnamed one at 3 has -1/0.5.
    named, unnamed = math.exp(-0.5), math.exp(-2.0)
    assert answers.scores[0, 2, 0].item() == pytest.approx(math.log(named / (named + unnamed)))
    assert answers.novelty[0, 2].item() == pytest.approx(max(math.log(unnamed / (named + unnamed)), 0.0))


@pytest.mark.parametrize(
    ("rule", "means", "labels"),
    [("any", [0.5], [0]), ("unlabelled", [0.0, 1.0], [0, U])],
)
def test_the_papers_rule_and_the_codes_rule(rule: Any, means: list[float], labels: list[int]) -> None:
    learner = OnlineIMP(IMPConfig(features=1, beta=4.0, unlabelled_join=rule))
    features, given = line(0.0, 1.0, 1.0), torch.tensor([[0, U, U]])
    _, state = stepped(learner, features[:, :2], given[:, :2], 1)
    assert state.mean[0, :, 0].tolist() == means
    assert state.label[0].tolist() == labels
    # Met again at 1: a quarter away from the shared mean, or right on the unnamed cluster.
    answers = learner(features, given, 1)
    if rule == "any":
        assert answers.scores[0, 2].tolist() == [0.0]
        assert answers.novelty[0, 2].item() == pytest.approx(0.25 - 4.0)
    else:
        share = 1 / (1 + math.exp(-0.5))  # of the unnamed cluster: logits 0 and -1/2
        assert answers.scores[0, 2, 0].item() == pytest.approx(math.log(1 - share))
        assert answers.novelty[0, 2].item() == pytest.approx(math.log(share))


def test_a_class_may_have_several_clusters_and_names_never_mix() -> None:
    learner = OnlineIMP(IMPConfig(features=1, beta=4.0))
    given = torch.tensor([[0, 0, 1, 0]])  # twice far apart; another name on the spot; and near the first
    _, state = stepped(learner, line(0.0, 10.0, 10.0, 1.0), given, 2)
    assert state.label.tolist() == [[0, 0, 1]]
    assert state.mean[0, :, 0].tolist() == [0.5, 10.0, 10.0]


def test_widths_may_send_it_to_a_farther_cluster() -> None:
    """As in the authors' code: within reach of the nearest, it joins the most probable."""
    learner = OnlineIMP(IMPConfig(features=1, beta=1.5, sigma_labelled=4.0, sigma_unlabelled=0.5))
    _, state = stepped(learner, line(0.0, 3.0, 2.0), torch.tensor([[0, U, 0]]), 1)
    assert state.mean[0, :, 0].tolist() == [1.0, 3.0]


def test_one_row_opening_a_cluster_leaves_the_others_alone() -> None:
    learner = OnlineIMP(IMPConfig(features=1, beta=4.0))
    features = torch.tensor([[[0.0], [9.0], [1.0]], [[0.0], [1.0], [9.0]]])
    given = torch.tensor([[0, 1, U], [0, 0, 1]])
    _, state = stepped(learner, features, given, 2)
    assert state.items.tolist() == [[2.0, 1.0, 0.0], [2.0, 0.0, 1.0]]
    assert state.label.tolist() == [[0, 1, U], [0, U, 1]]
