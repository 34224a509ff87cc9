"""Where the compiled loops are found, or a sentence that says what is missing."""

import importlib
from functools import cache
from types import ModuleType

from wanderlearn.errors import WanderError

__all__ = ["kernels"]


@cache
def kernels() -> ModuleType:
    """The compiled loops of `kernels.py`."""
    try:
        return importlib.import_module("wanderlearn.rooms.kernels")
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        raise WanderError(
            "Drawing rooms needs numba. Install the extra: pip install 'wanderlearn[rooms]'."
        ) from error
