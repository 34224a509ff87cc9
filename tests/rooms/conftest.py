"""Homes are built once for all tests of a process; light is baked only where it is looked at."""

import pytest

from wanderlearn.rooms import Home, Renderer, build_home


@pytest.fixture(scope="session")
def home() -> Home:
    return build_home(60)


@pytest.fixture(scope="session")
def other() -> Home:
    return build_home(13)


@pytest.fixture(scope="session")
def renderer(home: Home) -> Renderer:
    """Without light: what is where does not depend on it."""
    return Renderer(home, light=False)
