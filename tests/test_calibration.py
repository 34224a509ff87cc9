"""Accept or ask: the promise holds, its laws, its files, and what an agent makes of it."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.live_agents import agent_of, feature, small_model
from tests.metric_records import records
from tests.tiny_world import tiny_pictures
from wanderlearn import Agent, WanderError, calibration
from wanderlearn.calibrate import calibrate, fit_record, live_model
from wanderlearn.calibration import BEGIN, DELTA, GRID, LEVELS, STAKES, Calibration, shipped_calibration
from wanderlearn.files import digest_of
from wanderlearn.learners.wayfarer import Wayfarer
from wanderlearn.metrics import Record, naming_confidence
from wanderlearn.model import save_model
from wanderlearn.worlds import Roaming, RoamingConfig
from wanderlearn.worlds.families import with_families

ERRORS = (0.01, 0.02, 0.05, 0.1, 0.2)


def stream(seed: int, sequences: int, length: int = 20, *, bad: float = 0.1) -> tuple[Any, Any, Any]:
    """Confidences that mean what they say, but for a few sequences that go wrong as a whole."""
    rng = np.random.default_rng(seed)
    confidence = 1 / (1 + np.exp(-rng.uniform(-2, 8, (sequences, length))))
    sinks = rng.random((sequences, 1)) < bad
    right = rng.random((sequences, length)) < np.where(sinks, 0.3 * confidence, confidence)
    return confidence.ravel(), right.ravel(), np.repeat(np.arange(sequences), length)


streams = st.builds(
    stream,
    seed=st.integers(0, 2**32 - 1),
    sequences=st.integers(1, 60),
    length=st.integers(1, 20),
    bad=st.sampled_from([0.0, 0.05, 0.5]),
)
laws = settings(max_examples=20)


# The promise


def long_run_error(threshold: float, bad: float) -> float:
    """The true error of `stream` from a threshold on, integrated over the confidence."""
    c = 1 / (1 + np.exp(-np.linspace(-2, 8, 10_001)))
    return float(1 - ((1 - 0.7 * bad) * c[c >= threshold]).mean())


def broken_promises(error: float, repeats: int, *, by_sequence: bool) -> tuple[int, int]:
    """In how many of so many fits the true error is above the promised one, and how many promise anything."""
    broken = some = 0
    for seed in range(repeats):
        confidence, right, sequence = stream(seed, 150, 60, bad=0.2)
        found = Calibration.fit(confidence, right, sequence if by_sequence else None)
        threshold = found.threshold(error)
        some += threshold is not None
        broken += threshold is not None and long_run_error(threshold, 0.2) > error
    return broken, some


def test_the_promise_is_broken_no_more_often_than_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "LEVELS", (0.25,))  # the others only take time
    repeats = 60
    broken, some = broken_promises(0.25, repeats, by_sequence=True)
    assert some > 0.4 * repeats  # it does promise something
    # Of a promise that breaks with probability delta, more than these would break in 1 of 1000 runs.
    assert broken <= DELTA * repeats + 3.1 * math.sqrt(DELTA * (1 - DELTA) * repeats)


def test_meetings_taken_for_independent_break_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "LEVELS", (0.25,))
    repeats = 60
    broken, some = broken_promises(0.25, repeats, by_sequence=False)
    assert some == repeats
    assert broken > 1.5 * DELTA * repeats  # so sequences must be the unit, and the test above can fail


@laws
@given(streams)
def test_a_larger_error_accepts_more(data: tuple[Any, Any, Any]) -> None:
    found = Calibration.fit(*data)
    thresholds = [found.threshold(error) for error in (0.0, *LEVELS, 0.77, 1.0)]
    assert thresholds[0] is None  # no stream can promise that there is no error at all
    places = [math.inf if t is None else t for t in thresholds]
    assert places == sorted(places, reverse=True)
    for error, threshold in zip(LEVELS, thresholds[1:], strict=False):
        if threshold is not None:
            assert found.error_at(threshold) <= error
            assert threshold in GRID
    assert found.threshold(0.0205) == found.threshold(0.02)  # rounded down to what was tested


@laws
@given(streams, st.sampled_from(LEVELS))
def test_thresholds_are_those_of_a_plain_gambler(data: tuple[Any, Any, Any], error: float) -> None:
    confidence, right, sequence = data
    each = [(confidence[sequence == s], right[sequence == s]) for s in np.unique(sequence)]
    longest = max(len(c) for c, _ in each)

    def wins(threshold: float) -> bool:
        total = 0.0
        for stake, part in STAKES.items():
            capital = part
            for c, good in each:
                n, e = int((c >= threshold).sum()), int(((c >= threshold) & ~good).sum())
                capital *= 1 + stake * (error * n - e) / longest
            total += capital
        return total >= len(BEGIN) / DELTA

    reached: list[float] = []
    for begin in BEGIN:
        for place in range(begin, -1, -1):
            if not wins(GRID[place]):
                break
            reached.append(GRID[place])
    assert Calibration.fit(*data).threshold(error) == min(reached, default=None)


@laws
@given(streams, st.integers(0, 2**32 - 1))
def test_neither_order_nor_the_names_of_sequences_matter(data: tuple[Any, Any, Any], seed: int) -> None:
    confidence, right, sequence = data
    order = np.random.default_rng(seed).permutation(len(confidence))
    named = np.array([f"s{-n}" for n in sequence])
    assert Calibration.fit(confidence[order], right[order], named[order]) == Calibration.fit(*data)


@laws
@given(streams, st.floats(0.018, 1))
def test_errors_and_coverage_are_counted(data: tuple[Any, Any, Any], threshold: float) -> None:
    confidence, right, _ = data
    found = Calibration.fit(*data)
    above = [c for c in GRID if c >= threshold]
    taken = confidence >= above[0] if above else np.zeros(len(confidence), dtype=bool)
    assert found.coverage_at(threshold) == pytest.approx(taken.mean())
    if taken.any():
        assert found.error_at(threshold) == pytest.approx((taken & ~right).sum() / taken.sum())
    else:
        assert math.isnan(found.error_at(threshold))


def test_more_sequences_promise_more() -> None:
    few, many = (Calibration.fit(*stream(3, n, bad=0.0)) for n in (30, 1500))
    assert few.threshold(0.02) is None
    threshold = many.threshold(0.02)
    assert threshold is not None
    assert long_run_error(threshold, 0.0) <= 0.02
    assert many.coverage_at(threshold) > 0.3


def test_a_surer_promise_accepts_less() -> None:
    data = stream(4, 400)
    loose, strict = (Calibration.fit(*data, delta=delta).threshold(0.15) for delta in (0.5, 0.0001))
    assert loose is not None
    assert strict is None or strict >= loose


def test_bad_arrays_are_refused() -> None:
    for arguments, words in (
        (([0.5], [True, False]), "flat arrays of one length"),
        (([[0.5]], [[True]]), "flat arrays of one length"),
        (([0.5], [True], [1, 2]), "flat arrays of one length"),
        (([1.5], [True]), "between 0 and 1"),
        (([math.nan], [True]), "between 0 and 1"),
        (([0.5], ["yes"]), "True or False"),
    ):
        with pytest.raises(WanderError, match=words):
            Calibration.fit(*arguments)
    with pytest.raises(WanderError, match="delta"):
        Calibration.fit([0.5], [True], delta=1.0)
    with pytest.raises(WanderError, match="the longest cannot have 1"):
        Calibration.fit([0.5, 0.6], [True, True], [0, 0], longest=1)
    found = Calibration.fit([], [])
    assert found.threshold(0.5) is None
    assert found.coverage_at(0.5) == 0
    for wrong in (-0.1, 2, math.nan):
        with pytest.raises(WanderError, match="fraction between 0 and 1"):
            found.threshold(wrong)
    with pytest.raises(WanderError, match="not NaN"):
        found.error_at(math.nan)


# Files


@laws
@given(streams)
def test_what_is_saved_comes_back(
    tmp_path_factory: pytest.TempPathFactory, data: tuple[Any, Any, Any]
) -> None:
    path = tmp_path_factory.mktemp("kept") / "c.json"
    found = Calibration.fit(*data, about={"weights": "mine"})
    found.save(path)
    assert Calibration.load(path) == found
    assert Calibration.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    found = Calibration.fit(*stream(0, 300))
    found.save(path)
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(WanderError, match="truncated"):
        Calibration.load(path)
    good = found.to_json()
    for change, words in (
        ({"kind": "evaluation"}, "is no calibration"),
        ({"format": 99}, "format 99"),
        ({"accepted": good["accepted"][1:]}, "another number"),
        ({"accepted": good["accepted"][::-1]}, "accepts more"),
        ({"wrong": [n + 1 for n in good["accepted"]]}, "more are wrong"),
        ({"lowest": [0, *[None] * (len(LEVELS) - 1)]}, "higher confidence"),
        ({"delta": None}, "is broken"),
    ):
        with pytest.raises(WanderError, match=words):
            Calibration.from_json(good | change)
    missing = {name: value for name, value in good.items() if name != "meetings"}
    with pytest.raises(WanderError, match="meetings"):
        Calibration.from_json(missing)
    with pytest.raises(WanderError, match="is no calibration"):
        Calibration.from_json([1])


def test_a_calibration_of_other_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights, folder = tmp_path / "mine.safetensors", tmp_path / "calibration"
    save_model(weights, small_model("protonet"), {})
    monkeypatch.setattr(calibration, "shipped_weights", lambda: {"mine": weights})
    monkeypatch.setattr(calibration, "SHIPPED", folder)
    assert Calibration.load_for("mine") is None
    assert Calibration.load_for("nobody's") is None
    right = Calibration.fit([0.5], [True], about={"weights_sha256": digest_of(weights)})
    right.save(folder / "mine.json")
    assert Calibration.load_for("mine") == right
    assert shipped_calibration(small_model("protonet"), "mine") == right
    assert shipped_calibration(small_model("cpm"), "mine") is None  # another model of that name
    assert shipped_calibration(small_model("protonet"), None) is None
    Calibration.fit([0.5], [True], about={"weights_sha256": "0" * 64}).save(folder / "mine.json")
    with pytest.raises(WanderError, match="fitted with other weights"):
        Calibration.load_for("mine")


# Of records and worlds


@laws
@given(records)
def test_what_is_called_new_is_never_accepted(record: Record) -> None:
    found = fit_record(record)
    named = record.valid & (record.novelty <= 0) & (naming_confidence(record) >= GRID[0])
    assert found.accepted[0] == named.sum()
    assert found.wrong[0] == (named & ~record.correct).sum()
    assert found.meetings == record.steps


def test_families_are_divided_until_a_sequence_has_all_its_classes() -> None:
    config = RoamingConfig(environments=2, classes=8, length=20, per_class=2)
    pictures = tiny_pictures("val", families=2)
    divided = with_families(pictures, config)
    assert divided.families == len(set(divided.family.tolist())) == 4
    assert divided.images is pictures.images
    assert all(len(set(pictures.family[divided.family == f])) == 1 for f in range(4))

    def most(world: Roaming) -> int:
        return max(int(world.meetings(0, n).truth.max()) + 1 for n in range(30))

    assert most(Roaming(divided, config)) > most(Roaming(pictures, config)) == 4
    assert with_families(divided, config) is divided


def test_a_wayfarer_is_calibrated_as_an_agent_answers(tmp_path: Path) -> None:
    model = small_model("wayfarer")
    assert isinstance(model.learner, Wayfarer)
    assert model.learner.doubt
    save_model(tmp_path / "mine.safetensors", model, {})
    learner = live_model(tmp_path / "mine.safetensors").learner
    assert isinstance(learner, Wayfarer)
    assert not learner.doubt


def test_weights_without_a_world_say_what_to_do(tmp_path: Path) -> None:
    save_model(tmp_path / "mine.safetensors", small_model("protonet"), {})
    with pytest.raises(WanderError, match=r"Calibration\.fit"):
        calibrate(tmp_path / "mine.safetensors")


# The agent


def trusting(threshold: float) -> Calibration:
    """A calibration that accepts from a confidence on, for an error of 5 %."""
    place = min(n for n, c in enumerate(GRID) if c >= threshold)
    accepted = tuple(1 if n <= place else 0 for n in range(len(GRID)))
    lowest = tuple(place if error >= 0.05 else None for error in LEVELS)
    return Calibration(accepted, (0,) * len(GRID), lowest, meetings=1, sequences=1)


def test_an_agent_accepts_from_the_threshold_on() -> None:
    agent = agent_of("protonet")
    for n in range(12):
        agent.tell(agent.look(feature(n)), n % 6)
    answers = [agent.look(feature(n)) for n in range(100, 160)]
    sure = sorted(answer.confidence for answer in answers if not answer.new)
    limit = sure[len(sure) // 2]
    agent.calibration = trusting(limit)
    kept = [agent.accepts(answer, 0.05) for answer in answers]
    threshold = agent.calibration.threshold(0.05)
    assert threshold is not None
    assert kept == [not one.new and one.confidence >= threshold for one in answers]
    assert any(kept)
    assert not all(kept)
    assert not any(agent.accepts(answer) for answer in answers)  # 2 % is not promised: it always asks
    agent.calibration = trusting(GRID[0])
    assert [agent.accepts(one, 0.5) for one in answers] == [
        not one.new and one.confidence >= GRID[0] for one in answers
    ]


def test_an_agent_keeps_its_calibration(tmp_path: Path) -> None:
    agent = agent_of("imp")
    assert agent.calibration is None
    with pytest.raises(WanderError, match=r"agent\.calibration.*calibrate"):
        agent.accepts(agent.look(feature(0)))
    agent.calibration = Calibration.fit(*stream(1, 300))
    agent.save(tmp_path / "a.agent")
    again = Agent.open(tmp_path / "a.agent")
    assert again.calibration == agent.calibration
    assert agent.many(2)[1].calibration == agent.calibration
    again.calibration = None
    again.save()
    assert Agent.open(tmp_path / "a.agent").calibration is None
    with pytest.raises(WanderError, match="is no calibration"):
        agent.calibration = 0.9  # type: ignore[assignment]
    with pytest.raises(WanderError, match="another agent"):
        agent.accepts(again.look(feature(0)))
