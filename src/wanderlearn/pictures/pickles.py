"""Published pickles read without running anything in them: plain values and numpy arrays, or nothing at all.

A pickle is a program. Here only the few names that arrays and bytes are made with are allowed, each replaced
by something of ours that checks what it is given; any other name is refused before it is imported.
"""

import pickle
import pickletools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

import numpy as np

from wanderlearn.errors import WanderError

__all__ = ["payloads", "read_pickle"]

LONG: Final = 200  # characters: no name of a module is so long, but pictures are
CODE: Final = re.compile(r"[<>|=]?([biufSU]\d{1,5}|O8?)")  # numbers and words; objects are lists of them

Array = np.ndarray[Any, Any]


class _Kind:
    """What stands for `numpy.dtype`: the code of plain numbers or words, and the order of their bytes."""

    def __init__(self, code: Any, *_: Any) -> None:
        text = code.decode("latin-1") if isinstance(code, bytes) else code
        if not isinstance(text, str) or not CODE.fullmatch(text):
            raise pickle.UnpicklingError(f"it holds numbers of the kind {code!r}")
        self.code, self.order = text.lstrip("<>|="), "="

    def __setstate__(self, state: Any) -> None:
        self.order = state[1] if state[1] in ("<", ">", "|") else "="

    def array(self, content: Any, shape: Any, *, fortran: bool = False) -> Array:
        """An array of these numbers from bytes (or from a list, of objects)."""
        order: Literal["C", "F"] = "F" if fortran else "C"
        if self.code.startswith("O"):
            if not isinstance(content, list):
                raise pickle.UnpicklingError("it holds an array of unknown things")
            things = np.empty(len(content), dtype=object)
            things[:] = _resolved(content)
            return things.reshape(shape)
        data = content.encode("latin-1") if isinstance(content, str) else bytes(content)
        return np.frombuffer(data, dtype=np.dtype(self.order + self.code)).reshape(shape, order=order)


class _ArrayName:
    """What stands for `numpy.ndarray`, which may only be handed to `_Unbuilt`."""


class _Unbuilt:
    """What stands for an array until its contents are known."""

    def __init__(self, kind: Any, *_: Any) -> None:
        if kind is not _ArrayName:
            raise pickle.UnpicklingError("it holds an array of an unknown kind")
        self.array: Array | None = None

    def __setstate__(self, state: Any) -> None:
        shape, kind, fortran, content = state[-4:]
        self.array = _kind(kind).array(content, shape, fortran=bool(fortran))


def _kind(kind: Any) -> _Kind:
    if not isinstance(kind, _Kind):
        raise pickle.UnpicklingError("it holds an array of an unknown kind")
    return kind


def _scalar(kind: Any, content: Any) -> Any:
    return _kind(kind).array(content, ()).item()


def _from_buffer(content: Any, kind: Any, shape: Any, order: Any) -> Array:
    return _kind(kind).array(content, shape, fortran=order == "F")


def _bytes(text: Any = "", encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("it holds text in an unknown encoding")
    return text.encode("latin-1")


def _resolved(value: Any) -> Any:
    """Values as they are, with arrays where those stand for them."""
    if isinstance(value, _Unbuilt):
        return value.array
    if isinstance(value, dict):
        return {_resolved(key): _resolved(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_resolved(item) for item in value)
    if isinstance(value, type | _Kind) or callable(value):
        raise pickle.UnpicklingError("it holds something that is no value")
    return value


ALLOWED: Final[dict[tuple[str, str], Any]] = {
    ("numpy", "ndarray"): _ArrayName,
    ("numpy", "dtype"): _Kind,
    ("_codecs", "encode"): _bytes,
    ("builtins", "bytes"): _bytes,  # how protocol 2 writes b""
    ("__builtin__", "bytes"): _bytes,
} | {
    (f"numpy.{core}.{module}", name): ours
    for core in ("core", "_core")
    for module, name, ours in (
        ("multiarray", "_reconstruct", _Unbuilt),
        ("multiarray", "scalar", _scalar),
        ("numeric", "_frombuffer", _from_buffer),
    )
}


class _Careful(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return ALLOWED[module, name]


def read_pickle(path: Path) -> Any:
    """The plain values and arrays in a pickle; anything else is an error, and nothing of it is run."""
    try:
        with path.open("rb") as file:
            for _ in pickletools.genops(file):  # all there: the loader itself can trip over what is cut short
                pass
            file.seek(0)
            return _resolved(_Careful(file, encoding="latin1").load())
    except pickle.UnpicklingError as error:
        _refuse(path, str(error))
    except OSError as error:
        raise WanderError(f"Cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:  # a damaged pickle can raise anything
        raise WanderError(f"{path} is truncated or damaged ({type(error).__name__}: {error}).") from error


def payloads(path: Path, start: bytes) -> Iterator[bytes]:
    """All strings of bytes in a pickle that begin with `start`, in order, one at a time.

    The pickle is looked through, not loaded: the memory needed does not grow with the file.
    """
    head = start.decode("latin-1")
    try:
        with path.open("rb") as file:
            for word in _words(pickletools.genops(file), lambda why: _refuse(path, why)):
                if isinstance(word, str):
                    if word.startswith(head):
                        yield word.encode("latin-1")
                elif word.startswith(start):
                    yield bytes(word)
    except OSError as error:
        raise WanderError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, UnicodeError, MemoryError, OverflowError) as error:  # a length can be nonsense
        what = str(error) or type(error).__name__
        raise WanderError(f"{path} is truncated or damaged ({what}).") from error


def _words(ops: Iterator[Any], refuse: Callable[[str], NoReturn]) -> Iterator[str | bytes | bytearray]:
    """All text and bytes that a pickle holds, after checking every name that it asks for."""
    memo: dict[int, str | None] = {}
    recent: list[str | None] = [None, None]
    last: str | None = None
    for op, arg, _ in ops:
        name = op.name
        if name in ("GLOBAL", "INST"):
            module, _, wanted = arg.partition(" ")
            if (module, wanted) not in ALLOWED or name == "INST":
                refuse(f"it asks for {module}.{wanted}")
        elif name == "STACK_GLOBAL":
            if tuple(recent) not in ALLOWED:
                refuse(f"it asks for {recent[0]}.{recent[1]}")
        elif name in ("EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID"):
            refuse("it asks for something outside of it")
        if name == "MEMOIZE":
            memo[len(memo)] = last
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[int(arg)] = last
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            last = memo.get(int(arg))
            recent = [recent[1], last]
        else:
            last = arg if isinstance(arg, str) and len(arg) <= LONG and name != "GLOBAL" else None
            if last is not None:
                recent = [recent[1], last]
            if isinstance(arg, str | bytes | bytearray) and name not in ("GLOBAL", "INST"):
                yield arg


def _refuse(path: Path, why: str) -> NoReturn:
    raise WanderError(
        f"{path} was not loaded: {why}. Only numbers, words, bytes and arrays of them are read from "
        "a pickle; this one is not what was published, and loading it could run somebody's program."
    )
