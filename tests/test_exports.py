"""Every module says what it exports, and what it says is there."""

import importlib
import pkgutil
from types import ModuleType

import pytest

import wanderlearn

MODULES = sorted(m.name for m in pkgutil.walk_packages(wanderlearn.__path__, "wanderlearn."))
WITHOUT = {"wanderlearn._version", "wanderlearn.errors"}


@pytest.mark.parametrize("name", ["wanderlearn", *MODULES])
def test_exported_names_exist_and_are_documented(name: str) -> None:
    module = importlib.import_module(name)
    if name in WITHOUT:
        return
    exported = getattr(module, "__all__", None)
    if exported is None:
        assert not _public_names(module), f"{name} has public names but no __all__"
        return
    for public in exported:
        assert hasattr(module, public), f"{name}.__all__ names {public!r}, which is not there"
        value = getattr(module, public)
        if callable(value) and getattr(value, "__module__", "").startswith("wanderlearn"):
            assert value.__doc__, f"{name}.{public} has no docstring"
    assert not _public_names(module) - set(exported), (
        f"{name} defines public names that __all__ does not list"
    )


def _public_names(module: ModuleType) -> set[str]:
    """Functions and classes written in this module without a leading underscore."""
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and callable(value)
        and getattr(value, "__module__", None) == module.__name__
    }


def test_the_front_door_is_small_and_complete() -> None:
    assert set(wanderlearn.__all__) >= {"check_learner", "WanderError", "__version__"}
    assert all(hasattr(wanderlearn, name) for name in wanderlearn.__all__)
