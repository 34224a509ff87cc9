"""The commands `wander rooms preview` and `wander bench rooms`."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wanderlearn.bench.rooms import bench_rooms
from wanderlearn.cli import main
from wanderlearn.rooms import Home
from wanderlearn.rooms.preview import draw_preview


def test_preview_says_what_is_in_the_home(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    main(["rooms", "preview", "--seed", str(home.seed), "--json", "-"])
    told = json.loads(capsys.readouterr().out)
    assert told["rooms"] == [r.kind for r in home.plan.rooms]
    assert sum(told["things"].values()) == len(home.counted)
    assert len(told["dropped"]) == len(home.dropped)


def test_the_sheet_is_a_picture_with_something_on_it(home: Home, tmp_path: Path) -> None:
    draw_preview(tmp_path / "home.png", home)
    with Image.open(tmp_path / "home.png") as image:
        pixels = np.asarray(image)
    assert pixels.shape[1] > 1000
    assert (pixels.reshape(-1, 3) != 255).any(1).mean() > 0.4


def test_a_wrong_name_is_refused_before_anything_is_built(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["rooms", "preview", "--png", "home.jpg"])
    assert exit_.value.code == 2
    assert "ends in .png" in capsys.readouterr().err


def test_the_benchmark_measures_speed_and_agreement() -> None:
    figures = bench_rooms(seeds=(13,), frames=6, rounds=1, checked=2, size=(64, 48), light=False)
    assert figures["frames_per_second"] > 0
    assert figures["pixels_compared"] == 2 * 64 * 48
    assert figures["id_agreement"] > 0.999
