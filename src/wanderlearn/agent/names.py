"""The user's labels: which slot each has, how often it was told, and the ids of its latest examples."""

import json
import math
from collections.abc import Hashable
from typing import Any, Final, Self

import numpy as np

from wanderlearn.errors import WanderError

__all__ = ["EXAMPLES", "Names", "as_label", "from_plain", "to_plain"]

EXAMPLES: Final = 8  # ids kept per class, the latest


class Names:
    """Labels in slots 0 to n - 1, as in the memory: the last moves into the slot of one that goes."""

    def __init__(self) -> None:
        self.labels: list[Hashable] = []
        self.slots: dict[Hashable, int] = {}
        self.told: list[int] = []
        self.examples: list[tuple[Hashable, ...]] = []

    def open(self, label: Hashable) -> int:
        """The slot of a label, which is the next one if the label is new."""
        slot = self.slots.get(label)
        if slot is None:
            slot = self.slots[label] = len(self.labels)
            self.labels.append(label)
            self.told.append(0)
            self.examples.append(())
        return slot

    def tell(self, slot: int, example: Hashable | None) -> None:
        """One more example of a class, with its id if there is one."""
        self.told[slot] += 1
        if example is not None:
            self.examples[slot] = (*self.examples[slot], example)[-EXAMPLES:]

    def rename(self, old: Hashable, new: Hashable) -> None:
        """The class stays, its label changes."""
        slot = self.slots.pop(old)
        self.slots[new] = slot
        self.labels[slot] = new

    def forget(self, label: Hashable) -> int:
        """The slot that a label had, and that the last class has now."""
        slot, last = self.slots.pop(label), self.labels.pop()
        told, examples = self.told.pop(), self.examples.pop()
        if slot < len(self.labels):
            self.labels[slot], self.told[slot], self.examples[slot] = last, told, examples
            self.slots[last] = slot
        return slot

    def merge(self, kept: Hashable, gone: Hashable) -> tuple[int, int]:
        """The slots that two labels had, before the second went into the first."""
        into, slot = self.slots[kept], self.slots[gone]
        self.told[into] += self.told[slot]
        self.examples[into] = (*self.examples[into], *self.examples[slot])[-EXAMPLES:]
        self.forget(gone)
        return into, slot

    def copy(self) -> Self:
        """A copy that shares nothing that changes."""
        twin = type(self)()
        twin.labels, twin.slots = self.labels.copy(), self.slots.copy()
        twin.told, twin.examples = self.told.copy(), self.examples.copy()
        return twin

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it. Raises `WanderError` at a label or id that it cannot."""
        return {
            "labels": [to_plain(label, "label") for label in self.labels],
            "told": self.told,
            "examples": [[to_plain(one, "id") for one in some] for some in self.examples],
        }

    @classmethod
    def of_plain(cls, plain: dict[str, Any]) -> Self:
        """The names that `plain` gave. Raises ValueError if they contradict each other."""
        names = cls()
        names.labels = [from_plain(label) for label in plain["labels"]]
        names.slots = {label: slot for slot, label in enumerate(names.labels)}
        names.told = [int(told) for told in plain["told"]]
        names.examples = [tuple(from_plain(one) for one in some) for some in plain["examples"]]
        if not len(names.slots) == len(names.labels) == len(names.told) == len(names.examples):
            raise ValueError("its labels are not one per class")
        return names


def as_label(label: Any, what: str = "label") -> Hashable:
    """A label as it is kept: numpy's numbers and strings become Python's. Raises if it cannot be one."""
    if isinstance(label, np.generic):
        label = label.item()
    try:
        hash(label)
        same = bool(label == label)  # NaN is not
    except (TypeError, ValueError) as error:
        raise WanderError(
            f"The {what} {label!r} is not hashable, so it cannot be looked up again. "
            "Use a string, a number or a tuple of them."
        ) from error
    if not same:
        raise WanderError(f"The {what} {label!r} is not equal to itself, so it could never be found again.")
    return label  # type: ignore[no-any-return]


def to_plain(label: Any, what: str) -> Any:
    """A label as JSON: strings, numbers, booleans and None as they are, tuples as lists."""
    if isinstance(label, tuple):
        return [to_plain(part, what) for part in label]
    if isinstance(label, float) and not math.isfinite(label):
        raise WanderError(_not_json(what, label))
    if label is None or isinstance(label, str | int | float):
        return label
    raise WanderError(_not_json(what, label))


def from_plain(plain: Any) -> Hashable:
    """The label that `to_plain` gave."""
    if isinstance(plain, list):
        return tuple(from_plain(part) for part in plain)
    if plain is None or isinstance(plain, str | int | float):
        return plain
    raise ValueError(f"{json.dumps(plain)} is not a label")


def _not_json(what: str, label: object) -> str:
    return (
        f"The {what} {label!r} ({type(label).__name__}) cannot be saved. Labels and ids that are to be kept "
        "are strings, finite numbers, booleans, None, or tuples of these: rename it."
    )
