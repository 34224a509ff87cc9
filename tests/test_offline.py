"""Offline logistic regression: against scikit-learn one fit at a time, by hand, and what it may not see."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from tests.learner_data import assert_close, few_classes
from wanderlearn import WanderError
from wanderlearn.checks import check_learner
from wanderlearn.configs import from_json, to_json
from wanderlearn.learners import logistic
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.logistic import fit, principal_axes
from wanderlearn.learners.offline import OfflineConfig, OfflineLR
from wanderlearn.model import ModelConfig, build
from wanderlearn.worlds.sequence import UNLABELED

U = UNLABELED


def scikit(c: float) -> LogisticRegression:
    # Its default solver, lbfgs, has the same objective but stops too far from the optimum to compare with.
    return LogisticRegression(C=c, max_iter=10_000, tol=1e-8, solver="newton-cg")


def slow(config: OfflineConfig, features: Tensor, given: Tensor, slots: int) -> Answers:
    """The definition, meeting by meeting, with scikit-learn."""
    B, T = given.shape
    scores, novelty = np.full((B, T, slots), UNUSED), np.full((B, T), CERTAINLY_NEW)
    for b in range(B):
        x, y = features[b].double().numpy(), given[b].tolist()
        for t in range(T):
            others = [i for i in range(T) if i != t and y[i] != U]
            order = list(dict.fromkeys(y[i] for i in others))
            known = {y[i] for i in others if i < t}
            if not known:
                continue
            classes = order[: max(len(known), config.least_classes)]
            items = [i for i in others if y[i] in classes]
            p = {classes[0]: 1.0}
            if len(classes) > 1:
                fitted = scikit(config.strength).fit(x[items], [y[i] for i in items])
                p = dict(zip(fitted.classes_.tolist(), fitted.predict_proba(x[t : t + 1])[0], strict=True))
            best = max(p[c] for c in known)
            novelty[b, t] = math.log(max(1 - best, 1e-6)) - math.log(best)
            for c in known:
                scores[b, t, c] = math.log(p[c] / sum(p[c] for c in known))
    return Answers(torch.from_numpy(scores).float(), torch.from_numpy(novelty).float())


@settings(deadline=None, max_examples=12)
@over(
    st.integers(0, 10**6),
    st.sampled_from([1.0, 0.5, 0.2, 0.0]),
    st.sampled_from([OfflineConfig(6), OfflineConfig(6, least_classes=2), OfflineConfig(6, strength=0.3)]),
)
def test_every_answer_is_that_of_a_fit_by_scikit_learn(
    seed: int, labelled: float, config: OfflineConfig
) -> None:
    features, given = few_classes(seed, labelled, rows=2)  # slots are in no order of appearance here
    found, expected = OfflineLR(config)(features, given, 7), slow(config, features, given, 7)
    torch.testing.assert_close(found.scores.exp(), expected.scores.exp(), atol=1e-5, rtol=0)
    torch.testing.assert_close(found.novelty, expected.novelty, atol=1e-4, rtol=1e-4)


def realistic(items: int = 90, classes: int = 24, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Features of the width and length that encoders give, labels, and subsets with one item left out."""
    random = torch.Generator().manual_seed(seed)
    y = torch.cat([torch.arange(classes), torch.randint(classes, (items - classes,), generator=random)])
    centres = torch.randn(classes, 64, generator=random, dtype=torch.float64)
    x = 4 + centres[y] + 0.6 * torch.randn(items, 64, generator=random, dtype=torch.float64)
    within = y < torch.tensor([2, 3, 8, 16, classes, classes])[:, None]  # [P, N]
    left_out = torch.tensor([0, 1, 2, 80, 5, 60])[:, None]
    return x, y, within & (torch.arange(items) != left_out)


def test_fits_of_real_size_are_those_of_scikit_learn() -> None:
    x, y, chosen = realistic()
    queries = x + 0.3 * x.flip(0)
    fits = fit(x, y, chosen, 24)
    for p, items in enumerate(chosen):
        one = fits.of(torch.full((len(x),), p))
        fitted = scikit(1.0).fit(x[items].numpy(), y[items].numpy())
        expected = torch.zeros(len(x), 24, dtype=torch.float64)
        expected[:, fitted.classes_] = torch.from_numpy(fitted.predict_proba(queries.numpy()))
        torch.testing.assert_close(one.log_probabilities(queries).exp(), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_at_the_fit_the_gradient_of_the_objective_vanishes(scale: float) -> None:
    x, y, chosen = realistic()
    x = scale * x
    w = fit(x, y, chosen, 24, strength=0.7).weights.requires_grad_()
    logits = torch.einsum("nd,dpk->pnk", x, w[:-1]) + w[-1][:, None]
    for p, items in enumerate(chosen):
        present = torch.unique(y[items])
        loss = -logits[p].index_select(1, present).log_softmax(-1)
        at = torch.searchsorted(present, y[items])
        c = 0.35 if len(present) == 2 else 0.7
        value = c * loss[items].gather(1, at[:, None]).sum() + w[:-1, p].square().sum() / 2
        (gradient,) = torch.autograd.grad(value, w, retain_graph=True)
        assert float(gradient.abs().max()) < 2e-6


def test_where_a_fit_starts_and_in_which_axes_changes_nothing() -> None:
    x, y, chosen = realistic(items=40, classes=8)
    mean, axes = principal_axes(x)
    other = fit((x - mean) @ axes, y, chosen, 8, start=torch.randn(65, 6, 8, dtype=torch.float64))
    q = x[:6].flip(1)
    torch.testing.assert_close(
        fit(x, y, chosen, 8).log_probabilities(q).exp(),
        other.log_probabilities((q - mean) @ axes).exp(),
        atol=1e-5, rtol=0,
    )  # fmt: skip


def test_a_fit_that_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "NEWTON_STEPS", 2)
    with pytest.raises(WanderError, match="6 logistic regressions did not converge in 2 steps"):
        fit(*realistic(), 24)


