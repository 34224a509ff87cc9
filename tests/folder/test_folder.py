"""A folder of pictures as a world: layouts, splits, what is left out, and the cache."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.folder.trees import encoded, picture, three_splits, tree
from wanderlearn.errors import WanderError
from wanderlearn.files import read_json
from wanderlearn.pictures import kept
from wanderlearn.pictures.address import Address, PlaceOptions, read_address
from wanderlearn.pictures.collection import SPLITS, Pictures, Split
from wanderlearn.pictures.folder import folder
from wanderlearn.worlds import Roaming, RoamingConfig, open_pictures, open_world


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pictures"


def opened(root: Path, split: Split = "train", **options: object) -> Pictures:
    return folder(Address("folder", str(root), PlaceOptions(**({"size": 8} | options))), split)  # type: ignore[arg-type]


def classes_of(pictures: Pictures) -> dict[str, str]:
    return {
        name: pictures.family_names[f]
        for name, f in zip(pictures.class_names, pictures.family.tolist(), strict=True)
    }


def test_folders_of_splits_families_and_classes(tmp_path: Path) -> None:
    root = three_splits(tmp_path / "pictures")
    for split in SPLITS:
        found = opened(root, split)
        assert found.images.shape == (30, 3, 8, 8)
        assert isinstance(found.images, np.memmap)
        assert found.family_names == [f"{split}family0", f"{split}family1"]
        assert found.class_names[0] == f"{split}family0/class0"
        assert found.name == "folder-pictures"
        Roaming(found, RoamingConfig(per_class=1, classes=10, occlusion=0))


def test_every_picture_is_in_the_row_of_its_class(tmp_path: Path) -> None:
    root = three_splits(tmp_path / "pictures", pictures=2)
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("class*"))
    colour = {}
    for name in names:
        with Image.open(root / name / "0.png") as image:
            colour[name] = np.asarray(image).reshape(-1, 3).mean(0)
    for split in SPLITS:
        found = opened(root, split, size=12)
        for c, name in enumerate(found.class_names):
            for row in range(found.first[c], found.first[c + 1]):
                assert np.abs(found.images[row].mean((1, 2)) - colour[f"{split}/{name}"]).max() < 5


def test_families_without_splits_are_shared_out_whole(tmp_path: Path) -> None:
    root = tree(tmp_path / "x", [f"family{f}/class{c}" for f in range(10) for c in range(2)], 1)
    splits = {split: opened(root, split) for split in SPLITS}
    assert [splits[s].families for s in SPLITS] == [6, 2, 2]
    assert len({name for s in SPLITS for name in splits[s].family_names}) == 10


def test_classes_of_few_families_are_shared_out(tmp_path: Path) -> None:
    root = tree(tmp_path / "x", [f"family{f}/class{c}" for f in range(2) for c in range(10)], 1)
    splits = {split: opened(root, split) for split in SPLITS}
    assert [splits[s].classes for s in SPLITS] == [12, 4, 4]
    assert all(splits[s].family_names == ["family0", "family1"] for s in SPLITS)


def test_classes_without_families_get_families_by_chance_and_it_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cache: Path
) -> None:
    root = tree(tmp_path / "x", [f"class{c:02}" for c in range(50)], 1)
    splits = {split: opened(root, split) for split in SPLITS}
    said = capsys.readouterr().err
    assert said.count("by chance") == 2
    assert "60 % train, 20 % val, 20 % test (seed 0)" in said
    assert [splits[s].classes for s in SPLITS] == [30, 10, 10]
    assert [splits[s].families for s in SPLITS] == [6, 2, 2]
    for found in splits.values():
        assert np.bincount(found.family).min() >= 5
    manifest = read_json(next(cache.glob("*/manifest.json")))
    assert manifest["rules"]["splits"] == {
        "rule": "classes", "seed": 0, "parts": {"train": 0.6, "val": 0.2, "test": 0.2}
    }  # fmt: skip
    assert manifest["rules"]["families"]["rule"] == "chance"
    again = {split: opened(root, split, seed=1) for split in SPLITS}
    assert set(again["test"].class_names) != set(splits["test"].class_names)


@given(st.integers(3, 60), st.integers(0, 5))
def test_a_class_is_in_one_split_only(count: int, seed: int) -> None:
    from wanderlearn.pictures.shares import share_out
    from wanderlearn.pictures.tree import Group

    groups = [Group(None, None, f"class{c}", ("a",)) for c in range(count)]
    shares = share_out(groups, [1] * count, Address("folder", "x", PlaceOptions(seed=seed)))
    placed = [each.name for split in SPLITS for each in shares.classes[split]]
    assert sorted(placed) == sorted(group.name for group in groups)
    assert all(shares.classes.values())
    other = share_out(groups[::-1], [1] * count, Address("folder", "x", PlaceOptions(seed=seed)))
    for split in SPLITS:  # the order in which folders are found does not matter
        assert [(e.name, e.family) for e in shares.classes[split]] == [
            (e.name, e.family) for e in other.classes[split]
        ]


def test_images_in_a_folder_of_their_own_are_no_family(tmp_path: Path) -> None:
    root = tree(tmp_path / "x", [f"class{c}/images" for c in range(10)], 1)
    assert sorted(opened(root).class_names)[0].startswith("class")
    assert opened(root).classes == 6


def test_everything_odd_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    root = three_splits(tmp_path / "my pictures")
    odd = root / "train" / "trainfamily0" / "ein schöner Name ☃"
    odd.mkdir()
    (odd / "good one.png").write_bytes(encoded(picture(1)))
    (odd / "deep.png").write_bytes(encoded(Image.fromarray(np.full((9, 9), 40000, np.uint16))))
    (odd / "cmyk.jpg").write_bytes(encoded(Image.new("CMYK", (9, 9)), "JPEG"))
    (odd / "film.gif").write_bytes(
        encoded(picture(2), "GIF", save_all=True, append_images=[picture(3), picture(4)])
    )
    (odd / "corrupt.jpg").write_bytes(encoded(picture(5, (64, 64)), "JPEG")[:300])
    (odd / "empty.jpg").touch()
    (odd / "words.jpeg").write_text("not a picture")
    (odd / "notes.txt").write_text("not a picture")
    (odd / ".hidden.png").write_text("what a file manager leaves")
    (odd / "gone.png").symlink_to(tmp_path / "nowhere.png")
    (odd / "loop").symlink_to(root / "train")
    (root / "train" / "around").symlink_to(root / "train")
    lonely = root / "train" / "trainfamily1" / "one"
    lonely.mkdir()
    (lonely / "only.PNG").write_bytes(encoded(picture(6)))
    found = opened(root)
    sizes = dict(zip(found.class_names, np.diff(found.first).tolist(), strict=True))
    assert sizes["trainfamily0/ein schöner Name ☃"] == 4
    assert sizes["trainfamily1/one"] == 1
    assert len(found.images) == 30 + 4 + 1
    said = capsys.readouterr().err
    assert "could not be read: 3" in said
    assert "corrupt.jpg: " in said
    assert "empty.jpg: the file is empty" in said
    assert "words.jpeg: not a picture of a known kind" in said
    manifest = read_json(next(cache.glob("*/manifest.json")))
    assert {Path(name).name for name in manifest["unreadable"]} == {"corrupt.jpg", "empty.jpg", "words.jpeg"}
    assert {Path(name).name for name in manifest["passed_over"]} == {
        "notes.txt", "gone.png", "loop", "around"
    }  # fmt: skip
    assert (found.images[found.first[-1] - 1] != 0).any()  # the broken rows are gone, not black


def test_the_same_good_pictures_are_the_same_world_without_the_broken_ones(tmp_path: Path) -> None:
    clean, messy = three_splits(tmp_path / "a" / "x"), three_splits(tmp_path / "b" / "x")
    for n, where in enumerate(("train/trainfamily0/class0", "train/trainfamily1/class4")):
        (messy / where / f"0{n}.png").write_bytes(b"broken")
    assert opened(clean).digest == opened(messy).digest


def test_a_class_with_too_few_pictures_says_what_helps(tmp_path: Path) -> None:
    root = three_splits(tmp_path / "x", pictures=6)
    for n in range(1, 6):
        (root / "train/trainfamily0/class0" / f"{n}.png").unlink()
    config = RoamingConfig(classes=10, occlusion=0)
    with pytest.raises(WanderError, match=r"'trainfamily0/class0' has 1 pictures.*--roaming\.per-class 1"):
        open_world(f"folder:{root}?size=8", "train", config)
    small = opened(root, least=2)
    assert small.classes == 9
    Roaming(small, RoamingConfig(environments=4, classes=8))


def test_an_empty_class_is_an_error_and_can_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = three_splits(tmp_path / "x")
    (root / "train/trainfamily0/nothing").mkdir()
    (root / "val/no classes").mkdir()
    with pytest.raises(WanderError, match=r"2 of 32 classes.*trainfamily0/nothing.*least=1"):
        opened(root)
    broken = root / "train/trainfamily0/nothing" / "broken.png"
    broken.write_bytes(b"broken")
    (root / "val/no classes").rmdir()
    with pytest.raises(WanderError, match=r"1 classes.*trainfamily0/nothing.*least=1"):
        opened(root)
    assert opened(root, least=1).classes == 10
    assert "left out" in capsys.readouterr().err


def test_a_class_that_loses_too_many_is_left_out_with_its_pictures(tmp_path: Path) -> None:
    root, other = three_splits(tmp_path / "a" / "x"), three_splits(tmp_path / "b" / "x")
    (root / "train/trainfamily0/class2/1.png").write_bytes(b"broken")
    shutil.rmtree(other / "train/trainfamily0/class2")
    assert opened(root, least=3).digest == opened(other, least=3).digest


def test_too_few_classes_say_how_many_are_needed_and_what_fits(tmp_path: Path) -> None:
    root = three_splits(tmp_path / "x", families=3, classes=3, pictures=6)
    with pytest.raises(WanderError) as error:
        open_world(f"folder:{root}?size=8", "train", RoamingConfig(occlusion=0))
    said = str(error.value)
    assert "has 3 classes" in said
    assert "5 environments" in said
    assert "?size=8,merge=5'" in said
    assert "--roaming.environments 3 --roaming.classes 9" in said
    fits = RoamingConfig(environments=3, classes=9, occlusion=0)
    assert len(open_world(f"folder:{root}?size=8", "train", fits).meetings(0, 0)) > 0
    merged = opened(root, merge=5)
    assert np.bincount(merged.family).min() >= 5


def test_one_class_is_too_little_for_a_test(tmp_path: Path) -> None:
    root = tree(tmp_path / "x", ["only"], 3)
    with pytest.raises(WanderError, match="no pictures for the split test, only for train"):
        opened(root, "test")


@pytest.mark.parametrize(
    ("made", "problem"),
    [([], "no class with pictures"), (["a.png"], "no class with pictures")],
)
def test_a_folder_without_classes(tmp_path: Path, made: list[str], problem: str) -> None:
    for name in made:
        (tmp_path / name).write_bytes(encoded(picture(0)))
    (tmp_path / "cache").mkdir()
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(WanderError, match=problem):
        opened(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WanderError, match="does not exist"):
        opened(tmp_path / "nowhere")


def test_classes_in_two_splits_are_pointed_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tree(tmp_path / "x", [f"{s}/class{c}" for s in ("train", "validation") for c in range(5)], 1)
    assert opened(root, "val").classes == 5
    assert "5 classes are in more than one split, such as class0" in capsys.readouterr().err
    with pytest.raises(WanderError, match="no pictures for the split test"):
        opened(root, "test")


def test_the_cache_is_used_and_follows_changes(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = three_splits(tmp_path / "x")
    first = opened(root).digest
    with monkeypatch.context() as patch:
        patch.setattr("wanderlearn.pictures.folder.decode_files", None)  # not called again
        assert opened(root).digest == first
        assert opened(root, "val").classes == 10
    assert len(list(cache.iterdir())) == 1
    (root / "train/trainfamily0/class0/0.png").write_bytes(encoded(picture(77_000)))
    second = opened(root).digest
    assert second != first
    assert len(list(cache.iterdir())) == 2
    assert opened(root, size=9).images.shape[2:] == (9, 9)
    assert opened(root, channels=1).images.shape[1] == 1
    assert len(list(cache.iterdir())) == 4


def test_the_manifest_s_digest_is_of_the_files_contents(tmp_path: Path, cache: Path) -> None:
    one, other = three_splits(tmp_path / "a" / "x"), three_splits(tmp_path / "b" / "x")
    os.utime(other / "train/trainfamily0/class0/0.png", ns=(1, 1))
    opened(one), opened(other)
    manifests = [read_json(path) for path in cache.glob("*/manifest.json")]
    assert len(manifests) == 2
    assert manifests[0]["content_sha256"] == manifests[1]["content_sha256"]
    assert manifests[0]["key"] != manifests[1]["key"]


def test_a_damaged_cache_is_not_used(tmp_path: Path, cache: Path) -> None:
    root = three_splits(tmp_path / "x")
    opened(root)
    path = next(cache.glob("*/train.npy"))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(WanderError, match="damaged"):
        opened(root)


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = three_splits(tmp_path / "x")
    (tmp_path / "file").touch()
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "file"))
    with pytest.raises(WanderError, match="WANDERLEARN_CACHE"):
        opened(root)


def test_an_error_in_the_middle_leaves_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = three_splits(tmp_path / "x")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kept, "write_json", stop)
        with pytest.raises(KeyboardInterrupt):
            opened(root)
    assert list(cache.iterdir()) == []
    assert opened(root).classes == 10


def test_killed_in_the_middle_it_starts_over(tmp_path: Path, cache: Path) -> None:
    root = three_splits(tmp_path / "x")
    script = (
        "import sys, time\n"
        "from wanderlearn.pictures import folder as module\n"
        "from wanderlearn.pictures.address import read_address\n"
        "def slow(*args):\n"
        "    print('decoding', flush=True)\n"
        "    time.sleep(600)\n"
        "module.decode_files = slow\n"
        "module.folder(read_address(sys.argv[1]), 'train')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, f"folder:{root}?size=8"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "decoding\n"
        left = list(cache.iterdir())
        assert len(left) == 1
        assert opened(root, size=9).classes == 10  # another process does not touch what is being made
        assert left[0].exists()
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert left[0].exists()
    assert opened(root).classes == 10
    assert not left[0].exists()  # and what was left behind is gone


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / f"{n}.png").write_bytes(encoded(picture(n)))
    script = (
        "import sys, time\n"
        "from wanderlearn.workers import worker\n"
        "with worker('wanderlearn.pictures.decode') as process:\n"
        "    print(process.pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        worker = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
    for _ in range(600):
        try:
            os.kill(worker, 0)
            if Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        time.sleep(0.1)
    raise AssertionError("the worker lives on")


def test_addresses_are_read_back() -> None:
    for text in (
        "folder:a b/c", "folder:x?size=32", "folder:x?size=32,channels=1,crop=pad,least=0", "features:v.npy"
    ):  # fmt: skip
        assert str(read_address(text)) == text
    assert read_address("folder:x?size=32&channels=1") == read_address("folder:x?size=32,channels=1")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("folder:", "names no place"),
        ("folder:x?colour=1", "no option 'colour'"),
        ("folder:x?size=big", "whole number"),
        ("folder:x?size=2", "from 4"),
        ("folder:x?channels=2", "1 .grey. or 3"),
        ("folder:x?crop=left", "center, squash, pad"),
        ("folder:x?least=-1", "from 0 on"),
    ],
)
def test_bad_addresses(text: str, problem: str) -> None:
    with pytest.raises(WanderError, match=problem):
        open_pictures(text, "train")


def test_a_question_mark_may_be_part_of_a_name(tmp_path: Path) -> None:
    root = three_splits(tmp_path / "what?")
    assert open_pictures(f"folder:{root}", "train").images.shape[2:] == (64, 64)
    assert open_pictures(f"folder:{root}?size=8", "train").images.shape[2:] == (8, 8)


def test_an_unknown_world_names_the_places() -> None:
    with pytest.raises(WanderError, match="folder:PATH"):
        open_pictures("narnia", "train")


def test_a_manifest_of_the_cache_is_plain_json(tmp_path: Path, cache: Path) -> None:
    opened(three_splits(tmp_path / "x"))
    told = json.loads(next(cache.glob("*/manifest.json")).read_text())
    assert told["splits"]["train"]["pictures"] == 30
    assert told["splits"]["train"]["classes"][0] == ["trainfamily0/class0", "trainfamily0", 3]
    assert told["layout"] == "family"
