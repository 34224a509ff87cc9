"""Where textures come from: drawn ones, folders and archives of photographs, and what is wrong with some."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from tests.context.textures import folder_of, picture_bytes, zip_of
from wanderlearn.errors import WanderError
from wanderlearn.pictures.collection import SPLITS
from wanderlearn.pictures.surfaces import KINDS, SIDE, draw_surface
from wanderlearn.pictures.textures import KYLBERG, PER_CLASS, PROCEDURAL, open_textures


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("WANDERLEARN_DATA", raising=False)


def kylberg() -> dict[str, bytes]:
    names = [name for own in KYLBERG.values() for name in own]
    return {f"{name}-without-rotations/{name}-a-p001.png": picture_bytes(n) for n, name in enumerate(names)}


def named(classes: int) -> dict[str, bytes]:
    return {f"class{c}/{p}.png": picture_bytes(10 * c + p) for c in range(classes) for p in range(2)}


def test_kylberg_is_split_as_in_the_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert {split: len(names) for split, names in KYLBERG.items()} == {"train": 13, "val": 7, "test": 8}
    assert len({name for names in KYLBERG.values() for name in names}) == 28
    place = folder_of(tmp_path / "kylberg", kylberg())
    for split in SPLITS:
        found = open_textures(str(place), split)
        assert tuple(found.class_names) == tuple(sorted(KYLBERG[split]))
        assert found.images.shape[1:] == (1, 256, 256)
    assert "as in the paper" in capsys.readouterr().err


def test_a_zip_and_its_folder_are_the_same(tmp_path: Path) -> None:
    files = {
        f"textures/{split}/kind{n}/{p}.jpg": picture_bytes(9 * p + 40 * n, kind="JPEG")
        for n, split in enumerate(SPLITS)
        for p in range(3)
    }
    folder, archive = folder_of(tmp_path / "a", files), zip_of(tmp_path / "b.zip", files)
    for n, split in enumerate(SPLITS):
        one, other = open_textures(str(folder / "textures"), split), open_textures(str(archive), split)
        assert one.digest == other.digest
        assert list(one.class_names) == [f"kind{n}"]


def test_other_names_are_split_by_a_rule_that_can_be_repeated(tmp_path: Path) -> None:
    one, other = folder_of(tmp_path / "a", named(9)), folder_of(tmp_path / "b", named(9))
    shares = {split: open_textures(str(one), split).class_names for split in SPLITS}
    assert sorted(name for own in shares.values() for name in own) == sorted(f"class{c}" for c in range(9))
    assert all(shares.values())
    assert {split: open_textures(str(other), split).class_names for split in SPLITS} == shares
    seeds = [
        tuple(map(tuple, (open_textures(f"{one}?seed={n}", s).class_names for s in SPLITS))) for n in (1, 2)
    ]
    assert len({tuple(map(tuple, shares.values())), *seeds}) > 1


def test_the_cache_is_used_until_a_file_changes(tmp_path: Path) -> None:
    place = folder_of(tmp_path / "a", named(4))
    before = open_textures(str(place), "train").digest
    kept = sorted((tmp_path / "cache" / "pictures").iterdir())
    assert open_textures(str(place), "train").digest == before
    assert sorted((tmp_path / "cache" / "pictures").iterdir()) == kept
    folder_of(place, {f"class{c}/0.png": picture_bytes(200, 40) for c in range(4)})
    assert open_textures(str(place), "train").digest != before


def test_photographs_are_grey_by_the_mean_and_shrunk_without_antialiasing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 256, (300, 300, 3), dtype=np.uint8)
    for n in range(3):
        (tmp_path / "t" / f"class{n}").mkdir(parents=True)
        Image.fromarray(colour).save(tmp_path / "t" / f"class{n}" / "0.png")
    found = open_textures(str(tmp_path / "t"), "train").images[0, 0]
    mean = torch.from_numpy(colour.astype(np.float64).mean(-1))[None, None]
    expected = F.interpolate(mean, (256, 256), mode="bicubic", align_corners=False)[0, 0].clamp(0, 255)
    assert (expected - torch.from_numpy(found.astype(float))).abs().max() <= 0.5 + 1e-9


def test_broken_files_are_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = {
        "class0/empty.png": b"",
        "class0/text.png": b"not a picture",
        "class1/half.png": picture_bytes(size=200)[:300],
    }
    place = folder_of(tmp_path / "a", named(3) | broken | {"class2/notes.txt": b"hello"})
    assert sum(len(open_textures(str(place), split).images) for split in SPLITS) == 6
    told = capsys.readouterr().err
    assert "could not be read: 3" in told
    assert all(name in told for name in broken)
    archive = zip_of(tmp_path / "a.zip", named(3) | broken)
    assert sum(len(open_textures(str(archive), split).images) for split in SPLITS) == 6


def test_a_damaged_member_of_an_archive_is_left_out(tmp_path: Path) -> None:
    whole = zip_of(tmp_path / "a.zip", named(3))
    data = bytearray(whole.read_bytes())
    at = data.index(b"IHDR")  # inside the first picture: its checksum no longer fits
    data[at + 5] ^= 0xFF
    whole.write_bytes(bytes(data))
    assert sum(len(open_textures(str(whole), split).images) for split in SPLITS) == 5


def test_places_without_textures_are_clear_errors(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(WanderError, match="has no class with pictures"):
        open_textures(str(tmp_path / "empty"), "train")
    hollow = folder_of(tmp_path / "hollow", named(3))
    (hollow / "nothing").mkdir()
    with pytest.raises(WanderError, match="nothing have no pictures"):
        open_textures(str(hollow), "train")
    dead = folder_of(tmp_path / "dead", named(3) | {"class3/0.png": b"no"})
    with pytest.raises(WanderError, match="no picture of the texture class3 can be read"):
        open_textures(str(dead), "train")
    assert not list((tmp_path / "cache" / "pictures").glob(".part*"))
    with pytest.raises(WanderError, match="cannot be shared out"):
        open_textures(str(folder_of(tmp_path / "two", named(2))), "train")
    torn = zip_of(tmp_path / "torn.zip", named(3))
    torn.write_bytes(torn.read_bytes()[:-30])
    with pytest.raises(WanderError, match=r"not a whole \.zip"):
        open_textures(str(torn), "train")
    with pytest.raises(WanderError, match="There are no textures"):
        open_textures(str(tmp_path / "nowhere"), "train")
    with pytest.raises(WanderError, match="no split"):
        open_textures("procedural", "exam")  # type: ignore[arg-type]
    with pytest.raises(WanderError, match="seed of textures"):
        open_textures("procedural?seed=x", "train")


def test_photos_are_found_beside_other_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WanderError, match="--textures procedural"):
        open_textures("photos", "train")
    monkeypatch.setenv("WANDERLEARN_DATA", str(tmp_path / "data"))
    place = folder_of(tmp_path / "data" / "textures", named(5))
    found = open_textures("photos", "train")
    assert found.digest == open_textures(str(place), "train").digest
    shutil.rmtree(place)
    zip_of(tmp_path / "data" / "textures.zip", named(5))
    assert open_textures("photos", "train").digest == found.digest


def test_drawn_textures_differ_by_class_by_picture_and_by_seed() -> None:
    pieces = {(kind, n, p): draw_surface(kind, n, p) for n, kind in enumerate(KINDS) for p in range(2)}
    assert all(piece.shape == (SIDE, SIDE) and piece.std() > 5 for piece in pieces.values())
    assert len({piece.tobytes() for piece in pieces.values()}) == len(pieces)
    assert np.array_equal(draw_surface("cells", 3, 1), draw_surface("cells", 3, 1))
    assert not np.array_equal(draw_surface("cells", 3, 1), draw_surface("cells", 3, 1, seed=1))
    assert not np.array_equal(draw_surface("cells", 3, 1), draw_surface("cells", 12, 1))


def test_drawn_classes_are_as_many_as_kylbergs_and_in_one_split_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(  # the drawing itself is tested above, and takes seconds for all
        "wanderlearn.pictures.textures.draw_surface",
        lambda kind, number, piece, seed: np.full((4, 4), number * 7 + piece, dtype=np.uint8),
    )
    found = {split: open_textures("procedural", split) for split in SPLITS}
    assert {split: textures.classes for split, textures in found.items()} == PROCEDURAL
    names = [name for textures in found.values() for name in textures.class_names]
    assert len(set(names)) == len(names) == 28
    for textures in found.values():
        assert (np.diff(textures.first) == PER_CLASS).all()
    assert len({name.rstrip("0123456789") for name in found["test"].class_names}) == 8
