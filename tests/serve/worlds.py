"""Folders of pictures and sessions for the tests of the assistant."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from tests.live_agents import small_model
from wanderlearn.agent import Agent
from wanderlearn.serve.auto import Calibrated
from wanderlearn.serve.home import NAME, Home
from wanderlearn.serve.listing import Listing, Order
from wanderlearn.serve.session import Session

with warnings.catch_warnings():  # starlette is about to change what its client is built on
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

__all__ = ["TestClient", "begin", "draw", "drop", "folder_of", "never", "session_of"]

KIND = "cpm average euclidean"


def draw(path: Path, seed: int, side: int = 8) -> Path:
    """A small picture of noise, the same for the same seed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed).integers(0, 256, (side, side), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    return path


def folder_of(root: Path, pictures: int) -> Path:
    """A folder with so many pictures in two folders."""
    for n in range(pictures):
        draw(root / ("a" if n % 2 else "b") / f"{n:03}.png", n)
    return root


def begin(journal: Path | None) -> Agent:
    """A small agent, as `wanderlearn.load` gives one."""
    if journal is not None and journal.exists():
        return Agent.open(journal, journal=True)
    agent = Agent(small_model(KIND), weights="small")
    if journal is not None:
        agent.keep_journal(journal)
    return agent


def never(weights: str) -> Calibrated | None:
    """No calibration."""
    return None


def session_of(
    folder: Path | None,
    state: Path | None = None,
    *,
    order: Order = "path",
    seed: int = 0,
    relearn: bool = False,
    calibrate: Callable[[str], Calibrated | None] = never,
) -> Session:
    """A session that is awake and has listed its folder."""
    home = Home(state or (folder or Path()) / NAME, folder)
    session = Session(home, lambda: home.open_agent("small", begin, relearn), calibrate)
    if folder is not None:
        session.listing = Listing(home.store, folder, order, seed, session.touch)
        session.listing.run()
    session.wake()
    if session.problem is not None:
        drop(session)
        raise session.problem
    return session


def drop(session: Session) -> None:
    """End a session as a killed process would: nothing is saved or finished."""
    if session._agent is not None:
        session._agent.close()
    session.home.close()
