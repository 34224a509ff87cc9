"""tiered-ImageNet in every form that people have: `imagenet:PATH`.

* `{split}_images_png.pkl` with `{split}_labels.pkl` (the first release: PNG bytes), read without running the
  pickles (`pickles.py`);
* `{split}_images.npz` with `{split}_labels.pkl` or `.npz`;
* ILSVRC folders, a folder per class, with `?classes=FILE` that gives split and category of every class;
* any tree that `folder:` takes.

Families are the high-level categories. Pictures are 84 x 84 unless the address says otherwise.
"""

import csv
import hashlib
import io
import json
import math
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt
from PIL import Image

from wanderlearn.errors import WanderError
from wanderlearn.files import read_json
from wanderlearn.pictures.address import Address
from wanderlearn.pictures.collection import SPLITS, Pictures, Split
from wanderlearn.pictures.decode import Look, UnreadableError, decode, square
from wanderlearn.pictures.folder import CHANNELS, folder, from_scan
from wanderlearn.pictures.kept import Class, Contents, Filling, load_or_decode
from wanderlearn.pictures.pickles import payloads, read_pickle
from wanderlearn.pictures.tree import Group, Scan, scan
from wanderlearn.progress import track

__all__ = ["SIZE", "imagenet"]

SIZE: Final = 84
VERSION: Final = 1
PNG: Final = b"\x89PNG\r\n\x1a\n"
COLUMNS: Final = {
    "class": ("class", "wnid", "synset", "name", "label"),
    "family": ("family", "category", "group", "superclass"),
    "split": ("split", "group_split", "set"),
}


def imagenet(address: Address, split: Split) -> Pictures:
    """The pictures of one split. The first call decodes all splits that are there."""
    address = address.filled(SIZE, CHANNELS)
    root = Path(address.path)
    if not root.is_dir():
        raise WanderError(f"{root} is not a folder. Name the one that holds tiered-ImageNet's files.")
    if address.options.classes is not None:
        return from_scan(_ilsvrc(root, Path(address.options.classes)), address, split)
    packed = {s: found for s in SPLITS if (found := _packed(root, s))}
    if not packed:
        return folder(address, split)
    stamps = [
        [file.name, file.stat().st_size, file.stat().st_mtime_ns] for pair in packed.values() for file in pair
    ]
    key = hashlib.sha256(json.dumps([VERSION, str(address), sorted(stamps)]).encode()).hexdigest()
    return load_or_decode(f"{address.name}-{key[:24]}", split, lambda: _plan(packed, address, key))


def _packed(root: Path, split: Split) -> tuple[Path, Path] | None:
    """The file of pictures and the file of labels of a split."""
    pictures = [root / f"{split}_images_png.pkl", root / f"{split}_images.npz"]
    images = next((path for path in pictures if path.exists()), None)
    if images is None:
        return None
    ends = [root / f"{split}_labels.{end}" for end in ("pkl", "npz")]
    labels = next((path for path in ends if path.exists()), None)
    if labels is None:
        raise WanderError(f"{images} has no labels beside it: {ends[0].name} or {ends[1].name} is missing.")
    return images, labels


def _plan(
    packed: dict[Split, tuple[Path, Path]], address: Address, key: str
) -> tuple[Contents, Filling, Callable[[Contents], None]]:
    options = address.options
    look = Look(options.size or SIZE, options.channels or CHANNELS, options.crop)
    one = look.channels * look.size**2
    classes: dict[Split, list[Class]] = {split: [] for split in SPLITS}
    places: dict[Split, npt.NDArray[np.int64]] = {}
    for split, (_, labels) in packed.items():
        classes[split], places[split] = _placed(labels)
    contents = Contents(
        address.name, classes, look.shape, {"version": VERSION, "source": str(address), "key": key}
    )

    def fill(files: dict[Split, tuple[Path, int]]) -> dict[Split, dict[int, str]]:
        return {split: fill_one(split, *place) for split, place in files.items()}

    def fill_one(split: Split, path: Path, offset: int) -> dict[int, str]:
        images, broken, count = packed[split][0], {}, len(places[split])
        seen = 0
        with path.open("rb+") as file:
            for n, picture in enumerate(track(_pictures(images, look), f"decoding {images.name}", count)):
                seen += 1
                if n >= count:
                    break
                row = int(places[split][n])
                if isinstance(picture, str):
                    broken[row] = picture
                    continue
                file.seek(offset + row * one)
                file.write(np.ascontiguousarray(picture).data)
        if seen != count:
            more = "more" if seen > count else str(seen)
            raise WanderError(f"{images} has {more} pictures, but {packed[split][1].name} labels {count}.")
        return broken

    def finish(result: Contents) -> None:
        for split in packed:
            if empty := [each.name for each in result.classes[split] if not each.pictures]:
                raise WanderError(f"{packed[split][0]}: no picture of the class {empty[0]} can be read.")
        told = ", ".join(f"{split} {len(result.classes[split])} classes" for split in packed)
        print(f"{address.name}: {told}", file=sys.stderr)

    return contents, fill, finish


def _pictures(path: Path, look: Look) -> Iterator[npt.NDArray[np.uint8] | str]:
    """All pictures of a file in order; words for one that cannot be read."""
    if path.suffix == ".pkl":
        for data in payloads(path, PNG):
            try:
                yield decode(data, look)
            except UnreadableError as error:
                yield str(error)
        return
    for pixels in _images_of(path):
        shown = Image.fromarray(pixels).convert("L" if look.channels == 1 else "RGB")
        yield square(shown, look)


