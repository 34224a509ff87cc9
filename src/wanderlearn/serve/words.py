"""What the page is told about pictures, answers and classes, and the reason of an answer in words."""

from __future__ import annotations

import os
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from wanderlearn.errors import WanderError
from wanderlearn.serve.store import DECIDED, STATES, Picture, Store

if TYPE_CHECKING:
    from wanderlearn.agent import Answer, Explanation

__all__ = ["about_answer", "about_class", "about_picture", "clean_label", "name_of", "reason"]

LONGEST: Final = 100  # characters of a label
SHOWN: Final = 9  # classes that have a key
EXAMPLES: Final = 3


def clean_label(label: object) -> str:
    """A label as it is kept: one way to write it, no spaces around it."""
    if not isinstance(label, str):
        raise WanderError("A name is text.")
    label = " ".join(unicodedata.normalize("NFC", label).split())
    if not label:
        raise WanderError("A name needs at least one letter.")
    if len(label) > LONGEST:
        raise WanderError(f"A name has at most {LONGEST} letters.")
    if any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn") for letter in label):
        raise WanderError("A name has letters, digits and signs that can be seen.")
    return label


def name_of(path: bytes) -> str:
    """A path for people."""
    return os.fsdecode(path).encode("utf-8", "replace").decode()


def about_picture(store: Store, picture: Picture) -> dict[str, Any]:
    """A picture."""
    decided = picture.state == DECIDED and picture.class_ is not None
    return {
        "id": picture.id,
        "name": name_of(picture.path),
        "state": STATES[picture.state],
        "label": store.classes.label(picture.class_) if decided and picture.class_ is not None else None,
        "entry": picture.entry or 0,
        "note": picture.note,
    }


def about_class(store: Store, id: int, examples: int = EXAMPLES) -> dict[str, Any]:
    """A class with its latest pictures."""
    return {
        "label": store.classes.label(id),
        "count": store.classes.pictures(id),
        "examples": [picture.id for picture in store.of_class(id, examples)],
    }


def about_answer(store: Store, answer: Answer, why: str) -> dict[str, Any]:
    """What the agent says, with the nearest classes."""
    ranking = []
    for label, p in answer.ranking[:SHOWN]:
        id = store.classes.find(str(label))
        if id is not None:
            ranking.append(about_class(store, id) | {"p": p})
    return {
        "label": answer.label,
        "new": answer.new,
        "confidence": answer.p_new if answer.new else answer.confidence,
        "p_new": answer.p_new,
        "ranking": ranking,
        "reason": why,
    }


def reason(why: Explanation) -> str:
    """Why the agent says so, in a sentence or two."""
    now, before = why.now, why.without_context
    if not now.ranking:
        return "It knows no class yet."
    nearest = now.neighbours[0].label if now.neighbours else now.ranking[0][0]
    assert now.distance is not None
    distances = f"distance {_number(now.distance)}, new beyond {_number(now.threshold)}"
    if now.new:
        said = f"Too far from the nearest class, “{nearest}” ({distances})."
    else:
        said = f"Close enough to “{nearest}” ({distances})."
    if before.label == now.label:
        return f"{said} The recent past makes no difference."
    other = "it would say new" if before.new else f"it would say “{before.label}”"
    return f"{said} Without the recent past {other}."


def _number(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")
