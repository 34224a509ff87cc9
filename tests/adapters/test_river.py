"""The river adapter: that library's own checks, and what they do not look at."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import checks

from wanderlearn import WanderError, load
from wanderlearn.adapters.river import WanderClassifier
from wanderlearn.adapters.sklearn import WanderClassifier as SklearnWander
from wanderlearn.pictures.glyphs import draw_alphabet

CHECKS = list(checks.yield_checks(WanderClassifier()))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_checks_of_river(check: Callable[[Any], None]) -> None:
    check(WanderClassifier())


def test_there_are_checks() -> None:
    assert len(CHECKS) > 20


streams = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).normal(size=(25, 3)))
few = settings(max_examples=8)


@few
@given(streams)
def test_it_is_the_same_learner_as_in_scikit_learn(X: Any) -> None:
    river, sklearn = WanderClassifier(), SklearnWander()
    for n, row in enumerate(X):
        label = None if n % 4 == 3 else f"class {n % 3}"
        river.learn_one(dict(zip("abc", row.tolist(), strict=True)), label)
        sklearn.partial_fit(row[None], None if label is None else [label])
    for row in X:
        said = river.predict_proba_one(dict(zip("abc", row.tolist(), strict=True)))
        (expected,) = sklearn.predict_proba(row[None])
        assert [said[label] for label in sklearn.classes_] == pytest.approx(expected.tolist(), abs=1e-9)
        assert river.novelty_one(dict(zip("abc", row, strict=True))) == pytest.approx(
            sklearn.novelty(row[None])[0]
        )


@few
@given(streams)
def test_a_feature_that_comes_late_was_zero_before(X: Any) -> None:
    late, always = WanderClassifier(), WanderClassifier()
    for n, (a, b, c) in enumerate(X.tolist()):
        first = n < 10
        late.learn_one({"a": a, "b": b} if first else {"a": a, "b": b, "c": c}, n % 3)
        always.learn_one({"a": a, "b": b, "c": 0 if first else c}, n % 3)
    for a, b, c in X.tolist():
        x = {"a": a, "b": b, "c": c}
        assert late.predict_proba_one(x) == pytest.approx(always.predict_proba_one(x), abs=1e-4)
        assert late.novelty_one(x) == pytest.approx(always.novelty_one(x), abs=1e-4)
        assert late.predict_proba_one(x | {"never": 9.0}) == late.predict_proba_one(x)


def test_looking_changes_nothing() -> None:
    learner = WanderClassifier()
    assert learner.predict_one({"a": 1.0}) is None
    assert learner.novelty_one({"a": 1.0}) == 1
    learner.learn_one({"a": 1.0}, "x")
    before = copy.deepcopy(learner)
    for value in (0.0, 1.0, 50.0):
        learner.predict_one({"a": value})
        learner.novelty_one({"a": value, "b": 1})
    assert learner.predict_proba_one({"a": 2.0}) == before.predict_proba_one({"a": 2.0}) == {"x": 1.0}
    assert learner._memory is not None
    assert before._memory is not None
    np.testing.assert_array_equal(learner._memory.memory.arrays()["rows"],
                                  before._memory.memory.arrays()["rows"])  # fmt: skip


def test_pictures_are_seen_as_the_agent_sees_them() -> None:
    characters = draw_alphabet(1001, 4)
    learner, agent = WanderClassifier("cpm-glyphs"), load("cpm-glyphs")
    for hand in range(3):
        for name, drawings in zip("ABC", characters, strict=False):
            label = None if hand == 1 else name
            learner.learn_one(drawings[hand], label)
            agent.tell(agent.look(drawings[hand]), label)
    for drawings in characters:
        answer = agent.look(drawings[9])
        assert learner.predict_one(drawings[9]) == answer.ranking[0][0]
        assert learner.novelty_one(drawings[9]) == pytest.approx(answer.p_new, abs=1e-5)


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(WanderError, match=r"no number.*OneHotEncoder"):
        WanderClassifier().learn_one({"colour": "red"}, 1)
    with pytest.raises(WanderError, match="dictionary of numbers"):
        WanderClassifier().learn_one([1.0, 2.0], 1)
    with pytest.raises(WanderError, match="not finite"):
        WanderClassifier().learn_one({"a": float("nan")}, 1)
    with pytest.raises(WanderError, match="Cannot look at a dict"):
        WanderClassifier("protonet-glyphs").learn_one({"a": 1.0}, 1)
