"""Start the assistant: listen first, so that the page is there at once, and load the agent meanwhile."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import uvicorn

from wanderlearn.errors import WanderError
from wanderlearn.serve.app import application
from wanderlearn.serve.session import Session

__all__ = ["PORT", "listen_on", "run"]

PORT: Final = 8421


def listen_on(host: str, port: int | None) -> socket.socket:
    """A socket that listens. Without a port: the usual one, or if that is taken any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    tries = [PORT, 0] if port is None else [port]
    problem: OSError | None = None
    for wanted in tries:
        # By its protocol, asyncio knows that it may send small answers at once.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, wanted))
            return listener
        except OSError as error:
            listener.close()
            problem = error
    assert problem is not None
    raise WanderError(
        f"Cannot listen on {host}:{tries[0]}: {problem.strerror or problem}. Choose another --port."
    ) from problem


def run(
    session: Session, listener: socket.socket, host: str, say: Callable[[str], None], open_page: bool
) -> None:
    """Serve a session until somebody stops it."""
    port = listener.getsockname()[1]
    app = application(session, host, port)
    shown = f"[{host}]" if ":" in host else host
    if host in ("0.0.0.0", "::"):
        shown = "127.0.0.1"
    url = f"http://{shown}:{port}/?token={session.home.token}"
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config, session, app)

    def begin() -> None:
        say(url)
        session.start()
        if session.listing is not None:
            session.listing.start()
        if open_page:
            webbrowser.open(url)

    server.begin = begin
    try:
        with suppress(KeyboardInterrupt):  # the usual way to stop
            server.run(sockets=[listener])
    finally:
        session.close()
    if server.problem is not None:
        raise server.problem


class _Server(uvicorn.Server):
    """Stops, too, if the agent cannot be loaded."""

    begin: Callable[[], None]

    def __init__(self, config: uvicorn.Config, session: Session, app: Any) -> None:
        super().__init__(config)
        self.session, self.app = session, app
        self.problem: WanderError | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.begin()

    async def on_tick(self, counter: int) -> bool:
        if self.session.failed:
            self.problem = self.session.problem
            self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.app.app.state.events.end()
        await super().shutdown(sockets)
