"""The metrics of a record worked by hand, of records with nothing to measure, and of broken ones."""

import json
import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.metric_records import arrays, close, worked
from wanderlearn.errors import WanderError
from wanderlearn.metrics import (
    Record,
    accuracy_over_time,
    ap,
    ap_joint,
    average_precision,
    average_precision_joint,
    forgetting,
    shot_accuracy,
    summary,
)
from wanderlearn.worlds.sequence import NEW, target_of

# ---- worked by hand


def test_worked_targets_follow_the_rule() -> None:
    record = worked()
    truth, told = (array[0].astype(np.int64) for array in (record.truth, record.given))
    assert record.target[0].tolist() == target_of(truth, told).tolist()


def test_worked_average_precision() -> None:
    # Ascending novelty: -4 right, -3 right, -2 right, -1 wrong (said A for B), 0.5 wrong (said B for A), then
    # new ones. Five known. After one, two, three: precision 1, recall 1/5, 2/5, 3/5; recall stays: AP = 3/5.
    assert ap(worked()) == pytest.approx(3 / 5, rel=1e-12)


def test_worked_joint_average_precision() -> None:
    # P(known) x P(class): step (0,2) sigmoid(3) * 0.5 = 0.476 right; (0,4) sigmoid(2) = 0.881 right;
    # (0,5) sigmoid(1) * 0.9 = 0.658 wrong; (1,1) sigmoid(4) * 0.1 = 0.098 right; (1,2) sigmoid(-0.5) = 0.378
    # wrong; new: (0,1) sigmoid(-1) = 0.269, (0,3) sigmoid(-2) = 0.119, (0,0) and (1,0) next to nothing.
    # Order: right, wrong, right, wrong, new, new, right, new, new.
    # (Recall, precision): (1/5, 1), (1/5, 1/2), (2/5, 2/3), (2/5, 2/4), (2/5, 2/5), (2/5, 2/6), (3/5, 3/7).
    # Area: 1/5 * 1 + 1/5 * (1/2 + 2/3) / 2 + 1/5 * (2/6 + 3/7) / 2 = 1/5 + 7/60 + 8/105 = 11/28
    assert ap_joint(worked()) == pytest.approx(11 / 28, rel=1e-12)


def test_worked_shots() -> None:
    # Labelled once before: (0,2) right, (0,4) right, (0,5) wrong, (1,1) right. Twice: (1,2) wrong.
    one, two, three, *_ = shot_accuracy(worked(), "labelled")
    # Sequence means 2/3 and 1: pooled 3/4, macro 5/6, deviation 1/6, error 1/6 / sqrt(2).
    assert (one.mean, one.macro, one.queries, one.sequences) == (0.75, close(5 / 6), 4, 2)
    assert one.standard_error == close(1 / 6 / math.sqrt(2))
    assert (two.mean, two.macro, two.standard_error, two.queries, two.sequences) == (0, 0, 0, 1, 1)
    assert math.isnan(three.mean)
    assert three.reason == "no known step has a class labelled exactly 3 times before"
    # Met once before: (0,2) right, (1,1) right. Twice: (0,4) right, (0,5) wrong, (1,2) wrong.
    one, two, *_ = shot_accuracy(worked(), "appearances")
    assert (one.mean, one.queries, one.standard_error) == (1, 2, 0)
    # Sequence means 1/2 and 0: pooled 1/3, macro 1/4, deviation 1/4.
    assert (two.mean, two.macro, two.queries) == (close(1 / 3), 0.25, 3)
    assert two.standard_error == close(0.25 / math.sqrt(2))


def test_worked_accuracy_over_time() -> None:
    known = accuracy_over_time(worked(), "known")
    # t = 2 has (0,2) right and (1,2) wrong.
    assert known.accuracy.tolist() == pytest.approx([math.nan, 1, 0.5, math.nan, 1, 0], nan_ok=True)
    assert known.sequences.tolist() == [0, 1, 2, 0, 1, 1]
    assert known.reason == "no sequence has a known step at t = 0, 3"
    # (0,0) (0,1) (0,3) and (1,0) are rightly called new; (1,2) is called new and is not.
    everything = accuracy_over_time(worked(), "all")
    assert everything.accuracy.tolist() == [1, 1, 0.5, 1, 1, 0]
    assert everything.sequences.tolist() == [2, 2, 2, 1, 1, 1]
    assert everything.reason == ""


def test_worked_forgetting() -> None:
    # Since appearance: (0,2) 2 steps, right; (0,4) 2, right; (0,5) 2, wrong; (1,1) 1, right; (1,2) 1, wrong.
    cells = {(cell.first, cell.shots): cell for cell in forgetting(worked())}
    assert (cells[1, 1].accuracy, cells[1, 1].queries) == (0.75, 4)
    assert (cells[1, 2].accuracy, cells[1, 2].queries) == (0, 1)
    assert cells[3, 1].queries == 0
    assert cells[3, 1].reason == "no known step with 1 labelled before has an interval of 3 to 5 steps"
    # Since label: (0,4) moves to 4 steps, its last meeting at step 2 had no label.
    cells = {(cell.first, cell.shots): cell for cell in forgetting(worked(), "label")}
    assert (cells[1, 1].accuracy, cells[1, 1].queries) == (close(2 / 3), 3)
    assert (cells[3, 1].accuracy, cells[3, 1].queries) == (1, 1)


