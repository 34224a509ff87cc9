"""Processes of our own that do work and tell in lines of JSON what came of it."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

__all__ = ["worker"]


@contextlib.contextmanager
def worker(module: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that runs `serve()` of a module, of one thread, until we are done with it.

    A plain process, not a fork: it shares nothing with us but its pipes, and what passes is read, not loaded.
    """
    seen = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-c", f"from {module} import serve; serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": seen, "OMP_NUM_THREADS": "1"},
        text=True,
        encoding="utf-8",
    )
    try:
        yield process
    finally:  # also when we are interrupted: nothing it still does is wanted
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError, ValueError):
                if pipe is not None:
                    pipe.close()
