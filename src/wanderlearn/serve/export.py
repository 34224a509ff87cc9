"""What was decided, as files: folders by class, a table and JSON, in a new folder, whole or not there."""

import csv
import json
import os
import secrets
import shutil
import sqlite3
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, get_args

from wanderlearn.errors import WanderError
from wanderlearn.serve.home import Home
from wanderlearn.serve.listing import open_inside
from wanderlearn.serve.store import DECIDED, FOLDER, PAD
from wanderlearn.serve.words import name_of

__all__ = ["HOW", "How", "export", "suggested"]

How = Literal["copies", "hard links", "links", "none"]
HOW: Final = get_args(How)
COLUMNS: Final = ("picture", "label", "file", "by", "guess", "confidence", "p_new", "right", "at")
RESERVED: Final = {"con", "prn", "aux", "nul", *(f"{n}{i}" for n in ("com", "lpt") for i in range(1, 10))}
FORBIDDEN: Final = set('<>:"/\\|?*')


def suggested(home: Home) -> Path:
    """A place for an export that is free."""
    beside = (home.folder or home.state).absolute()
    path, n = beside.with_name(f"{beside.name.lstrip('.') or 'pictures'}-sorted"), 2
    while os.path.lexists(path):
        path, n = beside.with_name(f"{beside.name.lstrip('.') or 'pictures'}-sorted-{n}"), n + 1
    return path


def export(home: Home, to: Path, how: How = "copies") -> dict[str, Any]:
    """Write all that was decided to a new folder `to`. The pictures themselves are left as they are.

    `how`: what is put into the folders of the classes: copies, hard links, symbolic links, or nothing.
    """
    target = Path(os.path.abspath(to.expanduser()))
    _refuse(home, target, how)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        part.mkdir(parents=True)
        counts = _write(home, part, how)
        if os.path.lexists(target):  # somebody was faster: renaming would replace an empty folder
            raise WanderError(f"{target} exists already. Choose a new folder.")
        part.rename(target)
    except OSError as error:
        cross = how == "hard links" and isinstance(error, OSError)
        hint = " Hard links need the same disk: choose copies." if cross else ""
        raise WanderError(f"Cannot write {target}: {error.strerror or error}.{hint}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return {"to": str(target), **counts}


def _refuse(home: Home, target: Path, how: str) -> None:
    if how not in HOW:
        raise WanderError(f"Choose one of {', '.join(HOW)}, not {how}.")
    if os.path.lexists(target):
        raise WanderError(f"{target} exists already. Choose a new folder.")
    if not target.parent.is_dir():
        raise WanderError(f"There is no folder {target.parent} to make it in.")
    real = Path(os.path.realpath(target))
    for inside in (home.folder, home.state):
        if inside is not None and real.is_relative_to(Path(os.path.realpath(inside))):
            raise WanderError("Choose a place outside the folder of pictures, or they would be listed again.")


def _write(home: Home, part: Path, how: How) -> dict[str, Any]:
    folders, counts = _Folders(part / "classes"), {"pictures": 0, "missing": 0}
    about = {
        "format": 1,
        "kind": "labels",
        "weights": home.store.meta("weights"),
        "folder": str(home.folder) if home.folder else None,
        "at": time.time(),
    }
    with (
        (part / "labels.csv").open("w", encoding="utf-8", newline="") as table,
        (part / "labels.json").open("w", encoding="utf-8") as plain,
    ):
        rows = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        rows.writeheader()
        plain.write(json.dumps(about)[:-1] + ', "pictures": [')
        for row in _decided(home):
            source, path = row.pop("source"), row.pop("path")
            root = home.sight.folder if source == FOLDER else home.sight.drawings
            file = None
            if how != "none" and root is not None:
                wanted = folders.path(row["label"], os.path.basename(path))
                try:
                    _put(root, path, wanted, how)
                    file = wanted.relative_to(part).as_posix()
                except (FileNotFoundError, NotADirectoryError):
                    counts["missing"] += 1
            row["file"] = file
            rows.writerow(row)
            plain.write((",\n" if counts["pictures"] else "\n") + json.dumps(row))
            counts["pictures"] += 1
        plain.write("\n]}\n")
        for file_ in (table, plain):
            file_.flush()
            os.fsync(file_.fileno())
    return {**counts, "classes": len(folders.names), "how": how}


def _decided(home: Home) -> Iterator[dict[str, Any]]:
    """Every decided picture, from one moment of the store: deciding goes on meanwhile."""
    with home.store.lock:
        labels = {id: home.store.classes.label(id) for id in home.store.classes.all}
        db = sqlite3.connect(f"file:{home.store.path}?mode=ro", uri=True, check_same_thread=False)
        db.execute("BEGIN")
        db.execute("SELECT 1 FROM pictures LIMIT 1").fetchone()
    try:
        sql = (
            "SELECT source, path, pictures.class, by, guess, confidence, p_new, right, at FROM pictures "
            "LEFT JOIN log ON n = entry WHERE state = ? ORDER BY source, place"
        )
        for source, path, class_, by, guess, confidence, p_new, right, at in db.execute(sql, (DECIDED,)):
            yield {
                "source": source, "path": path,
                "picture": ("drawings/" if source == PAD else "") + name_of(path), "label": labels[class_],
                "by": by, "guess": guess, "confidence": confidence, "p_new": p_new,
                "right": None if right is None or by != "person" else bool(right), "at": at,
            }  # fmt: skip
    finally:
        db.close()


def _put(root: bytes, path: bytes, wanted: Path, how: How) -> None:
    with open_inside(root, path) as file:  # whatever leads out of the folder is refused here
        if how == "copies":
            with wanted.open("xb") as out:
                shutil.copyfileobj(file, out, 1 << 20)
            return
    real = os.path.realpath(os.path.join(root, path))
    if how == "hard links":
        os.link(real, wanted)
    else:
        wanted.symlink_to(os.fsdecode(real))


class _Folders:
    """Names of folders and files that every system can hold and that no two share, whatever the case."""

    def __init__(self, root: Path) -> None:
        self.root, self.names = root, dict[str, str]()
        self.taken: set[str] = set()

    def path(self, label: str, file: bytes) -> Path:
        """A free path for a picture of a class."""
        if label not in self.names:
            self.names[label] = _free(_safe(label), lambda name: name.casefold() in self.taken)
            self.taken.add(self.names[label].casefold())
            (self.root / self.names[label]).mkdir(parents=True)
        folder = self.root / self.names[label]
        return folder / _free(_safe(name_of(file)), lambda name: os.path.lexists(folder / name))


def _free(name: str, taken: Callable[[str], bool]) -> str:
    stem, suffix = os.path.splitext(name)
    n, found = 2, name
    while taken(found):
        found, n = f"{stem} ({n}){suffix}", n + 1
    return found


def _safe(name: str) -> str:
    """A name without what some system forbids."""
    name = "".join(
        "_" if letter in FORBIDDEN or unicodedata.category(letter).startswith("C") else letter
        for letter in name
    )
    stem, suffix = os.path.splitext(name)
    while len((stem + suffix).encode()) > 180 and stem:
        stem = stem[:-1]
    name = (stem + suffix).rstrip(". ").lstrip()
    if not name or name.startswith(".") or name.split(".")[0].lower() in RESERVED:
        name = f"_{name}"
    return name
