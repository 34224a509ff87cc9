"""The scikit-learn adapter: that library's own checks, and what they do not look at."""

import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from wanderlearn import Agent, WanderError, load
from wanderlearn.adapters.memory import SHARPNESS
from wanderlearn.adapters.sklearn import WanderClassifier
from wanderlearn.pictures.glyphs import draw_alphabet

CHECKS = [
    (check.func.__name__ + "".join(f"-{name}={value}" for name, value in check.keywords.items()), one, check)
    for one, check in estimator_checks_generator(WanderClassifier())
]


# The check of other containers wants pandas, which nothing here needs; array API wants a variable of scipy's.
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(one, check, id=name)
        for name, one, check in CHECKS
        if not name.startswith(("check_classifier_data_not_an_array", "check_array_api_input"))
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # scikit-learn's own
def test_checks_of_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_there_are_checks() -> None:
    assert len(CHECKS) > 45


vectors = st.integers(0, 2**32 - 1).map(
    lambda seed: np.random.default_rng(seed).normal(size=(30, 1 + seed % 7))
)
few = settings(max_examples=8)


@few
@given(vectors, st.integers(2, 5))
def test_it_is_the_nearest_class_mean(X: Any, classes: int) -> None:
    y = np.arange(len(X)) % classes
    learner = WanderClassifier(new_beyond=0.7).fit(X, y)
    means = np.stack([X[y == c].mean(axis=0) for c in range(classes)])
    apart = ((X[:, None] - means) ** 2).mean(axis=2)  # [N, C] per feature
    np.testing.assert_array_equal(learner.predict(X), apart.argmin(axis=1))
    expected = np.exp(-SHARPNESS * apart)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(learner.predict_proba(X), expected, atol=1e-4)
    nearest = apart.min(axis=1)
    clear = np.abs(nearest - 0.7) > 1e-4
    np.testing.assert_array_equal(learner.predict_new(X)[clear], nearest[clear] > 0.7)


@few
@given(vectors, st.integers(1, 29))
def test_meeting_in_parts_is_meeting_at_once(X: Any, cut: int) -> None:
    y = np.where(np.arange(len(X)) % 3, np.arange(len(X)) % 4, -1)
    y[0] = 2
    whole = WanderClassifier(unlabelled=-1).fit(X, y)
    parts = WanderClassifier(unlabelled=-1).partial_fit(X[:cut], y[:cut]).partial_fit(X[cut:], y[cut:])
    assert whole.classes_.tolist() == parts.classes_.tolist() == sorted(set(y) - {-1})
    np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))
    again = pickle.loads(pickle.dumps(parts)).partial_fit(X, y)
    np.testing.assert_array_equal(again.novelty(X), parts.partial_fit(X, y).novelty(X))


def test_no_label_is_written_in_several_ways() -> None:
    X = StandardScaler().fit_transform(load_iris().data)[::5]
    y = load_iris().target[::5]
    hidden = np.arange(len(y)) % 2 == 1
    signs = WanderClassifier(unlabelled=-1).fit(X, np.where(hidden, -1, y))
    nones = WanderClassifier().fit(X, np.where(hidden, None, y))
    apart = WanderClassifier()
    for row, label, is_hidden in zip(X, y, hidden, strict=True):
        apart.partial_fit(row[None], None if is_hidden else [label])
    told = WanderClassifier().fit(X[~hidden], y[~hidden])
    for one in (nones, apart):
        assert one.classes_.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(one.predict_proba(X), signs.predict_proba(X))
    assert not np.allclose(told.predict_proba(X), signs.predict_proba(X))  # it learned without labels too
    plain = WanderClassifier().fit([[0.0], [3.0]], [-1, 1])  # a label like any other
    assert plain.predict([[0.1], [2.9]]).tolist() == [-1, 1]


