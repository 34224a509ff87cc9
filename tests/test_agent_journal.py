"""What an agent keeps: saved files that are whole or refused, and a journal that survives being killed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wanderlearn
from tests.journal_writer import change
from tests.live_agents import KINDS, agent_of, feature, said, small_model
from wanderlearn import Agent, WanderError
from wanderlearn.agent.changes import Forget, Merge, Rename, Tell, Undo, frame, frames, pack, unpack
from wanderlearn.agent.journal import Journal, journal_of, read_journal
from wanderlearn.model import save_model
from wanderlearn.tensors import load_tensors, save_tensors

MAIN = ("cpm", "protonet", "matchingnet", "imp", "wayfarer")


def lived(kind: str = "protonet", changes: int = 20, labels: str = "abc") -> Agent:
    agent = agent_of(kind)
    for t in range(changes):
        agent.tell(agent.look(feature(t), id=t), None if t % 5 == 4 else labels[t % len(labels)])
    return agent


def same(one: Agent, other: Agent) -> bool:
    probes = [feature(n) for n in range(900, 906)]
    answers = all(said(one.look(probe)) == said(other.look(probe)) for probe in probes)
    return (
        answers and one.labels == other.labels and one.counts == other.counts and one.changes == other.changes
    )


# Saving ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("changes", [0, 1, 50, 100])
def test_a_saved_agent_goes_on_as_if_nothing_had_happened(kind: str, changes: int, tmp_path: Path) -> None:
    agent = lived(kind, changes)
    agent.save(tmp_path / "a.agent")
    opened = Agent.open(tmp_path / "a.agent")
    assert same(agent, opened)
    for t in range(100, 104):
        for one in (agent, opened):
            one.tell(one.look(feature(t)), t % 3)
    assert same(agent, opened)
    for _ in range(min(changes, 32)):
        agent.undo()
        opened.undo()
    assert same(agent, opened)
    assert opened.weights == agent.weights
    assert [n.examples for n in opened.look(feature(0)).neighbours] == [
        n.examples for n in agent.look(feature(0)).neighbours
    ]


def test_labels_come_back_as_they_were(tmp_path: Path) -> None:
    agent = agent_of()
    labels = ["kettle", "", "line\nbreak", "\udc80", 7, -1, 2.5, True, (1, ("a", None)), ()]
    for t, label in enumerate(labels):
        agent.tell(agent.look(feature(t), id=("file", t)), label)
    agent.save(tmp_path / "a.agent")
    opened = Agent.open(tmp_path / "a.agent")
    assert opened.labels == tuple(labels)
    assert [type(label) for label in opened.labels] == [type(label) for label in labels]
    opened.save()
    assert same(opened, agent)


@pytest.mark.parametrize("label", [frozenset({1}), float("inf"), ("a", b"bytes")])
def test_a_label_that_cannot_be_saved_is_named(label: Any, tmp_path: Path) -> None:
    agent = agent_of()
    agent.tell(agent.look(feature(0)), label)
    shown = repr(b"bytes" if isinstance(label, tuple) else label)
    with pytest.raises(WanderError) as error:
        agent.save(tmp_path / "a.agent")
    assert f"The label {shown}" in str(error.value)
    assert not list(tmp_path.iterdir())
    agent.rename(label, "fine")
    for _ in range(70):  # until the bad label is too far back to be undone
        agent.tell(agent.look(feature(1)), "fine")
    agent.save(tmp_path / "a.agent")


def test_a_file_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.agent"
    lived().save(path)
    data = path.read_bytes()
    for cut in (0, 5, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(WanderError, match=r"not a file of agents|truncated or altered|was altered"):
            Agent.open(path)
    for at in (len(data) - 3, len(data) // 2):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(WanderError, match="was altered"):
            Agent.open(path)
    path.write_text("something else")
    with pytest.raises(WanderError, match="not a file of agents"):
        Agent.open(path)
    with pytest.raises(WanderError, match="There are no agents at"):
        Agent.open(tmp_path / "nothing.agent")
    with pytest.raises(WanderError, match="There are no agents at"):
        Agent.open(tmp_path / "nothing.agent", journal=True)
    save_model(path, small_model("protonet"), {})
    with pytest.raises(WanderError, match="file of weights, not a saved agent"):
        Agent.open(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.agent"]


def test_a_file_whose_parts_contradict_each_other_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.agent"
    lived(changes=80).save(path)
    tensors, header = load_tensors(path, "agents")
    wrong: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({}, {"agent": 2}, "agent format 2; this version reads 1"),
        ({}, {"names": {"labels": ["a"], "told": [1], "examples": [[]]}}, "prototypes for 1 labels"),
        ({}, {"names": {"labels": ["a", "a"], "told": [1, 1], "examples": [[], []]}}, "not one per class"),
        ({}, {"names": {}}, "do not fit together"),
        ({"memory.counts": tensors["memory.counts"].double()}, {}, "its counts is float64"),
        ({"history": tensors["history"][5:]}, {}, "history is damaged"),
        ({"model.learner.beta": tensors["model.learner.beta"][:1]}, {}, "do not fit together"),
    ]
    for other, about, sentence in wrong:
        save_tensors(path, tensors | other, header | about)
        with pytest.raises(WanderError, match=sentence):
            Agent.open(path)


# The journal -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MAIN)
def test_opening_replays_the_journal(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.agent"
    agent, plain = agent_of(kind), agent_of(kind)
    agent.keep_journal(path, fsync=3)
    for n in range(60):
        change(agent, n)
        change(plain, n)
        if n in (20, 41):
            agent.save()
            plain.save(tmp_path / "plain.agent")
    agent.close()
    for journal in (False, True, False):
        opened = Agent.open(path, journal=journal)
        assert same(opened, plain)
        assert opened.notes == ()
        opened.close()
    assert len(read_journal(journal_of(path)).changes) == 60 - 42


@pytest.mark.parametrize(
    ("kind", "fsync"), [("cpm", "always"), ("protonet", "7"), ("matchingnet", "never"), ("imp", "always")]
)
def test_killing_loses_at_most_what_was_being_told(kind: str, fsync: str, tmp_path: Path) -> None:
    path, acknowledged = tmp_path / "a.agent", tmp_path / "acknowledged"
    command = [sys.executable, "-m", "tests.journal_writer", str(path), str(acknowledged), kind, fsync]
    root = str(Path(__file__).parents[1])
    writer = subprocess.Popen(
        command, cwd=root, env=os.environ | {"PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    )
    wanted = random.Random(f"{kind} {fsync}").randint(5, 60)
    try:
        while writer.poll() is None and (not acknowledged.exists() or acknowledged.stat().st_size < wanted):
            time.sleep(0.002)
        assert writer.poll() is None
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    made = acknowledged.stat().st_size
    opened = Agent.open(path, journal=True)
    assert made <= opened.changes <= made + 1
    plain = agent_of(kind)
    for n in range(opened.changes):
        change(plain, n)
    assert same(opened, plain)
    change(opened, opened.changes)
    change(plain, plain.changes)
    opened.close()
    assert same(Agent.open(path), plain)


@pytest.fixture
def journaled(tmp_path: Path) -> Path:
    """An agent with a journal of ten changes, killed."""
    path = tmp_path / "a.agent"
    agent = agent_of()
    agent.keep_journal(path)
    for t in range(10):
        agent.tell(agent.look(feature(t)), "abc"[t % 3])
    agent.close()
    return path


def test_a_torn_end_is_left_out_with_a_note(journaled: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = journal_of(journaled)
    data = journal.read_bytes()
    starts = [found.start for found in frames(data)] + [len(data)]
    for cut in range(starts[-2] + 1, starts[-1]):
        journal.write_bytes(data[:cut])
        agent = Agent.open(journaled)
        assert agent.changes == 9
        assert "was cut off; it was left out" in agent.notes[0]
        assert agent.notes[0] in caplog.text
    for cut in range(starts[1]):  # in the head: the journal was only just begun
        journal.write_bytes(data[:cut])
        assert Agent.open(journaled).changes == 0
    journal.write_bytes(data[: starts[-2] + 9])
    with Agent.open(journaled, journal=True) as agent:
        agent.tell(agent.look(feature(50)), "d")
    again = Agent.open(journaled)
    assert (again.changes, again.notes, again.labels) == (10, (), ("a", "b", "c", "d"))
    journal.write_bytes(data + b"\0" * 5000)  # blocks that a file system had promised but not written
    assert Agent.open(journaled).changes == 10


def test_a_damaged_middle_is_named(journaled: Path) -> None:
    journal = journal_of(journaled)
    data = journal.read_bytes()
    starts = [found.start for found in frames(data)]
    for number in (0, 1, 4, 9):
        for at in range(starts[number], starts[number + 1], 3):
            journal.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
            with pytest.raises(WanderError, match=f"Record {number} of the journal .* is damaged"):
                Agent.open(journaled, journal=True)
    journal.write_bytes(data[: starts[4]] + data[starts[5] :])
    with pytest.raises(WanderError, match=r"Record 4 of the journal .* change 5 follows change 3"):
        Agent.open(journaled)
    journal.write_bytes(data[: starts[1]] + data[starts[2] :])
    with pytest.raises(WanderError, match="change 1 is missing"):
        Agent.open(journaled)
    journal.write_bytes(data + frame(pack(11, Forget("nobody"))))
    with pytest.raises(WanderError, match="at change 11: There is no class 'nobody'"):
        Agent.open(journaled)
    journal.write_bytes(frame(b'{"journal": 2, "save": "x"}'))
    with pytest.raises(WanderError, match="format 2; this version reads 1"):
        Agent.open(journaled)
    journal.write_bytes(data)
    assert Agent.open(journaled).changes == 10


def test_a_journal_of_another_save_is_refused(journaled: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.agent"
    lived().save(other)
    journal_of(journaled).rename(journal_of(other))
    with pytest.raises(WanderError, match="does not continue the save"):
        Agent.open(other)
    with pytest.raises(WanderError, match="the journal of another agent"):
        lived().save(other)
    journal_of(other).rename(journal_of(journaled))
    first, second = Agent.open(journaled), Agent.open(journaled, journal=True)
    for t in range(3):
        second.tell(second.look(feature(t)), "x")
    first.save()  # somebody without the journal saves what they had: the other went on from elsewhere
    second.close()
    with pytest.raises(WanderError, match="does not continue the save"):
        Agent.open(journaled)


def test_one_journal_has_one_writer(journaled: Path) -> None:
    with Agent.open(journaled, journal=True), pytest.raises(WanderError, match="in use by another process"):
        Agent.open(journaled, journal=True)
    with Agent.open(journaled, journal=True) as agent:
        assert agent.changes == 10


def test_what_the_journal_cannot_hold_is_not_told(journaled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Agent.open(journaled, journal=True) as agent:
        answer = agent.look(feature(60))
        with pytest.raises(WanderError, match="The label frozenset"):
            agent.tell(answer, frozenset({1}))
        write = os.write

        def full(file: int, data: bytes) -> int:
            if len(data) > 20:
                return write(file, data[:20])
            raise OSError(28, "No space left on device")

        def broken(file: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(WanderError, match=r"No space left on device\. Nothing was changed"):
            agent.tell(answer, "d")
        monkeypatch.undo()
        monkeypatch.setattr(os, "fsync", broken)
        with pytest.raises(WanderError, match=r"Input/output error\. Nothing was changed"):
            agent.tell(answer, "d")
        monkeypatch.undo()
        assert agent.changes == 10
        agent.tell(answer, "e")
    assert Agent.open(journaled).labels == ("a", "b", "c", "e")


def test_a_journal_that_could_not_be_begun_takes_nothing_until_the_next_save(
    journaled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Agent.open(journaled, journal=True) as agent:

        def full(file: int, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(WanderError, match="No space left"):
            agent.save()
        monkeypatch.undo()
        with pytest.raises(WanderError, match=r"could not be written before\. Save the agent"):
            agent.forget("a")
        assert Agent.open(journaled).changes == 10
        agent.save()
        agent.forget("a")
    assert Agent.open(journaled).labels == ("c", "b")


def test_a_journal_of_another_width_is_refused(journaled: Path) -> None:
    journal = journal_of(journaled)
    journal.write_bytes(journal.read_bytes() + frame(pack(11, Tell("a", np.zeros(3, np.float32)))))
    with pytest.raises(WanderError, match="at change 11: it does not fit the weights"):
        Agent.open(journaled)


def test_fsync_is_done_as_often_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    for fsync, wanted in (("always", 10), (4, 2), ("never", 0)):
        agent = agent_of()
        agent.keep_journal(tmp_path / f"{fsync}.agent", fsync)  # type: ignore[arg-type]
        synced.clear()
        for t in range(10):
            agent.tell(agent.look(feature(t)), "a")
        assert len(synced) == wanted
    for wrong in ("often", 0, -1, True, 2.5):
        with pytest.raises(WanderError, match='fsync is "always"'):
            Journal(tmp_path / "j", wrong)  # type: ignore[arg-type]


def test_load_with_a_journal_begins_or_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "memory.agent"
    picture = np.zeros((28, 28), np.uint8)
    for n in range(3):
        with wanderlearn.load("protonet-glyphs", journal=path, fsync=10) as agent:
            assert agent.changes == n
            agent.tell(agent.look(picture), f"name {n}")
    with pytest.raises(WanderError, match=r"lives with other weights \(protonet-glyphs\) than cpm-glyphs"):
        wanderlearn.load("cpm-glyphs", journal=path)
    with pytest.raises(WanderError, match="There is a file"):
        agent_of().keep_journal(path)
    with Agent.open(path, journal=True) as agent, pytest.raises(WanderError, match="keeps a journal already"):
        agent.keep_journal(tmp_path / "more.agent")


def test_a_copy_elsewhere_leaves_the_journal_alone(journaled: Path, tmp_path: Path) -> None:
    with Agent.open(journaled, journal=True) as agent:
        agent.save(tmp_path / "copy.agent")
        agent.tell(agent.look(feature(70)), "d")
        assert len(read_journal(journal_of(journaled)).changes) == 11
        agent.save()
        assert read_journal(journal_of(journaled)).changes == []
    assert Agent.open(tmp_path / "copy.agent").changes == 10
    assert Agent.open(journaled).changes == 11


@given(
    sequence=st.integers(0, 2**40),
    change_=st.sampled_from([Forget("a"), Merge(1, ("b", 2.5)), Rename(True, "x"), Undo()])
    | st.builds(
        Tell,
        label=st.none() | st.text() | st.integers() | st.tuples(st.text(), st.booleans()),
        trace=st.lists(st.floats(width=32, allow_nan=False), max_size=9).map(
            lambda v: np.array(v, np.float32)
        ),
        example=st.none() | st.text(),
        late=st.booleans(),
    ),
)
def test_a_record_holds_a_change(sequence: int, change_: Any) -> None:
    record = frame(pack(sequence, change_))
    (found,) = frames(record)
    assert found.packed is not None
    number, back = unpack(found.packed)
    assert number == sequence
    assert type(back).__name__ == type(change_).__name__
    values: tuple[Any, ...] = tuple(back)
    wanted: tuple[Any, ...] = tuple(change_)
    for one, other in zip(values, wanted, strict=True):
        assert np.array_equal(one, other) if isinstance(other, np.ndarray) else one == other
