"""Omniglot: 1623 handwritten characters of 50 alphabets, each drawn by 20 people.

The published archives (or the folders unpacked from them) are checked, shrunk from 105x105 to 28x28 as the
paper's authors did, and kept in the user's cache; with that cache in place nothing else is read.
"""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from PIL import Image

from wanderlearn.errors import WanderError
from wanderlearn.files import cache_dir, data_dir, digest_of
from wanderlearn.pictures import fetch
from wanderlearn.pictures.cached import load_or_build, with_rotations
from wanderlearn.pictures.collection import Pictures, Split
from wanderlearn.progress import track

__all__ = ["CHARACTERS", "PARTS", "Part", "Status", "drawings", "find", "get", "omniglot", "status"]

Bytes = npt.NDArray[np.uint8]

URL: Final = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/"
DRAWERS: Final = 20
PUBLISHED_SIDE: Final = 105
SIDE: Final = 28
ROTATIONS: Final = ("rot090", "rot180", "rot270", "rot000")  # degrees counter-clockwise, as `with_rotations`
HOW_TO_GET_IT: Final = (
    "Run `wander data get omniglot` to download it, or `wander data get omniglot --from DIR` if you have "
    "images_background.zip and images_evaluation.zip. The world `glyphs` needs no data at all."
)


class Part(NamedTuple):
    """One of the two published archives, and what makes us sure that we hold the real one."""

    name: str  # of the zip without its suffix, and of the folder inside
    md5: str  # of the published zip
    decoded: str  # SHA-256 over names and pixels: also met by the same pictures packed or unpacked anew
    characters: Mapping[str, int]  # alphabet -> how many


# fmt: off
PARTS: Final = (
    Part(
        "images_background",
        md5="68d2efa1b9178cc56df9314c21c6e718",
        decoded="9b7f300c19f7dab83f1674a73184cea73aa450e5fb69f09e1017a0ca1d2db07c",
        characters={
            "Alphabet_of_the_Magi": 20, "Anglo-Saxon_Futhorc": 29, "Arcadian": 26, "Armenian": 41,
            "Asomtavruli_(Georgian)": 40, "Balinese": 24, "Bengali": 46,
            "Blackfoot_(Canadian_Aboriginal_Syllabics)": 14, "Braille": 26, "Burmese_(Myanmar)": 34,
            "Cyrillic": 33, "Early_Aramaic": 22, "Futurama": 26, "Grantha": 43, "Greek": 24, "Gujarati": 48,
            "Hebrew": 22, "Inuktitut_(Canadian_Aboriginal_Syllabics)": 16, "Japanese_(hiragana)": 52,
            "Japanese_(katakana)": 47, "Korean": 40, "Latin": 26, "Malay_(Jawi_-_Arabic)": 40,
            "Mkhedruli_(Georgian)": 41, "N_Ko": 33, "Ojibwe_(Canadian_Aboriginal_Syllabics)": 14,
            "Sanskrit": 42, "Syriac_(Estrangelo)": 23, "Tagalog": 17, "Tifinagh": 55,
        },
    ),
    Part(
        "images_evaluation",
        md5="6b91aef0f799c5bb55b94e3f2daec811",
        decoded="1096e3629300e9952bd707e5a3dfc2cddc949b6b2937adda246c56f18a686f41",
        characters={
            "Angelic": 20, "Atemayar_Qelisayer": 26, "Atlantean": 26, "Aurek-Besh": 26, "Avesta": 26,
            "Ge_ez": 26, "Glagolitic": 45, "Gurmukhi": 45, "Kannada": 41, "Keble": 26, "Malayalam": 47,
            "Manipuri": 40, "Mongolian": 30, "Old_Church_Slavonic_(Cyrillic)": 45, "Oriya": 46,
            "Sylheti": 28, "Syriac_(Serto)": 23, "Tengwar": 25, "Tibetan": 42, "ULOG": 26,
        },
    ),
)
# The split of the paper goes by alphabet and across the two archives; what is not named here trains.
VAL: Final = frozenset({"Armenian", "Bengali", "Early_Aramaic", "Hebrew", "Mkhedruli_(Georgian)"})
TEST: Final = frozenset({
    "Gurmukhi", "Kannada", "Keble", "Malayalam", "Manipuri", "Mongolian", "Old_Church_Slavonic_(Cyrillic)",
    "Oriya", "Sylheti", "Syriac_(Serto)", "Tengwar", "Tibetan", "ULOG",
})
# fmt: on


