"""What every test shares: shape checks in the learners, a cache of its own, and where the real data is."""

import functools
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("wanderlearn.learners", "beartype.beartype")  # before anything imports a learner

from wanderlearn.files import cache_dir  # noqa: E402
from wanderlearn.pictures import omniglot  # noqa: E402

if sys.platform != "win32":
    import fcntl

# No deadlines: machines are shared and noisy. In CI always the same examples: it judges a change, not luck.
settings.register_profile("wanderlearn", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("wanderlearn")

MADE_HERE = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Point the cache to a folder of this run; xdist's workers inherit it, so pictures are made once.

    `WANDERLEARN_TEST_CACHE` names a folder to keep between runs instead.
    """
    if hasattr(config, "workerinput"):
        return
    users = cache_dir() / "omniglot"
    kept = os.environ.get("WANDERLEARN_TEST_CACHE")
    if not kept:
        config.stash[MADE_HERE] = Path(tempfile.mkdtemp(prefix="wanderlearn-test-cache-"))
    os.environ["WANDERLEARN_CACHE"] = kept or str(config.stash[MADE_HERE])
    if omniglot.find() is None:  # the archives may still be in the user's own cache, now out of sight
        ours = cache_dir() / "omniglot"
        ours.mkdir(parents=True, exist_ok=True)
        for archive in users.glob("images_*"):
            (ours / archive.name).symlink_to(archive.absolute())


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the cache of this run."""
    if MADE_HERE in config.stash:
        shutil.rmtree(config.stash[MADE_HERE], ignore_errors=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs the real Omniglot when it is not here, and say how to run it."""
    if item.get_closest_marker("omniglot"):
        if omniglot.find() is None:
            pytest.skip("no Omniglot: set WANDERLEARN_DATA to a folder with its two zips")
        _decode_once()


@functools.cache
def _decode_once() -> None:
    """Fill the cache in one worker while the others wait for it."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    with (cache_dir() / "decoding.lock").open("w") as lock:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX)
        omniglot.drawings()
