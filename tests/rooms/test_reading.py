"""The reader of recordings: the authors' variants of the format, and every way a file can be broken."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tests.rooms.recordings import annotations_of, change_annotations
from wanderlearn.errors import WanderError
from wanderlearn.rooms.reading import RoomsFile, recorded_files
from wanderlearn.rooms.streams import decode_colours, decode_ids, encode_colours, encode_ids, h5_library, pack

h5py = h5_library()

SEEN = {
    "instance_id": 7, "category": "chair", "region_id": None, "region_name": None,
    "viewpoint": "f39ed8fd5c4b4a8d", "centroid": [400, 300],
    "zoom_bboxes": [[0, 600, 0, 800], [100, 400, 200, 600], [100, 199, 200, 249]],
}  # fmt: skip


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A file with what the authors' ones have and ours have not: [N, 1] streams, no regions, a full box."""
    folder = tmp_path / "run_2020Y_1M"
    folder.mkdir()
    path = folder / "episode_000012__scene_17DRP5sb8fy__group_2__v003__imgs.h5"
    rgb = np.arange(120 * 160 * 3, dtype=np.uint8).reshape(120, 160, 3)
    ids = np.zeros((120, 160), np.int32)
    ids[20:40, 40:50] = 7
    path.write_bytes(pack([encode_colours(rgb)] * 2, [encode_ids(ids), encode_ids(ids * 0)], []))
    with h5py.File(path, "r+") as file:
        for name in ("matterport_RGB", "instance_segmentation"):
            stream = file[name][:]
            del file[name]
            file.create_dataset(name, data=stream[:, None])
        file.create_dataset("habitat_RGB", data=np.zeros(3, np.uint8))
    annotations_of(path).write_text(json.dumps([{"object_0": SEEN}, {"object_0": SEEN}]))
    return path


def test_the_authors_variants_are_read(theirs: Path) -> None:
    assert recorded_files(theirs.parent.parent) == recorded_files(theirs.parent) == [theirs]
    file = RoomsFile(theirs)
    assert (file.scene, file.group, len(file)) == ("17DRP5sb8fy", 2, 2)
    first, second = file
    assert first.rgb[0, 0].tolist() == [0, 1, 2]
    seen = first.objects[0]
    assert (seen.id, seen.category, seen.region, seen.box) == (7, "chair", "", (100, 199, 200, 249))
    assert first.box(seen) == (20, 40, 40, 50)
    assert (first.mask(seen) == (first.ids == 7)).all()
    assert not (second.ids == 7).any()
    assert (second.mask(seen) == first.mask(seen)).all()  # lost in the ids: its box
    assert not first.black


def test_only_the_scenes_asked_for(theirs: Path) -> None:
    assert recorded_files(theirs.parent, {"17DRP5sb8fy", "other"}) == [theirs]
    with pytest.raises(WanderError, match=r"No file in .* scenes asked for"):
        recorded_files(theirs.parent, {"other"})


@given(npst.arrays(np.uint8, (5, 7, 3)), npst.arrays(np.int32, (5, 7), elements=st.integers(0, 65534)))
def test_pictures_come_back_as_they_were(rgb: npt.NDArray[np.uint8], ids: npt.NDArray[np.int32]) -> None:
    assert (decode_colours(encode_colours(rgb)) == rgb).all()
    assert (decode_ids(encode_ids(ids)) == ids).all()


def test_ids_of_more_than_16_bits_are_refused() -> None:
    with pytest.raises(WanderError, match="65534"):
        encode_ids(np.array([[70_000]], np.int32))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:2000])


