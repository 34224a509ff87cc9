"""`wander serve`: the labelling assistant in the browser."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import tyro

from wanderlearn.errors import WanderError

if TYPE_CHECKING:
    from wanderlearn.agent import Agent
    from wanderlearn.agent.inputs import Ink
    from wanderlearn.serve.auto import Calibrated
    from wanderlearn.serve.listing import Order

__all__ = ["Command"]


@dataclass(frozen=True)
class Command:
    """Sort the pictures of a folder in the browser, with an assistant that proposes and learns.

    It shows one picture after another with its guess, or "new?"; you accept, choose or name, mostly with one
    key, and it learns from every answer. Without a folder there is a pad to draw characters on. Your
    pictures are never changed or moved; all that is decided is kept in FOLDER/.wanderlearn, safe at once.

    Examples:
      wander serve ~/scans --open
      wander serve                                  # the drawing pad alone
      wander serve ~/scans --order shuffled --seed 1 --weights protonet-glyphs
    """

    folder: tyro.conf.Positional[Path | None] = None
    """The folder with pictures, and folders of pictures. Links that lead out of it are not followed."""
    weights: str | None = None
    """What wanderlearn.load takes: a name, a run, a file (default: as last time, or wayfarer-omniglot)."""
    port: int | None = None
    """Where the page is (default: 8421, or a free one if that is taken; 0: any free one)."""
    host: str = "127.0.0.1"
    """Who can reach it: this machine alone, unless you say otherwise (0.0.0.0: a phone in your network)."""
    state: Path | None = None
    """Where decisions, memory and drawings are kept (default: .wanderlearn in FOLDER)."""
    order: Annotated[str, tyro.conf.arg(metavar="{path,shuffled}")] = "path"
    """The order of the pictures."""
    seed: int = 0
    """Of the shuffled order."""
    ink: Annotated[str, tyro.conf.arg(metavar="{auto,bright,dark}")] = "auto"
    """For drawings: strokes are bright, dark, or (auto) judged by the border of each picture."""
    relearn: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Let the agent learn anew from all decisions: after a change of --weights, or a lost memory."""
    open: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Open the page in the browser."""

    def run(self) -> None:
        """Listen, say where, and serve until stopped."""
        self._check()
        try:
            from wanderlearn.serve.server import listen_on, run
        except ImportError as error:
            raise WanderError(
                "The assistant needs starlette and uvicorn. Install the extra, "
                "`pip install 'wanderlearn[serve]'`."
            ) from error
        from wanderlearn.serve.home import NAME, Home
        from wanderlearn.serve.listing import Listing
        from wanderlearn.serve.session import Session
        from wanderlearn.shipped import DEFAULT_WEIGHTS

        home = Home(self.state or (self.folder or Path()) / NAME, self.folder)
        weights = home.weights(self.weights, DEFAULT_WEIGHTS, self.relearn)
        listener = listen_on(self.host, self.port)
        home.store.try_again()

        def begin(journal: Path | None) -> Agent:
            from wanderlearn.agent import load

            return load(weights, journal=journal, ink=_ink(self.ink))

        session = Session(home, lambda: home.open_agent(weights, begin, self.relearn), _calibration)
        if self.folder is not None:
            session.listing = Listing(home.store, self.folder, _order(self.order), self.seed, session.touch)
        run(session, listener, self.host, self._say, self.open)

    def _check(self) -> None:
        if self.folder is not None and not self.folder.is_dir():
            raise WanderError(f"There is no folder {self.folder}.")
        if self.port is not None and not 0 <= self.port < 65536:
            raise WanderError(f"--port is a number from 0 to 65535, not {self.port}.")
        if not 0 <= self.seed < 2**63:
            raise WanderError(f"--seed must be between 0 and 2^63 - 1, not {self.seed}.")
        _order(self.order)
        _ink(self.ink)

    def _say(self, url: str) -> None:
        what = f"the pictures of {self.folder}" if self.folder is not None else "the drawing pad"
        print(f"The assistant shows {what} at", file=sys.stderr)
        print(url, flush=True)
        print("Everything is kept as you go. Stop it with Ctrl-C.", file=sys.stderr, flush=True)


def _order(order: str) -> Order:
    if order not in ("path", "shuffled"):
        raise WanderError(f"--order is path or shuffled, not {order}.")
    return "path" if order == "path" else "shuffled"


def _ink(ink: str) -> Ink:
    for known in get_args(Literal["auto", "bright", "dark"]):
        if ink == known:
            return known  # type: ignore[no-any-return]
    raise WanderError(f"--ink is auto, bright or dark, not {ink}.")


def _calibration(weights: str) -> Calibrated | None:
    """What these weights' confidence means, if somebody measured it."""
    from wanderlearn.calibration import Calibration

    return Calibration.load_for(weights)
