"""Files that are either whole or not there: atomic writes, digests, and where the user's cache is."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wanderlearn.errors import WanderError

__all__ = ["cache_dir", "data_dir", "digest_of", "read_json", "write_json", "writing"]


def cache_dir() -> Path:
    """Where downloads and decoded pictures are kept: `WANDERLEARN_CACHE`, else the user's cache folder."""
    if named := os.environ.get("WANDERLEARN_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wanderlearn"


def data_dir() -> Path | None:
    """The folder of real data the user points to with `WANDERLEARN_DATA`, or None."""
    named = os.environ.get("WANDERLEARN_DATA")
    return Path(named) if named else None


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it becomes `path`, on any failure it is removed.

    A reader never sees half a file, whatever interrupts the writer. What is no file (`/dev/null`, a pipe) is
    not replaced: it is written to at the end.
    """
    special = path.exists() and not path.is_file() and not path.is_dir()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = None if special else path.parent
        handle, name = tempfile.mkstemp(dir=beside, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise WanderError(_cannot_write(path, error)) from error
    os.close(handle)
    part = Path(name)
    try:
        yield part
        if special:
            with part.open("rb") as source, path.open("wb") as target:
                shutil.copyfileobj(source, target)
            return
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    except OSError as error:
        raise WanderError(_cannot_write(path, error)) from error
    finally:
        part.unlink(missing_ok=True)


def write_json(path: Path, value: object) -> None:
    """Write `value` as indented JSON, atomically."""
    with writing(path) as part:
        part.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read JSON, or say which file is missing or broken and where."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WanderError(f"Cannot read {path}: {error.strerror or error}.") from error
    except ValueError as error:
        raise WanderError(f"{path} is not valid JSON ({error}). It may be truncated.") from error


def digest_of(path: Path, algorithm: str = "sha256") -> str:
    """The hex digest of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _cannot_write(path: Path, error: OSError) -> str:
    return (
        f"Cannot write {path}: {error.strerror or error}. "
        "Free some space or choose a folder you may write to (WANDERLEARN_CACHE sets the cache)."
    )
