"""What a user names on the command line as MODULE:NAME or path/to/file.py:NAME, imported."""

import difflib
import importlib
import importlib.util
import inspect
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from wanderlearn.errors import WanderError

__all__ = ["build_object", "load_object", "needed_arguments"]


def load_object(name: str, what: str, example: str) -> Any:
    """What `MODULE:NAME` or `path/to/file.py:NAME` points to; modules may lie in the current folder.

    `what` it should be and an `example` are for the sentence to a user who wrote something else.
    """
    source, colon, attribute = name.rpartition(":")
    if not (source and colon and attribute):
        raise WanderError(
            f"{name!r} does not name {what}. Write MODULE:NAME or path/to/file.py:NAME, such as {example}."
        )
    module = _import(source)
    if not hasattr(module, attribute):
        close = difflib.get_close_matches(attribute, [n for n in dir(module) if not n.startswith("_")], n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise WanderError(f"{source} has no {attribute}.{hint}")
    return getattr(module, attribute)


def needed_arguments(maker: Any) -> list[str]:
    """The arguments without which a function or class cannot be called."""
    empty = inspect.Parameter.empty
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(maker).parameters.values()
    return [p.name for p in parameters if p.default is empty and p.kind not in variadic]


def build_object(maker: Any, name: str, what: str) -> Any:
    """Call a class or function that should need no arguments, to make `what` the user named by `name`."""
    if needed := needed_arguments(maker):
        raise WanderError(
            f"{name} needs arguments ({', '.join(needed)}). "
            f"Write a function without arguments that makes your {what}, and name that."
        )
    try:
        return maker()
    except Exception as error:
        raise WanderError(f"Making {name} failed: {type(error).__name__}: {error}. Mend it first.") from error


def _import(source: str) -> ModuleType:
    """Import a module by its dotted name or by its file."""
    try:
        if not source.endswith(".py"):
            here = str(Path.cwd())
            if here not in sys.path:
                sys.path.insert(0, here)
            return importlib.import_module(source)
        path = Path(source)
        if not path.is_file():
            raise WanderError(f"There is no file {path}. Check the path before the colon.")
        called = f"_named_in_{path.stem}"  # so that a file named like a module hides nothing
        loader = SourceFileLoader(called, str(path))
        spec = importlib.util.spec_from_file_location(called, path, loader=loader)
        assert spec is not None  # it has a loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[called] = module  # dataclasses look their module up there
        loader.exec_module(module)
        return module
    except ModuleNotFoundError as error:
        raise WanderError(
            f"Cannot import {source}: there is no module {error.name}. "
            "Run from the folder that holds it, install it, or give the path of a .py file."
        ) from error
    except WanderError:
        raise
    except Exception as error:
        raise WanderError(
            f"Importing {source} failed: {type(error).__name__}: {error}. Mend it first."
        ) from error
