"""The classes of a session: their names, which were merged into which, and how many pictures each has."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Classes"]


@dataclass
class _Class:
    label: str
    merged: int | None  # into this class
    gone: bool
    pictures: int = 0  # of its own, without those of classes that were merged into it


class Classes:
    """All classes there ever were, by id. What changes here is written in the transaction of the caller.

    A merged class keeps its id and its pictures and points to the one it is now part of: merging, and
    taking it back, touch one row however many pictures there are.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        rows = db.execute("SELECT id, label, merged, gone FROM classes")
        self.all = {id: _Class(label, merged, bool(gone)) for id, label, merged, gone in rows}
        counts = "SELECT class, count(*) FROM pictures WHERE state = 1 AND class IS NOT NULL GROUP BY class"
        for id, pictures in db.execute(counts):
            self.all[id].pictures = pictures
        self.ids = {one.label: id for id, one in self.all.items() if not one.gone and one.merged is None}
        self.parts: dict[int, list[int]] = {}  # what was merged into a class, directly
        for id, one in self.all.items():
            if one.merged is not None:
                self.parts.setdefault(one.merged, []).append(id)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Live classes: id and label."""
        return iter([(id, label) for label, id in self.ids.items()])

    def find(self, label: str) -> int | None:
        """The live class of that name."""
        return self.ids.get(label)

    def label(self, id: int) -> str:
        """What a class is called now, or what it is part of."""
        one = self.all[id]
        while one.merged is not None:
            one = self.all[one.merged]
        return one.label

    def members(self, id: int) -> list[int]:
        """A class and all that was merged into it."""
        found = [id]
        for member in found:
            found += self.parts.get(member, [])
        return found

    def pictures(self, id: int) -> int:
        """How many pictures a class has."""
        return sum(self.all[member].pictures for member in self.members(id))

    def open(self, label: str) -> int:
        """Make a class."""
        id = int(self.db.execute("INSERT INTO classes(label) VALUES(?)", (label,)).lastrowid or 0)
        self.all[id] = _Class(label, None, False)
        self.ids[label] = id
        return id

    def rename(self, id: int, label: str) -> None:
        """Give a class another name."""
        self.db.execute("UPDATE classes SET label = ? WHERE id = ?", (label, id))
        del self.ids[self.all[id].label]
        self.all[id].label = label
        self.ids[label] = id

    def merge(self, kept: int | None, gone: int) -> None:
        """Make a class part of another, or (None) one of its own again."""
        self.db.execute("UPDATE classes SET merged = ? WHERE id = ?", (kept, gone))
        one = self.all[gone]
        if kept is None:
            assert one.merged is not None
            self.parts[one.merged].remove(gone)
            self.ids[one.label] = gone
        else:
            self.parts.setdefault(kept, []).append(gone)
            del self.ids[one.label]
        one.merged = kept

    def set_gone(self, id: int, gone: bool) -> None:
        """Drop a class, or bring it back."""
        self.db.execute("UPDATE classes SET gone = ? WHERE id = ?", (int(gone), id))
        one = self.all[id]
        one.gone = gone
        if gone:
            del self.ids[one.label]
        else:
            self.ids[one.label] = id

    def count(self, id: int, by: int) -> None:
        """So many pictures more."""
        self.all[id].pictures += by
