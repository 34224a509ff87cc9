"""A table for the terminal and for a document alike: parts with a title and a note."""

from collections.abc import Sequence
from dataclasses import dataclass

from wanderlearn.results import markdown_table

__all__ = ["Part", "parts_markdown"]


@dataclass(frozen=True)
class Part:
    """One part of a table. What is None is shown as a dash."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    note: str  # below: what ours were measured on


def parts_markdown(parts: Sequence[Part], warnings: Sequence[str]) -> str:
    """The parts for a document, then the warnings."""
    texts = []
    for part in parts:
        texts += [f"**{part.title}**", markdown_table(part.columns, part.rows), part.note]
    return "\n\n".join([*texts, *(f"**Warning.** {warning}" for warning in warnings)])
