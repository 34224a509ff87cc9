"""One SQLite file: which pictures there are, every decision ever made, and what follows from them.

The log is append-only. Everything else about decisions (states of pictures, classes, counts) follows from it
and is changed in the same transaction, so that the file is whole after a crash at any moment. How it stays in
step with the memory of the agent, which is another file, is told in `session`.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

from wanderlearn.errors import WanderError
from wanderlearn.serve.classes import Classes
from wanderlearn.serve.tally import Tally

__all__ = [
    "BROKEN", "DECIDED", "DRAWN", "FOLDER", "GONE", "PAD", "SKIPPED", "STATES", "WAITING", "Entry",
    "Picture", "Store",
]  # fmt: skip

FORMAT: Final = "1"
WAITING, DECIDED, SKIPPED, BROKEN, GONE, DRAWN = range(6)  # states of a picture
STATES: Final = ("waiting", "decided", "skipped", "broken", "gone", "drawn")
FOLDER, PAD = range(2)  # where a picture comes from

SCHEMA: Final = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE folders(place BLOB PRIMARY KEY, path BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE pictures(
    id INTEGER PRIMARY KEY, source INTEGER NOT NULL, path BLOB NOT NULL, place BLOB NOT NULL,
    state INTEGER NOT NULL DEFAULT 0, class INTEGER, entry INTEGER, ask INTEGER NOT NULL DEFAULT 0, note TEXT,
    UNIQUE(path, source));
CREATE INDEX queue ON pictures(state, place);
CREATE INDEX by_class ON pictures(class, entry) WHERE class IS NOT NULL;
CREATE TABLE classes(
    id INTEGER PRIMARY KEY, label TEXT NOT NULL, merged INTEGER, gone INTEGER NOT NULL DEFAULT 0);
CREATE TABLE log(
    n INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, by TEXT NOT NULL, picture INTEGER,
    class INTEGER, other INTEGER, label TEXT, guess TEXT, confidence REAL, p_new REAL, right INTEGER,
    opens INTEGER, was_label TEXT, was_state INTEGER, was_class INTEGER, was_entry INTEGER, was_by TEXT,
    change INTEGER, undone INTEGER);
CREATE INDEX past ON log(n) WHERE undone IS NULL AND kind IN ('decide', 'skip');
CREATE INDEX record ON log(n) WHERE undone IS NULL AND by = 'person' AND guess IS NOT NULL;
CREATE INDEX taken_back ON log(n) WHERE undone IS NULL AND kind <> 'undo';
"""

Kind = Literal["decide", "skip", "rename", "merge", "forget", "undo"]


@dataclass(frozen=True)
class Picture:
    """One picture of the listing."""

    id: int
    source: int
    path: bytes
    state: int
    class_: int | None
    entry: int | None
    ask: int
    note: str | None


@dataclass(frozen=True)
class Entry:
    """One line of the log. What was before is in it too, so that it can be taken back."""

    kind: Kind
    by: str = "person"
    n: int = 0
    at: float = 0.0
    picture: int | None = None
    class_: int | None = None
    other: int | None = None  # the class that was merged away, or the line that was undone
    label: str | None = None  # as it was called then
    guess: str | None = None  # what the agent said; None: new
    confidence: float | None = None
    p_new: float | None = None
    right: int | None = None  # whether the agent's answer was right
    opens: int | None = None  # whether this made the class
    was_label: str | None = None
    was_state: int | None = None
    was_class: int | None = None
    was_entry: int | None = None
    was_by: str | None = None
    change: int | None = None  # the number of the agent's change that belongs to it
    undone: int | None = None  # the line that took it back


COLUMNS: Final = [field.name for field in fields(Entry)]
_SELECT: Final = "SELECT " + ", ".join(name.rstrip("_") for name in COLUMNS) + " FROM log "
_PICTURE: Final = "SELECT id, source, path, state, class, entry, ask, note FROM pictures "


