"""Calibration errors and risk over coverage: laws, slow versions, and what the summary says."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.live_agents import KINDS, agent_of, feature, small_model
from tests.metric_records import arrays, close, law, records, worked
from wanderlearn import WanderError
from wanderlearn.cli.evaluate import _trust
from wanderlearn.metrics import (
    RISKS,
    Record,
    naming_confidence,
    naming_reliability,
    naming_risk,
    new_reliability,
    reliability,
    risk_coverage,
    summary,
)
from wanderlearn.worlds.sequence import NEW

answers = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5000001, 0.9, 1.0]), st.booleans()), max_size=60
)


def flat(pairs: list[tuple[float, bool]]) -> tuple[list[float], list[bool]]:
    return [p for p, _ in pairs], [right for _, right in pairs]


# Risk over coverage


@law
@given(answers)
def test_risk_over_coverage_is_what_counting_gives(pairs: list[tuple[float, bool]]) -> None:
    confidence, right = flat(pairs)
    curve = risk_coverage(confidence, right)
    assert curve.confidence.tolist() == sorted(set(confidence), reverse=True)
    for c, accepted, wrong in zip(curve.confidence, curve.accepted, curve.wrong, strict=True):
        taken = [good for p, good in pairs if p >= c]
        assert (accepted, wrong) == (len(taken), taken.count(False))
    if not pairs:
        assert all(math.isnan(x) for x in (curve.area, curve.best_area, curve.coverage_at(0.5)))
        return
    assert curve.coverage[-1] == 1
    assert curve.risk[-1] == close(right.count(False) / len(right))  # ends at the overall error
    every = {p: curve.risk[n] for n, p in enumerate(curve.confidence.tolist())}
    assert curve.area == close(sum(every[p] for p in confidence) / len(confidence))
    assert curve.excess_area > -1e-12


@law
@given(answers)
def test_no_ranking_beats_the_best_one(pairs: list[tuple[float, bool]]) -> None:
    _, right = flat(pairs)
    if not pairs:
        return
    perfect = risk_coverage(np.where(right, 2.0, 1.0) + np.linspace(0, 0.5, len(right)), right)
    assert perfect.excess_area == close(0.0)
    assert perfect.best_area == close(risk_coverage(*flat(pairs)).best_area)
    worst = risk_coverage(np.where(right, 1.0, 2.0) + np.linspace(0, 0.5, len(right)), right)
    assert worst.area >= perfect.area - 1e-12


@law
@given(answers, st.floats(0, 1), st.floats(0, 1))
def test_more_risk_covers_more(pairs: list[tuple[float, bool]], one: float, other: float) -> None:
    curve = risk_coverage(*flat(pairs))
    if not pairs:
        return
    low, high = sorted((one, other))
    assert curve.coverage_at(low) <= curve.coverage_at(high)
    taken = [n / len(pairs) for n, w in zip(curve.accepted, curve.wrong, strict=True) if w / n <= low]
    assert curve.coverage_at(low) == close(max(taken, default=0.0))
    assert curve.coverage_at(1.0) == 1


def test_a_curve_worked_by_hand() -> None:
    curve = risk_coverage([0.9, 0.8, 0.8, 0.1], [True, False, True, True])
    assert curve.accepted.tolist() == [1, 3, 4]
    assert curve.wrong.tolist() == [0, 1, 1]
    assert curve.area == close((0 + 1 / 3 + 1 / 3 + 1 / 4) / 4)
    assert curve.best_area == close(1 / 16)
    assert [curve.coverage_at(r) for r in (0.0, 0.25, 0.3, 0.34)] == [0.25, 1.0, 1.0, 1.0]


# Calibration error


@law
@given(answers, st.integers(1, 20), st.randoms(use_true_random=False))
def test_bins_are_of_equal_mass_and_order_is_no_matter(
    pairs: list[tuple[float, bool]], bins: int, chance: object
) -> None:
    found = reliability(*flat(pairs), bins)
    assert int(found.meetings.sum()) == len(pairs)
    if not pairs:
        assert math.isnan(found.error)
        return
    assert int(found.meetings.max()) - int(found.meetings.min()) <= 1
    assert len(found.meetings) == min(bins, len(pairs))
    assert (np.diff(found.promised) >= 0).all()
    mean = np.average(found.came_true, weights=found.meetings)
    assert mean == close(sum(right for _, right in pairs) / len(pairs))
    mixed = pairs.copy()
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert reliability(*flat(mixed), bins).error == close(found.error)


def test_a_calibration_error_worked_by_hand() -> None:
    found = reliability([0.1, 0.3, 0.6, 0.8], [False, True, True, True], bins=2)
    assert found.promised.tolist() == pytest.approx([0.2, 0.7])
    assert found.came_true.tolist() == [0.5, 1.0]
    assert found.error == close(0.3)


@pytest.mark.parametrize("seed", range(5))
def test_a_probability_that_means_it_has_no_error_but_noise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.7, size=40_000)
    true = rng.random(len(p)) < p
    noise = math.sqrt(15 / len(p)) / 2
    assert reliability(p, true).error < noise
    assert reliability(np.sqrt(p), true).error > 5 * noise  # too sure
    assert reliability(np.full(len(p), true.mean()), true).error < noise  # says little, but says it rightly


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(WanderError, match="between 0 and 1"):
        reliability([1.2], [True])
    with pytest.raises(WanderError, match="between 0 and 1"):
        reliability([math.nan], [True])
    with pytest.raises(WanderError, match="flat arrays of one length"):
        reliability([0.5, 0.5], [True])
    with pytest.raises(WanderError, match="at least 1 bin"):
        reliability([0.5], [True], bins=0)
    with pytest.raises(WanderError, match="NaN"):
        risk_coverage([math.nan], [True])
    with pytest.raises(WanderError, match="flat arrays of one length"):
        risk_coverage([[0.5]], [[True]])


# Of a record


@law
@given(records)
def test_figures_of_a_record_are_those_of_its_meetings(record: Record) -> None:
    valid = record.valid
    confidence = naming_confidence(record)
    assert (confidence[~valid] == 0).all()
    p_known = 1 / (1 + np.exp(record.novelty[valid]))
    np.testing.assert_allclose(confidence[valid], p_known * np.exp(record.confidence[valid]), rtol=1e-9)
    curve = naming_risk(record)
    if not record.steps:
        assert math.isnan(curve.area)
        return
    assert curve.risk[-1] == close(1 - record.correct.sum() / record.steps)
    naming, new = naming_reliability(record), new_reliability(record)
    assert np.average(naming.came_true, weights=naming.meetings) == close(record.correct[valid].mean())
    assert np.average(new.came_true, weights=new.meetings) == close((record.target[valid] == NEW).mean())
    assert np.average(new.promised, weights=new.meetings) == close((1 - p_known).mean())


def test_the_summary_says_it_in_percent() -> None:
    found = json.loads(json.dumps(summary(worked()), allow_nan=False))["calibration"]
    assert found["naming_error"] == close(100 * naming_reliability(worked()).error)
    assert found["aurc"] == close(100 * naming_risk(worked()).area)
    assert [cell["risk"] for cell in found["coverage_at_risk"]] == [100 * risk for risk in RISKS]
    assert sum(cell["meetings"] for cell in found["new_bins"]) == 9
    words = dict(_trust(found))
    assert words["calibration error of naming"] == f"{found['naming_error']:.2f}"
    assert words["labels accepted with 5 % wrong"] == f"{found['coverage_at_risk'][2]['coverage']:.2f}"


def test_where_nothing_was_met_the_summary_says_so() -> None:
    nothing = Record(**(arrays() | {"valid": np.zeros((2, 6), dtype=bool)}))
    found = summary(nothing)["calibration"]
    assert found["naming_error"] is None
    assert found["aurc"] is None
    assert found["reason"] == "there is no valid step"
    assert dict(_trust(found))["calibration error of new"] == "-"


@pytest.mark.parametrize("kind", ["cpm", "protonet", "matchingnet cosine", "imp"])
def test_the_confidence_of_a_live_answer_is_that_of_a_record(kind: str) -> None:
    assert kind in KINDS
    agent, learner = agent_of(kind), small_model(kind).learner
    things = np.stack([feature(n) for n in range(40)])
    slots = np.array([n % 6 for n in range(40)])
    with torch.inference_mode():
        said = learner(torch.from_numpy(things)[None], torch.from_numpy(slots)[None], 6)
    novelty = said.novelty[0].double().numpy()
    sure = said.scores[0].log_softmax(-1).amax(-1).double().numpy()
    expected = np.exp(sure - np.logaddexp(0, novelty))
    for t in range(40):
        answer = agent.look(things[t])
        assert answer.confidence == pytest.approx(expected[t], abs=2e-4)
        agent.tell(answer, f"class {slots[t]}")
    assert agent_of(kind).look(things[0]).confidence == 0
