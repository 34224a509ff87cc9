"""Walks through scans: two stages, aligned and recorded, with simulators of our own behind the Protocols."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.rooms.own_simulators import SCAN, OwnSimulators, scanned, to_yaw, ways_of
from tests.rooms.recordings import contents
from wanderlearn.errors import WanderError
from wanderlearn.rooms import CATEGORIES, Camera, Home
from wanderlearn.rooms.annotate import FULL
from wanderlearn.rooms.matterport import (
    LEFT_OUT,
    MatterportConfig,
    is_counted,
    published_scans,
    record_scans,
)
from wanderlearn.rooms.reading import RoomsFile, RoomsFrame, recorded_files
from wanderlearn.rooms.recording import Walked
from wanderlearn.rooms.render import middles
from wanderlearn.rooms.walk import Pose, wander

SMALL = MatterportConfig(frames=30, width=80, height=60, per_file=6, capped=False)
KILLED = replace(SMALL, frames=16, per_file=4)
BLIND = frozenset({3, 4, 17, 30})  # looks of the second camera that show nothing


@pytest.fixture(scope="module")
def own(home: Home) -> OwnSimulators:
    return OwnSimulators(home, blind_at=BLIND)


@pytest.fixture(scope="module")
def recorded(
    own: OwnSimulators, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, list[Walked]]]:
    folder = tmp_path_factory.mktemp("scans") / "train"
    own.looks = 0
    return folder, record_scans([SCAN], folder, SMALL, own)


def history_of(folder: Path) -> tuple[list[dict[str, object]], list[tuple[int, str]]]:
    """Every frame's place in the walk, and which steps were not aligned, as the files tell."""
    frames, unaligned = [], []
    for path in sorted(folder.glob("*sim_history.json")):
        told = json.loads(path.read_text())
        columns = (
            told["walk"]["step"], told["history"]["image_id"], told["history"]["location"],
            told["heading"]["matterport"], told["elevation"]["habitat"],
        )  # fmt: skip
        names = ("step", "viewpoint", "location", "heading", "elevation")
        frames += [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        unaligned += [(step, reason) for step, reason in told["walk"]["unaligned"]]
    return frames, unaligned


def read(folder: Path) -> list[RoomsFrame]:
    return [frame for path in recorded_files(folder) for frame in RoomsFile(path)]


class Paths:
    """The viewpoints of a home as a walk by headings sees them, by another way than the recorder's."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def __len__(self) -> int:
        return len(self.home.viewpoints)

    def ahead(self, here: int, yaw: float, degrees: float) -> list[tuple[int, float]]:
        ways = [way for way in ways_of(self.home, here, yaw) if abs(np.rad2deg(way.turn)) <= degrees]
        return [(int(way.viewpoint.removeprefix("point")), way.distance) for way in ways]


def poses_of(home: Home, config: MatterportConfig) -> list[Pose]:
    seed = int.from_bytes(hashlib.sha256(SCAN.encode()).digest()[:7])
    return list(wander(Paths(home), seed, 0, config.frames, config.walk))


def test_the_walk_is_that_of_the_paper(home: Home, recorded: tuple[Path, dict[str, list[Walked]]]) -> None:
    poses = poses_of(home, SMALL)
    frames, _ = history_of(recorded[0])
    assert len({frame["viewpoint"] for frame in frames}) > 1
    for frame in frames:
        step = frame["step"]
        assert isinstance(step, int)
        pose, before = poses[step], poses[step - 1] if step else poses[0]
        assert frame["viewpoint"] == f"point{pose.viewpoint}"
        assert frame["heading"] == pytest.approx(np.rad2deg(pose.yaw), abs=1e-5)
        assert frame["elevation"] == pytest.approx(np.rad2deg(pose.pitch), abs=1e-5)
        moved = pose.viewpoint != before.viewpoint
        ways = [way.viewpoint for way in ways_of(home, before.viewpoint, before.yaw)]
        assert frame["location"] == (ways.index(f"point{pose.viewpoint}") + 1 if moved else 0)


def test_ids_lie_on_what_the_first_camera_saw(
    home: Home, own: OwnSimulators, recorded: tuple[Path, dict[str, list[Walked]]]
) -> None:
    """Colours are the first camera's; ids, drawn by the second and moved, are the first's own."""
    poses, (history, _) = poses_of(home, SMALL), history_of(recorded[0])
    frames = read(recorded[0])
    agree, unmoved, overlaps = list[float](), list[float](), list[float]()
    for told, frame in zip(history, frames, strict=True):
        step = told["step"]
        assert isinstance(step, int)
        pose = poses[step]
        at = home.viewpoints[pose.viewpoint].position
        drawn = own.first.draw(Camera(0, at, to_yaw(pose.yaw), pose.pitch))
        blocks = drawn.rgb.reshape(60, 5, 80, 5, 3).astype(float).mean((1, 3))
        assert np.abs(frame.rgb - blocks).max() <= 0.5
        truth = middles(drawn.ids, 5)
        _, beside = own_look(own, at, pose)
        inside = (slice(3, -3), slice(3, -3))  # the second camera sees less at the edges
        agree.append(float((frame.ids == truth)[inside].mean()))
        unmoved.append(float((middles(beside, 5) == truth)[inside].mean()))
        for seen in frame.objects:
            mask, true = frame.mask(seen), truth == seen.id
            overlaps.append(float((mask & true).sum() / (mask | true).sum()))
    assert np.mean(agree) > 0.98
    assert min(agree) > 0.95
    assert 1 - np.mean(agree) < 0.5 * (1 - np.mean(unmoved))  # it was worth aligning
    assert np.median(overlaps) > 0.9


def own_look(
    own: OwnSimulators, at: tuple[float, float, float], pose: Pose
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    viewer = own.viewer(SCAN)
    try:
        return viewer.look(at, pose.yaw, pose.pitch)
    finally:
        viewer.close()


def test_what_is_met_follows_the_authors_rules(
    home: Home, recorded: tuple[Path, dict[str, list[Walked]]]
) -> None:
    """Large enough, in the middle 70 percent, of a category that counts, in the region one stands in."""
    things = {thing.id: thing for thing in scanned(home)}
    poses, (history, _) = poses_of(home, SMALL), history_of(recorded[0])
    met = 0
    for told, frame in zip(history, read(recorded[0]), strict=True):
        step = told["step"]
        assert isinstance(step, int)
        at = np.array(home.viewpoints[poses[step].viewpoint].position)
        nearest = min(things.values(), key=lambda t: float(np.linalg.norm(np.array(t.centre) - at)))
        wanted = set()
        for id in set(frame.ids.ravel().tolist()) - {0}:
            rows, columns = np.nonzero(np.kron(frame.ids == id, np.ones((10, 10), bool)))
            y, x = (rows.min() + rows.max()) // 2, (columns.min() + columns.max()) // 2
            middle = 0.15 * FULL[0] <= y <= 0.85 * FULL[0] and 0.15 * FULL[1] <= x <= 0.85 * FULL[1]
            large = (frame.ids == id).sum() >= int(0.004 * frame.ids.size)
            if middle and large and things[id].region == nearest.region and is_counted(things[id].category):
                wanted.add(id)
        assert {seen.id for seen in frame.objects} == wanted
        assert all(seen.viewpoint == told["viewpoint"] for seen in frame.objects)
        assert all(seen.category == things[seen.id].category for seen in frame.objects)
        met += len(wanted)
    assert met > 30


def test_what_cannot_be_aligned_is_counted_and_told(
    recorded: tuple[Path, dict[str, list[Walked]]],
) -> None:
    folder, done = recorded
    (walked,) = done[SCAN]
    frames, unaligned = history_of(folder)
    assert walked.unaligned is not None
    assert walked.unaligned["too few features"] >= 1
    steps = {frame["step"] for frame in frames}
    assert not steps & {step for step, _ in unaligned}
    assert walked.frames == len(frames)
    assert walked.steps == SMALL.frames
    dropped = sum(walked.unaligned.values())
    assert walked.frames + walked.empty + walked.left_out + dropped == walked.steps
    assert Counter(reason for _, reason in unaligned) <= Counter(walked.unaligned)
    told = json.loads((folder / f"episode_000000__scene_{SCAN}__walk.json").read_text())
    assert Walked(**told) == walked


def test_kept_as_by_the_authors_they_are_counted_too(own: OwnSimulators, tmp_path: Path) -> None:
    own.looks = 0
    config = replace(SMALL, frames=6, unaligned="keep", any_room=True, edge=0.0)
    (walked,) = record_scans([SCAN], tmp_path, config, own)[SCAN]
    frames, unaligned = history_of(tmp_path)
    steps = {frame["step"] for frame in frames}
    assert {step for step, reason in unaligned if reason == "too few features"} >= {2, 3}  # looks 3 and 4
    assert {step for step, _ in unaligned} <= steps
    assert walked.unaligned == Counter(reason for _, reason in unaligned)
    assert walked.frames + walked.empty + walked.left_out == walked.steps


def test_a_whole_recording_is_not_touched_again(
    own: OwnSimulators, recorded: tuple[Path, dict[str, list[Walked]]]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in recorded[0].glob("*__*")}
    own.looks = own.photographs = 0
    assert record_scans([SCAN], recorded[0], SMALL, own) == recorded[1]
    assert own.looks == own.photographs == 0
    assert {path: path.stat().st_mtime_ns for path in recorded[0].glob("*__*")} == before


SCRIPT = """
import sys
from pathlib import Path
from tests.rooms.own_simulators import SCAN, OwnSimulators
from tests.rooms.test_matterport import KILLED
from wanderlearn.rooms import build_home
from wanderlearn.rooms.matterport import record_scans
record_scans([SCAN], Path(sys.argv[2]), KILLED, OwnSimulators(build_home(int(sys.argv[1])), dies_at=12))
"""


def test_killed_in_the_middle_it_goes_on_and_ends_the_same(home: Home, tmp_path: Path) -> None:
    """A process that is killed (kill -9) while it retraces leaves whole files, which are gone on from."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p or "." for p in sys.path)}
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(home.seed), str(killed)], env=environment, check=False
    )
    assert process.returncode == -signal.SIGKILL
    files = recorded_files(killed)
    assert files
    assert not list(killed.glob("*__walk.json"))
    times = {path: path.stat().st_mtime_ns for path in files}
    (killed / ".episode_000000__scene_x__imgs.h5.abc.part").write_bytes(b"half a file")
    simulators = OwnSimulators(home)
    goes_on = record_scans([SCAN], killed, KILLED, simulators)
    assert simulators.looks < KILLED.frames  # what is in files is neither photographed nor retraced again
    assert simulators.photographs == simulators.looks
    assert record_scans([SCAN], whole, KILLED, OwnSimulators(home)) == goes_on
    assert contents(killed) == contents(whole)
    assert {path: path.stat().st_mtime_ns for path in files} == times