def _images_of(path: Path) -> Iterator[npt.NDArray[np.uint8]]:
    """The pictures [H, W, 3] of the array in an npz file, one at a time."""
    try:
        with zipfile.ZipFile(path) as packed:
            names = packed.namelist()
            with packed.open("images.npy" if "images.npy" in names else names[0]) as file:
                shape = _header(file)
                for _ in range(shape[0]):
                    data = file.read(math.prod(shape[1:]))
                    yield np.frombuffer(data, dtype=np.uint8).reshape(shape[1:])
    except (OSError, ValueError, EOFError, IndexError, zipfile.BadZipFile, zlib.error) as error:
        raise WanderError(
            f"{path} is not a whole .npz file with `images` as bytes [N, H, W, 3] ({error})."
        ) from error


def _header(file: IO[bytes]) -> tuple[int, ...]:
    """The shape of an array of pictures, of which the numbers follow in the file."""
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(file)
    if version not in read:
        raise ValueError(f"version {version}")
    shape, fortran, dtype = read[version](file)
    if fortran or dtype != np.uint8 or len(shape) != 4 or shape[3] != 3:
        raise ValueError(f"{dtype} {shape}")
    return shape


def _npz(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise WanderError(f"{path} is not a whole .npz file of plain arrays ({error}).") from error


def _placed(path: Path) -> tuple[list[Class], npt.NDArray[np.int64]]:
    """The classes of a split in the order of families and names, and the row that every picture goes to."""
    told = read_pickle(path) if path.suffix == ".pkl" else _npz(path)
    if not isinstance(told, dict) or "label_specific" not in told:
        raise WanderError(f"{path} does not hold `label_specific`, the class of every picture.")
    specific = np.asarray(told["label_specific"])
    general = np.asarray(told.get("label_general", np.zeros_like(specific)))
    whole = specific.dtype.kind in "iu" and general.dtype.kind in "iu" and specific.ndim == 1
    if not whole or specific.shape != general.shape or not specific.size:
        raise WanderError(
            f"{path}: label_specific and label_general should be whole numbers, one per picture."
        )
    names = {
        int(c): (
            _word(told, "label_general_str", int(general[row])),
            _word(told, "label_specific_str", int(c)),
        )
        for c, row in zip(*np.unique(specific, return_index=True), strict=True)
    }
    order = sorted(names, key=lambda c: (*names[c], c))
    rank = {c: n for n, c in enumerate(order)}
    ranks = np.array([rank[c] for c in specific.tolist()])
    counts = np.bincount(ranks)
    classes = [
        Class("/".join(names[c]), names[c][0], int(count)) for c, count in zip(order, counts, strict=True)
    ]
    rows = np.empty(len(ranks), dtype=np.int64)
    rows[np.argsort(ranks, kind="stable")] = np.arange(len(ranks))
    return classes, rows


def _word(told: dict[str, Any], key: str, number: int) -> str:
    words, number = told.get(key), int(number)
    return str(words[number]) if words is not None and 0 <= number < len(words) else f"{number:04}"


def _ilsvrc(root: Path, listing: Path) -> Scan:
    """The folders of the classes that a file names, with the split and family it gives them."""
    wanted = _listing(listing)
    inner = root / "train"
    base = inner if inner.is_dir() and not any((root / name).is_dir() for name in wanted) else root
    found = scan(base, "class")
    ahead = "" if base == root else "train/"
    by_name = {group.name: group for group in found.groups}
    if missing := [name for name in wanted if name not in by_name]:
        raise WanderError(
            f"{base} lacks {len(missing)} of the {len(wanted)} classes in {listing}, such as {missing[0]}. "
            "It should hold a folder for each."
        )
    groups = [
        Group(split, family, name, tuple(ahead + file for file in by_name[name].files))
        for name, (split, family) in sorted(wanted.items())
    ]
    named = {file for group in groups for file in group.files}
    stamps = [file._replace(name=ahead + file.name) for file in found.stamps]
    return Scan(groups, "family", [file for file in stamps if file.name in named], found.passed_over)


def _listing(path: Path) -> dict[str, tuple[Split, str]]:
    """Class -> (split, family) from a CSV file with a header or a JSON list of objects."""
    if path.suffix == ".json":
        rows = read_json(path)
    else:
        try:
            rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
        except (OSError, UnicodeError, csv.Error) as error:
            raise WanderError(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.") from error
    listed: dict[str, tuple[Split, str]] = {}
    for row in rows if isinstance(rows, list) and rows else [None]:
        values = {what: _column(row, names) for what, names in COLUMNS.items()}
        if None in values.values() or values["split"] not in SPLITS:
            raise WanderError(
                f"{path} should name class, family and split (train, val or test) of every class: a CSV file "
                f"with this header, or a JSON list of such objects. This does not: {row}."
            )
        split = next(s for s in SPLITS if s == values["split"])
        if listed.setdefault(str(values["class"]), (split, str(values["family"]))) != (
            split,
            values["family"],
        ):
            raise WanderError(f"{path} names the class {values['class']} twice, in different places.")
    return listed


def _column(row: Any, names: tuple[str, ...]) -> str | None:
    if not isinstance(row, dict):
        return None
    return next((str(row[name]) for name in names if row.get(name)), None)
