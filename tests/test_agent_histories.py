"""Random histories of an agent agree with a plain model of it, through saves and crashes."""

import os
import tempfile
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.live_agents import agent_of, feature
from tests.slow_agent import Met, SlowAgent
from tests.slow_wayfarer import SlowWayfaringAgent
from wanderlearn import Agent
from wanderlearn.agent import Answer
from wanderlearn.agent.journal import Journal
from wanderlearn.agent.life import UNDO

SEEDS = st.integers(0, 10**6)
LABELS: st.SearchStrategy[Hashable] = st.sampled_from(["kettle", "pot", 3, ("tea", 4), "cup", 2.5])

KINDS = ("cpm", "protonet", "matchingnet", "imp", "wayfarer", "wayfarer of a short window")


class Histories(RuleBasedStateMachine):
    """What a user may do, done to both. Answers that were not told yet wait in `waiting`."""

    kind = "protonet"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "memory.agent"
        self.agent = agent_of(self.kind)
        self.agent.keep_journal(self.path, fsync="never")
        self.model = (SlowWayfaringAgent if self.kind.startswith("wayfarer") else SlowAgent)(self.kind)
        self.waiting: list[tuple[Answer, Met]] = []
        self.undoable = 0

    def teardown(self) -> None:
        self.agent.close()
        self.folder.cleanup()

    def changed(self) -> None:
        self.undoable = min(self.undoable + 1, UNDO)

    def agree(self, seed: int) -> tuple[Answer, Met]:
        answer = self.agent.look(feature(seed))
        p_new, p, met = self.model.look(feature(seed))
        assert answer.p_new == pytest.approx(p_new, abs=2e-3)
        assert dict(answer.ranking) == pytest.approx(p, abs=2e-3)
        if abs(p_new - 0.5) > 2e-3:
            assert answer.new == (p_new > 0.5)
        return answer, met

    def tell(self, answer: Answer, met: Met, label: Hashable) -> None:
        before = self.agent.changes
        self.agent.tell(answer, label)
        self.model.tell(met, label)
        if self.agent.changes > before:
            self.changed()

    @rule(seed=SEEDS, label=LABELS)
    def meet(self, seed: int, label: Hashable) -> None:
        self.tell(*self.agree(seed), label)

    @rule(seed=SEEDS)
    def meet_without_a_label(self, seed: int) -> None:
        answer, met = self.agree(seed)
        self.tell(answer, met, None)
        self.waiting.append((answer, met))

    @rule(seed=SEEDS)
    def only_look(self, seed: int) -> None:
        self.waiting.append(self.agree(seed))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), label=st.none() | LABELS)
    def tell_late(self, data: st.DataObject, label: Hashable) -> None:
        answer, met = data.draw(st.sampled_from(self.waiting))
        self.tell(answer, met, label if met.label is None else met.label)

    @precondition(lambda self: self.model.now.told)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        label = data.draw(self.known())
        self.agent.forget(label)
        self.model.forget(label)
        self.changed()

    @precondition(lambda self: len(self.model.now.told) > 1)
    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        kept, gone = data.draw(st.permutations(sorted(self.model.now.told, key=str)))[:2]
        self.agent.merge(kept, gone)
        self.model.merge(kept, gone)
        self.changed()

    @precondition(lambda self: self.model.now.told)
    @rule(data=st.data(), new=LABELS)
    def rename(self, data: st.DataObject, new: Hashable) -> None:
        old = data.draw(self.known())
        if new in self.model.now.told:
            return
        self.agent.rename(old, new)
        self.model.rename(old, new)
        self.changed()

    @precondition(lambda self: self.undoable)
    @rule()
    def undo(self) -> None:
        self.agent.undo()
        self.model.undo()
        self.undoable -= 1

    @rule()
    def save(self) -> None:
        self.agent.save()

    @rule(torn=st.binary(max_size=30))
    def crash(self, torn: bytes) -> None:
        self.kill()
        with Path(f"{self.path}.journal").open("ab") as file:
            file.write(torn)
        self.open()
        assert bool(self.agent.notes) == bool(torn)

    @rule()
    def crash_while_saving(self) -> None:
        """After the file is written and before the journal begins afresh."""
        begin = Journal.begin
        Journal.begin = _killed  # type: ignore[method-assign]
        try:
            with pytest.raises(KeyboardInterrupt):
                self.agent.save()
        finally:
            Journal.begin = begin  # type: ignore[method-assign]
        self.kill()
        self.open()

    @invariant()
    def knows_the_same(self) -> None:
        assert self.agent.counts == self.model.now.told
        assert set(self.agent.labels) == self.model.now.told.keys()
        self.agree(12345)

    def known(self) -> st.SearchStrategy[Any]:
        return st.sampled_from(sorted(self.model.now.told, key=str))

    def kill(self) -> None:
        assert self.agent._journal is not None
        os.close(self.agent._journal.file)
        self.waiting.clear()

    def open(self) -> None:
        self.agent = Agent.open(self.path, journal=True, fsync="never")


def _killed(self: Journal, save: str) -> None:
    raise KeyboardInterrupt


def live(kind: str, histories: int) -> None:
    machine = type("Histories", (Histories,), {"kind": kind})
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    few = settings(
        max_examples=histories, stateful_step_count=35, deadline=None, suppress_health_check=checks
    )
    run_state_machine_as_test(machine, settings=few)


@pytest.mark.parametrize("kind", KINDS)
def test_histories_agree_with_a_plain_model(kind: str) -> None:
    live(kind, 10)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_histories_agree_with_a_plain_model(kind: str) -> None:
    live(kind, 250)