def test_another_kind_of_recording_is_not_mixed_in(
    own: OwnSimulators, recorded: tuple[Path, dict[str, list[Walked]]]
) -> None:
    with pytest.raises(WanderError, match=r"begun with unaligned drop, and now it is unaligned keep"):
        record_scans([SCAN], recorded[0], replace(SMALL, unaligned="keep"), own)


def test_pictures_of_another_shape_are_refused(own: OwnSimulators, tmp_path: Path) -> None:
    with pytest.raises(WanderError, match=r"400 x 300 cannot be shrunk to 160 x 120"):
        record_scans([SCAN], tmp_path, MatterportConfig(frames=1), own)


def test_the_split_is_the_published_one() -> None:
    """The table of the paper, which is the authors' program's shuffle of the sorted names."""
    train, val, test = (published_scans(split) for split in ("train", "val", "test"))
    assert [len(train), len(val), len(test)] == [60, 10, 20]
    shuffled = sorted(train + val + test)
    assert len(set(shuffled)) == 90
    np.random.RandomState(10).shuffle(shuffled)
    assert shuffled == train + val + test
    with pytest.raises(WanderError, match="no split 'all'"):
        published_scans("all")  # type: ignore[arg-type]


def test_what_the_authors_leave_out_leaves_the_papers_categories() -> None:
    matterport = {
        "void", "wall", "floor", "chair", "door", "table", "picture",
        "cabinet", "cushion", "window", "sofa", "bed", "curtain", "chest_of_drawers",
        "plant", "sink", "stairs", "ceiling", "toilet", "stool", "towel",
        "mirror", "tv_monitor", "shower", "column", "bathtub", "counter", "fireplace",
        "lighting", "beam", "railing", "shelving", "blinds", "gym_equipment", "seating",
        "board_panel", "furniture", "appliances", "clothes", "objects", "misc", "unlabeled",
    }  # fmt: skip
    assert len(LEFT_OUT) == 20
    assert matterport >= LEFT_OUT
    kept = {category for category in matterport if is_counted(category)}
    assert kept == {category.replace(" ", "_") for category in CATEGORIES}
    assert not is_counted("")
    assert not is_counted("Wall")


@pytest.mark.parametrize("wish", [{"frames": 0}, {"walks": 0}, {"edge": 0.5}, {"per_file": 0}])
def test_impossible_wishes_are_refused(wish: dict[str, Any]) -> None:
    with pytest.raises(WanderError, match="must be"):
        replace(SMALL, **wish)