def _without(name: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with h5py.File(path, "r+") as file:
            del file[name]

    return change


def _with(name: str, value: Any) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with h5py.File(path, "r+") as file:
            before = file[name][()]
            del file[name]
            file.create_dataset(name, data=value(before) if callable(value) else value)

    return change


def _frames(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    return lambda path: change_annotations(path, change)


def _object(**fields: Any) -> Callable[[Path], None]:
    return _frames(lambda frames: [{"object_0": SEEN | fields}, *frames[1:]])


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (_cut, "cannot be read as an h5 file"),
        (lambda p: p.write_bytes(b""), "cannot be read as an h5 file"),
        (Path.unlink, "cannot be read as an h5 file"),
        (lambda p: annotations_of(p).unlink(), r"has no episode.*__annotations\.json beside it"),
        (lambda p: annotations_of(p).write_text("[{"), "not valid JSON"),
        (_without("instance_segmentation"), "has no 'instance_segmentation'"),
        (_without("matterport_RGB_len"), "has no 'matterport_RGB_len'"),
        (_with("matterport_RGB_len", lambda lengths: lengths + 1), "do not add up"),
        (_with("matterport_RGB_len", lambda lengths: lengths * [0, 2]), "do not add up"),
        (_with("matterport_RGB", lambda stream: stream[:-1]), "do not add up"),
        (_with("matterport_RGB", lambda stream: stream.astype(np.int32)), "not uint8"),
        (_with("objects", np.bytes_(b"[{")), "list of objects in .* is not JSON"),
        (_frames(lambda frames: frames[:1]), "2 pictures, 2 pictures of ids, 1 lists"),
        (_frames(lambda frames: {"frames": frames}), "not a list of frames"),
        (_frames(lambda frames: [[], frames[1]]), "Frame 0 of .* not an object of JSON"),
        (_frames(lambda frames: [{"object_0": {}}, {}]), "'instance_id' is missing"),
        (_frames(lambda frames: [{"thing": SEEN}, {}]), "Frame 0 of .* cannot be understood"),
        (_object(instance_id="7"), "instance_id is '7'"),
        (_object(category=""), "category is ''"),
        (_object(zoom_bboxes=[]), "no zoom_bboxes"),
        (_object(zoom_bboxes=[[1, 2, 3]]), "not four whole numbers"),
        (_object(zoom_bboxes=[[0, 601, 0, 800]]), "not inside 600 x 800"),
        (_object(zoom_bboxes=[[50, 40, 0, 800]]), "not inside 600 x 800"),
    ],
)
def test_a_broken_file_is_a_sentence(theirs: Path, harm: Callable[[Path], None], sentence: str) -> None:
    harm(theirs)
    with pytest.raises(WanderError, match=sentence):
        RoomsFile(theirs)


def _flip(name: str, at: int) -> Callable[[Path], None]:
    def flipped(stream: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        stream[at] ^= 255
        return stream

    return _with(name, flipped)


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (_flip("matterport_RGB", 0), "Picture 0 of matterport_RGB .* broken: it is no PNG"),
        (_flip("matterport_RGB", 200), "Picture 0 of matterport_RGB .* broken"),
        (_flip("instance_segmentation", 60), "Picture 0 of instance_segmentation .* broken"),
    ],
)
def test_a_broken_picture_is_a_sentence(theirs: Path, harm: Callable[[Path], None], sentence: str) -> None:
    harm(theirs)
    file = RoomsFile(theirs)
    with pytest.raises(WanderError, match=sentence):
        file.frame(0)
    assert file.frame(1).objects


def test_pictures_and_ids_of_two_sizes_are_a_sentence(theirs: Path) -> None:
    small = np.zeros((60, 80, 3), np.uint8)
    ids = np.zeros((120, 160), np.int32)
    theirs.write_bytes(pack([encode_colours(small)] * 2, [encode_ids(ids)] * 2, []))
    with pytest.raises(WanderError, match=r"Frame 1 .* 60 x 80, its ids are 120 x 160"):
        RoomsFile(theirs).frame(1)
    theirs.write_bytes(pack([encode_ids(ids)] * 2, [encode_colours(small)] * 2, []))
    with pytest.raises(WanderError, match="no three colours"):
        RoomsFile(theirs).frame(0)
    with pytest.raises(WanderError, match="frames 0 to 1"):
        RoomsFile(theirs).frame(2)


def test_no_recording_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(WanderError, match="There is no folder"):
        recorded_files(tmp_path / "none")
    with pytest.raises(WanderError, match="No recording of rooms"):
        recorded_files(tmp_path)
    (tmp_path / "holiday__imgs.h5").write_bytes(b"")
    with pytest.raises(WanderError, match="not named as a file of a recording"):
        RoomsFile(recorded_files(tmp_path)[0])
