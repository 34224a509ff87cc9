"""The loss by hand, and the schedules by their values."""

from math import exp, log, log1p

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from wanderlearn.errors import WanderError
from wanderlearn.learners.answer import UNUSED, Answers
from wanderlearn.loss import sequence_loss
from wanderlearn.schedule import rate_factor, spent
from wanderlearn.worlds import NEW


def test_a_worked_example() -> None:
    # Two sequences of three steps, the last of the second padded. Known: (0, 1), (0, 2) and (1, 1).
    scores = torch.tensor(
        [
            [[UNUSED, UNUSED], [2.0, UNUSED], [1.0, 3.0]],
            [[UNUSED, UNUSED], [0.5, 0.5], [9.0, -9.0]],
        ]
    )
    novelty = torch.tensor([[4.0, -1.0, 2.0], [0.0, -3.0, 50.0]])
    target = torch.tensor([[NEW, 0, 0], [NEW, 1, NEW]])
    valid = torch.tensor([[True, True, True], [True, True, False]])

    naming = (0.0 + log1p(exp(2.0)) + log(2)) / 3  # one class; 3 against 1 and wrong; a draw
    new = [log1p(exp(-4.0)), log1p(exp(-1.0)), log1p(exp(2.0)), log(2), log1p(exp(-3.0))]
    loss = sequence_loss(Answers(scores, novelty), target, valid, novelty_weight=0.5)
    assert float(loss.naming) == pytest.approx(naming, rel=1e-6)
    assert float(loss.novelty) == pytest.approx(sum(new) / 5, rel=1e-6)
    assert float(loss.total) == pytest.approx(naming + 0.5 * sum(new) / 5, rel=1e-6)


def test_nothing_known_and_nothing_valid_is_zero_and_has_a_gradient() -> None:
    novelty = torch.zeros(1, 2, requires_grad=True)
    scores = torch.full((1, 2, 3), UNUSED, requires_grad=True)
    target = torch.full((1, 2), NEW)
    loss = sequence_loss(Answers(scores, novelty), target, torch.zeros(1, 2, dtype=torch.bool))
    assert [part.item() for part in loss] == [0, 0, 0]
    loss.total.backward()  # type: ignore[no-untyped-call]
    assert novelty.grad is not None
    assert novelty.grad.isfinite().all()
    some = sequence_loss(Answers(scores, novelty), target, torch.ones(1, 2, dtype=torch.bool))
    assert some.naming.item() == 0
    assert some.total.item() == pytest.approx(log(2))


def test_what_is_padded_does_not_matter() -> None:
    generator = torch.Generator().manual_seed(0)
    scores, novelty = torch.randn(2, 5, 4, generator=generator), torch.randn(2, 5, generator=generator)
    target = torch.tensor([[NEW, 0, 1, 0, NEW], [NEW, 0, NEW, NEW, NEW]])
    valid = torch.tensor([[True] * 5, [True, True, False, False, False]])
    one = sequence_loss(Answers(scores, novelty), target, valid).total
    scores[1, 2:], novelty[1, 2:], target[1, 2:] = 7.0, -7.0, 3
    assert torch.equal(one, sequence_loss(Answers(scores, novelty), target, valid).total)


def test_schedules() -> None:
    places = (0.0, 0.25, 0.5, 0.51, 0.75, 0.76, 1.0)
    assert [rate_factor("piecewise", p) for p in places] == [1.0, 1.0, 1.0, 0.1, 0.1, 0.01, 0.01]
    assert [rate_factor("constant", p) for p in places] == [1.0] * 7
    assert [rate_factor("cosine", p) for p in (0.0, 0.5, 1.0)] == pytest.approx([1.0, 0.5, 0.0])
    assert rate_factor("cosine", 1 / 3) == pytest.approx(0.75)


def test_warm_up_grows_evenly_and_then_is_over() -> None:
    assert [rate_factor("constant", 0, step, 4) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    assert rate_factor("piecewise", 0.6, 0, 2) == pytest.approx(0.05)


def test_the_budget_is_spent_by_steps_or_minutes_whichever_is_more() -> None:
    assert spent(25, 0, 100, None) == 0.25
    assert spent(25, 30, None, 1) == 0.5
    assert spent(25, 30, 100, 1) == 0.5
    assert spent(75, 30, 100, 1) == 0.75
    assert spent(500, 0, 100, None) == 1
    with pytest.raises(WanderError, match="budget"):
        spent(0, 0, None, None)


@given(st.sampled_from(["piecewise", "cosine", "constant"]), st.floats(0, 1), st.floats(0, 1))
def test_a_rate_never_rises_and_never_leaves_its_bounds(schedule: str, one: float, other: float) -> None:
    early, late = sorted((one, other))
    first, then = (rate_factor(schedule, p) for p in (early, late))  # type: ignore[arg-type]
    assert 0 <= then <= first <= 1
