"""Where a session lives: a folder with the store, the agent's memory, the drawings and the token."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wanderlearn.errors import WanderError
from wanderlearn.serve.sight import MissingError, NotAPictureError, Sight
from wanderlearn.serve.store import Store

if TYPE_CHECKING:
    from wanderlearn.agent import Agent

if sys.platform != "win32":
    import fcntl

__all__ = ["NAME", "Home"]

NAME: Final = ".wanderlearn"


class Home:
    """The files of one session. One process at a time can have them open."""

    def __init__(self, state: Path, folder: Path | None) -> None:
        self.state, self.folder = state, folder
        self.drawings = state / "drawings"
        try:
            self.drawings.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(state / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise WanderError(
                f"Cannot write to {state}: {error.strerror or error}. Choose another place with --state."
            ) from error
        if sys.platform != "win32":
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(self._lock)
                raise WanderError(
                    f"{state} is in use: an assistant for it is running already. Open its page, or stop it."
                ) from error
        self.store = Store(state / "session.sqlite")
        self.sight = Sight(folder, self.drawings)
        self.token = self._token()

    def close(self) -> None:
        """Let others have the files."""
        self.store.close()
        os.close(self._lock)

    def _token(self) -> str:
        """What pages must know; kept, so that an open page goes on when the assistant is started again."""
        path = self.state / "token"
        try:
            token = path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            token = ""
        if len(token) < 32:
            token = secrets.token_urlsafe(32)
            path.unlink(missing_ok=True)
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(file, token.encode())
            os.close(file)
        return token

    @property
    def memory(self) -> Path:
        """The file of the agent."""
        return self.state / self.store.meta("memory", "memory.agent")

    @property
    def floor(self) -> int:
        """The last line before the memory was learnt anew; changes are numbered afresh after it."""
        return int(self.store.meta("floor", "0"))

    def weights(self, wanted: str | None, otherwise: str, relearn: bool) -> str:
        """The weights to live with: those of the last time, unless it is the first or all is learnt anew."""
        before = self.store.meta("weights")
        if wanted is not None and before and wanted != before and not relearn:
            raise WanderError(
                f"This session lives with the weights {before}. Leave out --weights, or add --relearn to let "
                f"{wanted} learn from all decisions anew."
            )
        return wanted or before or otherwise

    def open_agent(self, weights: str, begin: Callable[[Path | None], Agent], relearn: bool) -> Agent:
        """The agent with its memory; `begin` makes one with a journal at a path, or (None) without."""
        lost = self.store.last_number() > 0 and not self.memory.exists()
        if relearn or lost:
            self._relearn(weights, begin)
        agent = begin(self.memory)
        self.store.set_meta(weights=weights)
        return agent

    def _relearn(self, weights: str, begin: Callable[[Path | None], Agent]) -> None:
        """A new memory from the decisions that stand, in their order and under their names of now.

        It is saved under another name; one transaction makes it the memory.
        """
        agent, store, old = begin(None), self.store, self.memory
        n = last = store.last_number()
        done = 0
        while some := store.standing(done, n):
            for entry in some:
                done = entry.n
                picture = store.picture(entry.picture or 0)
                if picture is None:
                    continue
                try:
                    answer = agent.look(self.sight.read(picture), id=picture.id)
                except (MissingError, NotAPictureError):
                    continue
                named = entry.kind == "decide" and picture.class_ is not None
                agent.tell(answer, store.classes.label(picture.class_) if named else None)  # type: ignore[arg-type]
        for _, label in store.classes:
            if label not in agent:
                raise WanderError(
                    f"No picture of the class {label!r} can be read any more, so it cannot be learnt anew. "
                    "Bring its pictures back, or forget the class first."
                )
        new = self.state / f"memory-{last}-{secrets.token_hex(4)}.agent"
        agent.save(new)
        store.set_meta(memory=new.name, floor=str(last), weights=weights)
        for path in (old, old.with_name(old.name + ".journal")):
            path.unlink(missing_ok=True)
