"""The tables of natural pictures: which results are rows, and that the paper's are of another dataset."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.imagenet import benchmark
from tests.test_table import put
from wanderlearn.cli import main
from wanderlearn.metrics import BINS
from wanderlearn.paper import FORGETTING, METHOD_NAMES, TABLES
from wanderlearn.presets import IMAGENET_PRESETS
from wanderlearn.results import write_result

PLACE = "folder-tiny-imagenet"


def told(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> Any:
    main(["table", *words, "--results", str(folder), "--json", "-"])
    return json.loads(capsys.readouterr().out)


def cells(accuracy: float) -> dict[str, Any]:
    return {
        "appearance": [
            {"first": first, "last": last, "shots": shots, "accuracy": accuracy + shots, "queries": 9}
            for first, last in BINS
            for shots in (1, 3)
        ]
    }


def test_rows_are_of_either_preset_on_whatever_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, "cpm-imagenet-small", 31.0, world=PLACE, preset="cpm-imagenet-small")
    put(tmp_path, "protonet-imagenet-small-semi", 12.0, world="imagenet-tiny", learner="protonet")
    put(tmp_path, "protonet-imagenet-small", 11.0, world=PLACE)
    put(tmp_path, "protonet-imagenet", 15.0, world=PLACE)  # the authors' preset comes first
    table = told(capsys, tmp_path, "imagenet")
    assert not table["warnings"]
    rows = {row["learner"]: row for row in table["rows"]}
    assert rows["cpm"]["supervised"]["ap"] == 31.0
    assert rows["cpm"]["supervised"]["world"] == PLACE
    assert rows["protonet"]["supervised"]["ap"] == 15.0
    assert rows["protonet"]["semi"]["ap"] == 12.0
    assert rows["cpm"]["paper"]["supervised"]["ap"] == 34.43
    assert rows["oml-u-plus"]["paper"] is None  # it has no row in the paper's table
    named = {command.split()[2] for command in table["missing"]}
    assert named <= IMAGENET_PRESETS.keys()
    assert len(named) == 2 * len(METHOD_NAMES) - 3
    assert all("--world imagenet:PATH" in command for command in table["missing"])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"world": "omniglot"}, "its world is 'omniglot'"),
        ({"world": PLACE, "semi": True}, "its semi is True"),
        ({"world": PLACE, "split": "val"}, "its split is 'val'"),
        ({"world": PLACE, "preset": "cpm-imagenet"}, "by the preset cpm-imagenet"),
        ({"world": PLACE, "transductive": "yes"}, "transductive"),
        ({"world": PLACE, "learner": "protonet"}, "its learner is protonet"),
    ],
)
def test_other_results_of_that_name_are_passed_over(
    changes: dict[str, Any], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, "cpm-imagenet-small", **changes)
    table = told(capsys, tmp_path, "imagenet")
    assert says in table["warnings"][0]
    assert all(row["supervised"] is None for row in table["rows"])


def test_rows_on_other_pictures_cannot_be_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, "cpm-imagenet-small", world=PLACE)
    put(tmp_path, "protonet-imagenet-small", world="folder-other", manifest_sha256="9876543210abcdef")
    assert "cannot be compared" in told(capsys, tmp_path, "imagenet")["warnings"][0]


def test_the_papers_are_marked_as_another_datasets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, "cpm-imagenet-small", 31.25, world=PLACE)
    main(["table", "imagenet", "--results", str(tmp_path)])
    shown = capsys.readouterr().out
    assert shown.count("tiered-ImageNet") == len(TABLES["imagenet"]) + 1
    assert shown.count("paper*, tiered-ImageNet") == 3
    assert "another dataset" in shown
    assert "31.25" in shown
    assert PLACE in shown
    assert "What is missing" in shown
    main(["table", "imagenet", "--results", str(tmp_path), "--markdown"])
    shown = capsys.readouterr().out
    assert "AP, paper, tiered-ImageNet" in shown
    assert "Online ProtoNet\\*" in shown
    assert "another dataset" in shown
    main(["table", "omniglot", "--results", str(tmp_path)])
    assert "another dataset" not in capsys.readouterr().out


def test_forgetting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path, "cpm-imagenet-small", world=PLACE)
    result = json.loads(path.read_text())
    result["metrics"]["forgetting"] = cells(40.0)
    write_result(path, result)
    table = told(capsys, tmp_path, "imagenet-forgetting")
    assert table == told(capsys, tmp_path, "imagenet", "--forgetting")
    row = next(
        r for r in table["rows"] if (r["learner"], r["setting"], r["shots"]) == ("cpm", "supervised", 3)
    )
    assert [cell["ours"] for cell in row["cells"]] == [43.0] * len(BINS)
    assert [cell["paper"] for cell in row["cells"]] == list(FORGETTING["imagenet"]["cpm"][3].supervised)
    assert len(table["missing"]) == 5
    main(["table", "imagenet-forgetting", "--results", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "paper, tiered-ImageNet" in shown
    assert "another" in shown


def test_the_sizes_are_filled_in(tmp_path: Path) -> None:
    sizes = benchmark("imagenet_sizes")
    page = tmp_path / "imagenet.md"
    page.write_text(sizes.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    row = {
        "encoder": "32x16", "channels": [16, 32, 64, 128], "million_multiplications": 22.8, "epochs": 2.0,
        "milliseconds_per_picture": 3.5, "validation_ap": 11.04, "validation_accuracy": 29.9,
    }  # fmt: skip
    other = row | {"encoder": "42x8", "validation_ap": 12.345}
    sizes.tables({"rows": [row, other], "seconds": 100.0, "sequences": 40, "world": "mine"}, page)
    lines = [line for line in page.read_text().splitlines() if line.startswith("|") and "16, 32" in line]
    assert "12.3" in lines[-2]
    assert "11.04" in lines[-1]
    assert sizes.encoder_of("42x8").channels == (8, 16, 32, 64)
