"""Arrays that are slow to make, kept in the user's cache; and the rotations that drawn collections share."""

import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.files import read_json, write_json, writing

__all__ = ["is_kept", "load_or_build", "with_rotations"]

Bytes = npt.NDArray[np.uint8]


def load_or_build(path: Path, version: str, build: Callable[[], Bytes], *, must_write: bool = False) -> Bytes:
    """The array kept at `path` (.npy), or a new one from `build`, which is then kept there.

    A JSON file beside it holds the version and the SHA-256 of the array file; if either does not match,
    or a file is missing, truncated or altered, the array is built again. A cache that cannot be written
    only costs the next call its time, unless `must_write`, which raises the `WanderError` instead.
    """
    beside = path.with_suffix(".json")
    kept = _read(path, beside, version)
    if kept is not None:
        return kept
    array = np.ascontiguousarray(build(), dtype=np.uint8)
    holder = io.BytesIO()
    np.save(holder, array, allow_pickle=False)
    content = holder.getbuffer()
    try:
        with writing(path) as part:
            part.write_bytes(content)
        write_json(beside, {"version": version, "sha256": hashlib.sha256(content).hexdigest()})
    except WanderError:
        if must_write:
            raise
    return array


def is_kept(path: Path, version: str) -> bool:
    """Whether `load_or_build` would find the array, whole and of this version."""
    return _read(path, path.with_suffix(".json"), version) is not None


def with_rotations(drawings: Bytes) -> Bytes:
    """Four classes per character: its drawings turned by 90, 180, 270 and 0 degrees counter-clockwise.

    From [characters, drawers, H, H] to [characters * 4 * drawers, 1, H, H]; the classes of one
    character follow each other, the drawings of one class are in the order of the drawers.
    """
    turned = np.stack([np.rot90(drawings, k, axes=(2, 3)) for k in (1, 2, 3, 0)], axis=1)
    return turned.reshape(-1, 1, *drawings.shape[2:])


def _read(path: Path, beside: Path, version: str) -> Bytes | None:
    """The array at `path` if it is whole and of this version."""
    try:
        note = read_json(beside)
        content = path.read_bytes()
    except (WanderError, OSError):
        return None
    if note != {"version": version, "sha256": hashlib.sha256(content).hexdigest()}:
        return None
    array: Bytes = np.load(io.BytesIO(content), allow_pickle=False)
    return array
