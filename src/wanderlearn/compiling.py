"""Loops that numba compiles: once for a machine, then they are kept."""

import inspect
from collections.abc import Callable
from typing import Any

import numba  # type: ignore[import-untyped, unused-ignore]

__all__ = ["compiled"]


def compiled(function: Callable[..., Any]) -> Any:
    """The function, to be compiled at its first call: plain arithmetic on arrays. Other threads go on."""
    plain = inspect.unwrap(function)  # tests wrap functions to check shapes, which cannot be compiled
    try:
        return numba.njit(cache=True, nogil=True)(plain)
    except RuntimeError:  # nowhere to keep what was compiled: compile again in every process
        return numba.njit(nogil=True)(plain)
