"""Recordings: what is written is what was drawn, whole files only, the same after a kill."""

import contextlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.rooms.recordings import TINY, contents, record_tiny
from wanderlearn.cli import main
from wanderlearn.errors import WanderError
from wanderlearn.rooms import Home, Renderer, walk
from wanderlearn.rooms import streams as streams_module
from wanderlearn.rooms.annotate import FULL, annotate, tight_box, viewing_order, zoom_boxes
from wanderlearn.rooms.reading import RoomsFile, recorded_files
from wanderlearn.rooms.recorder import record_worlds
from wanderlearn.rooms.recording import RecordConfig, begin, record_world

h5py = streams_module.h5_library()


@pytest.fixture(scope="module")
def recorded(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_tiny(tmp_path_factory.mktemp("recorded"), home)


def test_what_is_read_is_what_was_drawn(home: Home, recorded: Path) -> None:
    """Frames by an independent way: every step drawn again, the rules of what is met applied slowly."""
    renderer = Renderer(home, TINY.width, TINY.height, light=False)
    frames = [frame for path in recorded_files(recorded) for frame in RoomsFile(path)]
    steps = [
        step
        for path in sorted(recorded.glob("*sim_history.json"))
        for step in json.loads(path.read_text())["walk"]["step"]
    ]
    cameras = list(walk(home, 0, TINY.frames))
    assert len(frames) == len(steps) > TINY.per_file
    assert steps == sorted(set(steps))
    for step, frame in zip(steps, frames, strict=True):
        drawn = renderer.draw(cameras[step])
        assert (frame.rgb == drawn.rgb).all()
        assert (frame.ids == drawn.ids).all()
        allowed = _allowed(home, cameras[step].viewpoint, drawn.ids)
        met = [seen.id for seen in frame.objects]
        assert len(met) == len(set(met)) >= 1
        assert set(met) == allowed
        for seen in frame.objects:
            assert (frame.mask(seen) == (drawn.ids == seen.id)).all()
            assert seen.category == home.thing(seen.id).category
            top, bottom, left, right = frame.box(seen)
            inside = frame.mask(seen)[top:bottom, left:right]
            assert inside.sum() == frame.mask(seen).sum()
            assert all(inside[at].any() and inside[:, at].any() for at in (0, -1))
    for step in set(range(TINY.frames)) - set(steps) - set(range(max(steps) + 1, TINY.frames)):
        assert not _allowed(home, cameras[step].viewpoint, renderer.draw(cameras[step]).ids)


def _allowed(home: Home, viewpoint: int, ids: npt.NDArray[np.int32]) -> set[int]:
    """All objects that may be met, pixel by pixel at 600 x 800."""
    full = np.kron(ids, np.ones((FULL[0] // ids.shape[0], FULL[1] // ids.shape[1]), ids.dtype))
    allowed = set()
    for thing in home.counted:
        if thing.room != home.viewpoints[viewpoint].room or (ids == thing.id).sum() < int(0.004 * ids.size):
            continue
        at = np.argwhere(full == thing.id)
        y, x = (at.min(0) + at.max(0)) // 2
        if 0.05 * 600 <= y <= 0.95 * 600 and 0.05 * 800 <= x <= 0.95 * 800:
            allowed.add(thing.id)
    return allowed


def test_the_file_is_as_the_authors_program_reads_it(home: Home, recorded: Path) -> None:
    path = recorded_files(recorded)[0]
    assert str(path).split("_")[-8] == f"home{home.seed:04d}"  # how their loader finds the scene
    frame = RoomsFile(path).frame(0)
    with h5py.File(path) as file:
        stream, lengths = file["matterport_RGB"][:], file["matterport_RGB_len"][:]
        assert stream.dtype == np.uint8
        assert lengths.dtype == np.int64
        assert lengths.sum() == stream.size
        assert len(lengths) == TINY.per_file
        with Image.open(io.BytesIO(stream[: lengths[0]].tobytes())) as image:
            assert (np.asarray(image)[..., ::-1] == frame.rgb).all()  # red and blue changed over
        ids, lengths = file["instance_segmentation"][:], file["instance_segmentation_len"][:]
        with Image.open(io.BytesIO(ids[: lengths[0]].tobytes())) as image:
            assert image.mode == "I;16"
        things = json.loads(file["objects"][()])
    assert [set(t) for t in things] == [
        {"sizes", "center", "id", "category", "region_id", "region_name"}
    ] * len(home.things)
    assert [int(t["id"].split("_")[-1]) for t in things] == [t.id for t in home.things]
    told = json.loads(path.with_name(path.name.replace("imgs.h5", "annotations.json")).read_text())
    assert list(told[0]) == [f"object_{n}" for n in range(len(told[0]))]
    fields = {"instance_id", "category", "region_id", "region_name", "viewpoint", "centroid", "zoom_bboxes"}
    assert all(set(seen) == fields for met in told for seen in met.values())
    assert all(5 <= len(seen["zoom_bboxes"]) <= 9 for met in told for seen in met.values())


def test_wider_rules_only_add_candidates(home: Home) -> None:
    """With no edge and any room, whatever is large enough is met, but for the most of a frame."""
    renderer = Renderer(home, TINY.width, TINY.height, light=False)
    order = viewing_order(home, 0)
    added = 0
    for step, camera in enumerate(walk(home, 0, TINY.frames)):
        ids = renderer.draw(camera).ids
        large = {t.id for t in home.counted if (ids == t.id).sum() >= int(0.004 * ids.size)}
        strict = annotate(home, camera, ids, order, _nine(step), edge=0.15, capped=True)
        found = annotate(home, camera, ids, order, _nine(step), edge=0.0, any_room=True)
        assert {o["instance_id"] for o in found.values()} == large
        found = annotate(home, camera, ids, order, _nine(step), edge=0.0, any_room=True, capped=True)
        wide = [o["instance_id"] for o in found.values()]
        assert set(wide) <= large
        assert len(wide) == min(9, len(large))
        assert len(strict) <= len(wide)
        added += len(wide) - len(strict)
        for o in found.values():
            assert o["region_id"] == f"0_{home.thing(o['instance_id']).room}"
    assert added > 0


def _nine(step: int) -> np.random.Generator:
    """A generator whose first draw allows nine objects."""
    return next(
        np.random.default_rng(seed)
        for seed in range(1000 * step, 1000 * step + 1000)
        if np.random.default_rng(seed).integers(1, 10) == 9
    )


@given(st.data(), st.integers(5, 9))
def test_zooms_grow_from_the_tight_box_inside_the_frame(data: st.DataObject, count: int) -> None:
    top, left = data.draw(st.integers(0, 599)), data.draw(st.integers(0, 799))
    tight = (top, data.draw(st.integers(top, 599)), left, data.draw(st.integers(left, 799)))
    boxes = zoom_boxes(tight, count)
    assert len(boxes) == count
    assert boxes[-1] == tight
    for outer, inner in pairwise(boxes):
        assert 0 <= outer[0] <= inner[0] <= inner[1] <= outer[1] < 600
        assert 0 <= outer[2] <= inner[2] <= inner[3] <= outer[3] < 800


@given(st.lists(st.tuples(st.integers(0, 29), st.integers(0, 39)), min_size=1, max_size=9))
def test_a_tight_box_is_that_of_the_mask_at_full_size(places: list[tuple[int, int]]) -> None:
    mask = np.zeros((30, 40), bool)
    for y, x in places:
        mask[y, x] = True
    rows, columns = np.nonzero(np.kron(mask, np.ones((20, 20), bool)))
    assert tight_box(mask) == (rows.min(), rows.max(), columns.min(), columns.max())


def test_a_whole_recording_is_not_touched_again(recorded: Path, home: Home) -> None:
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in recorded.iterdir()}

    def never(seed: int, config: RecordConfig) -> tuple[Home, Renderer]:
        raise AssertionError("nothing is to be drawn")

    begin(recorded, TINY)
    told: list[int] = []
    record_world(home.seed, recorded, TINY, told.append, world=never)
    assert sum(told) == TINY.frames
    assert {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in recorded.iterdir()} == before


@pytest.mark.parametrize("lost", ["__walk.json", "group_0__v001__imgs.h5", "group_1__v001__imgs.h5"])
def test_what_is_lost_is_recorded_again_the_same(
    home: Home, recorded: Path, tmp_path: Path, lost: str
) -> None:
    for name, data in contents(recorded).items():
        (tmp_path / name).write_bytes(data)
    for path in tmp_path.glob(f"*{lost}"):
        path.unlink()
    record_tiny(tmp_path, home)
    assert contents(tmp_path) == contents(recorded)


SCRIPT = """
import sys
from pathlib import Path
from tests.rooms.recordings import TINY
from wanderlearn.rooms.recorder import record_worlds
if __name__ == "__main__":
    record_worlds([int(sys.argv[1])], Path(sys.argv[2]), TINY, processes=2)
"""


def test_killed_in_the_middle_it_goes_on_and_ends_the_same(
    home: Home, recorded: Path, tmp_path: Path
) -> None:
    """A real process with a worker is killed after its first file; then the recording is taken up again."""
    whole = len(recorded_files(recorded))
    # A machine that stalls at the wrong moment lets it come to its end: then it has to be tried again.
    folder = next(
        tried
        for n in range(5)
        if len(list((tried := _killed(home, tmp_path / f"killed {n}")).glob("*__imgs.h5"))) < whole
    )
    first = sorted(folder.glob("*__imgs.h5"))
    assert first
    times = {path: path.stat().st_mtime_ns for path in first}
    (folder / ".episode_000000__scene_x__imgs.h5.abc.part").write_bytes(b"half a file")
    record_tiny(folder, home)  # by this process: the files do not depend on who writes them
    assert contents(folder) == contents(recorded)
    assert {path: path.stat().st_mtime_ns for path in first} == times
    done = record_worlds([home.seed], folder, TINY, processes=2)
    assert contents(folder) == contents(recorded)
    assert done[home.seed][0].frames == sum(len(RoomsFile(path)) for path in recorded_files(folder))


def _killed(home: Home, folder: Path) -> Path:
    """Record in a process of its own, and kill that as soon as there is a file."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p or "." for p in sys.path)}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(home.seed), str(folder)], env=environment)
    children: list[str] = []
    try:
        while process.poll() is None and not list(folder.glob("*__imgs.h5")):
            time.sleep(0.001)
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    finally:
        process.kill()
        process.wait()
    while any(_lives(child) for child in children):  # a worker whose parent is gone ends by itself
        time.sleep(0.01)
    return folder


def _lives(process: str) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


@pytest.mark.slow
def test_two_homes_by_two_processes_are_those_of_one(home: Home, other: Home, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for each in (home, other):
        record_tiny(one, each)
    done = record_worlds([home.seed, other.seed], two, TINY, processes=2)
    assert list(done) == [home.seed, other.seed]
    assert contents(one) == contents(two)


def test_a_worker_that_cannot_write_is_a_sentence(home: Home, recorded: Path, tmp_path: Path) -> None:
    """What a worker meets is told by the one who asked; nothing half-written stays."""
    begin(tmp_path, TINY)
    (tmp_path / f"episode_000000__scene_home{home.seed:04d}__walk.json").write_text("[]")
    with pytest.raises(WanderError, match=r"does not say what came of a walk\. Remove it"):
        record_worlds([home.seed], tmp_path, TINY, processes=2)


def test_another_kind_of_recording_is_not_mixed_in(recorded: Path, home: Home) -> None:
    with pytest.raises(WanderError, match=r"begun with frames 72, and now it is frames 12.*another folder"):
        record_worlds([home.seed], recorded, replace(TINY, frames=12))
    begin(recorded, replace(TINY, walks=3))  # more of the same is no other kind


def test_two_do_not_record_into_one_folder(recorded: Path, home: Home) -> None:
    import fcntl

    with (recorded / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(WanderError, match="Another process is recording"):
            record_worlds([home.seed], recorded, TINY)


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file may become larger, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_full_disk_is_a_sentence_and_leaves_no_half_file(home: Home, tmp_path: Path) -> None:
    with (
        largest_file(15_000),
        pytest.raises(WanderError, match=r"Cannot write .*__imgs\.h5.*Free some space"),
    ):
        record_tiny(tmp_path, home)
    assert not list(tmp_path.glob("*.h5"))
    assert not list(tmp_path.glob(".*.part"))
    record_tiny(tmp_path, home)  # and when there is room again it goes on
    assert RoomsFile(recorded_files(tmp_path)[0]).frame(0).objects


def test_a_folder_that_cannot_be_made_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SystemExit) as exit_:
        main(["rooms", "record", "--out", str(tmp_path / "file"), "--worlds", "1"])
    assert exit_.value.code == 2
    assert "Cannot make the folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--worlds", "11", "--split", "val"], "between 1 and 10 for the split val, not 11"),
        (["--worlds", "0"], "--worlds must be between 1 and 60"),
        (["--frames", "0"], "frames must be at least 1"),
        (["--processes", "0"], "at least 1 process"),
        (["--seed", "-1"], "--seed must be between"),
        (["--edge", "0.5"], "edge must be from 0"),
    ],
)
def test_impossible_wishes_are_refused(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["rooms", "record", "--out", str(tmp_path / "none"), *words])
    assert exit_.value.code == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_without_h5py_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(WanderError, match=r"wanderlearn\[rooms\]"):
        record_worlds([0], tmp_path / "none", TINY)
    with pytest.raises(WanderError, match="need h5py"):
        streams_module.h5_library()