def _expected(part: Part) -> list[str]:
    return [
        f"{alphabet}/character{number:02d}"
        for alphabet, count in sorted(part.characters.items())
        for number in range(1, count + 1)
    ]


CHARACTERS: Final[Sequence[str]] = tuple(sorted(c for part in PARTS for c in _expected(part)))
"""The names of all 1623 characters, "Alphabet/characterNN", in the order of `drawings`."""


class Status(NamedTuple):
    """What `wander data list` tells about Omniglot."""

    cached: bool  # ready to use, nothing else is needed
    where: Path | None  # the cached drawings, else the folder that holds the archives, else nowhere
    size: int  # bytes of what is there


def omniglot(split: Split, source: Path | None = None, *, merge_japanese: bool = True) -> Pictures:
    """The classes of one split of the paper: every character in four rotations, 20 drawings each.

    train, val and test have 3948, 688 and 1856 classes of 31, 5 and 13 families. A family is an alphabet,
    but hiragana and katakana count as one, as in the paper; `merge_japanese=False` keeps them apart (32).
    """
    alphabets = [name.partition("/")[0] for name in CHARACTERS]
    rows = [row for row, alphabet in enumerate(alphabets) if _split_of(alphabet) == split]
    if not rows:
        raise WanderError(f"Omniglot has no split {split!r}. Choose train, val or test.")
    families = [_family_of(alphabets[row], merge_japanese) for row in rows]
    family_names = sorted(set(families))
    family = np.array([family_names.index(name) for name in families], dtype=np.int64)
    classes = len(rows) * len(ROTATIONS)
    return Pictures(
        name="omniglot",
        split=split,
        images=with_rotations(drawings(source)[rows]),
        first=np.arange(classes + 1, dtype=np.int64) * DRAWERS,
        family=np.repeat(family, len(ROTATIONS)),
        class_names=[f"{CHARACTERS[row]}/{rotation}" for row in rows for rotation in ROTATIONS],
        family_names=family_names,
    )


def drawings(source: Path | None = None, *, download: bool = False) -> Bytes:
    """All drawings, [1623, 20, 28, 28], strokes bright on black; row c is the character `CHARACTERS[c]`.

    From the cache if it is whole. Otherwise, or if a `source` folder is named, from the archives there, in
    `WANDERLEARN_DATA` or in the cache, every one of them checked; downloaded only if `download`.
    """
    return _cached_or_read(source, download=download, must_write=False)


def get(source: Path | None = None) -> Path:
    """Make Omniglot ready: from the folder `source`, else from where it is found, else by a download.

    Returns the cached file. Unlike plain loading, a cache that cannot be written is an error here.
    """
    _cached_or_read(source, download=True, must_write=True)
    return _cache_path()


def find(source: Path | None = None) -> Path | None:
    """The folder with both archives, zipped or unpacked: `source`, else in `WANDERLEARN_DATA`, else cached.

    A `source` without them is an error that says what is missing; elsewhere it is None.
    """
    for folder in _places(source):
        if all(_archive_in(folder, part) for part in PARTS):
            return folder
    if source is None:
        return None
    if not source.is_dir():
        problem = "is not a folder" if source.exists() else "does not exist"
        raise WanderError(f"{source} {problem}. Name the folder that holds {_wanted()}.")
    missing = [f"{part.name}.zip" for part in PARTS if not _archive_in(source, part)]
    raise WanderError(f"{source} has no {' and no '.join(missing)}. It should hold {_wanted()}.")


