"""Several tabs, one state: tabs hear of every change by server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Final

__all__ = ["Events"]

QUIET: Final = 15.0  # seconds after which a sign of life is sent
PAUSE: Final = 0.1  # seconds between two events: changes in between are one


class Events:
    """Tells every listener that something changed. What changed, it asks for."""

    def __init__(self, version: Callable[[], int]) -> None:
        self.version = version
        self.loop: asyncio.AbstractEventLoop | None = None
        self.listeners: set[asyncio.Event] = set()
        self.ended = False

    def changed(self) -> None:
        """To be called from any thread."""
        if self.loop is not None and not self.loop.is_closed():
            try:
                self.loop.call_soon_threadsafe(self._wake)
            except RuntimeError:  # the loop was closed just now
                return

    def end(self) -> None:
        """Let all listeners go."""
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        for listener in self.listeners:
            listener.set()

    async def listen(self) -> AsyncIterator[str]:
        """Lines of an event stream: the version, now and after every change."""
        self.loop = asyncio.get_running_loop()
        something = asyncio.Event()
        self.listeners.add(something)
        try:
            yield "retry: 1000\n\n"
            while not self.ended:
                something.clear()
                yield f"data: {json.dumps({'version': self.version()})}\n\n"
                while not self.ended:
                    try:
                        await asyncio.wait_for(something.wait(), QUIET)
                        break
                    except TimeoutError:
                        yield ": still here\n\n"
                await asyncio.sleep(PAUSE)
        finally:
            self.listeners.discard(something)
