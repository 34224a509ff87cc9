"""What is in a folder: found in the background, in a fixed order, kept on disk and not in memory.

A picture's place is its path with the separators made the smallest byte, so that places sort as somebody who
walks through the folders in the order of their names would meet the pictures; or, shuffled, a digest of seed
and path. Folders still to be read are rows of the store too. What is before the first of them is final, and
only that is shown: the order does not depend on how fast the disk is.
"""

import hashlib
import heapq
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Literal

from wanderlearn.errors import WanderError
from wanderlearn.serve.store import FOLDER, Store

__all__ = ["SUFFIXES", "Listing", "Order", "open_inside", "place_of"]

Order = Literal["path", "shuffled"]

SUFFIXES: Final = frozenset(b".png .jpg .jpeg .webp .gif .bmp .tif .tiff .pgm .ppm .pbm .jp2".split())
BATCH: Final = 500  # rows in one transaction
FIRST: Final = 64  # pictures of a large folder that are listed before the rest of it
_SEPARATOR: Final = b"\x01"


def place_of(path: bytes, order: Order, seed: int) -> bytes:
    """Where a picture comes in the order."""
    if order == "path":
        return path.replace(b"/", _SEPARATOR)
    return hashlib.blake2b(path, digest_size=8, key=str(seed).encode()).digest()


class Listing:
    """Fills the store with the pictures of a folder, from a thread of its own."""

    def __init__(
        self, store: Store, folder: Path, order: Order, seed: int, changed: Callable[[], None]
    ) -> None:
        self.store, self.folder, self.order, self.seed = store, folder, order, seed
        self.root = os.path.realpath(os.fsencode(folder))
        self.changed = changed
        self.finished = threading.Event()
        self.stopped = threading.Event()
        self.problems = 0  # folders that could not be read
        # A folder that was listed to its end before can be shown from the first moment.
        self.frontier: bytes | None = None if store.meta("listed") else b""
        self._reorder()

    def _reorder(self) -> None:
        """Another order than last time gives every picture another place."""
        wanted = f"{self.order} {self.seed}"
        if (before := self.store.meta("order")) == wanted:
            return
        with self.store.writing() as db:
            if before:
                db.create_function("place_of", 1, lambda path: place_of(path, self.order, self.seed))
                db.execute("UPDATE pictures SET place = place_of(path) WHERE source = 0")
            db.execute("INSERT OR REPLACE INTO meta VALUES('order', ?)", (wanted,))

    def start(self) -> threading.Thread:
        """Read the folder in the background."""
        thread = threading.Thread(target=self.run, name="listing", daemon=True)
        thread.start()
        return thread

    def run(self) -> None:
        """Read the folder and all folders in it, in the order of their places."""
        with self.store.writing() as db:
            db.execute("DELETE FROM folders")
            db.execute("INSERT INTO folders VALUES(x'', x'')")
        try:
            while not self.stopped.is_set() and (path := self._first_folder()) is not None:
                self._read(path)
            if not self.stopped.is_set():
                self.store.set_meta(listed="1")
                self.frontier = None
        finally:
            self.finished.set()
            self.changed()

    def stop(self) -> None:
        """End the background work soon."""
        self.stopped.set()

    def _first_folder(self) -> bytes | None:
        with self.store.lock:
            row = self.store.db.execute("SELECT place, path FROM folders ORDER BY place LIMIT 1").fetchone()
        if row is None:
            return None
        if self.frontier is not None and self.order == "path":
            self.frontier = max(self.frontier, row[0])
        return bytes(row[1])

    def _read(self, path: bytes) -> None:
        if self.frontier is not None and self.order == "path" and not self.store.waiting(self.frontier):
            self._read_first(path)
        batch: list[tuple[bytes, bytes]] = []
        folders: list[tuple[bytes, bytes]] = []
        for child, is_folder in self._entries(path):
            place = place_of(child, "path" if is_folder else self.order, self.seed)
            (folders if is_folder else batch).append((place, child) if is_folder else (child, place))
            if len(batch) + len(folders) >= BATCH:
                self._write(batch, folders)
                if self.stopped.is_set():
                    return
        self._write(batch, folders)
        with self.store.writing() as db:
            db.execute("DELETE FROM folders WHERE path = ?", (path,))
        self.changed()

    def _read_first(self, path: bytes) -> None:
        """The first pictures at once: a folder of a hundred thousand takes seconds to be listed whole."""
        places = ((place_of(child, "path", 0), child, folder) for child, folder in self._entries(path))
        first = heapq.nsmallest(FIRST + 1, places)
        upto = next((n for n, (_, _, folder) in enumerate(first) if folder), FIRST)
        self._write([(child, place) for place, child, _ in first[:upto]], [])
        if upto < len(first):
            self.frontier = first[upto][0]
        self.changed()

    def _write(self, batch: list[tuple[bytes, bytes]], folders: list[tuple[bytes, bytes]]) -> None:
        if batch:
            self.store.add(FOLDER, sorted(batch))
        if folders:
            with self.store.writing() as db:
                db.executemany("INSERT OR IGNORE INTO folders VALUES(?, ?)", folders)
        batch.clear()
        folders.clear()
        self.changed()

    def _entries(self, path: bytes) -> Iterator[tuple[bytes, bool]]:
        """Pictures and folders in a folder, by their path; True for a folder. Hidden ones are passed over."""
        try:
            with os.scandir(os.path.join(self.root, path)) as entries:
                for entry in entries:
                    name = entry.name
                    if name.startswith(b".") or _SEPARATOR in name:
                        continue
                    child = path + b"/" + name if path else name
                    try:
                        if entry.is_dir(follow_symlinks=False):
                            yield child, True
                        elif os.path.splitext(name)[1].lower() in SUFFIXES and self._is_inside(entry):
                            yield child, False
                    except OSError:
                        continue
        except OSError:
            self.problems += 1

    def _is_inside(self, entry: os.DirEntry[bytes]) -> bool:
        if not entry.is_symlink():
            return entry.is_file(follow_symlinks=False)
        return _inside(self.root, os.path.realpath(entry.path)) and entry.is_file()


def _inside(root: bytes, path: bytes) -> bool:
    return path.startswith(root.rstrip(b"/") + b"/")


def open_inside(root: bytes, path: bytes) -> BinaryIO:
    """Open a file of a folder for reading; what leads out of the folder by links or dots is refused.

    Every step is opened in the one before it and without following links, so that nothing can be exchanged
    between the check and the reading. What is no plain file is refused.
    """
    root = os.path.realpath(root)
    target = os.path.realpath(os.path.join(root, path))
    if not _inside(root, target):
        raise WanderError("That picture is not in the folder.")
    if sys.platform == "win32":
        return open(target, "rb")
    *folders, name = target[len(root.rstrip(b"/")) + 1 :].split(b"/")
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise WanderError("That is no file.")
    return os.fdopen(file, "rb")
