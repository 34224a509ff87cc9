"""Memory and labels together, and every change of them, which can be taken back.

There is one way to change anything: `apply`. Undoing takes an earlier copy and applies all changes since then
but the last; a saved file is an earlier copy and the changes since then; a journal is changes alone.
"""

from collections.abc import Hashable
from typing import Any, Final, NamedTuple

import torch

from wanderlearn.agent.changes import Change, Forget, Merge, Rename, Tell, Undo
from wanderlearn.agent.memory import LiveMemory, Reading
from wanderlearn.agent.names import Names

__all__ = ["UNDO", "UNTOLD", "Life", "Meeting", "Past"]

UNDO: Final = 32  # so many changes can be taken back at least; twice as many at most
UNTOLD: Final = object()


class Meeting:
    """What an answer is about: its trace, and what has been told about it so far."""

    def __init__(self, owner: object, reading: Reading) -> None:
        self.owner, self.trace = owner, reading.trace
        self.reading: Reading | None = reading
        self.told: Any = UNTOLD  # or None: told without a label; or the label


class Past(NamedTuple):
    """A copy of memory and labels at some time."""

    memory: LiveMemory
    names: Names


class _Done(NamedTuple):
    """A change that was made, with the meeting it was about (if that is still at hand) and how that was."""

    change: Change
    meeting: Meeting | None
    told: Any


class Life:
    """What an agent remembers, now and some changes ago."""

    def __init__(self, memory: LiveMemory, names: Names, sequence: int = 0) -> None:
        self.memory, self.names = memory, names
        self.sequence = sequence  # changes so far, undoing included
        self.base = Past(memory.copy(), names.copy())
        self.middle: Past | None = None  # after the first UNDO changes since the base
        self.done: list[_Done] = []  # since the base

    def objection(self, change: Change) -> str | None:
        """Why a change cannot be made, if it cannot."""
        slots = self.names.slots
        match change:
            case Forget(label) | Rename(label, _) | Merge(label, _) if label not in slots:
                return f"There is no class {label!r}."
            case Merge(kept, gone) if gone not in slots or kept == gone:
                return (
                    f"There is no class {gone!r}." if gone not in slots else f"{kept!r} is one class already."
                )
            case Rename(old, new) if new in slots and new != old:
                return f"There is a class {new!r} already. If {old!r} is the same thing, merge them."
            case Undo() if not self.done:
                return "There is nothing to undo."
        return None

    @torch.inference_mode()
    def apply(self, change: Change, meeting: Meeting | None = None) -> None:
        """Make a change that nothing speaks against."""
        self.sequence += 1
        if isinstance(change, Undo):
            self._undo()
            return
        self._make(change, meeting.reading if meeting is not None else None)
        self.done.append(_Done(change, meeting, meeting.told if meeting is not None else UNTOLD))
        if meeting is not None and isinstance(change, Tell):
            meeting.told, meeting.reading = change.label, None  # scores of thousands of classes need not stay
        if len(self.done) == 2 * UNDO:
            assert self.middle is not None
            self.base, self.middle, self.done = self.middle, None, self.done[UNDO:]
        if len(self.done) == UNDO:
            self.middle = Past(self.memory.copy(), self.names.copy())

    def _make(self, change: Change, reading: Reading | None = None) -> None:
        memory, names = self.memory, self.names
        match change:
            case Tell(None, trace):
                memory.meet(trace, None, reading)
            case Tell(label, trace, example, late):
                slot = names.open(label)
                names.tell(slot, example)
                if late:
                    memory.name(trace, slot)
                else:
                    memory.meet(trace, slot, reading)
            case Forget(label):
                memory.forget(names.forget(label))
            case Merge(kept, gone):
                memory.merge(*names.merge(kept, gone))
            case Rename(old, new):
                names.rename(old, new)

    def _undo(self) -> None:
        last = self.done.pop()
        if last.meeting is not None:
            last.meeting.told = last.told
        if len(self.done) < UNDO:
            self.middle = None
        past, since = (self.base, self.done) if self.middle is None else (self.middle, self.done[UNDO:])
        self.memory, self.names = past.memory.copy(), past.names.copy()
        for done in since:
            self._make(done.change)

    @property
    def labels(self) -> list[Hashable]:
        """The labels, by slot."""
        return self.names.labels

    def copy(self) -> "Life":
        """A life of its own from here, with nothing to undo."""
        return Life(self.memory.copy(), self.names.copy())
