"""Anybody's own pictures, in folders: `folder:PATH`.

PATH holds split/family/class/*, family/class/* or class/*; what the folders do not say is shared out by a
rule (`shares.py`). Pictures of any common kind and size are decoded once into the user's cache (`kept.py`),
under a key of what lies in the folder (names, sizes, times of change) and of how it is to be read.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from wanderlearn.errors import WanderError
from wanderlearn.pictures.address import Address
from wanderlearn.pictures.collection import SPLITS, Pictures, Split
from wanderlearn.pictures.decode import Look
from wanderlearn.pictures.decoding import decode_files
from wanderlearn.pictures.kept import Class, Contents, Filling, load_or_decode
from wanderlearn.pictures.shares import Shares, share_out
from wanderlearn.pictures.tree import Scan, scan

__all__ = ["CHANNELS", "SIZE", "folder", "from_scan"]

VERSION: Final = 1  # a change of any pixel or of any rule is a change of version
SIZE: Final = 64
CHANNELS: Final = 3
LISTED: Final = 10  # files named on the screen; the manifest names all


def folder(address: Address, split: Split) -> Pictures:
    """The pictures of one split of a folder. The first call decodes all of it."""
    found = scan(Path(address.path), address.options.layout)
    return from_scan(found, address, split)


def from_scan(found: Scan, address: Address, split: Split) -> Pictures:
    """As `folder`, of what was found already."""
    address = address.filled(SIZE, CHANNELS)
    options = {name: value for name, value in asdict(address.options).items() if value is not None}
    stamped = [
        VERSION,
        options,
        found.stamps,
        [[g.split, g.family, g.name, len(g.files)] for g in found.groups],
    ]
    key = hashlib.sha256(json.dumps(stamped, sort_keys=True).encode()).hexdigest()
    return load_or_decode(f"{address.name}-{key[:24]}", split, lambda: _plan(found, address, key))


def _plan(found: Scan, address: Address, key: str) -> tuple[Contents, Filling, Callable[[Contents], None]]:
    root, options = Path(address.path), address.options
    shares = share_out(found.groups, [len(group.files) for group in found.groups], address)
    look = Look(options.size or SIZE, options.channels or CHANNELS, options.crop)
    sources = {
        split: [name for placed in classes for name in found.groups[placed.group].files]
        for split, classes in shares.classes.items()
    }
    contents = Contents(
        name=address.name,
        classes={
            split: [Class(p.name, p.family, len(found.groups[p.group].files)) for p in classes]
            for split, classes in shares.classes.items()
        },
        shape=look.shape,
        about=_about(found, address, shares, key),
    )
    unread: dict[str, str] = {}
    digests = hashlib.sha256()

    def fill(files: dict[Split, tuple[Path, int]]) -> dict[Split, dict[int, str]]:
        jobs = [(*files[split], [str(root / name) for name in sources[split]]) for split in files]
        result = {}
        for split, (broken, hashes) in zip(
            files, decode_files(jobs, look, f"decoding {address.name}"), strict=True
        ):
            names, result[split] = sources[split], broken
            unread.update({names[row]: why for row, why in broken.items()})
            for name, digest in zip(names, hashes, strict=True):
                digests.update(json.dumps([name, digest]).encode())
        return result

    def finish(result: Contents) -> None:
        _drop_small(result, address, shares.notes)
        result.about |= {"content_sha256": digests.hexdigest(), "unreadable": unread, "notes": shares.notes}
        _tell(result, found, unread, shares.notes)

    return contents, fill, finish


def _about(found: Scan, address: Address, shares: Shares, key: str) -> dict[str, Any]:
    return {
        "version": VERSION,
        "source": str(address),
        "layout": found.layout,
        "key": key,
        "rules": shares.rule,
        "passed_over": found.passed_over,
    }


def _drop_small(result: Contents, address: Address, notes: list[str]) -> None:
    """Classes that lost so many pictures to decoding that too few are left."""
    least = address.options.least
    small = [
        (split, each)
        for split in SPLITS
        for each in result.classes[split]
        if each.pictures < (1 if least is None else least)
    ]
    if not small:
        return
    few = ", ".join(each.name for _, each in small[:5]) + (", ..." if len(small) > 5 else "")
    if least is None:
        raise WanderError(
            f"{len(small)} classes in {address.path} have no pictures that can be read: {few}. Put "
            "good files there or remove them, or leave such classes out: "
            f"--world '{address.with_options(least=1)}'."
        )
    for split, each in small:
        if each.pictures == 0:
            result.classes[split].remove(each)
        each.pictures = -each.pictures
    notes.append(f"{len(small)} classes with fewer than {least} readable pictures are left out: {few}.")


def _tell(result: Contents, found: Scan, unread: dict[str, str], notes: list[str]) -> None:
    """Say on standard error, once, what was made of the folder."""
    lines = [f"{result.name}: {_counted(result)}."]
    lines += notes
    for what, names in (("could not be read", unread), ("are not pictures of a class", found.passed_over)):
        if names:
            lines.append(f"Left out, because they {what}: {len(names)}")
            lines += [f"  {name}: {why}" for name, why in list(names.items())[:LISTED]]
            lines += [f"  ... and {len(names) - LISTED} more, all in the manifest"] * (len(names) > LISTED)
    printable = "\n".join(lines).encode("utf-8", "replace").decode("utf-8")
    print(printable, file=sys.stderr)


def _counted(result: Contents) -> str:
    told = []
    for split in SPLITS:
        own = [each for each in result.classes[split] if each.pictures > 0]
        if own:
            families = len({each.family for each in own})
            pictures = sum(each.pictures for each in own)
            told.append(f"{split} {pictures:,} pictures of {len(own)} classes in {families} families")
    return "; ".join(told)
