"""Omniglot: what is read is what was published, every damage is named, and the cache is never half-written.

These tests run on small archives of the same layout; test_omniglot_splits.py has those on the real one.
"""

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.small_omniglot import Bits, Files, Small, png, shrink_slowly, unpack
from wanderlearn.errors import WanderError
from wanderlearn.pictures import fetch, omniglot


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("pristine") / "small")


@pytest.fixture
def small(pristine: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """A copy to spoil, taken for the published one; neither data nor cache besides."""
    copy = Small.__new__(Small)
    vars(copy).update(vars(pristine), folder=tmp_path / "small")
    shutil.copytree(pristine.folder, copy.folder)
    monkeypatch.setattr(omniglot, "PARTS", copy.parts)
    monkeypatch.setattr(omniglot, "URL", (tmp_path / "nowhere").as_uri() + "/")
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("WANDERLEARN_DATA", raising=False)
    return copy


def cached_files(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())


# Reading


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_shrinking_is_opencvs_bicubic(seed: int, ink: float) -> None:
    white = np.random.default_rng(seed).random((2, 105, 105)) >= ink
    np.testing.assert_array_equal(omniglot._shrink(white), [shrink_slowly(w) for w in white])


def test_drawings_are_read_in_the_order_of_their_names(small: Small) -> None:
    np.testing.assert_array_equal(omniglot.drawings(small.folder), small.expected())


def test_unpacked_folders_are_as_good_as_zips(small: Small, tmp_path: Path) -> None:
    for content in small.content.values():
        unpack(tmp_path / "unpacked", content)
    (tmp_path / "unpacked" / "images_background" / "Greek" / "Thumbs.db").write_text("not a picture")
    np.testing.assert_array_equal(omniglot.drawings(tmp_path / "unpacked"), small.expected())


def test_what_other_programs_put_into_a_zip_is_passed_over(small: Small) -> None:
    extra = {"images_background/": b"", "images_background/Greek/": b"", "__MACOSX/x/y/z.png": b""}
    small.rewrite(
        lambda content: content.update(extra, **{"images_background/Greek/character01/._a.png": b""})
    )
    np.testing.assert_array_equal(omniglot.drawings(small.folder), small.expected())


def test_the_published_md5_is_enough(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omniglot, "PARTS", [part._replace(decoded="another") for part in small.parts])
    np.testing.assert_array_equal(omniglot.drawings(small.folder), small.expected())


def test_the_same_pictures_packed_anew_are_accepted(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omniglot, "PARTS", [part._replace(md5="another") for part in small.parts])
    np.testing.assert_array_equal(omniglot.drawings(small.folder), small.expected())


def test_data_is_looked_for_in_order(small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert omniglot.find() is None
    shutil.copytree(small.folder, tmp_path / "cache" / "omniglot")
    assert omniglot.find() == tmp_path / "cache" / "omniglot"
    shutil.copytree(small.folder, tmp_path / "data" / "omniglot")
    monkeypatch.setenv("WANDERLEARN_DATA", str(tmp_path / "data"))
    assert omniglot.find() == tmp_path / "data" / "omniglot"
    monkeypatch.setenv("WANDERLEARN_DATA", str(tmp_path / "data" / "omniglot"))
    assert omniglot.find() == tmp_path / "data" / "omniglot"
    assert omniglot.find(small.folder) == small.folder


# Bad input


def test_a_missing_folder_is_named(small: Small, tmp_path: Path) -> None:
    with pytest.raises(WanderError, match=r"absent does not exist.*images_background\.zip"):
        omniglot.get(tmp_path / "absent")
    with pytest.raises(WanderError, match=r"images_background\.zip is not a folder"):
        omniglot.get(small.zip())
    small.zip("images_evaluation").unlink()
    with pytest.raises(WanderError, match=r"small has no images_evaluation\.zip\."):
        omniglot.get(small.folder)


def lose_picture(content: Files) -> None:
    del content["images_background/Angelic/character02/0042_07.png"]


def lose_character(content: Files) -> None:
    for name in [name for name in content if "Angelic/character02" in name]:
        del content[name]


def add_character(content: Files) -> None:
    content["images_background/Greek/character02/0042_01.png"] = png(np.ones((105, 105), bool))


def garble_picture(content: Files) -> None:
    content["images_background/Greek/character01/0042_20.png"] = b"no picture at all"


def cut_picture(content: Files) -> None:
    name = "images_background/Greek/character01/0042_20.png"
    content[name] = content[name][:200]


def resize_picture(content: Files) -> None:
    content["images_background/Greek/character01/0042_03.png"] = png(np.ones((28, 105), bool))


def change_pixel(content: Files) -> None:
    name = "images_background/Angelic/character01/0042_01.png"
    white = np.array(Image.open(io.BytesIO(content[name])))
    white[50, 50] ^= True
    content[name] = png(white)


def swap_pictures(content: Files) -> None:
    one, two = (f"images_background/Angelic/character01/0042_{n}.png" for n in ("01", "02"))
    content[one], content[two] = content[two], content[one]


DAMAGE: dict[Callable[[Files], None], str] = {
    lose_picture: r"Angelic/character02 has 19 drawings instead of 20 \(missing numbers: 07\)",
    lose_character: r"lacks Angelic/character02: 2 characters instead of 3",
    add_character: r"also has Greek/character02: 4 characters instead of 3",
    garble_picture: r"Greek/character01/0042_20\.png is not a readable PNG",
    cut_picture: r"Greek/character01/0042_20\.png is not a readable PNG",
    resize_picture: r"Greek/character01/0042_03\.png is 105x28 instead of 105x105",
    change_pixel: r"not what was published: its MD5 is \w{32} instead of \w{32}.*SHA-256 \w{64} instead of",
    swap_pictures: r"not what was published",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_damaged_archive_is_named_and_nothing_is_kept(
    small: Small, tmp_path: Path, damage: Callable[[Files], None]
) -> None:
    small.rewrite(damage)
    with pytest.raises(WanderError, match=rf"images_background\.zip.*{DAMAGE[damage]}.*[Rr]eplace it"):
        omniglot.get(small.folder)
    assert cached_files(tmp_path) == []


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_damaged_folder_is_named(small: Small, damage: Callable[[Files], None]) -> None:
    small.zip().unlink()
    content = dict(small.content["images_background"])
    damage(content)
    unpack(small.folder, content)
    words = DAMAGE[damage].replace(r"\w{32}", r"\w+", 1)
    with pytest.raises(WanderError, match=rf"images_background.*{words}"):
        omniglot.get(small.folder)


@pytest.mark.parametrize("keep", [0, 1, 30, 1000, 0.5, 0.99, -1])
def test_a_truncated_zip_is_named(small: Small, tmp_path: Path, keep: float) -> None:
    whole = small.zip().read_bytes()
    small.zip().write_bytes(whole[: int(keep * len(whole)) if 0 < keep < 1 else int(keep)])
    with pytest.raises(WanderError, match=r"images_background\.zip is truncated or damaged"):
        omniglot.get(small.folder)
    assert cached_files(tmp_path) == []


@pytest.fixture(scope="module")
def fuzzed(pristine: Small, tmp_path_factory: pytest.TempPathFactory) -> tuple[Small, Path]:
    folder = tmp_path_factory.mktemp("fuzzed")
    shutil.copytree(pristine.folder, folder, dirs_exist_ok=True)
    return pristine, folder


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_any_altered_byte_is_harmless_or_named(fuzzed: tuple[Small, Path], data: st.DataObject) -> None:
    pristine, folder = fuzzed
    content = bytearray(pristine.zip("images_evaluation").read_bytes())
    from_the_end = data.draw(st.integers(1, 4000) | st.integers(1, len(content)))  # the end is the directory
    content[-from_the_end] ^= data.draw(st.integers(1, 255))
    (folder / "images_evaluation.zip").write_bytes(content)
    try:
        read = omniglot._read(folder, pristine.parts[1:])
    except WanderError as error:
        fine = "images_evaluation.zip" in str(error)
    else:
        expected = [shrink_slowly(white) for white in pristine.white["Futurama/character01"]]
        fine = np.array_equal(read[0], expected)
    assert fine


def test_absent_data_says_how_to_get_it(small: Small) -> None:
    with pytest.raises(WanderError, match=r"wander data get omniglot.*--from DIR.*glyphs"):
        omniglot.omniglot("train")


def test_an_unknown_split_is_a_sentence() -> None:
    with pytest.raises(WanderError, match=r"no split 'trian'.*train, val or test"):
        omniglot.omniglot("trian")  # type: ignore[arg-type]


# The download


def test_get_downloads_what_is_nowhere(small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omniglot, "URL", small.folder.as_uri() + "/")
    assert omniglot.get() == tmp_path / "cache" / "omniglot" / "drawings-28.npy"
    np.testing.assert_array_equal(omniglot.drawings(), small.expected())


def test_plain_loading_downloads_only_when_asked(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(omniglot, "URL", small.folder.as_uri() + "/")
    with pytest.raises(WanderError, match="not here"):
        omniglot.drawings()
    np.testing.assert_array_equal(omniglot.drawings(download=True), small.expected())


def test_no_network_is_a_sentence(small: Small, tmp_path: Path) -> None:
    with pytest.raises(WanderError, match=r"Cannot reach .*images_background\.zip.*`--from DIR`"):
        omniglot.get()
    assert cached_files(tmp_path) == []


def test_a_second_call_fetches_only_what_is_missing(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(omniglot, "URL", small.folder.as_uri() + "/")
    asked = []
    transfer = fetch._transfer

    def interrupted(url: str, part: Path) -> bool:
        asked.append(part.stem)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return transfer(url, part)

    monkeypatch.setattr(fetch, "_transfer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        omniglot.get()
    assert cached_files(tmp_path) == ["images_background.zip"]
    omniglot.get()
    assert asked == ["images_background.zip", "images_evaluation.zip", "images_evaluation.zip"]


# The cache


def test_with_a_cache_nothing_else_is_read(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    omniglot.get(small.folder)
    shutil.rmtree(small.folder)
    np.testing.assert_array_equal(omniglot.drawings(), small.expected())


def test_a_named_source_is_checked_even_with_a_cache(small: Small) -> None:
    omniglot.get(small.folder)
    small.rewrite(change_pixel)
    with pytest.raises(WanderError, match="not what was published"):
        omniglot.drawings(small.folder)


@pytest.mark.parametrize("alter", ["cut", "flip", "empty", "no note", "cut note", "remove"])
def test_a_spoiled_cache_is_made_again(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alter: str
) -> None:
    monkeypatch.setenv("WANDERLEARN_DATA", str(small.folder))
    path = omniglot.get()
    note = path.with_suffix(".json")
    whole, whole_note = path.read_bytes(), note.read_bytes()
    match alter:
        case "cut":
            path.write_bytes(whole[:-1])
        case "flip":
            path.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
        case "empty":
            path.write_bytes(b"")
        case "no note":
            note.unlink()
        case "cut note":
            note.write_bytes(whole_note[:20])
        case "remove":
            path.unlink()
    assert not omniglot.status().cached
    np.testing.assert_array_equal(omniglot.drawings(), small.expected())
    assert path.read_bytes() == whole
    assert note.read_bytes() == whole_note


def test_a_cache_that_cannot_be_written_stops_get_but_not_loading(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way of the folder")
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(WanderError, match=r"Cannot write .*drawings-28\.npy.*WANDERLEARN_CACHE"):
        omniglot.get(small.folder)
    np.testing.assert_array_equal(omniglot.drawings(small.folder), small.expected())


def test_ctrl_c_while_the_cache_is_written_leaves_nothing(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:1000])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            omniglot.get(small.folder)
    assert cached_files(tmp_path) == []
    omniglot.get(small.folder)
    assert cached_files(tmp_path) == ["drawings-28.json", "drawings-28.npy"]


def test_ctrl_c_while_reading_leaves_nothing(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Bits:
        raise KeyboardInterrupt

    monkeypatch.setattr(omniglot, "_decode", interrupted)
    with pytest.raises(KeyboardInterrupt):
        omniglot.get(small.folder)
    assert cached_files(tmp_path) == []


def test_status_says_what_is_where(small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert omniglot.status() == (False, None, 0)
    monkeypatch.setenv("WANDERLEARN_DATA", str(small.folder))
    archives = sum(path.stat().st_size for path in small.folder.iterdir())
    assert omniglot.status() == (False, small.folder, archives)
    path = omniglot.get()
    assert omniglot.status() == (True, path, path.stat().st_size)
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "another"))
    small.zip().unlink()
    unpack(small.folder, small.content["images_background"])
    pngs = sum(map(len, small.content["images_background"].values()))
    assert omniglot.status().size == pngs + small.zip("images_evaluation").stat().st_size
