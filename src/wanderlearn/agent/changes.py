"""Every change of an agent's memory as a value, and as bytes: what undo, saved files and journals share.

A record is a frame around one change: a mark, the length, a checksum of these, a checksum of what follows,
and then one line of JSON and the numbers of the meeting. A reader can tell a record that was cut off at the
end of a file (a crash) from one that was altered in the middle (a broken disk, a wrong edit).
"""

import json
import struct
import zlib
from collections.abc import Hashable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from wanderlearn.agent.memory import Floats
from wanderlearn.agent.names import from_plain, to_plain

__all__ = [
    "Change",
    "Forget",
    "Frame",
    "Merge",
    "Rename",
    "Tell",
    "Undo",
    "frame",
    "frames",
    "pack",
    "unpack",
]

MARK: Final = b"\xabWL1"
HEAD: Final = struct.Struct("<4sIII")  # mark, length of the rest, checksum of mark and length, of the rest


class Tell(NamedTuple):
    """A meeting is written, with a label or (None) without.

    `late`: it was written without one before, and now its label is.
    """

    label: Hashable
    trace: Floats  # [w]
    example: Hashable = None
    late: bool = False


class Forget(NamedTuple):
    """A class is dropped."""

    label: Hashable


class Merge(NamedTuple):
    """What is kept of one class goes to another."""

    kept: Hashable
    gone: Hashable


class Rename(NamedTuple):
    """A class gets another label."""

    old: Hashable
    new: Hashable


class Undo(NamedTuple):
    """The change before is taken back."""


Change = Tell | Forget | Merge | Rename | Undo
KINDS: Final[dict[str, type]] = {kind.__name__.lower(): kind for kind in (Tell, Forget, Merge, Rename, Undo)}


def pack(sequence: int, change: Change) -> bytes:
    """A change and its number as bytes. Raises `WanderError` at a label that JSON cannot hold."""
    fields = {
        name: value if name == "late" else to_plain(value, "id" if name == "example" else "label")
        for name, value in change._asdict().items()
        if name != "trace"
    }
    line = json.dumps({"sequence": sequence, "change": type(change).__name__.lower(), **fields})
    numbers = change.trace.astype("<f4").tobytes() if isinstance(change, Tell) else b""
    return line.encode() + b"\n" + numbers


def unpack(packed: bytes) -> tuple[int, Change]:
    """The number and the change that `pack` gave. Raises ValueError at anything else."""
    line, _, numbers = packed.partition(b"\n")
    fields: dict[str, Any] = json.loads(line)
    try:
        sequence, kind = int(fields.pop("sequence")), KINDS[fields.pop("change")]
        values = {n: value if n == "late" else from_plain(value) for n, value in fields.items()}
        if kind is Tell:
            values["trace"] = np.frombuffer(numbers, "<f4").astype(np.float32)
        return sequence, kind(**values)
    except (KeyError, TypeError) as error:
        raise ValueError(f"it is no change of memory ({error})") from error


def frame(packed: bytes) -> bytes:
    """A record."""
    head = struct.pack("<4sI", MARK, len(packed))
    return head + struct.pack("<II", zlib.crc32(head), zlib.crc32(packed)) + packed


class Frame(NamedTuple):
    """What was found at a place in a file: a record, or (None) where none can be read."""

    packed: bytes | None
    start: int
    end: int
    torn: bool = False  # nothing readable follows: the end of the file was cut off


def frames(data: bytes, start: int = 0) -> Iterator[Frame]:
    """The records of a file in order, up to the first that cannot be read."""
    at = start
    while at < len(data):
        packed = _record_at(data, at)
        if packed is None:
            yield Frame(None, at, len(data), torn=not _goes_on(data, at + 1))
            return
        end = at + HEAD.size + len(packed)
        yield Frame(packed, at, end)
        at = end


def _record_at(data: bytes, at: int) -> bytes | None:
    if len(data) < at + HEAD.size:
        return None
    mark, size, of_head, of_packed = HEAD.unpack_from(data, at)
    packed = data[at + HEAD.size : at + HEAD.size + size]
    whole = mark == MARK and of_head == zlib.crc32(data[at : at + 8]) and len(packed) == size
    return packed if whole and of_packed == zlib.crc32(packed) else None


def _goes_on(data: bytes, at: int) -> bool:
    """Whether any whole record starts at `at` or later."""
    while (at := data.find(MARK, at)) >= 0:
        if _record_at(data, at) is not None:
            return True
        at += 1
    return False
