"""Vectors in the place of pictures: `features:PATH.npy`, with the labels in `PATH.labels.json` or `.npy`.

The vectors are an array [N, D]. The labels are a class for every row: a list, or in JSON an object with the
lists `class` and, if known, `family` and `split`; as an .npy file an array [N] or [N, 2] (class, family).
What they do not say is shared out by the same rule as for folders.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.files import read_json
from wanderlearn.pictures.address import Address
from wanderlearn.pictures.collection import SPLITS, Pictures, Split
from wanderlearn.pictures.shares import share_out

__all__ = ["features", "width_of"]

HOW: Final = (
    'Write a JSON list with the class of every row, or an object {"class": [...], "family": [...], '
    '"split": [...]}, of which the last two may be left out.'
)


_told: set[str] = set()


@dataclass(frozen=True)
class _Group:
    """A class and the rows that show it."""

    split: Split | None
    family: str | None
    name: str
    rows: npt.NDArray[np.int64]

    @property
    def words(self) -> str:
        return "/".join(part for part in (self.split, self.family, self.name) if part)


def features(address: Address, split: Split) -> Pictures:
    """The vectors of one split, each as a picture of one pixel with D channels."""
    path = _path(address)
    vectors = _vectors(path)
    groups = _grouped(path, len(vectors))
    shares = share_out(groups, [len(group.rows) for group in groups], address)
    own = shares.classes[split]
    if not own:
        there = ", ".join(s for s in SPLITS if shares.classes[s])
        raise WanderError(f"{path} has no vectors for the split {split}, only for {there}.")
    if str(address) not in _told:  # once, not for every split
        _told.add(str(address))
        print("\n".join([f"{address.name}: {len(vectors)} vectors", *shares.notes]), file=sys.stderr)
    rows = np.concatenate([groups[placed.group].rows for placed in own])
    chosen = np.ascontiguousarray(vectors[rows], dtype=np.float32)
    if not np.isfinite(chosen).all():
        bad = int(rows[~np.isfinite(chosen).all(axis=1)][0])
        raise WanderError(f"Row {bad} of {path} holds numbers that are not finite. Compute it again.")
    families = sorted({placed.family for placed in own})
    return Pictures(
        name=address.name,
        split=split,
        images=chosen[:, :, None, None],
        first=np.cumsum([0, *(len(groups[placed.group].rows) for placed in own)]),
        family=np.array([families.index(placed.family) for placed in own], dtype=np.int64),
        class_names=[placed.name for placed in own],
        family_names=families,
        drawn=False,
    )


def width_of(address: Address) -> int:
    """How many numbers a vector has."""
    return int(_vectors(_path(address)).shape[1])


def _path(address: Address) -> Path:
    path = Path(address.path)
    return path if path.suffix == ".npy" else path.with_name(f"{path.name}.npy")


def _vectors(path: Path) -> npt.NDArray[Any]:
    try:
        vectors: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise WanderError(f"There is no file {path}. Save vectors with numpy.save, as [N, D].") from error
    except (OSError, ValueError, EOFError) as error:
        raise WanderError(f"{path} is not an array of numbers ({error}). Save it with numpy.save.") from error
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or not vectors.size:
        raise WanderError(
            f"{path} should hold vectors as an array [N, D] of floats, not {vectors.dtype} {vectors.shape}."
        )
    return vectors


def _grouped(path: Path, count: int) -> list[_Group]:
    labels, columns = _labels(path)
    for name, column in columns.items():
        if len(column) != count:
            raise WanderError(f"{labels}: {len(column)} of {name} for {count} vectors: one each is needed.")
    for wrong in sorted(set(columns.get("split", ())) - set(SPLITS)):
        raise WanderError(f"{labels}: there is no split {wrong!r}. Choose among {', '.join(SPLITS)}.")
    split = columns.get("split", [None] * count)
    family = columns.get("family", [None] * count)
    rows: dict[tuple[Any, Any, str], list[int]] = {}
    for row, key in enumerate(zip(split, family, columns["class"], strict=True)):
        rows.setdefault(key, []).append(row)
    order = sorted(rows, key=lambda key: [part or "" for part in key])
    return [_Group(split, family, name, np.array(rows[split, family, name])) for split, family, name in order]


def _labels(path: Path) -> tuple[Path, dict[str, list[str]]]:
    """The file of labels, and its columns as words."""
    stem = path.with_suffix("")
    as_json, as_array = (stem.with_name(f"{stem.name}.labels.{end}") for end in ("json", "npy"))
    if as_json.exists():
        told = read_json(as_json)
        table = told if isinstance(told, dict) else {"class": told}
        known = {"class", "family", "split"}
        lists = all(isinstance(c, list) and all(isinstance(x, str | int) for x in c) for c in table.values())
        if not lists or "class" not in table or table.keys() - known:
            raise WanderError(f"{as_json} does not say the classes. {HOW}")
        return as_json, {name: [str(x) for x in column] for name, column in table.items()}
    if not as_array.exists():
        raise WanderError(f"{path} has no labels: neither {as_json} nor {as_array} is there. {HOW}")
    try:
        array = np.load(as_array, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise WanderError(f"{as_array} is not an array of labels ({error}). {HOW}") from error
    if array.dtype.kind not in "iuU" or array.ndim > 2 or array.shape[1:] not in ((), (1,), (2,)):
        raise WanderError(
            f"{as_array} should be [N] or [N, 2] of whole numbers or words, not {array.dtype} {array.shape}."
        )
    columns = array.reshape(len(array), -1).astype(str).T.tolist()
    return as_array, dict(zip(("class", "family"), columns, strict=False))