def status() -> Status:
    """Whether Omniglot is ready, where, and how large; reads the cache, decodes nothing."""

    def nothing() -> Bytes:
        raise LookupError

    try:
        load_or_build(_cache_path(), _version(), nothing)
        return Status(True, _cache_path(), _cache_path().stat().st_size)
    except LookupError:
        folder = find()
    if folder is None:
        return Status(False, None, 0)
    archives = [folder / f"{part.name}.zip" for part in PARTS]
    files = [p if p.is_file() else p.with_suffix("") for p in archives]
    return Status(False, folder, sum(_size(p) for p in files))


def _cached_or_read(source: Path | None, *, download: bool, must_write: bool) -> Bytes:
    def build() -> Bytes:
        folder = find(source)
        if folder is None:
            folder = _download() if download else _absent()
        return _read(folder, PARTS)

    if source is not None:  # the user named it: check it, whatever the cache holds
        named = build()
        return load_or_build(_cache_path(), _version(), lambda: named, must_write=must_write)
    return load_or_build(_cache_path(), _version(), build, must_write=must_write)


def _cache_path() -> Path:
    return cache_dir() / "omniglot" / f"drawings-{SIDE}.npy"


def _version() -> str:
    return " ".join(["1", *(part.decoded for part in PARTS)])


def _split_of(alphabet: str) -> Split:
    return "val" if alphabet in VAL else "test" if alphabet in TEST else "train"


def _family_of(alphabet: str, merge_japanese: bool) -> str:
    """The authors key by the name up to its first underscore; inside a split that merges only Japanese."""
    return "Japanese" if merge_japanese and alphabet.startswith("Japanese_") else alphabet


def _places(source: Path | None) -> list[Path]:
    if source is not None:
        return [source, source / "omniglot"]
    named = data_dir()
    return ([named, named / "omniglot"] if named else []) + [cache_dir() / "omniglot"]


def _archive_in(folder: Path, part: Part) -> bool:
    try:
        return (folder / f"{part.name}.zip").is_file() or (folder / part.name).is_dir()
    except OSError:  # a folder we may not look into
        return False


def _wanted() -> str:
    return " and ".join(f"{part.name}.zip" for part in PARTS) + ", or the folders unpacked from them"


def _absent() -> Path:
    looked = ", ".join(str(folder) for folder in _places(None))
    raise WanderError(f"Omniglot is not here (looked in {looked}). {HOW_TO_GET_IT}")


def _download() -> Path:
    folder = cache_dir() / "omniglot"
    for part in PARTS:
        fetch.download(f"{URL}{part.name}.zip", folder / f"{part.name}.zip", md5=part.md5)
    return folder


def _size(path: Path) -> int:
    files = path.rglob("*.png") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _read(folder: Path, parts: Sequence[Part]) -> Bytes:
    """Read, check and shrink the archives in `folder`, in the order of the characters' names."""
    shrunk: dict[str, Bytes] = {}
    for part in parts:
        with _opened(folder, part) as (archive, names, read):
            shrunk |= _read_part(part, archive, names, read)
    return np.stack([shrunk[character] for character in sorted(shrunk)])


@contextmanager
def _opened(folder: Path, part: Part) -> Iterator[tuple[Path, list[str], Callable[[str], bytes]]]:
    """The zip or else the unpacked folder, the files in it, and how to read one by its name."""
    archive = folder / f"{part.name}.zip"
    if archive.is_file():
        with _in_words(archive):
            zipped = zipfile.ZipFile(archive)
        with zipped:
            start = f"{part.name}/"
            names = [name.removeprefix(start) for name in zipped.namelist() if name.startswith(start)]
            yield archive, names, lambda name: zipped.read(start + name)
    else:
        root = folder / part.name
        with _in_words(root):
            names = [path.relative_to(root).as_posix() for path in root.glob("*/*/*.png")]
        yield root, names, lambda name: (root / name).read_bytes()


