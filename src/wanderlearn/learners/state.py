"""A learner's state as named tensors, and back: what saving a memory needs."""

from collections.abc import Mapping
from typing import Any, TypeVar

from torch import Tensor

from wanderlearn.errors import WanderError

__all__ = ["state_from_tensors", "tensors_of_state"]

State = TypeVar("State")


def tensors_of_state(state: object, path: str = "state") -> dict[str, Tensor]:
    """The tensors of a state (NamedTuples of tensors, also nested), by names like `state.memory.mean`."""
    if isinstance(state, Tensor):
        return {path: state}
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        tensors: dict[str, Tensor] = {}
        for name, part in zip(state._fields, state, strict=True):
            tensors |= tensors_of_state(part, f"{path}.{name}")
        return tensors
    raise WanderError(
        f"`{path}` is a {type(state).__name__}, which cannot be saved. "
        "A state is made of NamedTuples of tensors."
    )


def state_from_tensors(like: State, tensors: Mapping[str, Tensor], path: str = "state") -> State:
    """A state of the same types as `like` (an empty one will do), filled with `tensors`."""
    made: Any
    if isinstance(like, Tensor):
        if path not in tensors:
            raise WanderError(f"The saved state has no `{path}`. It was saved by another kind of learner.")
        made = tensors[path].to(like.device)
    else:
        fields: Any = like
        parts = zip(fields._fields, fields, strict=True)
        made = type(like)(*(state_from_tensors(part, tensors, f"{path}.{name}") for name, part in parts))
    return made  # type: ignore[no-any-return]
