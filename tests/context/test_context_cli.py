"""The command line: sample with textures, train and evaluate in a condition, the figure, the benchmark."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.context.textures import tiny_textures
from wanderlearn.cli import main
from wanderlearn.errors import WanderError
from wanderlearn.figures.context import Cell, draw_context, effects, missing_cells, read_cells
from wanderlearn.presets.context import CONDITIONS, CONTEXT_LEARNERS, context_name

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "context.py"


@pytest.fixture
def textures(tmp_path: Path) -> Path:
    """A folder of photographs, so small that nothing has to be drawn."""
    for split in ("train", "val", "test"):
        found = tiny_textures()
        for row, image in enumerate(found.images):
            name = tmp_path / "textures" / split / f"kind{found.class_of[row]}" / f"{row}.png"
            name.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image[0]).save(name)
    return tmp_path / "textures"


def test_sample_shows_textures(tmp_path: Path, textures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    colours = {}
    for how in ("none", "channel", "overlay"):
        picture, manifest = tmp_path / f"{how}.png", tmp_path / f"{how}.npz"
        words = ["--count", "2", "--drawn", "1", "--png", str(picture), "--manifest", str(manifest)]
        words += ["--background", how, *(["--textures", str(textures)] if how != "none" else [])]
        main(["sample", "glyphs", "--semi", *words])
        with Image.open(picture) as sheet:
            colours[how] = len(sheet.convert("L").histogram()) - sheet.convert("L").histogram().count(0)
    assert colours["channel"] > 100
    assert colours["overlay"] > 100
    assert "environment change rate" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["sample", "glyphs", "--textures", str(textures)])
    assert "nothing does" in capsys.readouterr().err


def test_train_and_evaluate_in_a_condition(
    tmp_path: Path, textures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = ["--train.steps", "2", "--train.batch-size", "1", "--train.validate-sequences", "1"]
    tiny += ["--train.validate-every", "2", "--train.workers", "0", "--train.threads", "1"]
    small = ["--model.encoder.picture.channels", "4", "--model.learner.features", "8"]
    runs = ["--runs", str(tmp_path)]
    main(["train", "protonet-context-spatial-glyphs", *tiny, *small, *runs, "--textures", str(textures)])
    run = tmp_path / "protonet-context-spatial-glyphs"
    main(["evaluate", str(run), "--shuffle", "--sequences", "2", "--json", str(tmp_path / "r.json")])
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["shuffle"]
    assert result["background"]["how"] == "channel"
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["evaluate", str(run), "--background", "none", "--sequences", "2"])
    assert "--background channel" in capsys.readouterr().err


def write_cell(folder: Path, learner: str, condition: str, ap: float, **changes: Any) -> None:
    spatial, temporal = CONDITIONS[condition]
    result = {
        "format": 1,
        "kind": "evaluation",
        "shuffle": not temporal,
        "sequences": 20,
        "train": {"seconds": 120.0},
        "metrics": {"ap": ap, "ap_interval": {"low": ap - 1, "high": ap + 1, "level": 0.95}},
    }
    result |= {"background": {"how": "channel"}} if spatial else {}
    folder.mkdir(exist_ok=True)
    path = folder / f"{context_name(learner, condition, 'glyphs')}.json"
    path.write_text(json.dumps(result | changes))


def test_figure_of_all_cells_and_of_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, results = tmp_path / "figure.png", tmp_path / "results"
    words = ["figure", "context", "--world", "glyphs", "--results", str(results), "--out", str(out)]
    results.mkdir()
    with pytest.raises(SystemExit):
        main(words)
    assert "benchmarks/context.py --world glyphs" in capsys.readouterr().err
    write_cell(results, "cpm", "temporal", 80.0)
    main([*words, "--json", "-"])
    shown = capsys.readouterr()
    assert "Not there yet" in shown.err
    numbers = json.loads(shown.out)
    assert len(numbers["missing"]) == 7
    assert numbers["learners"]["cpm"]["effects"] is None
    for n, learner in enumerate(CONTEXT_LEARNERS):
        for k, condition in enumerate(CONDITIONS):
            write_cell(results, learner, condition, 60.0 + 10 * n + k)
    main([*words, "--json", "-"])
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["missing"] == []
    assert numbers["learners"]["cpm"]["cells"]["both"]["ap"] == 73.0
    with Image.open(out) as drawn:
        assert drawn.size[0] == 680  # one column at 200 dots per inch


def test_the_same_cells_give_the_same_file(tmp_path: Path) -> None:
    for condition in CONDITIONS:
        write_cell(tmp_path / "r", "cpm", condition, 50.0)
    for name in ("a.svg", "b.svg"):
        draw_context(tmp_path / name, read_cells(tmp_path / "r", "glyphs"))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_effects_are_differences() -> None:
    of = dict(zip(CONDITIONS, (Cell(ap, None, None, 1, None) for ap in (10, 13, 17, 24)), strict=True))
    assert effects(of) == {
        "spatial": 3,
        "temporal": 7,
        "spatial_beside_temporal": 7,
        "temporal_beside_spatial": 11,
        "both": 14,
    }
    assert len(missing_cells({"cpm": of}, "glyphs")) == 4


@pytest.mark.parametrize("changes", [{"shuffle": True}, {"background": {"how": "channel"}}])
def test_a_result_of_another_condition_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    write_cell(tmp_path, "cpm", "temporal", 80.0, **changes)
    with pytest.raises(WanderError, match="another condition"):
        read_cells(tmp_path, "glyphs")


@pytest.mark.slow
def test_the_benchmark_does_a_cell_once(tmp_path: Path, textures: Path) -> None:
    results, runs = tmp_path / "results", tmp_path / "runs"
    name = "cpm-context-spatial-glyphs"
    words = [sys.executable, str(BENCHMARK), name, "--world", "glyphs", "--textures", str(textures)]
    words += ["--runs", str(runs), "--results", str(results), "--sequences", "2"]
    for option in ("train.steps=1", "train.batch-size=1", "train.validate-sequences=1", "train.workers=0"):
        words += ["--option", option]
    subprocess.run(words, check=True, capture_output=True)
    result = results / f"{name}.json"
    assert read_cells(results, "glyphs")["cpm"]["spatial"].sequences == 2
    before = result.stat().st_mtime_ns
    subprocess.run(words, check=True, capture_output=True)
    assert result.stat().st_mtime_ns == before