def test_worked_summary_is_json_in_percent() -> None:
    result = json.loads(json.dumps(summary(worked()), allow_nan=False))
    assert (result["sequences"], result["steps"]) == (2, 9)
    assert result["ap"] == pytest.approx(60)
    assert result["ap_joint"] == pytest.approx(1100 / 28)
    assert result["known_accuracy"] == pytest.approx(60)
    assert result["novelty_accuracy"] == pytest.approx(800 / 9)  # only (1,2) is taken for new
    assert "ap_reason" not in result
    assert set(result["ap_interval"]) == {"low", "high", "level"}
    assert result["ap_interval"]["low"] < 60 < result["ap_interval"]["high"]
    assert result["ap_interval"]["level"] == 0.95
    one, _, three, *_ = result["shots"]["labelled"]
    assert one == {
        "shots": 1,
        "mean": 75.0,
        "macro": pytest.approx(500 / 6),
        "standard_error": pytest.approx(100 / 6 / math.sqrt(2)),
        "queries": 4,
        "sequences": 2,
    }
    assert (three["mean"], three["macro"], three["standard_error"]) == (None, None, None)
    assert "exactly 3 times" in three["reason"]
    assert result["shots"]["appearances"][0]["mean"] == 100
    assert result["forgetting"]["appearance"][0]["accuracy"] == 75
    assert result["forgetting"]["label"][0]["accuracy"] == pytest.approx(200 / 3)
    assert result["forgetting"]["label"][-1]["accuracy"] is None
    assert result["forgetting"]["label"][-1]["reason"]


# ---- nothing to measure


@pytest.mark.parametrize("sequences", [0, 3])
@pytest.mark.parametrize("steps", [0, 4])
def test_nothing_known_gives_reasons_and_no_crash(sequences: int, steps: int) -> None:
    shape = (sequences, steps)
    zeros = np.zeros(shape, dtype=int)
    new = np.full(shape, NEW)
    record = Record(np.zeros(shape), zeros, np.zeros(shape), new, zeros, new + 1, np.ones(shape, dtype=bool))
    result = json.loads(json.dumps(summary(record), allow_nan=False))
    for name in ("ap", "ap_joint", "known_accuracy"):
        assert result[name] is None
        assert result[f"{name}_reason"] == "no step has a known target"
    assert result["ap_interval"] is None
    assert result["ap_interval_reason"]
    assert (result["novelty_accuracy"] is None) == (sequences * steps == 0)
    for entry in result["shots"]["labelled"] + result["shots"]["appearances"]:
        assert (entry["mean"], entry["queries"]) == (None, 0)
        assert entry["reason"]
    assert np.isnan(accuracy_over_time(record).accuracy).all()
    assert math.isnan(average_precision([], [], []))


# ---- records that are not sound


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("novelty", math.nan, "novelty is NaN"),
        ("confidence", math.nan, "confidence is NaN"),
        ("confidence", 0.9, "log-probability"),
        ("predicted", NEW, "predicted is negative"),
        ("target", 1, "neither NEW nor the truth"),
        ("given", 1, "given is not the truth"),
    ],
)
def test_a_broken_step_is_named(name: str, value: float, words: str) -> None:
    broken = arrays()
    broken[name][1, 2] = value
    with pytest.raises(WanderError, match=rf"Sequence 1, step 2: .*{words}"):
        Record(**broken)
    broken = arrays()
    broken[name][1, 4] = value  # padded: nobody looks
    Record(**broken)


def test_wrong_shapes_and_types_are_refused() -> None:
    with pytest.raises(WanderError, match=r"\(2, 6\), truth is \(2, 5\)"):
        Record(**arrays() | {"truth": np.zeros((2, 5), dtype=int)})
    with pytest.raises(WanderError, match="sequences, steps"):
        Record(**{name: array[0] for name, array in arrays().items()})
    with pytest.raises(WanderError, match=r"predicted .* cannot be float64; give it as int32"):
        Record(**arrays() | {"predicted": np.zeros((2, 6))})
    with pytest.raises(WanderError, match="no records"):
        Record.concat([])
    with pytest.raises(WanderError, match="one length"):
        average_precision([1.0], [1, 2], [1, 2])
    with pytest.raises(WanderError, match="confidence has"):
        average_precision_joint([1.0, 2.0], [1.0], [1, 2], [1, 2])
    with pytest.raises(WanderError, match="step 1 is NaN"):
        average_precision([1.0, math.nan], [1, 2], [1, 2])


@pytest.mark.parametrize("call", [shot_accuracy, accuracy_over_time, forgetting])
def test_an_unknown_choice_is_refused(call: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        call(worked(), "sometimes")
