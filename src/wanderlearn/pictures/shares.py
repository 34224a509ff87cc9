"""Which class goes to which split and family, where the user's folders say so and where they do not.

Where they do not, chance decides, but by a rule that anybody can repeat: names are put into the order of the
SHA-256 of "seed/purpose/name" and cut. The rule that was used is recorded beside the decoded pictures.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from wanderlearn.errors import WanderError
from wanderlearn.pictures.address import Address, PlaceOptions
from wanderlearn.pictures.collection import SPLITS, Split

__all__ = ["Placed", "Shares", "share_out"]

PARTS: Final[dict[Split, float]] = {"train": 0.6, "val": 0.2, "test": 0.2}
ENOUGH_FAMILIES: Final = 10  # to share out whole families rather than the classes of each
FAMILY: Final = (
    5  # classes that a family made by chance has at least, if there are as many: one per environment
)
MOST_FAMILIES: Final = 10  # made by chance in a split: an environment of the paper's holds ten classes


class _Named(Protocol):
    """A class before it is placed."""

    @property
    def split(self) -> Split | None: ...
    @property
    def family(self) -> str | None: ...
    @property
    def name(self) -> str: ...
    @property
    def words(self) -> str: ...


@dataclass(frozen=True)
class Placed:
    """A class in its place: the row of the group it comes from, its name and its family."""

    group: int
    name: str
    family: str


@dataclass(frozen=True)
class Shares:
    """Classes by split, in the order of families and names, and how they came there."""

    classes: dict[Split, list[Placed]]
    rule: dict[str, Any]  # for the record
    notes: list[str]  # what a user should know


def share_out(groups: Sequence[_Named], counts: Sequence[int], address: Address) -> Shares:
    """Place every class with enough pictures; `counts` says how many pictures each has."""
    options = address.options
    notes: list[str] = []
    kept = _with_enough(groups, counts, address, notes)
    splits, split_rule = _splits(groups, kept, options)
    families, family_rule = _families(groups, kept, splits, options)
    for rule in (split_rule, family_rule):
        if "words" in rule:
            notes.append(rule.pop("words"))
    shared = _in_several_splits(groups, kept, splits)
    if shared:
        notes.append(
            f"{len(shared)} classes are in more than one split, such as {shared[0]}: what is learned of them "
            "in training helps in the test."
        )
    named = any(groups[n].family for n in kept)
    classes: dict[Split, list[Placed]] = {split: [] for split in SPLITS}
    for n in kept:
        name = f"{groups[n].family}/{groups[n].name}" if named else groups[n].name
        classes[splits[n]].append(Placed(n, name, families[n]))
    for split in SPLITS:
        classes[split].sort(key=lambda placed: (placed.family, placed.name))
    return Shares(classes, {"splits": split_rule, "families": family_rule}, notes)


def _with_enough(
    groups: Sequence[_Named], counts: Sequence[int], address: Address, notes: list[str]
) -> list[int]:
    least = address.options.least
    small = [n for n, count in enumerate(counts) if count < (1 if least is None else least)]
    few = ", ".join(groups[n].words for n in small[:5]) + (", ..." if len(small) > 5 else "")
    if small and least is None:
        raise WanderError(
            f"{len(small)} of {len(groups)} classes in {address.path} have no pictures: {few}. "
            f"Fill or remove them, or leave such classes out: --world '{address.with_options(least=1)}'."
        )
    if small:
        notes.append(f"{len(small)} classes with fewer than {least} pictures are left out: {few}.")
    kept = [n for n in range(len(groups)) if n not in set(small)]
    if not kept:
        raise WanderError(
            f"{address.path} has no class with pictures"
            + (f" ({len(groups)} have fewer than {least})." if least else ".")
            + " It should hold folders of pictures, one per class: PATH/class/*, PATH/family/class/* or "
            "PATH/{train,val,test}/family/class/*."
        )
    return kept


def _splits(
    groups: Sequence[_Named], kept: list[int], options: PlaceOptions
) -> tuple[dict[int, Split], dict[str, Any]]:
    told = {n: split for n in kept if (split := groups[n].split)}
    if len(told) == len(kept):
        return told, {"rule": "folders"}
    families = sorted({groups[n].family or "" for n in kept})
    by_family = options.split == "families" or (options.split == "auto" and len(families) >= ENOUGH_FAMILIES)
    placed: dict[int, Split] = {}
    if by_family:
        split_of = _cut(families, options.seed)
        placed = {n: split_of[groups[n].family or ""] for n in kept}
    else:
        for family in families:
            own = {groups[n].name: n for n in kept if (groups[n].family or "") == family}
            placed |= {own[name]: split for name, split in _cut(sorted(own), options.seed).items()}
    what = "families" if by_family else "classes"
    shares = ", ".join(f"{100 * part:.0f} % {split}" for split, part in PARTS.items())
    where = " of every family" if not by_family and len(families) > 1 else ""
    return placed, {
        "rule": what,
        "seed": options.seed,
        "parts": PARTS,
        "words": f"There are no folders train, val and test: the {what}{where} are shared out by chance, "
        f"{shares} (seed {options.seed}).",
    }


def _cut(names: Sequence[str], seed: int) -> dict[str, Split]:
    """Each name's split, at least one for each split if there are enough."""
    order = _by_chance(names, seed, "split")
    count = len(order)
    val = max(1, round(count * PARTS["val"])) if count > 1 else 0
    test = max(1, round(count * PARTS["test"])) if count > 2 else 0
    ends: dict[Split, list[str]] = {
        "train": order[: count - val - test],
        "val": order[count - val - test : count - test],
        "test": order[count - test :],
    }
    return {name: split for split, own in ends.items() for name in own}


