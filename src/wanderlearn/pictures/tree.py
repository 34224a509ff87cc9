"""What lies in a folder of pictures: splits, families, classes and files, without opening any of them."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from wanderlearn.errors import WanderError
from wanderlearn.pictures.collection import Split
from wanderlearn.pictures.decode import SUFFIXES

__all__ = ["File", "Group", "Scan", "scan"]

SPLIT_NAMES: Final[dict[str, Split]] = {
    "train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test",
}  # fmt: skip


NO_CLASS: Final = "(no class)"  # of a family without any


class File(NamedTuple):
    """One picture file and what a change of it would change."""

    name: str  # path below the root, with slashes
    size: int
    changed: int  # nanoseconds


@dataclass(frozen=True)
class Group:
    """A class as the place holds it: where it belongs, as far as that is said, and its pictures by name."""

    split: Split | None
    family: str | None
    name: str
    files: tuple[str, ...]

    @property
    def words(self) -> str:
        """How a reader is told of it."""
        return "/".join(part for part in (self.split, self.family, self.name) if part)


@dataclass
class Scan:
    """All that was found."""

    groups: list[Group]
    layout: Literal["family", "class"]
    stamps: list[File]  # of all pictures, sorted
    passed_over: dict[str, str] = field(default_factory=dict)  # name -> why


def scan(root: Path, layout: Literal["auto", "family", "class"] = "auto") -> Scan:
    """Look through `root`: split/family/class, family/class or class, with or without folders of splits."""
    if not root.is_dir():
        problem = "is not a folder" if root.exists() else "does not exist"
        raise WanderError(f"{root} {problem}. Name a folder that holds folders of pictures, one per class.")
    passed_over: dict[str, str] = {}
    try:
        files, folders = _walk(root, passed_over)
    except OSError as error:
        raise WanderError(f"Cannot read {error.filename or root}: {error.strerror or error}.") from error
    splits = _splits(folders)
    skip = 1 if splits else 0
    folders = [parts for parts in folders if len(parts) > skip and (not splits or parts[0] in splits)]
    inside = []
    for file in files:
        if splits and file.name.partition("/")[0] not in splits:
            passed_over[file.name] = "not in the folder of a split"
        else:
            inside.append(file)
    depths = Counter(min(file.name.count("/") - skip, 2) for file in inside)
    if layout == "auto":
        flat = depths[1] > depths[2] or _one_inner_folder(folders, skip)
        found: Literal["family", "class"] = "class" if flat else "family"
    else:
        found = layout
    need = skip + (1 if found == "class" else 2)
    kept: dict[tuple[str, ...], list[str]] = {}
    above = {parts[:-1] for parts in folders}
    for parts in folders:  # so that an empty class is seen
        if len(parts) >= need:
            kept.setdefault(parts[:need], [])
        elif parts not in above:
            kept.setdefault((*parts, NO_CLASS), [])
    stamps = []
    for file in inside:
        where = tuple(file.name.split("/")[:-1])
        if len(where) < need:
            passed_over[file.name] = "not in the folder of a class"
            continue
        kept[where[:need]].append(file.name)
        stamps.append(file)
    groups = [
        Group(
            split=splits[key[0]] if splits else None,
            family=key[-2] if found == "family" else None,
            name=key[-1],
            files=tuple(sorted(names)),
        )
        for key, names in sorted(kept.items())
    ]
    return Scan(groups, found, sorted(stamps), dict(sorted(passed_over.items())))


def _walk(root: Path, passed_over: dict[str, str]) -> tuple[list[File], list[tuple[str, ...]]]:
    """All picture files below, and all folders, as names. A link to a folder above it is not entered."""
    files: list[File] = []
    folders: list[tuple[str, ...]] = []

    def enter(path: str, parts: tuple[str, ...], above: frozenset[tuple[int, int]]) -> None:
        for entry in _entries(path):
            name = "/".join((*parts, entry.name))
            try:
                seen = entry.stat()
            except OSError as error:  # a link to nothing, or to itself
                passed_over[name] = error.strerror or "cannot be read"
                continue
            if entry.is_dir():
                identity = seen.st_dev, seen.st_ino
                if identity in above:
                    passed_over[name] = "a link to a folder that it lies in"
                    continue
                folders.append((*parts, entry.name))
                enter(entry.path, (*parts, entry.name), above | {identity})
            elif os.path.splitext(entry.name)[1].lower() in SUFFIXES:
                files.append(File(name, seen.st_size, seen.st_mtime_ns))
            else:
                passed_over[name] = "not named like a picture"

    top = root.stat()
    enter(str(root), (), frozenset({(top.st_dev, top.st_ino)}))
    return files, folders


def _entries(path: str) -> Iterator[os.DirEntry[str]]:
    """What lies in a folder by name, without what file managers leave."""
    with os.scandir(path) as entries:
        yield from sorted((e for e in entries if not e.name.startswith(".")), key=lambda entry: entry.name)


def _splits(folders: list[tuple[str, ...]]) -> dict[str, Split]:
    """Folder -> split, if the folders at the top are splits."""
    top = {parts[0] for parts in folders}
    named = {name: SPLIT_NAMES[name.lower()] for name in sorted(top) if name.lower() in SPLIT_NAMES}
    different = set(named.values())
    if "train" not in different or (len(different) == 1 and len(top) > 1):
        return {}
    if len(different) < len(named):
        raise WanderError(f"Two folders are the same split: {', '.join(named)}. Keep one of them.")
    return named


def _one_inner_folder(folders: list[tuple[str, ...]], skip: int) -> bool:
    """Whether every folder holds one of the same name, such as `images`: no family, then."""
    inner = [parts for parts in folders if len(parts) == skip + 2]
    outer = {parts for parts in folders if len(parts) == skip + 1}
    return (
        len({parts[-1] for parts in inner}) == 1
        and len(outer) > 1
        and {parts[:-1] for parts in inner} == outer
    )
