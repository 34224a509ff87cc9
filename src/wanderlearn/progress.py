"""One progress bar for long work, silent when standard error is not a terminal."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["Bar", "bar", "track"]

T = TypeVar("T")


class Bar:
    """A bar that can be moved and captioned; does nothing at all when it is not shown."""

    def __init__(self, progress: Progress | None, caption: str, total: float | None) -> None:
        self._progress = progress
        self._task = progress.add_task(caption, total=total) if progress else None

    def advance(self, by: float = 1) -> None:
        """Move the bar on."""
        if self._progress and self._task is not None:
            self._progress.advance(self._task, by)

    def caption(self, text: str) -> None:
        """Change the words before the bar."""
        if self._progress and self._task is not None:
            self._progress.update(self._task, description=text)


@contextmanager
def bar(caption: str, total: float | None = None, *, shown: bool = True) -> Iterator[Bar]:
    """Show one bar on standard error while the block runs."""
    if not (shown and sys.stderr.isatty()):
        yield Bar(None, caption, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress, caption, total)


def track(items: Iterable[T], caption: str, total: float | None = None) -> Iterator[T]:
    """Iterate with a bar."""
    with bar(caption, total) as shown:
        for item in items:
            yield item
            shown.advance()
