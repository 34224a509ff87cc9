"""The metrics equal a slow second version and scikit-learn on random records, ties and padding included."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import auc, precision_recall_curve

from tests import slow_metrics as slow
from tests.metric_records import close, flat, law, listed, long_records, made, records
from wanderlearn.metrics import (
    BINS,
    SHOTS,
    Record,
    accuracy_over_time,
    ap,
    ap_joint,
    average_precision,
    average_precision_joint,
    forgetting,
    known_accuracy,
    novelty_accuracy,
    shot_accuracy,
    summary,
)
from wanderlearn.worlds.sequence import NEW

# ---- against the slow version


@law
@given(records)
def test_average_precision_equals_the_slow_version(record: Record) -> None:
    expected = close(slow.average_precision(listed(record)))
    assert ap(record) == expected
    assert average_precision(*flat(record, "novelty", "predicted", "target")) == expected


@law
@given(records)
def test_joint_average_precision_equals_the_slow_version(record: Record) -> None:
    # Products of probabilities and sums of logarithms may round equal pairs apart; ties have their own test.
    products = record.confidence[record.valid] - np.logaddexp(0, record.novelty[record.valid])
    assume(len(products) < 2 or np.diff(np.sort(products)).min() > 1e-9)
    expected = close(slow.average_precision_joint(listed(record)))
    assert ap_joint(record) == expected
    assert average_precision_joint(*flat(record, "novelty", "confidence", "predicted", "target")) == expected


@law
@given(st.one_of(records, long_records), st.booleans())
def test_shot_accuracy_equals_the_slow_version(record: Record, labelled: bool) -> None:
    shots = shot_accuracy(record, "labelled" if labelled else "appearances")
    assert [shot.shots for shot in shots] == [1, 2, 3, 4, 5]
    for shot in shots:
        mean, macro, error, queries, sequences = slow.shots(listed(record), shot.shots, labelled)
        assert (shot.queries, shot.sequences) == (queries, sequences)
        assert (shot.mean, shot.macro, shot.standard_error) == (close(mean), close(macro), close(error))
        assert bool(shot.reason) == math.isnan(shot.mean)


@law
@given(records, st.booleans())
def test_accuracy_over_time_equals_the_slow_version(record: Record, known: bool) -> None:
    curve = accuracy_over_time(record, "known" if known else "all")
    expected = [slow.over_time(listed(record), t, known) for t in range(record.valid.shape[1])]
    assert curve.accuracy.tolist() == pytest.approx(expected, rel=1e-12, nan_ok=True)
    assert bool(curve.reason) == bool(np.isnan(curve.accuracy).any())


@law
@given(st.one_of(records, long_records), st.booleans())
def test_forgetting_equals_the_slow_version(record: Record, since_label: bool) -> None:
    cells = forgetting(record, "label" if since_label else "appearance")
    assert [(cell.first, cell.last, cell.shots) for cell in cells] == [(*b, n) for b in BINS for n in SHOTS]
    for cell in cells:
        accuracy, queries = slow.forgetting(listed(record), cell.first, cell.last, cell.shots, since_label)
        assert (cell.accuracy, cell.queries) == (close(accuracy), queries)
        assert bool(cell.reason) == (queries == 0)


def test_the_bins_are_those_of_the_paper() -> None:
    """A class labelled once at step 0 and met again after `interval` steps falls into one bin or none."""
    edges = {1: 1, 2: 1, 3: 3, 5: 3, 6: 6, 10: 6, 11: 11, 20: 11, 21: 21, 50: 21, 51: 51, 100: 51, 101: None}
    for interval, expected in edges.items():
        truth = np.arange(1, interval + 2)[None]  # every class once,
        truth[0, [0, interval]] = 0  # but for the first, which is also the last
        target = np.full(truth.shape, NEW)
        target[0, interval] = 0
        zeros, every = np.zeros(truth.shape), np.ones(truth.shape, dtype=bool)
        record = Record(zeros, truth, zeros, target, truth, truth, every)
        filled = [cell.first for cell in forgetting(record) if cell.queries]
        assert filled == ([] if expected is None else [expected])


@law
@given(records)
def test_plain_accuracies_equal_the_slow_version(record: Record) -> None:
    assert known_accuracy(record) == close(slow.known_accuracy(listed(record)))
    assert novelty_accuracy(record) == close(slow.novelty_accuracy(listed(record)))


# ---- against scikit-learn


@law
@given(records)
def test_average_precision_equals_scikit_learn(record: Record) -> None:
    """Area scales with recall, so scikit-learn's curve of right against all, times right / known, is AP.

    With every known step right it is the plain curve of known against new.
    """
    novelty, target, predicted = flat(record, "novelty", "target", "predicted")
    hit = (target != NEW) & (predicted == target)
    assume(hit.any())
    precision, recall, _ = precision_recall_curve(hit, -novelty)
    share = hit.sum() / (target != NEW).sum()
    assert ap(record) == pytest.approx(auc(recall, precision) * share, rel=1e-9)


def test_perfect_classes_leave_the_curve_of_known_against_new() -> None:
    record = made(3, sequences=20, steps=40, classes=8, labelled=0.6, ties=True, skill=1.0)
    novelty, target = flat(record, "novelty", "target")
    precision, recall, _ = precision_recall_curve(target != NEW, -novelty)
    assert 0.5 < ap(record) < 1
    assert ap(record) == pytest.approx(auc(recall, precision), rel=1e-12)


# ---- ties, order, far-out logits


@law
@given(records, st.integers(0, 2**32 - 1))
def test_the_order_of_steps_does_not_matter_even_with_ties(record: Record, seed: int) -> None:
    arrays = flat(record, "novelty", "confidence", "predicted", "target")
    order = np.random.default_rng(seed).permutation(record.steps)
    novelty, confidence, predicted, target = (array[order] for array in arrays)
    assert average_precision(novelty, predicted, target) == close(ap(record))
    assert average_precision_joint(novelty, confidence, predicted, target) == close(ap_joint(record))


def test_tied_steps_are_one_point() -> None:
    # One right, one wrong, tied: a single point (1/2, 1/2) after (0, 1); area 1/2 * (1 + 1/2) / 2.
    for predicted in ([0, 1], [1, 0]):
        assert average_precision([0.0, 0.0], predicted, [0, 0]) == 0.375
    # The order of appearance would give 1/2 or 1/4 instead: right first, or wrong first.
    assert average_precision([0.0, 1.0], [0, 1], [0, 0]) == 0.5
    assert average_precision([0.0, 1.0], [1, 0], [0, 0]) == 0.5 * (0 + 0.5) / 2


def test_without_ties_it_is_the_formula_step_by_step() -> None:
    rng = np.random.default_rng(5)
    novelty, predicted = rng.permutation(50).astype(float), rng.integers(3, size=50)
    target = np.where(rng.random(50) < 0.3, NEW, rng.integers(3, size=50))
    hits = np.cumsum((predicted == target)[np.argsort(novelty)])
    precision = np.r_[1, hits / np.arange(1, 51)]
    recall = np.r_[0, hits / (target != NEW).sum()]
    assert average_precision(novelty, predicted, target) == close(auc(recall, precision))


def test_saying_new_is_no_hit_even_where_it_is_the_target() -> None:
    # A caller who puts NEW into `predicted` gains nothing by it: one new step first, then one right.
    assert average_precision([0.0, 1.0], [NEW, 0], [NEW, 0]) == (0 + 0.5) / 2


def test_far_out_logits_keep_their_order() -> None:
    # sigmoid(-800) is 0 in double precision; the joint ranking must still tell 800 from 900.
    right_first = average_precision_joint([800.0, 900.0], [0.0, 0.0], [0, 1], [0, 0])
    wrong_first = average_precision_joint([900.0, 800.0], [0.0, 0.0], [0, 1], [0, 0])
    assert (right_first, wrong_first) == (0.5, 0.125)
    assert average_precision([-math.inf, math.inf], [0, 0], [0, NEW]) == 1


def test_the_joint_ranking_weighs_the_class() -> None:
    # An unsure wrong class comes last when its probability counts.
    novelty, confidence = [-2.0, -1.0], np.log([0.3, 0.99])
    assert average_precision(novelty, [1, 0], [0, 0]) == 0.125
    assert average_precision_joint(novelty, confidence, [1, 0], [0, 0]) == 0.5


# ---- laws


@law
@given(records)
def test_with_every_label_the_two_countings_and_readings_agree(record: Record) -> None:
    told = Record(
        record.novelty,
        record.predicted,
        record.confidence,
        record.target,
        record.truth,
        record.truth,
        record.valid,
    )
    assert np.array_equal(told.labels, told.appearances)
    assert np.array_equal(told.since_label, told.since_appearance)


@law
@given(records, records)
def test_joining_records_keeps_every_sequence(first: Record, second: Record) -> None:
    joined = Record.concat([first, second])
    assert listed(joined) == listed(first) + listed(second)
    assert listed(joined.take(range(len(first)))) == listed(first)


@law
@given(records, st.integers(0, 2**32 - 1))
def test_taking_sequences_equals_repeating_them(record: Record, seed: int) -> None:
    """What a bootstrap relies on: figures carried over to a resample are those of a record made anew."""
    summary(record)  # works out all that can be carried over
    chosen = np.random.default_rng(seed).integers(len(record), size=len(record) + 2)
    anew = Record.concat([record.take([n]) for n in chosen])
    taken = record.take(chosen)
    assert _same(summary(taken), summary(anew))
    assert ap(taken) == close(average_precision(*flat(anew, "novelty", "predicted", "target")))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == (close(other) if isinstance(other, float) else other))
