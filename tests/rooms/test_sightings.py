"""Recordings as worlds: opened by address, decoded once, shared out by home."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.rooms.recordings import annotations_of, change_annotations, record_tiny
from wanderlearn import WanderError
from wanderlearn.files import cache_dir
from wanderlearn.pictures.address import read_address
from wanderlearn.rooms import Home, RoomsFile, recorded_files
from wanderlearn.rooms import sightings as module
from wanderlearn.rooms.recording import RecordConfig
from wanderlearn.rooms.sightings import Sightings, files_of
from wanderlearn.worlds import open_collection, open_pictures

CONFIG = RecordConfig(frames=40, width=40, height=30, per_file=20, light=False)


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory, home: Home) -> Path:
    folder = tmp_path_factory.mktemp("walks")
    record_tiny(folder / "test", home, CONFIG)
    return folder


def opened(folder: Path, options: str = "") -> Sightings:
    found = open_collection(f"rooms:{folder}{options}", "test")
    assert isinstance(found, Sightings)
    return found


def test_a_collection_is_what_the_files_say(recording: Path) -> None:
    found, row = opened(recording), 0
    assert found.name == f"rooms-{recording.name}"
    for walk, path in enumerate(recorded_files(recording / "test")):
        assert found.first[walk] == row
        for frame in RoomsFile(path):
            for seen in frame.objects:
                name = found.class_names[found.class_of[row]]
                assert name == f"home0060/{seen.category} {seen.id}"
                assert found.family_names[found.family[found.class_of[row]]] == seen.category
                np.testing.assert_array_equal(found.mask(np.array([row]))[0], frame.mask(seen))
                stored = found.frames[found.frame[row]]
                np.testing.assert_array_equal(stored.transpose(1, 2, 0), frame.rgb)
                row += 1
    assert row == len(found.class_of) == found.first[-1]


def test_frames_are_reduced_by_means_of_squares(recording: Path) -> None:
    whole, small = opened(recording), opened(recording, "?size=15")
    assert small.shape == (4, 15, 20)
    squares = whole.frames.reshape(-1, 3, 15, 2, 20, 2).astype(float).mean((3, 5))
    assert np.abs(squares - small.frames).max() <= 0.5
    np.testing.assert_array_equal(small.class_of, whole.class_of)
    assert small.digest != whole.digest
    with pytest.raises(WanderError, match="divides 30"):
        opened(recording, "?size=16")


def test_frames_are_decoded_once(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = opened(recording)

    def never(*_: object) -> None:
        raise AssertionError("decoded again")

    monkeypatch.setattr(module, "RoomsFile", never)
    again = opened(recording)
    assert again.digest == before.digest
    assert isinstance(again.frames, np.memmap)


def test_a_damaged_cache_says_so(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "cache"))
    record_tiny(tmp_path / "walks" / "test", home, CONFIG)
    opened(tmp_path / "walks")
    [masks] = cache_dir().glob("pictures/*/masks.npy")
    masks.write_bytes(masks.read_bytes()[:100])
    with pytest.raises(WanderError, match="Remove that folder"):
        opened(tmp_path / "walks")


def test_a_broken_recording_names_the_file_and_leaves_no_cache(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "cache"))
    record_tiny(tmp_path / "walks" / "test", home, CONFIG)
    path = recorded_files(tmp_path / "walks")[0]
    change_annotations(path, lambda frames: frames[:-1])
    with pytest.raises(WanderError, match=path.name):
        opened(tmp_path / "walks")
    assert not list(cache_dir().glob("pictures/*"))
    annotations_of(path).unlink()
    with pytest.raises(WanderError, match=r"annotations\.json"):
        opened(tmp_path / "walks")


def test_a_changed_recording_is_read_again(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "cache"))
    record_tiny(tmp_path / "walks" / "test", home, CONFIG)
    before = opened(tmp_path / "walks")
    path = recorded_files(tmp_path / "walks")[0]
    change_annotations(path, lambda frames: [{}, *frames[1:]])
    after = opened(tmp_path / "walks")
    assert len(after.class_of) < len(before.class_of)


def test_a_split_that_was_not_recorded_says_how(recording: Path) -> None:
    with pytest.raises(WanderError, match="wander rooms record --split val"):
        open_collection(f"rooms:{recording}", "val")
    with pytest.raises(WanderError, match="There is no split"):
        open_collection(f"rooms:{recording}", "dev")
    with pytest.raises(WanderError, match="not single pictures"):
        open_pictures(f"rooms:{recording}", "test")


def test_homes_are_shared_out_where_the_folders_do_not(tmp_path: Path, recording: Path) -> None:
    source = recorded_files(recording)[0]
    for n in range(18):
        shutil.copy(source, tmp_path / source.name.replace("home0060", f"scan{n:02d}"))
        shutil.copy(
            annotations_of(source), tmp_path / annotations_of(source).name.replace("home0060", f"scan{n:02d}")
        )
    address = read_address(f"rooms:{tmp_path}")
    shares = {split: {p.name for p in files_of(address, split)[0]} for split in ("train", "val", "test")}
    assert {split: len(names) for split, names in shares.items()} == {"train": 12, "val": 2, "test": 4}
    assert len(set.union(*shares.values())) == 18
    other = files_of(read_address(f"rooms:{tmp_path}?seed=1"), "test")[0]
    assert {p.name for p in other} != shares["test"]
    for path in recorded_files(tmp_path)[2:]:
        path.unlink()
    with pytest.raises(WanderError, match="2 homes"):
        files_of(address, "train")
