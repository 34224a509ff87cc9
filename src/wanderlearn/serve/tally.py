"""How the session goes: how often the guess was right, and how often a person was needed."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wanderlearn.serve.store import Entry

__all__ = ["Tally"]


@dataclass
class Tally:
    """Counts over the decisions and skips that stand."""

    person: int = 0  # decided or skipped by a person
    auto: int = 0  # accepted without asking
    judged: int = 0  # answers that a person judged by deciding
    right: int = 0  # of those, the right ones
    corrected: int = 0  # accepted without asking, and changed by a person later

    @classmethod
    def of(cls, db: sqlite3.Connection) -> Tally:
        """The tally of a log."""
        sql = (
            "SELECT coalesce(sum(by = 'person'), 0), coalesce(sum(by = 'auto'), 0), "
            "coalesce(sum(by = 'person' AND right IS NOT NULL), 0), "
            "coalesce(sum(by = 'person' AND right = 1), 0), "
            "coalesce(sum(by = 'person' AND was_by = 'auto'), 0) "
            "FROM log WHERE undone IS NULL AND kind IN ('decide', 'skip')"
        )
        return cls(*db.execute(sql).fetchone())

    def add(self, entry: Entry, sign: int = 1) -> None:
        """Count a line, or (-1) count it no more."""
        if entry.kind not in ("decide", "skip"):
            return
        if entry.by == "auto":
            self.auto += sign
            return
        self.person += sign
        self.judged += sign * (entry.right is not None)
        self.right += sign * bool(entry.right)
        self.corrected += sign * (entry.was_by == "auto")

    def shares(self) -> dict[str, Any]:
        """For the page."""
        met = self.person + self.auto
        return {
            "person": self.person,
            "auto": self.auto,
            "corrected": self.corrected,
            "judged": self.judged,
            "right": self.right,
            "accuracy": self.right / self.judged if self.judged else None,
            "asked": self.person / met if met else None,
        }
