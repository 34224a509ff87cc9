"""Intervals are those of literal resampling, pairs are drawn together, and mismatches are refused."""

import math

import numpy as np
import pytest

from tests import slow_metrics as slow
from tests.metric_records import arrays, close, listed, made, worked
from wanderlearn.errors import WanderError
from wanderlearn.metrics import (
    Record,
    ap,
    bootstrap,
    known_accuracy,
    paired_bootstrap,
    shot_accuracy,
)

# ---- bootstrap


def test_a_bootstrap_is_literal_resampling() -> None:
    record = made(11, sequences=12, steps=20, classes=4, labelled=0.7, ties=True, skill=0.6)
    rng = np.random.default_rng(4)
    draws = []
    for _ in range(50):
        steps = [listed(record)[n] for n in rng.integers(12, size=12)]
        draws.append(slow.average_precision(steps))
    found = bootstrap(record, ap, resamples=50, seed=4)
    assert found.value == ap(record)
    assert (found.low, found.high) == (close(np.percentile(draws, 2.5)), close(np.percentile(draws, 97.5)))
    assert found.low < found.value < found.high


def better(record: Record) -> Record:
    """The same sequences answered by a learner that knows every class."""
    return Record(
        record.novelty,
        np.where(record.valid, record.truth, 0),
        record.confidence,
        record.target,
        record.truth,
        record.given,
        record.valid,
    )


def test_a_paired_bootstrap_draws_the_same_sequences_for_both() -> None:
    record = made(12, sequences=40, steps=30, classes=5, labelled=0.7, ties=False, skill=0.6)
    nothing = paired_bootstrap(record, record, ap, resamples=20)
    assert (nothing.value, nothing.low, nothing.high) == (0, 0, 0)
    gain = paired_bootstrap(better(record), record, known_accuracy, resamples=200)
    assert gain.value == 1 - known_accuracy(record)
    assert 0 < gain.low < gain.value < gain.high < 1
    loss = paired_bootstrap(record, better(record), known_accuracy, resamples=200)
    assert (loss.value, loss.low, loss.high) == (-gain.value, close(-gain.high), close(-gain.low))
    assert paired_bootstrap(record, better(record), known_accuracy, resamples=200) == loss
    assert paired_bootstrap(record, better(record), known_accuracy, resamples=200, seed=1) != loss


def test_resamples_without_a_value_are_left_out_and_said() -> None:
    record = worked()  # twice labelled occurs in one sequence of two: about a quarter of resamples lack it
    found = bootstrap(record, lambda drawn: shot_accuracy(drawn)[1].mean, resamples=100)
    assert (found.value, found.low, found.high) == (0, 0, 0)
    assert "of 100 resamples left out" in found.reason
    found = bootstrap(record, lambda drawn: shot_accuracy(drawn)[2].mean, resamples=5)
    assert math.isnan(found.low)
    assert found.reason == "the metric is NaN on the whole record"


def test_a_bootstrap_refuses_what_cannot_be_compared() -> None:
    record = worked()
    with pytest.raises(WanderError, match="one manifest"):
        paired_bootstrap(record, record.take([0]), ap)
    other = arrays()
    other["given"][0, 1] = 1
    with pytest.raises(WanderError, match="given differs at sequence 0, step 1"):
        paired_bootstrap(record, Record(**other), ap)
    with pytest.raises(WanderError, match="at least one resample"):
        bootstrap(record, ap, resamples=0)
    with pytest.raises(WanderError, match="at least one sequence"):
        bootstrap(record.take([]), ap)
