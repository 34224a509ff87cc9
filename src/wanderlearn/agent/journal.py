"""An append-only file beside a saved agent: every change since the save, safe from the moment it is told.

The file begins with one record that names the save it continues; then comes one record per change, numbered.
A change is written to the journal before it is made in memory, in one call, so that a process killed at any
moment loses at most the change it was about to make. What an operating system that goes down may lose is set
by `fsync`: "always" (nothing that was told), a number n (at most the last n changes), "never" (whatever the
system had not written yet).
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from wanderlearn.agent.changes import Change, frame, frames, pack, unpack
from wanderlearn.errors import WanderError

if sys.platform != "win32":
    import fcntl

__all__ = ["Fsync", "Journal", "Replay", "journal_of", "read_journal"]

Fsync = Literal["always", "never"] | int

FORMAT: Final = 1


class Replay(NamedTuple):
    """What a journal holds."""

    save: str | None  # which save it continues; None: the file is new, or was only just begun
    changes: list[tuple[int, Change]]
    end: int  # bytes that are whole
    torn: int  # bytes after them: a change that was being written when the process died


def journal_of(path: Path) -> Path:
    """Where the journal of a saved agent is."""
    return path.with_name(path.name + ".journal")


def read_journal(path: Path) -> Replay:
    """The changes in a journal. A torn end is left out; anything else that is wrong is an error."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WanderError(f"Cannot read the journal {path}: {error.strerror or error}.") from error
    save: str | None = None
    changes: list[tuple[int, Change]] = []
    end = torn = 0
    for number, found in enumerate(frames(data)):
        if found.packed is None:
            if not found.torn:
                raise WanderError(
                    _damaged(path, number, f"at byte {found.start}", "its checksum does not match")
                )
            torn = found.end - found.start
            break
        try:
            if number == 0:
                head = json.loads(found.packed)
                if head["journal"] != FORMAT:
                    raise ValueError(f"it has format {head['journal']}; this version reads {FORMAT}")
                save = str(head["save"])
            else:
                changes.append(unpack(found.packed))
                if len(changes) > 1 and changes[-1][0] != changes[-2][0] + 1:
                    raise ValueError(f"change {changes[-1][0]} follows change {changes[-2][0]}")
        except (ValueError, KeyError, TypeError) as error:
            raise WanderError(_damaged(path, number, f"at byte {found.start}", str(error))) from error
        end = found.end
    return Replay(save, changes, end, torn)


class Journal:
    """A journal that is open for writing. Only one process at a time can have it open."""

    def __init__(self, path: Path, fsync: Fsync = "always") -> None:
        if fsync not in ("always", "never") and not (type(fsync) is int and fsync >= 1):
            raise WanderError(f'fsync is "always", "never" or after how many changes, not {fsync!r}.')
        self.path = path
        self.every = 1 if fsync == "always" else 0 if fsync == "never" else int(fsync)
        self.unsynced = 0
        self.broken = False
        try:
            self.file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        except OSError as error:
            raise WanderError(f"Cannot write the journal {path}: {error.strerror or error}.") from error
        if sys.platform != "win32":
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(self.file)
                raise WanderError(
                    f"The journal {path} is in use by another process. Two agents cannot share one memory."
                ) from error
        self.end = os.fstat(self.file).st_size

    def begin(self, save: str) -> None:
        """Start afresh after a save, which holds all that the journal held: nothing in it is needed now."""
        self.broken = True  # until it has its head
        self._cut(0)
        self._write(frame(json.dumps({"journal": FORMAT, "save": save}).encode()), sync=True)
        self.broken = False

    def go_on(self, end: int) -> None:
        """Continue after `end`, leaving out what is torn."""
        self._cut(end)

    def append(self, sequence: int, change: Change) -> None:
        """Write a change, whole or not at all."""
        if self.broken:
            raise WanderError(f"The journal {self.path} could not be written before. Save the agent.")
        due = self.every > 0 and self.unsynced + 1 >= self.every
        self._write(frame(pack(sequence, change)), sync=due)
        self.unsynced = 0 if due else self.unsynced + 1

    def close(self) -> None:
        """Sync and close."""
        if self.file >= 0:
            os.fsync(self.file)
            os.close(self.file)
            self.file = -1

    def _write(self, data: bytes, sync: bool) -> None:
        """Append, and wait until it is on the disk if `sync`; what cannot be written leaves no trace."""
        before, left = self.end, memoryview(data)
        try:
            os.lseek(self.file, before, os.SEEK_SET)
            while left:
                left = left[os.write(self.file, left) :]
            if sync:
                os.fsync(self.file)
        except OSError as error:
            try:
                # What was not made must not be replayed, and half a record must not come before others.
                self._cut(before)
            except OSError:
                self.broken = True
            raise WanderError(
                f"Cannot write the journal {self.path}: {error.strerror or error}. Nothing was changed."
            ) from error
        self.end = before + len(data)

    def _cut(self, end: int) -> None:
        os.ftruncate(self.file, end)
        self.end = end


def _damaged(path: Path, number: int, where: str, why: Any) -> str:
    return (
        f"Record {number} of the journal {path} ({where}) is damaged: {why}. "
        "What follows it cannot be trusted. Copy the journal again from where it came, or move it away "
        "to go on from the last save without it."
    )
