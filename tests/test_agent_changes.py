"""What an agent is told, and what is changed by hand: late labels, forgetting, merging, renaming, undoing."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.live_agents import KINDS, agent_of, feature, said
from wanderlearn import WanderError
from wanderlearn.agent.life import UNDO

# Telling -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_written_as_it_was_met(kind: str) -> None:
    """Told late, a meeting counts with the context of then: as if its answer had been known in advance."""
    agent = agent_of(kind)
    for t in range(6):
        agent.tell(agent.look(feature(t)), t % 3)
    early = agent.look(feature(50))
    trace = early.meeting.trace.copy()
    for t in range(6, 9):
        agent.tell(agent.look(feature(t)), t % 3)
    twin = agent._twin()
    agent.tell(early, "late")
    assert np.array_equal(early.meeting.trace, trace)
    with torch.inference_mode():
        twin._life.memory.meet(trace, 3)
    twin._life.names.open("late")
    assert said(agent.look(feature(51))) == said(twin.look(feature(51)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_that_comes_later_does_not_move_the_context(kind: str) -> None:
    agent = agent_of(kind)
    for t in range(4):
        agent.tell(agent.look(feature(t)), "abc"[t % 3])
    answer = agent.look(feature(60))
    agent.tell(answer)
    before = agent.look(feature(61)).meeting.trace
    agent.tell(answer, "d")
    assert agent.counts["d"] == 1
    assert np.array_equal(before, agent.look(feature(61)).meeting.trace)
    assert agent.look(feature(60)).ranking[0][0] == "d"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_hand", ["forget", "merge", "undo"])
def test_what_was_changed_by_hand_since_the_look_counts(kind: str, by_hand: str) -> None:
    agent, twin = agent_of(kind), agent_of(kind)
    arguments = {"forget": "b", "merge": "ac", "undo": ""}[by_hand]
    for one in (agent, twin):
        for t in range(6):
            one.tell(one.look(feature(t)), "abc"[t % 3])
        one.rename("a", "d")
        one.rename("d", "a")
    early = agent.look(feature(31))
    for one in (agent, twin):
        getattr(one, by_hand)(*arguments)
    agent.tell(early)  # without a label it is written by what the memory makes of it: now, not then
    twin.tell(twin.look(feature(31)))
    for t in range(40, 46):
        assert dict(agent.look(feature(t)).ranking) == pytest.approx(
            dict(twin.look(feature(t)).ranking), abs=1e-6
        )


@pytest.mark.parametrize("kind", ["cpm gated euclidean", "cpm", "protonet"])
def test_a_label_that_comes_later_changes_its_class_alone(kind: str) -> None:
    agent = agent_of(kind)
    for t in range(6):
        agent.tell(agent.look(feature(t)), "abc"[t % 3])
    answer = agent.look(feature(6))
    agent.tell(answer)
    memory = agent._life.memory.arrays()
    before = memory["rows"] * memory["factor"][:, None]
    agent.tell(answer, "a")
    memory = agent._life.memory.arrays()
    after = memory["rows"] * memory["factor"][:, None]
    assert np.array_equal(before[1:], after[1:])
    assert not np.allclose(before[0], after[0])


def test_one_answer_has_one_label() -> None:
    agent = agent_of()
    answer = agent.look(feature(0))
    agent.tell(answer, "kettle")
    agent.tell(answer, "kettle")
    agent.tell(answer)
    assert agent.changes == 1
    with pytest.raises(WanderError, match=r"told 'kettle' before, so it cannot be 'pot' too\. Undo"):
        agent.tell(answer, "pot")
    agent.undo()
    agent.tell(answer, "pot")
    assert agent.labels == ("pot",)


def test_what_cannot_be_told_is_said_and_changes_nothing() -> None:
    agent, other = agent_of(), agent_of()
    answer = agent.look(feature(0))
    wrong: list[tuple[Any, Any, str]] = [
        (other.look(feature(0)), "a", "an answer of another agent"),
        ("kettle", "a", "A str is no answer"),
        (answer, ["a"], "not hashable"),
        (answer, float("nan"), "not equal to itself"),
    ]
    for given_answer, label, sentence in wrong:
        with pytest.raises(WanderError, match=sentence):
            agent.tell(given_answer, label)
    assert (len(agent), agent.changes) == (0, 0)
    agent.tell(answer, "a")
    refused: list[tuple[Any, str]] = [
        (lambda: agent.forget("b"), "no class 'b'"),
        (lambda: agent.merge("a", "b"), "no class 'b'"),
        (lambda: agent.merge("b", "a"), "no class 'b'"),
        (lambda: agent.merge("a", "a"), "one class already"),
        (lambda: agent.rename("b", "c"), "no class 'b'"),
        (lambda: agent.rename("a", None), "None stands for no label"),
        (agent.save, "has no file yet"),
    ]
    for act, sentence in refused:
        with pytest.raises(WanderError, match=sentence):
            act()
    agent.tell(agent.look(feature(1)), "c")
    with pytest.raises(WanderError, match="class 'c' already"):
        agent.rename("a", "c")
    assert (agent.labels, agent.changes) == (("a", "c"), 2)


def test_labels_are_the_users_own() -> None:
    agent = agent_of()
    labels = ["kettle", 7, (1, "two"), frozenset({3}), np.int64(9), 2.5]
    for t, label in enumerate(labels):
        agent.tell(agent.look(feature(t)), label)
    assert agent.labels == ("kettle", 7, (1, "two"), frozenset({3}), 9, 2.5)
    assert frozenset({3}) in agent
    agent.tell(agent.look(feature(50)), 9)
    assert agent.counts[9] == 2
    assert "6 classes" in repr(agent)


# Forgetting, merging, undoing --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_forgetting_leaves_the_others_as_they_were(kind: str) -> None:
    agent = agent_of(kind)
    for t in range(9):
        agent.tell(agent.look(feature(t)), t % 3)
    before = dict(agent.explain(answer := agent.look(feature(1))).now.ranking)
    agent.forget(0)
    after = dict(agent.explain(answer).now.ranking)
    assert after.keys() == {1, 2}
    if not kind.startswith("imp"):  # there, unnamed clusters take part of the weight
        assert after[1] / after[2] == pytest.approx(before[1] / before[2], rel=0.02)
    for label in (1, 2):
        agent.forget(label)
    assert (len(agent), agent.look(feature(1)).label, agent.look(feature(1)).p_new) == (0, None, 1.0)
    agent.tell(agent.look(feature(1)), 0)
    assert agent.look(feature(1)).ranking[0][0] == 0


def test_merged_prototypes_are_the_mean_of_all_examples() -> None:
    agent, together = agent_of("protonet told"), agent_of("protonet told")
    for t, label in enumerate("aabbbcc"):
        agent.tell(agent.look(feature(t)), label)
        together.tell(together.look(feature(t)), "a" if label == "b" else label)
    agent.merge("a", "b")
    assert agent.counts == together.counts == {"a": 5, "c": 2}
    for t in range(20, 30):
        assert said(agent.look(feature(t))) == said(together.look(feature(t)))


@pytest.mark.parametrize("kind", ["matchingnet", "matchingnet cosine"])
def test_merged_and_forgotten_examples_are_as_if_told_so(kind: str) -> None:
    agent, wanted = agent_of(kind), agent_of(kind)
    for t, label in enumerate("abcabdd"):
        agent.tell(agent.look(feature(t)), label)
        if label != "a":
            wanted.tell(wanted.look(feature(t)), "b" if label == "c" else label)
    agent.forget("a")
    agent.merge("b", "c")
    agent.rename("d", "dog")
    wanted.rename("d", "dog")
    assert agent.counts == wanted.counts
    for t in range(20, 30):
        assert said(agent.look(feature(t))) == said(wanted.look(feature(t)))


@pytest.mark.parametrize("kind", KINDS)
def test_undo_takes_back_every_kind_of_change(kind: str) -> None:
    agent = agent_of(kind)
    for t in range(6):
        agent.tell(agent.look(feature(t)), "abc"[t % 3])
    waiting = agent.look(feature(77))
    steps: list[Any] = [
        lambda: agent.tell(agent.look(feature(70)), "d"),
        lambda: agent.tell(waiting),
        lambda: agent.tell(waiting, "a"),
        lambda: agent.merge("a", "b"),
        lambda: agent.rename("c", "e"),
        lambda: agent.forget("e"),
    ]
    states = []
    for step in steps:
        states.append((agent.labels, agent.counts, said(agent.look(feature(80)))))
        step()
    for state in reversed(states):
        agent.undo()
        assert (agent.labels, agent.counts, said(agent.look(feature(80)))) == state
    agent.tell(waiting, "z")
    assert agent.counts["z"] == 1


def test_at_least_so_many_changes_can_be_undone() -> None:
    agent = agent_of("cpm")
    answers = []
    for t in range(5 * UNDO + 7):
        answers.append(said(agent.look(feature(1))))
        agent.tell(agent.look(feature(t)), t % 5)
    taken = 0
    while agent._life.done:
        agent.undo()
        taken += 1
        assert said(agent.look(feature(1))) == answers[-taken]
    assert UNDO <= taken < 2 * UNDO
    with pytest.raises(WanderError, match="nothing to undo"):
        agent.undo()
    assert agent.changes == 5 * UNDO + 7 + taken