def test_a_class_that_was_never_told_is_new() -> None:
    X = StandardScaler().fit_transform(load_iris().data)
    learner = WanderClassifier().fit(X[:100], load_iris().target[:100])
    known, unknown = learner.novelty(X[:50]), learner.novelty(X[100:] + 5)
    assert known.mean() < 0.2
    assert unknown.mean() > 0.8
    # However near to the origin: the zero vector is no class.
    far = WanderClassifier().fit([[5.0, 5.0], [6.0, 6.0]], ["a", "a"])
    assert far.predict_new([[0.0, 0.0], [5.5, 5.5]]).tolist() == [True, False]


def test_classes_may_be_named_before_they_are_met() -> None:
    learner = WanderClassifier().partial_fit([[0.0], [1.0]], None, classes=["b", "a"])
    assert learner.classes_.tolist() == ["a", "b"]
    assert learner.predict_proba([[0.0]]).tolist() == [[0.5, 0.5]]
    assert learner.novelty([[0.0]]).tolist() == [1.0]
    learner.partial_fit([[0.0]], ["b"])
    assert learner.predict_proba([[0.0]]).tolist() == [[0.0, 1.0]]
    learner.partial_fit([[4.0]], ["c"])  # nor need they be
    assert learner.classes_.tolist() == ["a", "b", "c"]
    assert learner.predict([[3.8]]).tolist() == ["c"]


def test_pictures_are_seen_as_the_agent_sees_them() -> None:
    characters = draw_alphabet(1001, 5)
    pictures, labels = characters[:4, :3].reshape(-1, 28, 28), np.repeat(list("ABCD"), 3)
    learner = WanderClassifier("cpm-glyphs").fit(pictures, labels)
    agent: Agent = load("cpm-glyphs")
    for picture, label in zip(pictures, labels, strict=True):
        agent.tell(agent.look(picture), str(label))
    queries = characters[:, 7]
    answers = [agent.look(query) for query in queries]
    np.testing.assert_allclose(learner.novelty(queries), [one.p_new for one in answers], atol=1e-5)
    assert learner.predict(queries).tolist() == [one.ranking[0][0] for one in answers]
    best = learner.predict_proba(queries).max(axis=1) * (1 - learner.novelty(queries))
    np.testing.assert_allclose(best, [one.confidence for one in answers], atol=1e-5)

    flat = clone(learner).fit(pictures.reshape(len(pictures), -1), labels)
    np.testing.assert_array_equal(flat.predict_proba(queries.reshape(5, -1)), learner.predict_proba(queries))
    features = np.stack(agent._encode(list(pictures)))
    encoded = clone(learner).fit(features, labels)
    np.testing.assert_allclose(encoded.predict_proba(np.stack(agent._encode(list(queries)))),
                               learner.predict_proba(queries), atol=1e-5)  # fmt: skip


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(NotFittedError):
        WanderClassifier().novelty([[0.0]])
    with pytest.raises(ValueError, match="need a label"):
        WanderClassifier().partial_fit([[0.0]])
    with pytest.raises(ValueError, match="2 rows, but 1 labels"):
        WanderClassifier().fit([[0.0], [1.0]], [1])
    with pytest.raises(WanderError, match="new_beyond"):
        WanderClassifier(new_beyond=0).fit([[0.0]], [1])
    with pytest.raises(WanderError, match="too large"):
        WanderClassifier().fit([[1e300]], [1])
    with pytest.raises(WanderError, match="neither a feature of these weights"):
        WanderClassifier("protonet-glyphs").fit(np.zeros((2, 5)), [0, 1])
    with pytest.raises(WanderError, match="no run folder or file of weights nobody"):
        WanderClassifier("nobody").fit(np.zeros((2, 784)), [0, 1])


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("sklearn", "river"):
        name = f"wanderlearn.adapters.{library}"
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setitem(sys.modules, "sklearn.base", None)
        monkeypatch.setitem(sys.modules, "river", None)
        with pytest.raises(WanderError, match=rf"wanderlearn\[{library}\]"):
            __import__(name)