class Store:
    """The file of one session. Every method takes the lock; one thread at a time is inside."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.RLock()
        try:
            self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self.db.execute("PRAGMA journal_mode = WAL")
            self.db.execute("PRAGMA synchronous = FULL")
            self.db.execute("PRAGMA cache_size = -8192")
            self.db.execute("PRAGMA journal_size_limit = 8388608")
            if not self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                script = f"BEGIN;{SCHEMA}INSERT INTO meta VALUES('format', '{FORMAT}');COMMIT;"
                self.db.executescript(script)
            if (found := self.meta("format")) != FORMAT:
                raise WanderError(f"{path} has session format {found}; this version reads {FORMAT}.")
            self._read()
        except sqlite3.Error as error:
            raise WanderError(
                f"{path} cannot be opened ({error}). It holds the decisions of a session: put a good copy "
                "there, or choose another place with --state."
            ) from error

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self.db.close()

    def _read(self) -> None:
        """Take what is kept in memory (classes, counts) from the file."""
        self.classes = Classes(self.db)
        self.counts = [0] * len(STATES)  # of the pictures in the folder
        sql = "SELECT state, count(*) FROM pictures WHERE source = 0 GROUP BY state"
        for state, count in self.db.execute(sql):
            self.counts[state] = count
        self.tally = Tally.of(self.db)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is on the disk afterwards, or none."""
        with self.lock:
            try:
                self.db.execute("BEGIN IMMEDIATE")
                yield self.db
                self.db.execute("COMMIT")
            except BaseException as error:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                self._read()
                if isinstance(error, sqlite3.OperationalError):
                    raise WanderError(f"Cannot write {self.path}: {error}. Nothing was changed.") from error
                raise

    def meta(self, name: str, default: str = "") -> str:
        """A value kept under a name."""
        with self.lock:
            row = self.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else default

    def set_meta(self, **values: str) -> None:
        """Keep values under names."""
        with self.writing() as db:
            db.executemany("INSERT OR REPLACE INTO meta VALUES(?, ?)", values.items())

    # Pictures ------------------------------------------------------------------------------------------

    def picture(self, id: int) -> Picture | None:
        """A picture by its id."""
        with self.lock:
            row = self.db.execute(_PICTURE + "WHERE id = ?", (id,)).fetchone()
        return Picture(*row) if row else None

    def waiting(self, before: bytes | None, limit: int = 1) -> list[Picture]:
        """The next pictures that nobody decided, in order; only those whose place is known to be final."""
        where = "WHERE state = 0" + (" AND place < ?" if before is not None else "")
        arguments: tuple[Any, ...] = (limit,) if before is None else (before, limit)
        with self.lock:
            rows = self.db.execute(f"{_PICTURE}{where} ORDER BY place LIMIT ?", arguments)
            return [Picture(*row) for row in rows]

    def in_state(self, state: int, after: bytes = b"", limit: int = 60) -> list[tuple[Picture, bytes]]:
        """A page of the pictures in a state, in order, each with the place to go on after."""
        where = "WHERE state = ? AND place > ? ORDER BY place LIMIT ?"
        sql = _PICTURE.replace(" FROM", ", place FROM") + where
        with self.lock:
            rows = self.db.execute(sql, (state, after, limit)).fetchall()
        return [(Picture(*row[:-1]), row[-1]) for row in rows]

    def of_class(self, id: int, limit: int) -> list[Picture]:
        """The latest pictures of a class, latest first."""
        with self.lock:
            found: list[Picture] = []
            for member in self.classes.members(id):
                sql = _PICTURE + "WHERE class = ? AND state = 1 ORDER BY entry DESC LIMIT ?"
                found += [Picture(*row) for row in self.db.execute(sql, (member, limit))]
        return sorted(found, key=lambda picture: -(picture.entry or 0))[:limit]

    def add(self, source: int, rows: list[tuple[bytes, bytes]]) -> int:
        """List pictures (path, place) that are not listed yet; gives how many were new."""
        with self.writing() as db:
            sql = "INSERT OR IGNORE INTO pictures(source, path, place) VALUES(?, ?, ?)"
            new = db.executemany(sql, ((source, *row) for row in rows)).rowcount
            self.counts[WAITING] += new
        return new

    def add_drawing(self, path: bytes) -> Picture:
        """List one drawing. It is not in the queue."""
        with self.writing() as db:
            sql = "INSERT INTO pictures(source, path, place, state) VALUES(?, ?, ?, ?)"
            row = db.execute(sql, (PAD, path, path, DRAWN))
        found = self.picture(int(row.lastrowid or 0))
        assert found is not None
        return found

    def set_state(self, picture: Picture, state: int, note: str | None = None) -> None:
        """A picture turned out to be broken or gone."""
        with self.writing() as db:
            db.execute("UPDATE pictures SET state = ?, note = ? WHERE id = ?", (state, note, picture.id))
            self._count(picture.source, picture.state, state, 1)

    def try_again(self) -> None:
        """What was broken or gone may be whole by now."""
        with self.writing() as db:
            tried = (WAITING, BROKEN, GONE)
            db.execute("UPDATE pictures SET state = ?, note = NULL WHERE state IN (?, ?)", tried)
            self.counts[WAITING] += self.counts[BROKEN] + self.counts[GONE]
            self.counts[BROKEN] = self.counts[GONE] = 0

    # The log -------------------------------------------------------------------------------------------

    def append(self, entry: Entry) -> Entry:
        """Write a line and all that follows from it, in one transaction."""
        with self.writing() as db:
            n = 1 + self.last_number()
            entry = replace(entry, n=n, at=time.time())
            if entry.kind == "undo":
                before = self.entry(entry.other or 0)
                assert before is not None
                self._revert(before)
                db.execute("UPDATE log SET undone = ? WHERE n = ?", (n, before.n))
            else:
                entry = self._apply(entry)
            values = asdict(entry)
            names = ", ".join(name.rstrip("_") for name in values)
            marks = ", ".join("?" * len(values))
            db.execute(f"INSERT INTO log({names}) VALUES({marks})", tuple(values.values()))
        return entry

    def never_happened(self, entry: Entry) -> None:
        """The agent could not make the change of the last line: take back all that followed from it."""
        with self.writing() as db:
            if entry.kind == "undo":
                before = self.entry(entry.other or 0)
                assert before is not None
                self._apply(before)
                db.execute("UPDATE log SET undone = NULL WHERE n = ?", (before.n,))
            else:
                self._revert(entry)
            db.execute("UPDATE log SET undone = 0, change = NULL WHERE n = ?", (entry.n,))

    def entry(self, n: int) -> Entry | None:
        """A line by its number."""
        with self.lock:
            row = self.db.execute(_SELECT + "WHERE n = ?", (n,)).fetchone()
        return Entry(*row) if row else None

    def last(self) -> Entry | None:
        """The last line that belongs to a change of the agent."""
        with self.lock:
            row = self.db.execute(_SELECT + "WHERE change IS NOT NULL ORDER BY n DESC LIMIT 1").fetchone()
        return Entry(*row) if row else None

    def last_made(self) -> Entry | None:
        """The last line that was not taken back."""
        with self.lock:
            sql = _SELECT + "WHERE undone IS NULL AND kind <> 'undo' ORDER BY n DESC LIMIT 1"
            row = self.db.execute(sql).fetchone()
        return Entry(*row) if row else None

    def last_number(self) -> int:
        """The number of the last line."""
        with self.lock:
            return int(self.db.execute("SELECT max(n) FROM log").fetchone()[0] or 0)

    def standing(self, after: int, upto: int, limit: int = 500) -> list[Entry]:
        """Decisions and skips that stand and are the last about their picture, oldest first."""
        sql = (
            f"{_SELECT}WHERE n > ? AND n <= ? AND undone IS NULL AND kind IN ('decide', 'skip') AND EXISTS "
            "(SELECT 1 FROM pictures WHERE id = picture AND entry = n AND state IN (1, 2)) ORDER BY n LIMIT ?"
        )
        with self.lock:
            return [Entry(*row) for row in self.db.execute(sql, (after, upto, limit))]

    def past(self, limit: int) -> list[Entry]:
        """The latest decisions and skips that stand, latest first."""
        with self.lock:
            sql = _SELECT + "WHERE undone IS NULL AND kind IN ('decide', 'skip') ORDER BY n DESC LIMIT ?"
            return [Entry(*row) for row in self.db.execute(sql, (limit,))]

    def record(self, limit: int) -> list[tuple[float, bool]]:
        """How confident the agent was, and if it was right, where it named a class and a person judged."""
        sql = (
            "SELECT confidence, right FROM log WHERE undone IS NULL AND by = 'person' AND guess IS NOT NULL "
            "ORDER BY n DESC LIMIT ?"
        )
        with self.lock:
            rows = self.db.execute(sql, (limit,)).fetchall()
        return [(float(confidence), bool(right)) for confidence, right in rows]

    def _apply(self, entry: Entry) -> Entry:
        """Make what a line says; gives the line with what was before."""
        classes = self.classes
        if entry.kind in ("decide", "skip"):
            picture = self.picture(entry.picture or 0)
            assert picture is not None
            before = self.entry(picture.entry) if picture.entry else None
            entry = replace(
                entry, was_state=picture.state, was_class=picture.class_, was_entry=picture.entry,
                was_by=before.by if before and before.kind == "decide" and picture.state == DECIDED else None,
            )  # fmt: skip
            if entry.kind == "decide":
                assert entry.label is not None
                if entry.class_ is None:
                    known = classes.find(entry.label)
                    id = classes.open(entry.label) if known is None else known
                    entry = replace(entry, class_=id, opens=int(known is None))
                elif entry.opens:  # once more, after it was taken back
                    classes.set_gone(entry.class_, False)
            state = DECIDED if entry.kind == "decide" else SKIPPED
            self._move(picture, state, entry.class_, entry.n)
        elif entry.kind == "rename":
            assert entry.class_ is not None
            assert entry.label is not None
            classes.rename(entry.class_, entry.label)
        elif entry.kind == "merge":
            assert entry.class_ is not None
            assert entry.other is not None
            classes.merge(entry.class_, entry.other)
        else:
            assert entry.class_ is not None
            self._flip(entry.class_, forgotten=True)
            classes.set_gone(entry.class_, True)
        self.tally.add(entry)
        return entry

    def _revert(self, entry: Entry) -> None:
        """Take back what the last line that stands did."""
        classes = self.classes
        if entry.kind in ("decide", "skip"):
            picture = self.picture(entry.picture or 0)
            assert picture is not None
            assert entry.was_state is not None
            self._move(picture, entry.was_state, entry.was_class, entry.was_entry)
            self.db.execute("UPDATE pictures SET ask = 1 WHERE id = ?", (entry.picture,))
            if entry.opens:
                assert entry.class_ is not None
                classes.set_gone(entry.class_, True)
        elif entry.kind == "rename":
            assert entry.class_ is not None
            assert entry.was_label is not None
            classes.rename(entry.class_, entry.was_label)
        elif entry.kind == "merge":
            assert entry.other is not None
            classes.merge(None, entry.other)
        else:
            assert entry.class_ is not None
            classes.set_gone(entry.class_, False)
            self._flip(entry.class_, forgotten=False)
        self.tally.add(entry, -1)

    def _move(self, picture: Picture, state: int, class_: int | None, entry: int | None) -> None:
        values = (state, class_, entry, picture.id)
        self.db.execute("UPDATE pictures SET state = ?, class = ?, entry = ? WHERE id = ?", values)
        self._count(picture.source, picture.state, state, 1)
        if picture.state == DECIDED and picture.class_ is not None:
            self.classes.count(picture.class_, -1)
        if state == DECIDED and class_ is not None:
            self.classes.count(class_, 1)

    def _count(self, source: int, old: int, new: int, pictures: int) -> None:
        if source == FOLDER:
            self.counts[old] -= pictures
            self.counts[new] += pictures

    def _flip(self, class_: int, forgotten: bool) -> None:
        """Take the pictures of a class out of it, or back; their class stays written, for that."""
        for member in self.classes.members(class_):
            for source, out in ((FOLDER, WAITING), (PAD, DRAWN)):
                old, new = (DECIDED, out) if forgotten else (out, DECIDED)
                sql = "UPDATE pictures SET state = ? WHERE class = ? AND state = ? AND source = ?"
                moved = self.db.execute(sql, (new, member, old, source)).rowcount
                self._count(source, old, new, moved)
                self.classes.count(member, -moved if forgotten else moved)
