"""The paper's split of Omniglot, and the real drawings where they are at hand."""

import hashlib
import io
import shutil
import zipfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from tests.small_omniglot import pack, png, shrink_slowly
from wanderlearn import files
from wanderlearn.errors import WanderError
from wanderlearn.pictures import omniglot
from wanderlearn.pictures.collection import SPLITS, Split
from wanderlearn.pictures.omniglot import CHARACTERS, PARTS


def test_every_alphabet_is_in_one_split_of_the_papers_size() -> None:
    alphabets: dict[Split, set[str]] = defaultdict(set)
    characters: dict[Split, int] = defaultdict(int)
    for character in CHARACTERS:
        alphabet = character.partition("/")[0]
        alphabets[omniglot._split_of(alphabet)].add(alphabet)
        characters[omniglot._split_of(alphabet)] += 1
    assert {split: len(names) for split, names in alphabets.items()} == {"train": 32, "val": 5, "test": 13}
    assert characters == {"train": 987, "val": 172, "test": 464}
    assert set().union(*alphabets.values()) == {alphabet for part in PARTS for alphabet in part.characters}
    assert len(CHARACTERS) == len(set(CHARACTERS)) == 1623
    assert list(CHARACTERS) == sorted(CHARACTERS, key=lambda name: name.split("/"))


def test_families_are_those_of_the_authors_key() -> None:
    """The authors key by the name up to its first underscore; that must group a split exactly as we do."""
    for split in SPLITS:
        alphabets = [a for part in PARTS for a in part.characters if omniglot._split_of(a) == split]
        groups: dict[str, set[str]] = defaultdict(set)
        for alphabet in alphabets:
            groups[alphabet.split("_")[0]].add(omniglot._family_of(alphabet, True))
        assert all(len(families) == 1 for families in groups.values())
        assert len(groups) == len({omniglot._family_of(alphabet, True) for alphabet in alphabets})
        assert all(omniglot._family_of(alphabet, False) == alphabet for alphabet in alphabets)


# The real Omniglot


@pytest.fixture(scope="module")
def real() -> Path:
    folder = omniglot.find()
    assert folder is not None
    return folder


@pytest.mark.omniglot
@pytest.mark.parametrize(
    ("split", "classes", "families"), [("train", 3948, 31), ("val", 688, 5), ("test", 1856, 13)]
)
def test_a_split_holds_every_character_in_four_rotations(split: Split, classes: int, families: int) -> None:
    pictures = omniglot.omniglot(split)
    assert (pictures.classes, pictures.families) == (classes, families)
    assert (pictures.name, pictures.split) == ("omniglot", split)
    assert pictures.images.shape == (classes * 20, 1, 28, 28)
    assert (np.diff(pictures.first) == 20).all()
    assert len(set(pictures.class_names)) == classes
    upright = omniglot.drawings()
    for c in range(0, classes, 97):
        alphabet, character, rotation = pictures.class_names[c].split("/")
        assert pictures.family_names[pictures.family[c]] in (alphabet, "Japanese")
        assert omniglot._split_of(alphabet) == split
        assert rotation == ("rot090", "rot180", "rot270", "rot000")[c % 4]
        expected = upright[CHARACTERS.index(f"{alphabet}/{character}")]
        for _ in range(
            int(rotation[3:]) // 90
        ):  # a quarter turn counter-clockwise: the last column comes on top
            expected = expected.transpose(0, 2, 1)[:, ::-1]
        np.testing.assert_array_equal(pictures.images[pictures.first[c] : pictures.first[c + 1], 0], expected)


@pytest.mark.omniglot
def test_hiragana_and_katakana_are_one_family_unless_kept_apart() -> None:
    merged, apart = omniglot.omniglot("train"), omniglot.omniglot("train", merge_japanese=False)
    assert set(apart.family_names) - set(merged.family_names) == {
        "Japanese_(hiragana)",
        "Japanese_(katakana)",
    }
    assert set(merged.family_names) - set(apart.family_names) == {"Japanese"}
    assert (merged.family == merged.family_names.index("Japanese")).sum() == (52 + 47) * 4
    np.testing.assert_array_equal(merged.images, apart.images)


@pytest.mark.omniglot
def test_no_character_is_in_two_splits() -> None:
    names = [{name.rpartition("/")[0] for name in omniglot.omniglot(split).class_names} for split in SPLITS]
    assert sum(map(len, names)) == len(set().union(*names)) == 1623


@pytest.mark.omniglot
def test_real_drawings_are_the_shrunk_published_ones(real: Path) -> None:
    """The cached array against PNGs read one by one: right row, right drawer, ink bright on black."""
    kept = omniglot.drawings()
    assert kept.shape == (1623, 20, 28, 28)
    assert 0.03 < kept.mean() / 255 < 0.12
    for part in PARTS:
        with omniglot._opened(real, part) as (_, names, read):
            for name in sorted(names)[7::1501]:
                character, _, file = name.rpartition("/")
                white = np.array(Image.open(io.BytesIO(read(name))))
                drawer = int(file[-6:-4]) - 1
                np.testing.assert_array_equal(kept[CHARACTERS.index(character), drawer], shrink_slowly(white))


@pytest.mark.omniglot
def test_the_drawings_are_pinned() -> None:
    """Exact arithmetic: the same bytes on every machine, so results on them can be compared."""
    digest = hashlib.sha256(omniglot.drawings().tobytes()).hexdigest()
    assert digest == "ccd5bf29ec7285ec8129545131266a99ec2c54c980cc318b84b813cbaa3ee188"


@pytest.mark.omniglot
@pytest.mark.parametrize("damage", ["truncated", "missing", "corrupt", "wrong size"])
def test_a_damaged_real_archive_is_named(
    real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    if not (real / "images_background.zip").is_file():
        pytest.skip("the real Omniglot is here, but not as zips")
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "images_evaluation.zip").symlink_to((real / "images_evaluation.zip").absolute())
    spoiled = tmp_path / "images_background.zip"
    shutil.copyfile(real / "images_background.zip", spoiled)
    first = "images_background/Alphabet_of_the_Magi/character01/0709_05.png"
    if damage == "truncated":
        spoiled.write_bytes(spoiled.read_bytes()[:4_000_000])
        words = "truncated or damaged"
    else:
        with zipfile.ZipFile(spoiled) as archive:
            content = {name: archive.read(name) for name in archive.namelist()}
        if damage == "missing":
            del content[first]
            words = r"character01 has 19 drawings instead of 20 \(missing numbers: 05\)"
        elif damage == "corrupt":
            content[first] = content[first][:60]
            words = "0709_05.png is not a readable PNG"
        else:
            content[first] = png(np.ones((28, 28), bool))
            words = "0709_05.png is 28x28 instead of 105x105"
        pack(spoiled, content)
    with pytest.raises(WanderError, match=rf"images_background\.zip.*{words}"):
        omniglot.get(tmp_path)
    assert not (tmp_path / "cache").exists()


@pytest.mark.omniglot
def test_a_valid_cache_is_read_and_not_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    before = (files.cache_dir() / "omniglot" / "drawings-28.npy").stat().st_mtime_ns

    def never(*_: object) -> npt.NDArray[np.uint8]:
        raise AssertionError("the archives were read in spite of a valid cache")

    monkeypatch.setattr(omniglot, "_read", never)
    assert omniglot.get().stat().st_mtime_ns == before
    assert omniglot.status().cached
