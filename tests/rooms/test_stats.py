"""The statistics of a recording, against counts by hand and by a slow way."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.rooms.recordings import record_tiny
from wanderlearn.cli import main
from wanderlearn.paper import ROOMS_STATISTICS
from wanderlearn.rooms import Home
from wanderlearn.rooms.reading import RoomsFile, Seen, recorded_files
from wanderlearn.rooms.stats import count_rooms, rooms_statistics


def seen(id: int, viewpoint: str = "a", category: str = "chair") -> Seen:
    return Seen(id, category, "0_0", "kitchen", viewpoint, ((0, 1, 0, 1),))


def test_a_walk_counted_by_hand() -> None:
    """Pictures of one object each: 1 1 2 1 3, then another file of the same scene with 1."""
    first: list[tuple[Seen, ...]] = [
        (seen(1),),
        (seen(1),),
        (seen(2, "b", "bed"),),
        (seen(1, "b"),),
        (seen(3, "b"),),
    ]
    numbers = count_rooms([("x", first), ("x", [(seen(1),)])])
    assert [numbers[n] for n in ("worlds", "files", "frames", "meetings", "instances", "categories")] == [
        1, 2, 6, 6, 3, 2,
    ]  # fmt: skip
    for name in ("same_next", "same_next_one_object", "same_next_picture"):
        assert numbers[name] == pytest.approx(25)  # one of four nexts
    assert numbers["met_again"] == pytest.approx(100 * 2 / 6)
    assert {name: n for name, n in numbers["waits"].items() if n} == {"1": 1, "2": 1, "not again": 4}
    assert numbers["instances_of_category"] == {"chair": 2, "bed": 1}
    assert numbers["meetings_of_category"] == {"chair": 5, "bed": 1}
    assert numbers["meetings_per_instance"]["falling"] == [4, 1, 1]
    assert numbers["meetings_per_viewpoint"]["falling"] == [3, 3]
    assert numbers["objects_per_frame"] == 1
    assert numbers["viewpoints_per_100"] is None  # too few meetings


def test_viewpoints_are_counted_in_hundreds_of_meetings() -> None:
    pictures = [tuple(seen(id, str(n // 5)) for id in range(10)) for n in range(25)]  # 250 meetings
    assert count_rooms([("x", pictures)])["viewpoints_per_100"] == 2


def test_the_same_instance_next_has_three_readings() -> None:
    """The same four objects in every picture."""
    numbers = count_rooms([("x", [tuple(seen(id) for id in range(4))] * 3000)])
    assert numbers["same_next_picture"] == 100
    assert numbers["same_next_one_object"] == pytest.approx(25, abs=4)
    assert numbers["same_next"] == pytest.approx(25 / 4, abs=1.5)  # only where one picture follows another
    assert numbers == count_rooms([("x", [tuple(seen(id) for id in range(4))] * 3000)])


@given(st.lists(st.sets(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=12))
def test_sums_agree(walk: list[set[int]]) -> None:
    numbers = count_rooms([("x", [tuple(seen(id) for id in sorted(met)) for met in walk])])
    meetings = sum(map(len, walk))
    assert numbers["meetings"] == meetings == sum(numbers["waits"].values())
    assert sum(numbers["frames_by_objects"].values()) == len(walk)
    assert sum(int(n) * c for n, c in numbers["frames_by_objects"].items()) == meetings
    assert numbers["waits"]["not again"] == len(set.union(*walk)) == numbers["instances"]
    pairs = [(id, after) for met, after in pairwise(walk) for id in met]
    if pairs:
        share = sum(id in after for id, after in pairs) / len(pairs)
        assert numbers["same_next_picture"] == pytest.approx(100 * share)
    else:
        assert numbers["same_next_picture"] is None


def test_the_command_counts_a_recording_and_draws_it(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record_tiny(tmp_path / "val", home)
    main(["rooms", "stats", str(tmp_path), "--json", "-", "--png", str(tmp_path / "s.png")])
    told = json.loads(capsys.readouterr().out)
    frames = [frame for path in recorded_files(tmp_path) for frame in RoomsFile(path)]
    assert told["frames"] == len(frames)
    assert told["meetings"] == sum(len(frame.objects) for frame in frames)
    assert told["instances"] == len({s.id for frame in frames for s in frame.objects})
    assert told["paper"] == ROOMS_STATISTICS
    with Image.open(tmp_path / "s.png") as image:
        assert image.width > 1000
    main(["rooms", "stats", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "paper (Matterport3D)" in shown
    assert f"{told['meetings']}" in shown
    assert rooms_statistics(tmp_path) == rooms_statistics(tmp_path)


def test_bad_wishes_are_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--png", "s.jpg"], []):
        with pytest.raises(SystemExit) as exit_:
            main(["rooms", "stats", str(tmp_path), *words])
        assert exit_.value.code == 2
    told = capsys.readouterr().err
    assert "s.jpg" in told
    assert "No recording of rooms" in told
