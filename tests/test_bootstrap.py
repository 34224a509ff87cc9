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
    ap_interval,
    bootstrap,
    known_accuracy,
    paired_bootstrap,
    shot_accuracy,
)
from wanderlearn.worlds.sequence import NEW

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


@pytest.mark.parametrize("ties", [True, False])
def test_the_quick_interval_of_ap_is_the_bootstraps(ties: bool) -> None:
    record = made(11, sequences=12, steps=20, classes=4, labelled=0.7, ties=ties, skill=0.6)
    slow_one, quick = (
        f(record, resamples=60, seed=4) for f in (lambda *a, **k: bootstrap(a[0], ap, **k), ap_interval)
    )
    assert quick.value == slow_one.value
    assert (quick.low, quick.high) == (close(slow_one.low), close(slow_one.high))
    assert ap_interval(record, resamples=60, seed=4) == quick
    assert ap_interval(record, resamples=60, seed=5) != quick


def test_the_quick_interval_is_hardly_moved_by_its_bins() -> None:
    record = made(3, sequences=60, steps=80, classes=6, labelled=0.7, ties=False, skill=0.6)
    exact, binned = bootstrap(record, ap, resamples=100), ap_interval(record, resamples=100, bins=400)
    assert len(np.unique(record.novelty[record.valid])) > 2000  # far more than bins
    width = exact.high - exact.low
    assert abs(binned.low - exact.low) < 0.05 * width
    assert abs(binned.high - exact.high) < 0.05 * width


def test_an_interval_of_ap_needs_two_sequences_and_something_known() -> None:
    one = ap_interval(worked().take([0]))
    assert not math.isnan(one.value)
    assert math.isnan(one.low)
    assert "at least two" in one.reason
    hidden = arrays()
    hidden["target"][:] = NEW
    assert math.isnan(ap_interval(Record(**hidden)).low)
    half = arrays()
    half["target"][0] = NEW  # a resample of the first sequence alone knows nothing
    found = ap_interval(Record(**half), resamples=100)
    assert "of 100 resamples left out" in found.reason
    assert found.low == close(found.value)
    with pytest.raises(WanderError, match="at least one resample"):
        ap_interval(worked(), resamples=0)


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


def test_several_trainings_are_compared_by_their_means_on_the_same_resamples() -> None:
    first, second = (
        made(12, sequences=12, steps=20, classes=5, labelled=0.7, ties=False, skill=skill)
        for skill in (0.8, 0.4)
    )
    ours, theirs = [first, better(first)], [better(second), second]
    rng = np.random.default_rng(3)
    draws = []
    for _ in range(40):
        drawn = rng.integers(12, size=12)
        of_each = [[ap(record.take(drawn)) for record in side] for side in (ours, theirs)]
        draws.append(np.mean(of_each[0]) - np.mean(of_each[1]))
    found = paired_bootstrap(ours, theirs, ap, resamples=40, seed=3)
    assert found.value == close(sum(ap(x) for x in ours) / 2 - sum(ap(x) for x in theirs) / 2)
    assert (found.low, found.high) == (close(np.percentile(draws, 2.5)), close(np.percentile(draws, 97.5)))
    assert paired_bootstrap([first], [second], ap, resamples=9) == paired_bootstrap(first, second, ap, 9)
    with pytest.raises(WanderError, match="one manifest"):
        paired_bootstrap([first, first.take([0])], [second], ap)
    with pytest.raises(WanderError, match="a record of each"):
        paired_bootstrap([], [second], ap)


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