def _families(
    groups: Sequence[_Named], kept: list[int], splits: dict[int, Split], options: PlaceOptions
) -> tuple[dict[int, str], dict[str, Any]]:
    family: dict[int, str] = {}
    if options.families is None and all(groups[n].family for n in kept):
        family = {n: groups[n].family or "" for n in kept}
        if options.merge is None:
            return family, {"rule": "folders"}
        for split in SPLITS:
            family |= _merged({n: f for n, f in family.items() if splits[n] == split}, options.merge)
        return family, {"rule": "merged", "merge": options.merge}
    made: dict[str, int] = {}
    for split in SPLITS:
        own = [n for n in kept if splits[n] == split]
        wanted = options.families or min(MOST_FAMILIES, max(1, len(own) // FAMILY))
        by_words = {groups[n].words: n for n in own}
        for place, words in enumerate(_by_chance(sorted(by_words), options.seed, "family")):
            family[by_words[words]] = f"family{place % wanted + 1:03}"
        made[split] = min(wanted, len(own))
    told = ", ".join(f"{count} in {split}" for split, count in made.items() if count)
    return family, {
        "rule": "chance",
        "seed": options.seed,
        "made": made,
        "words": f"Families are made by chance, not by what the classes show: {told} (seed {options.seed}).",
    }


def _merged(family: dict[int, str], least: int) -> dict[int, str]:
    """Small families put together, the smallest first, until each has enough classes."""
    members: dict[str, list[int]] = {}
    for n, name in family.items():
        members.setdefault(name, []).append(n)
    while len(members) > 1:
        smallest, second = sorted(members, key=lambda name: (len(members[name]), name))[:2]
        if len(members[smallest]) >= least:
            break
        members["+".join(sorted((smallest, second)))] = members.pop(smallest) + members.pop(second)
    return {n: name for name, own in members.items() for n in own}


def _in_several_splits(groups: Sequence[_Named], kept: list[int], splits: dict[int, Split]) -> list[str]:
    seen: dict[tuple[str | None, str], set[Split]] = {}
    for n in kept:
        seen.setdefault((groups[n].family, groups[n].name), set()).add(splits[n])
    return ["/".join(filter(None, key)) for key, where in sorted(seen.items(), key=str) if len(where) > 1]


def _by_chance(names: Sequence[str], seed: int, purpose: str) -> list[str]:
    def place(name: str) -> bytes:
        return hashlib.sha256(f"{seed}/{purpose}/{name}".encode(errors="surrogateescape")).digest()

    return sorted(names, key=place)
