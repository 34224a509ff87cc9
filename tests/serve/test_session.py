"""Deciding, taking back and changing classes; the log and the memory stay in step through any crash."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.worlds import draw, drop, folder_of, session_of
from wanderlearn.errors import WanderError
from wanderlearn.serve.session import ConflictError, Session, UnknownError
from wanderlearn.serve.store import DECIDED, SKIPPED, WAITING, Entry


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = session_of(folder_of(tmp_path, 12))
    yield made
    drop(made)


def labels(session: Session) -> dict[str, str | None]:
    """What every picture is now, by its name."""
    rows = session.store.db.execute("SELECT id FROM pictures ORDER BY place").fetchall()
    found = {}
    for (id,) in rows:
        picture = session.store.picture(id)
        assert picture is not None
        found[picture.path.decode()] = (
            "skipped"
            if picture.state == SKIPPED
            else session._label(picture)
            if picture.state == DECIDED
            else None
        )
    return found


def said(session: Session) -> Any:
    """All that the agent would say of the next picture."""
    look = session.look()
    return look["picture"], look["answer"]


def decide_next(session: Session, label: str) -> Entry:
    picture = session.current()
    assert picture is not None
    return session.decide(picture.id, label, new=True)


def in_step(session: Session) -> None:
    """The classes of the store are those of the agent, and what is counted is what is there."""
    store = session.store
    assert {label for _, label in store.classes} == set(session.agent.labels)
    fresh = [0] * len(store.counts)
    for state, count in store.db.execute(
        "SELECT state, count(*) FROM pictures WHERE source = 0 GROUP BY state"
    ):
        fresh[state] = count
    assert store.counts == fresh
    counted = {label: store.classes.pictures(id) for id, label in store.classes}
    listed = [label for label in labels(session).values() if label not in (None, "skipped")]
    assert counted == {label: listed.count(label) for label in counted}
    assert set(listed) <= set(counted)
    tally = type(store.tally).of(store.db)
    assert store.tally == tally


def test_a_day_of_sorting(session: Session) -> None:
    assert session.look()["answer"]["new"]
    for label in ("cat", "dog", "cat", "dog", "cat"):
        decide_next(session, label)
    assert list(labels(session).values())[:6] == ["cat", "dog", "cat", "dog", "cat", None]
    picture = session.current()
    assert picture is not None
    session.skip(picture.id)
    session.rename("cat", "lion")
    session.merge("lion", "dog")
    assert list(labels(session).values())[:6] == ["lion"] * 5 + ["skipped"]
    in_step(session)
    for _ in range(3):
        session.undo()
    assert list(labels(session).values())[:6] == ["cat", "dog", "cat", "dog", "cat", None]
    in_step(session)


def test_forgotten_pictures_wait_again_and_come_back(session: Session) -> None:
    for label in ("cat", "dog", "cat"):
        decide_next(session, label)
    session.forget("cat")
    assert list(labels(session).values())[:3] == [None, "dog", None]
    in_step(session)
    session.undo()
    assert list(labels(session).values())[:3] == ["cat", "dog", "cat"]
    in_step(session)


def test_a_decision_can_be_changed_later(session: Session) -> None:
    first = decide_next(session, "cat")
    decide_next(session, "dog")
    assert first.picture is not None
    session.decide(first.picture, "dog")
    assert list(labels(session).values())[:2] == ["dog", "dog"]
    in_step(session)
    session.undo()
    assert list(labels(session).values())[:2] == ["cat", "dog"]


def test_what_cannot_be_done_is_a_sentence_and_changes_nothing(session: Session) -> None:
    entry = decide_next(session, "cat")
    decide_next(session, "dog")
    assert entry.picture is not None
    picture = session.current()
    assert picture is not None
    before = (labels(session), session.agent.changes, session.store.last_number())
    with pytest.raises(ConflictError, match="no class 'bird' any more"):
        session.decide(picture.id, "bird")
    with pytest.raises(ConflictError, match="another tab"):
        session.decide(entry.picture, "dog", seen=0)
    with pytest.raises(ConflictError, match="already"):
        session.decide(entry.picture, "cat")
    with pytest.raises(ConflictError, match="merge them"):
        session.rename("cat", "dog")
    with pytest.raises(ConflictError, match="one class already"):
        session.merge("cat", "cat")
    with pytest.raises(ConflictError, match="no class"):
        session.forget("bird")
    with pytest.raises(ConflictError, match="decided before"):
        session.skip(entry.picture)
    with pytest.raises(UnknownError):
        session.decide(999, "cat")
    for bad in ("", " \t ", "x" * 101, "a\x00b", "\u202eevil"):
        with pytest.raises(WanderError):
            session.decide(picture.id, bad, new=True)
    assert before == (labels(session), session.agent.changes, session.store.last_number())


def test_only_so_much_can_be_undone_and_it_says_so(session: Session) -> None:
    with pytest.raises(ConflictError, match="nothing to undo"):
        session.undo()
    decide_next(session, "cat")
    for n in range(80):
        session.rename("cat" if n % 2 == 0 else "dog", "dog" if n % 2 == 0 else "cat")
    for _ in range(32):
        session.undo()

    def undo_all() -> None:
        while True:
            session.undo()

    with pytest.raises(ConflictError, match="too long ago"):
        undo_all()
    in_step(session)


def test_closing_and_opening_goes_on(tmp_path: Path) -> None:
    session = session_of(folder_of(tmp_path, 8))
    for label in ("cat", "dog", "cat"):
        decide_next(session, label)
    before, answer = labels(session), said(session)
    session.close()
    session = session_of(tmp_path)
    assert (labels(session), said(session)) == (before, answer)
    session.undo()
    assert list(labels(session).values())[:3] == ["cat", "dog", None]
    drop(session)


@pytest.mark.parametrize("kind", ["decide", "skip", "rename", "merge", "forget", "undo"])
def test_killed_between_log_and_memory_is_finished_on_opening(kind: str, tmp_path: Path) -> None:
    """The line is in the log, the agent has not made its change: what a kill between the two leaves."""
    sessions = [session_of(folder_of(tmp_path / name, 8)) for name in ("killed", "whole")]
    for session in sessions:
        for label in ("cat", "dog", "cat", "bird"):
            decide_next(session, label)
    killed, whole = sessions
    killed._change = lambda *_: None  # type: ignore[method-assign]
    for session in sessions:
        picture = session.current()
        assert picture is not None
        {
            "decide": lambda s, p: s.decide(p, "cat"),
            "skip": lambda s, p: s.skip(p),
            "rename": lambda s, p: s.rename("cat", "lion"),
            "merge": lambda s, p: s.merge("dog", "bird"),
            "forget": lambda s, p: s.forget("dog"),
            "undo": lambda s, p: s.undo(),
        }[kind](session, picture.id)
    assert killed.agent.changes == whole.agent.changes - 1
    drop(killed)
    killed = session_of(tmp_path / "killed")
    assert killed.agent.changes == whole.agent.changes
    assert labels(killed) == labels(whole)
    assert said(killed) == said(whole)
    in_step(killed)
    drop(killed)
    drop(whole)


def test_a_picture_that_went_with_the_crash_was_never_decided(tmp_path: Path) -> None:
    session = session_of(folder_of(tmp_path, 4))
    decide_next(session, "cat")
    session._change = lambda *_: None  # type: ignore[method-assign]
    entry = decide_next(session, "dog")
    assert entry.picture is not None
    picture = session.store.picture(entry.picture)
    assert picture is not None
    drop(session)
    (tmp_path / picture.path.decode()).unlink()
    session = session_of(tmp_path)
    assert [label for label in labels(session).values() if label] == ["cat"]
    in_step(session)
    session.undo()
    in_step(session)
    drop(session)


@pytest.mark.parametrize("kind", ["decide", "rename", "undo"])
def test_a_memory_that_cannot_be_written_leaves_the_log_as_it_was(
    kind: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for label in ("cat", "dog"):
        decide_next(session, label)
    before, answer = labels(session), said(session)

    def full(*_: object) -> None:
        raise WanderError("Cannot write the journal: No space left on device. Nothing was changed.")

    journal = session.agent._journal
    assert journal is not None
    with monkeypatch.context() as patch:
        patch.setattr(journal, "append", full)
        with pytest.raises(WanderError, match="No space left"):
            {"decide": lambda: decide_next(session, "bird"), "rename": lambda: session.rename("cat", "lion"),
             "undo": session.undo}[kind]()  # fmt: skip
    assert (labels(session), said(session)) == (before, answer)
    in_step(session)
    decide_next(session, "bird")
    session.undo()
    session.undo()
    assert list(labels(session).values())[:2] == ["cat", None]
    in_step(session)


def test_an_older_memory_is_refused_and_can_be_learnt_anew(tmp_path: Path) -> None:
    session = session_of(folder_of(tmp_path, 8))
    memory = session.home.memory
    for label in ("cat", "dog", "cat", "dog"):
        decide_next(session, label)
    drop(session)
    memory.with_name(memory.name + ".journal").unlink()
    with pytest.raises(WanderError, match="--relearn"):
        session_of(tmp_path)
    session = session_of(tmp_path, relearn=True)
    in_step(session)
    assert session.agent.counts == {"cat": 2, "dog": 2}
    with pytest.raises(ConflictError, match="cannot be undone"):
        session.undo()
    decide_next(session, "cat")
    session.undo()
    assert session.agent.counts == {"cat": 2, "dog": 2}
    drop(session)
    session = session_of(tmp_path)  # and goes on with the new memory
    assert session.agent.counts == {"cat": 2, "dog": 2}
    drop(session)


def test_a_lost_memory_is_learnt_anew_from_the_decisions(tmp_path: Path) -> None:
    session = session_of(folder_of(tmp_path, 8))
    for label in ("cat", "dog", "cat"):
        decide_next(session, label)
    session.merge("cat", "dog")
    answer, memory = said(session)[1]["ranking"][0]["label"], session.home.memory
    session.close()
    memory.unlink()
    memory.with_name(memory.name + ".journal").unlink()
    session = session_of(tmp_path)
    assert session.agent.counts == {"cat": 3}
    assert said(session)[1]["ranking"][0]["label"] == answer
    drop(session)


def test_two_assistants_do_not_share_a_folder(session: Session) -> None:
    with pytest.raises(WanderError, match="in use"):
        session_of(session.home.folder)


def test_broken_and_vanished_pictures_are_set_aside_and_tried_again(tmp_path: Path) -> None:
    folder_of(tmp_path, 4)
    (tmp_path / "a" / "000.png").write_bytes(b"no picture")
    session = session_of(tmp_path)
    (tmp_path / "a" / "001.png").unlink()
    assert session.look()["picture"]["name"] == "a/003.png"
    found, _ = session.store.in_state(3)[0]
    assert found.note == "It cannot be read as a picture."
    assert session.store.counts[3:5] == [1, 1]
    session.close()
    draw(tmp_path / "a" / "000.png", 77)
    session = session_of(tmp_path)
    session.store.try_again()
    assert session.look()["picture"]["name"] == "a/000.png"
    in_step(session)
    drop(session)


# Random histories ----------------------------------------------------------------------------------------

LABELS = ("cat", "dog", "bird", "fish")
step = st.one_of(
    st.tuples(st.just("decide"), st.sampled_from(LABELS)),
    st.tuples(st.just("again"), st.integers(0, 9), st.sampled_from(LABELS)),
    st.tuples(st.just("skip")),
    st.tuples(st.just("undo")),
    st.tuples(st.just("rename"), st.sampled_from(LABELS), st.sampled_from(LABELS)),
    st.tuples(st.just("merge"), st.sampled_from(LABELS), st.sampled_from(LABELS)),
    st.tuples(st.just("forget"), st.sampled_from(LABELS)),
    st.tuples(st.just("crash")),
)


class Plain:
    """A session as a dictionary of labels, with a list of what was before."""

    def __init__(self, names: list[str]) -> None:
        self.labels: dict[str, str | None] = dict.fromkeys(names)
        self.known: set[str] = set()
        self.before: list[tuple[dict[str, str | None], set[str]]] = []

    def do(self, step: tuple[Any, ...]) -> bool:
        """True if the step can be done, and then it is."""
        before = (dict(self.labels), set(self.known))
        waiting = next((name for name, label in self.labels.items() if label is None), None)
        match step:
            case ("undo",):
                if not self.before:
                    return False
                self.labels, self.known = self.before.pop()
                return True
            case ("decide", label) if waiting is not None:
                self.labels[waiting] = label
                self.known.add(label)
            case ("skip",) if waiting is not None:
                self.labels[waiting] = "skipped"
            case ("again", n, label) if list(self.labels.values())[n] not in (None, label):
                self.labels[list(self.labels)[n]] = label
                self.known.add(label)
            case ("rename", old, new) if old in self.known and new not in self.known:
                self.labels = {k: new if v == old else v for k, v in self.labels.items()}
                self.known = self.known - {old} | {new}
            case ("merge", kept, gone) if kept != gone and {kept, gone} <= self.known:
                self.labels = {k: kept if v == gone else v for k, v in self.labels.items()}
                self.known -= {gone}
            case ("forget", label) if label in self.known:
                self.labels = {k: None if v == label else v for k, v in self.labels.items()}
                self.known -= {label}
            case _:
                return False
        self.before.append(before)
        return True


def do(session: Session, step: tuple[Any, ...]) -> None:
    match step:
        case ("decide", label):
            decide_next(session, label)
        case ("again", n, label):
            row = session.store.db.execute("SELECT id FROM pictures ORDER BY place LIMIT 1 OFFSET ?", (n,))
            session.decide(row.fetchone()[0], label, new=True)
        case ("skip",):
            picture = session.current()
            assert picture is not None
            session.skip(picture.id)
        case ("undo",):
            session.undo()
        case ("rename", old, new):
            session.rename(old, new)
        case ("merge", kept, gone):
            session.merge(kept, gone)
        case ("forget", label):
            session.forget(label)


@settings(max_examples=25)
@given(history=st.lists(step, min_size=5, max_size=25))
def test_random_histories_agree_with_a_plain_dictionary(
    history: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = folder_of(tmp_path_factory.mktemp("history"), 10)
    session = session_of(folder)
    plain = Plain(list(labels(session)))
    for one in history:
        if one == ("crash",):
            drop(session)
            session = session_of(folder)
        elif plain.do(one):
            do(session, one)
        assert labels(session) == plain.labels
        assert {label for _, label in session.store.classes} == plain.known
    in_step(session)
    assert session.store.counts[WAITING] == sum(label is None for label in plain.labels.values())
    drop(session)
