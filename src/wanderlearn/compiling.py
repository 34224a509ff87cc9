"""Loops that numba compiles: once for a machine, then they are kept."""

import inspect
from collections.abc import Callable
from typing import Any

import numba  # type: ignore[import-untyped, unused-ignore]

__all__ = ["compiled", "summing"]


def compiled(function: Callable[..., Any]) -> Any:
    """The function, to be compiled at its first call: plain arithmetic on arrays. Other threads go on.

    Dividing by zero gives inf or NaN, as in numpy: so several divisions can be done at once.
    """
    return _compiled(function)


def summing(function: Callable[..., Any]) -> Any:
    """Like `compiled`, but terms are added in any order, several at once. There must be no NaN."""
    return _compiled(function, fastmath={"reassoc", "nsz", "nnan", "contract"})


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    plain = inspect.unwrap(function)  # tests wrap functions to check shapes, which cannot be compiled
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(plain)
    except RuntimeError:  # nowhere to keep what was compiled: compile again in every process
        return numba.njit(**options)(plain)