@contextmanager
def _in_words(archive: Path) -> Iterator[None]:
    """Say in a sentence what a damaged zip or an unreadable file raises."""
    try:
        yield
    except OSError as error:
        raise WanderError(f"Cannot read {archive}: {error.strerror or error}. {_again(archive)}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        raise WanderError(f"{archive} is truncated or damaged ({error}). {_again(archive)}") from error


def _read_part(part: Part, archive: Path, names: list[str], read: Callable[[str], bytes]) -> dict[str, Bytes]:
    by_character = _checked_layout(part, archive, names)
    shrunk: dict[str, Bytes] = {}
    seen = hashlib.sha256()
    for character, files in track(by_character.items(), f"Reading {archive.name}", len(by_character)):
        with _in_words(archive):
            pngs = [read(name) for name in files]
        white = np.stack([_decode(png, archive, name) for png, name in zip(pngs, files, strict=True)])
        seen.update("\n".join(files).encode())
        seen.update(np.packbits(white.reshape(len(files), -1), axis=1).data)
        shrunk[character] = _shrink(white)  # [20, 28, 28]
    if (decoded := seen.hexdigest()) != part.decoded:
        md5 = digest_of(archive, "md5") if archive.is_file() else "none"
        if md5 != part.md5:
            raise WanderError(
                f"{archive} is laid out like Omniglot, but it is not what was published: its MD5 is {md5} "
                f"instead of {part.md5}, and its pictures have the SHA-256 {decoded} instead of "
                f"{part.decoded}. {_again(archive)}"
            )
    return shrunk


def _checked_layout(part: Part, archive: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """The files of every character, sorted, if all are there and nothing else is."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        alphabet, _, rest = name.partition("/")
        character, _, file = rest.partition("/")
        if file.endswith(".png") and not file.startswith("."):  # neither folders nor what file managers leave
            found.setdefault(f"{alphabet}/{character}", []).append(name)
    expected = _expected(part)
    for words, characters in (
        ("lacks", set(expected) - set(found)),
        ("also has", set(found) - set(expected)),
    ):
        if characters:
            few = ", ".join(sorted(characters)[:3]) + (", ..." if len(characters) > 3 else "")
            raise WanderError(
                f"{archive} {words} {few}: {len(found)} characters instead of {len(expected)}. "
                f"{_again(archive)}"
            )
    for character, files in found.items():
        numbers = [Path(file).stem.rpartition("_")[2] for file in files]
        if numbers != (wanted := [f"{number:02d}" for number in range(1, DRAWERS + 1)]):
            lost = ", ".join(sorted(set(wanted) - set(numbers))) or "none"
            raise WanderError(
                f"{archive}: {character} has {len(files)} drawings instead of {DRAWERS} "
                f"(missing numbers: {lost}). {_again(archive)}"
            )
    return {character: found[character] for character in expected}


def _decode(data: bytes, archive: Path, name: str) -> npt.NDArray[np.bool_]:
    """The white of one picture, [105, 105]."""
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            size = picture.size
            if size == (PUBLISHED_SIDE, PUBLISHED_SIDE):
                return np.asarray(picture.convert("1", dither=Image.Dither.NONE))
    except (OSError, SyntaxError, ValueError, zlib.error, Image.DecompressionBombError) as error:
        raise WanderError(f"{archive}: {name} is not a readable PNG ({error}). {_again(archive)}") from error
    raise WanderError(
        f"{archive}: {name} is {size[0]}x{size[1]} instead of {PUBLISHED_SIDE}x{PUBLISHED_SIDE}. "
        f"{_again(archive)}"
    )


def _shrink(white: npt.NDArray[np.bool_]) -> Bytes:
    """Bicubic to 28x28 without antialiasing, as the authors' OpenCV does, then ink bright on black.

    In double precision every weight (a multiple of 2^-11) and every sum is exact, so that the result does
    not depend on the machine.
    """
    paper = torch.from_numpy(white).to(torch.float64)[:, None] * 255  # [n, 1, 105, 105]
    small = F.interpolate(paper, size=(SIDE, SIDE), mode="bicubic", align_corners=False, antialias=False)
    ink = 255 - (small + 0.5).floor().clamp(0, 255)
    shrunk: Bytes = ink.to(torch.uint8).numpy()[:, 0]  # [n, 28, 28]
    return shrunk


def _again(archive: Path) -> str:
    return f"Replace it by a fresh copy of {URL}{archive.name.removesuffix('.zip')}.zip and try again."
