"""Records for the tests of metrics: random ones, and one small enough to be worked by hand."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from tests import slow_metrics as slow
from wanderlearn.metrics import Record
from wanderlearn.worlds.sequence import NEW, UNLABELED

law = settings(deadline=None, max_examples=80)


def close(value: float) -> Any:
    return pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True)


def made(
    seed: int, sequences: int, steps: int, classes: int, labelled: float, ties: bool, skill: float
) -> Record:
    """A random record whose targets follow from truth and labels; what is padded holds rubbish."""
    rng = np.random.default_rng(seed)
    shape = (sequences, steps)
    truth = rng.integers(classes, size=shape)
    given_ = np.where(rng.random(shape) < labelled, truth, UNLABELED)
    target = np.full(shape, NEW)
    for n in range(sequences):
        told: set[int] = set()
        for t in range(steps):
            if int(truth[n, t]) in told:
                target[n, t] = truth[n, t]
            if given_[n, t] != UNLABELED:
                told.add(int(truth[n, t]))
    novelty = rng.normal(scale=3, size=shape) + np.where(target == NEW, 1, -1)
    confidence = -rng.exponential(size=shape)
    if ties:
        novelty, confidence = np.round(novelty / 2), np.round(confidence)
    predicted = np.where(rng.random(shape) < skill, truth, rng.integers(classes, size=shape))
    valid = np.arange(steps) < rng.integers(0, steps + 1, size=(sequences, 1))
    for array, rubbish in ((novelty, np.nan), (confidence, np.nan), (predicted, -7), (target, 1), (truth, 0)):
        array[~valid] = rubbish
    return Record(novelty, predicted, confidence, target, truth, given_, valid)


records = st.builds(
    made,
    seed=st.integers(0, 2**32 - 1),
    sequences=st.integers(1, 6),
    steps=st.integers(1, 40),
    classes=st.integers(1, 8),
    labelled=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    ties=st.booleans(),
    skill=st.sampled_from([0.0, 0.6, 1.0]),
)
long_records = st.builds(
    made,
    seed=st.integers(0, 2**32 - 1),
    sequences=st.integers(1, 4),
    steps=st.integers(80, 160),
    classes=st.integers(20, 50),
    labelled=st.sampled_from([0.4, 1.0]),
    ties=st.just(False),
    skill=st.just(0.6),
)


def listed(record: Record) -> slow.Sequences:
    return [
        [
            slow.Step(
                float(record.novelty[n, t]),
                int(record.predicted[n, t]),
                float(record.confidence[n, t]),
                int(record.target[n, t]),
                int(record.truth[n, t]),
                int(record.given[n, t]),
                t,
            )
            for t in range(record.valid.shape[1])
            if record.valid[n, t]
        ]
        for n in range(len(record))
    ]


def flat(record: Record, *names: str) -> list[npt.NDArray[Any]]:
    return [getattr(record, name)[record.valid] for name in names]


def worked() -> Record:
    """Two sequences, labels in capitals: A b a B A b (padded: none), and A A a - - - (three padded).

    Slots: A = 0, B = 1. Known are, in the first, steps 2, 4, 5; in the second, steps 1, 2.
    """
    off = 0
    u = UNLABELED
    return Record(
        novelty=np.array([[9.0, 1.0, -3.0, 2.0, -2.0, -1.0], [8.0, -4.0, 0.5, off, off, off]]),
        predicted=np.array([[0, 0, 0, 0, 0, 0], [0, 0, 1, off, off, off]]),
        confidence=np.log([[1.0, 1.0, 0.5, 1.0, 1.0, 0.9], [1.0, 0.1, 1.0, 1.0, 1.0, 1.0]]),
        target=np.array([[NEW, NEW, 0, NEW, 0, 1], [NEW, 0, 0, NEW, NEW, NEW]]),
        truth=np.array([[0, 1, 0, 1, 0, 1], [0, 0, 0, off, off, off]]),
        given=np.array([[0, u, u, 1, 0, u], [0, 0, u, u, u, u]]),
        valid=np.array([[True] * 6, [True] * 3 + [False] * 3]),
    )


def arrays() -> dict[str, Any]:
    record = worked()
    names = ("novelty", "predicted", "confidence", "target", "truth", "given", "valid")
    return {name: getattr(record, name).copy() for name in names}