def test_one_class_by_hand() -> None:
    features = torch.randn(1, 4, 6)
    scores, novelty = OfflineLR(OfflineConfig(6))(features, torch.tensor([[U, 2, U, 2]]), 3)
    # Nothing is known before the first name. After it all that was ever named is slot 2, so p = 1.
    assert novelty[0].tolist() == pytest.approx([CERTAINLY_NEW, CERTAINLY_NEW, *[math.log(1e-6)] * 2])
    assert scores[0, 2:].tolist() == [[UNUSED, UNUSED, 0.0]] * 2
    assert (scores[0, :2] == UNUSED).all()


def test_two_classes_by_hand() -> None:
    # Both classes lie symmetrically about 0, so a query at 0 is either with p = 1/2. While only one of them
    # is known, the other half is "new": a logit of exactly 0. When both are, so is the best p.
    x = torch.tensor([1.0, 0.0, -1.0, 0.0])[None, :, None]
    scores, novelty = OfflineLR(OfflineConfig(1))(x, torch.tensor([[0, U, 1, U]]), 2)
    assert novelty[0, [1, 3]].tolist() == pytest.approx([0, 0], abs=1e-5)
    assert scores[0, 1].tolist() == pytest.approx([0, UNUSED])
    assert scores[0, 3].tolist() == pytest.approx([math.log(0.5)] * 2, abs=1e-5)


def test_the_future_is_read() -> None:
    features, given = few_classes(3, 1.0)
    learner = OfflineLR(OfflineConfig(6))
    later = features.clone()
    later[:, -1] += 3
    changed = (learner(later, given, 5).novelty - learner(features, given, 5).novelty).abs()
    assert (changed[:, 8] > 1e-3).all()


@settings(deadline=None, max_examples=10)
@over(st.integers(0, 10**6), st.sampled_from([1.0, 0.4]), st.integers(1, 14), st.integers(U, 6))
def test_what_is_told_at_a_meeting_does_not_reach_its_answer(
    seed: int, labelled: float, t: int, told: int
) -> None:
    features, given = few_classes(seed, labelled)
    other = given.clone()
    other[:, t] = told
    learner = OfflineLR(OfflineConfig(6))
    a, b = learner(features, given, 7), learner(features, other, 7)
    assert_close(Answers(a.scores[:, t], a.novelty[:, t]), Answers(b.scores[:, t], b.novelty[:, t]))


@pytest.mark.parametrize("labelled", [1.0, 0.4])
def test_a_step_answers_as_if_the_sequence_ended_there(labelled: float) -> None:
    features, given = few_classes(7, labelled)
    learner = OfflineLR(OfflineConfig(6))
    state = learner.begin(3, 5)
    for t in range(given.shape[1]):
        answer, state = learner.step(state, features[:, t], given[:, t])
        ended = learner(features[:, : t + 1], given[:, : t + 1], 5)
        assert_close(answer, Answers(ended.scores[:, -1], ended.novelty[:, -1]))
    assert state.features.shape[1] == (given != U).any(0).sum()


def test_it_keeps_every_law_but_those_it_cannot() -> None:
    learner = OfflineLR(OfflineConfig(6))
    report = check_learner(learner)
    assert report.passed, str(report)
    exempt = {found.law for found in report.findings if found.outcome == "exempt"}
    assert exempt == {"causal", "agreement", "gradients"}
    others = {found.law for found in report.findings} - exempt
    learner.exempt = dict.fromkeys(others, "tried above")  # type: ignore[misc]
    assert {law for law, _ in check_learner(learner).failures} == exempt


def test_it_cannot_be_trained_and_says_so() -> None:
    features, given = few_classes(0, 1.0)
    with pytest.raises(WanderError, match=r"cannot be trained.*--offline"):
        OfflineLR(OfflineConfig(6)).train()(features.requires_grad_(), given, 5)


@pytest.mark.parametrize("config", [OfflineConfig(strength=0.0), OfflineConfig(least_classes=0)])
def test_a_config_that_makes_no_sense_is_refused(config: OfflineConfig) -> None:
    with pytest.raises(WanderError, match="strength above 0 and at least 1 class"):
        OfflineLR(config)


def test_a_model_can_be_built_and_described_with_it() -> None:
    config = ModelConfig(encoder=Conv4Config(channels=4), learner=OfflineConfig(features=4, strength=2.0))
    assert from_json(ModelConfig, to_json(config)) == config
    model = build(config).eval()
    assert isinstance(model.learner, OfflineLR)
    given = torch.tensor([[0, 1, U, 0, U]])
    answers = model(torch.rand(1, 5, 1, 28, 28), given, torch.ones(1, 5, dtype=torch.bool), 3)
    assert answers.scores[0, 4].isfinite().all()
    assert (answers.scores[0, 4] > UNUSED).tolist() == [True, True, False]
