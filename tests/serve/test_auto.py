"""Accepting without asking: only under the chosen error, never what is new, and some are checked."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serve.test_session import decide_next, in_step
from tests.serve.worlds import draw, drop, session_of
from wanderlearn.serve.auto import CERTAINTY, fewest, from_record, is_check, upper_bound
from wanderlearn.serve.session import Session
from wanderlearn.serve.store import Entry


def at_most(wrong: int, of: int, p: float) -> float:
    return sum(math.comb(of, k) * p**k * (1 - p) ** (of - k) for k in range(wrong + 1))


@given(of=st.integers(1, 200), wrong=st.integers(0, 200))
def test_the_bound_is_where_so_few_would_be_rare(of: int, wrong: int) -> None:
    bound = upper_bound(wrong, of)
    if wrong >= of:
        assert bound == 1
    else:
        assert at_most(wrong, of, bound) == pytest.approx(1 - CERTAINTY, abs=1e-9)


def test_how_many_it_takes() -> None:
    assert [fewest(error) for error in (0.1, 0.05, 0.02, 0.01)] == [29, 59, 149, 299]
    for error in (0.1, 0.05, 0.02, 0.01):
        assert upper_bound(0, fewest(error)) <= error < upper_bound(0, fewest(error) - 1)


records = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=150)


@given(record=records, error=st.sampled_from([0.05, 0.1, 0.3]))
def test_what_is_accepted_keeps_the_promise_on_the_record(
    record: list[tuple[float, bool]], error: float
) -> None:
    rule = from_record(record, error)
    assert (rule.judged, rule.needed) == (len(record), fewest(error))
    if rule.threshold is not None:
        above = [right for confidence, right in record if confidence >= rule.threshold]
        assert len(above) >= fewest(error)
        assert upper_bound(above.count(False), len(above)) <= error


def test_a_good_record_accepts_and_a_bad_one_does_not() -> None:
    good = [(0.5 + n / 400, True) for n in range(100)]
    assert from_record(good, 0.05).threshold == pytest.approx(0.5 + (100 - 99) / 400, abs=0.03)
    assert from_record(good[:50], 0.05).threshold is None
    mixed = good + [(n / 400, False) for n in range(100)]  # wrong where it is not confident
    threshold = from_record(mixed, 0.05).threshold
    assert threshold is not None
    assert threshold > 0.45
    assert from_record([(c, n % 3 > 0) for n, (c, _) in enumerate(good)], 0.05).threshold is None


def test_one_in_twenty_is_checked() -> None:
    assert sum(map(is_check, range(1, 20_001))) == pytest.approx(1000, abs=120)


class Sure:
    """A calibration that allows everything from some confidence on."""

    def __init__(self, threshold: float | None) -> None:
        self.at = threshold

    def threshold(self, error: float, /) -> float | None:
        return self.at


def alike(folder: Path, pictures: int) -> Path:
    """Pictures of one thing, all the same: an agent that knows it is sure."""
    for n in range(pictures):
        draw(folder / f"{n:03}.png", 1)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return alike(tmp_path, 60)


def run_all(session: Session) -> None:
    """What the background does."""
    while session._accept(10.0):
        pass


def test_sure_guesses_are_accepted_and_checks_are_asked(folder: Path) -> None:
    session = session_of(folder, calibrate=lambda _: Sure(0.0))
    session.set_auto(0.05)
    run_all(session)
    assert session.store.tally.auto == 0  # nothing is known: that is new, and asked
    asked = []
    while (picture := session.current()) is not None:
        asked.append((picture.id, session._answer(picture).new))
        session.decide(picture.id, "thing", new=True)
        run_all(session)
    tally = session.store.tally
    assert (tally.person, tally.auto) == (len(asked), 60 - len(asked))
    assert asked[0][1]
    assert all(new or is_check(id) for id, new in asked)
    assert {id for id in range(1, 61) if is_check(id)} <= {id for id, _ in asked}
    assert tally.auto > 30
    in_step(session)
    assert session.agent.counts == {"thing": 60}
    drop(session)


def until_accepted(folder: Path) -> tuple[Session, Entry]:
    """A session whose last line was accepted without asking."""
    session = session_of(folder, calibrate=lambda _: Sure(0.0))
    session.set_auto(0.05)
    while session.store.tally.auto == 0:
        decide_next(session, "thing")
    last = session.store.last_made()
    assert last is not None
    assert last.by == "auto"
    return session, last


def test_an_accepted_picture_that_is_undone_is_asked(folder: Path) -> None:
    session, last = until_accepted(folder)
    session.undo()
    run_all(session)
    picture = session.current()
    assert picture is not None
    assert picture.id == last.picture
    session.decide(picture.id, "other", new=True)
    drop(session)


def test_a_wrong_one_can_be_corrected_and_is_counted(folder: Path) -> None:
    session, last = until_accepted(folder)
    assert last.picture is not None
    session.decide(last.picture, "other", new=True)
    assert session.store.tally.corrected == 1
    in_step(session)
    drop(session)


def test_weights_that_are_never_sure_always_ask(folder: Path) -> None:
    session = session_of(folder, calibrate=lambda _: Sure(None))
    session.set_auto(0.01)
    for _ in range(5):
        decide_next(session, "thing")
    assert session.store.tally.auto == 0
    drop(session)


def test_without_a_calibration_the_record_decides(folder: Path) -> None:
    """A thing that is always named right: asked until enough were judged, accepted from then on."""
    session = session_of(folder)
    session.set_auto(0.1)
    asked = 0
    while session.current() is not None and session.store.tally.auto == 0:
        decide_next(session, "thing")
        asked += 1
        rule = session.rule()
        assert rule is not None
        assert rule.source == "record"
    assert asked >= fewest(0.1) + 1  # the first was new: it was not named
    assert session.store.tally.auto > 0
    drop(session)


def test_the_choice_is_kept(folder: Path) -> None:
    session = session_of(folder)
    session.set_auto(0.02)
    drop(session)
    session = session_of(folder)
    assert session.error == 0.02
    session.set_auto(None)
    drop(session)
    session = session_of(folder)
    assert session.error is None
    drop(session)
