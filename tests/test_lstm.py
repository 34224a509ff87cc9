"""The LSTM baseline: a slow version in numpy, fast path against steps, when labels arrive, who takes part."""

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
from wanderlearn.errors import WanderError
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.learners.lstm import LSTMConfig, LSTMLearner
from wanderlearn.worlds.sequence import UNLABELED

SMALL = LSTMConfig(features=6, units=8, slots=7)
CONFIGS = [SMALL, LSTMConfig(features=6, units=8, layers=1, slots=5), LSTMConfig(6, 5, 3, 9)]
U = UNLABELED


def learner(config: LSTMConfig, seed: int = 0) -> LSTMLearner:
    """A learner none of whose weights is at a special value."""
    torch.manual_seed(seed)
    made = LSTMLearner(config)
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return made


def slow(learner: LSTMLearner, features: Tensor, given: Tensor, slots: int) -> Answers:
    """One sequence after the other, in float64, from the equations."""
    (B, T), config = given.shape, learner.config
    weights = {name: value.detach().double().numpy() for name, value in learner.named_parameters()}
    scores, novelty = np.full((B, T, slots), UNUSED), np.full((B, T), CERTAINLY_NEW)

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    for b in range(B):
        h, c = np.zeros((2, config.layers, config.units))
        named: set[int] = set()
        for t in range(T):
            label = np.zeros(config.slots)
            if t > 0 and given[b, t - 1] != UNLABELED:
                label[given[b, t - 1]] = 1
                named.add(int(given[b, t - 1]))
            x = np.concatenate([features[b, t].double().numpy(), label])
            for number in range(config.layers):
                part = f"layers.{number}."
                a = (
                    weights[part + "gates.weight"] @ np.concatenate([x, h[number]])
                    + weights[part + "gates.bias"]
                )
                a = (a - a.mean()) / np.sqrt(a.var() + 1e-6)
                f, i, o, g = np.split(a * weights[part + "norm.weight"] + weights[part + "norm.bias"], 4)
                c[number] = sigmoid(f) * c[number] + sigmoid(i) * np.tanh(g)
                x = h[number] = sigmoid(o) * np.tanh(c[number])
            logits = weights["readout.weight"] @ x + weights["readout.bias"]
            for slot in named:
                scores[b, t, slot] = logits[slot]
            if named:
                novelty[b, t] = logits[config.slots]
    return Answers(torch.from_numpy(scores).float(), torch.from_numpy(novelty).float())


@settings(deadline=None, max_examples=20)
@over(st.integers(0, 10**6), st.sampled_from([1.0, 0.4, 0.0]), st.sampled_from(CONFIGS))
def test_whole_sequences_steps_and_slow_version_agree(seed: int, labelled: float, config: LSTMConfig) -> None:
    made = learner(config, seed)
    features, given = few_classes(seed, labelled)
    expected = slow(made, features, given, slots=5)
    assert_close(made(features, given, 5), expected)
    assert_close(stepped(made, features, given, 5)[0], expected)


@pytest.mark.parametrize("labelled", [1.0, 0.4])
@pytest.mark.parametrize("config", CONFIGS)
def test_gradients_of_whole_sequences_and_steps_agree(config: LSTMConfig, labelled: float) -> None:
    made = learner(config)
    features, given = few_classes(1, labelled)
    weight = torch.randn(3, 15, 5)

    def gradients(run: str) -> tuple[Tensor, ...]:
        leaf = features.clone().requires_grad_()
        scores, novelty = made(leaf, given, 5) if run == "whole" else stepped(made, leaf, given, 5)[0]
        loss = (weight * scores.clamp_min(-20)).sum() + (weight[..., 0] * novelty.clamp_max(20)).sum()
        return torch.autograd.grad(loss, [leaf, *made.parameters()])

    for fast, step in zip(gradients("whole"), gradients("steps"), strict=True):
        assert step.abs().max() > 0
        torch.testing.assert_close(fast, step, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("config", [LSTMConfig(), LSTMConfig(features=6, units=8, layers=3, slots=17)])
def test_the_contract_is_kept_but_for_the_order_of_slots(config: LSTMConfig) -> None:
    report = check_learner(LSTMLearner(config))
    report.assert_ok()
    assert {
        found.law: "one-hot" in found.sentence for found in report.findings if found.outcome == "exempt"
    } == {"slots": True}


def test_the_exemption_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LSTMLearner, "exempt", {})
    assert [law for law, _ in check_learner(LSTMLearner()).failures] == ["slots"]


def test_a_label_arrives_with_the_next_meeting() -> None:
    made = learner(SMALL)
    features, given = few_classes(2, 1.0)
    other = given.clone()
    other[:, 6] = (given[:, 6] + 1) % 5
    answers, changed = made(features, given, 7), made(features, other, 7)
    assert torch.equal(answers.scores[:, :7], changed.scores[:, :7])
    assert torch.equal(answers.novelty[:, :7], changed.novelty[:, :7])
    assert not torch.isclose(answers.novelty[:, 7], changed.novelty[:, 7]).any()


def test_slots_take_part_once_named_also_after_unlabelled_meetings() -> None:
    made = learner(SMALL)
    scores, novelty = made(torch.randn(1, 6, 6), torch.tensor([[U, 1, U, U, 0, U]]), 4)
    taking_part = [[slot for slot in range(4) if scores[0, t, slot] != UNUSED] for t in range(6)]
    assert taking_part == [[], [], [1], [1], [1], [0, 1]]
    assert [float(u) == CERTAINLY_NEW for u in novelty[0].detach()] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_fewer_slots_are_the_first_ones() -> None:
    made = learner(SMALL)
    features, given = few_classes(3, 0.7)
    few, all_slots = made(features, given, 5), made(features, given, 7)
    assert torch.equal(few.scores, all_slots.scores[..., :5])
    assert torch.equal(few.novelty, all_slots.novelty)


def test_more_slots_than_weights_are_refused() -> None:
    made = LSTMLearner(SMALL)
    with pytest.raises(WanderError, match="at most 7 classes, but is asked for 8"):
        made.begin(2, 8)
    with pytest.raises(WanderError, match="slots=8"):
        made(torch.zeros(1, 2, 6), torch.tensor([[0, 7]]), 8)


def test_no_layers_are_refused() -> None:
    with pytest.raises(WanderError, match="at least 1 layer"):
        LSTMLearner(LSTMConfig(layers=0))


def test_the_default_is_the_papers() -> None:
    def lstm(inputs: int) -> int:
        return (inputs + 256) * 1024 + 1024 + 2 * 1024  # gates and their bias; LayerNorm

    assert sum(weight.numel() for weight in LSTMLearner().parameters()) == (
        lstm(64 + 50) + lstm(256) + 256 * 51 + 51
    )
