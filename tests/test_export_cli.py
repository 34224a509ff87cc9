"""`wander export`, as a user gives the command, and its files where there is no torch."""

import json
import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import wanderlearn
from tests.exported_models import SLOTS, made, model_of
from tests.test_cli import wander
from wanderlearn import export
from wanderlearn.cli import main
from wanderlearn.configs import from_json
from wanderlearn.files import digest_of
from wanderlearn.model import ModelConfig, load_model, save_model
from wanderlearn.shipped import shipped_weights

ROOT = Path(__file__).parent.parent
WITHOUT_TORCH = """
import sys
for name in ("torch", "wanderlearn", "onnx", "onnxscript", "safetensors", "PIL"):
    sys.modules[name] = None  # importing it now is an ImportError
"""


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the CPM of the package, exported by the command."""
    folder = tmp_path_factory.mktemp("robot")
    told = wander("export", "cpm-glyphs", str(folder / "robot.onnx"), "--json", str(folder / "about.json"))
    assert told.returncode == 0, told.stderr
    assert told.stderr == "", "what the exporter notes on its way is not for the user"
    return folder


@pytest.fixture
def ready_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs of a small CPM, so that nothing has to be traced."""
    ready = made("cpm")
    monkeypatch.setattr(export, "step_graph", lambda *_: onnx.load_from_string(ready.step))
    monkeypatch.setattr(export, "begin_graph", lambda *_: onnx.load_from_string(ready.begin))


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights" / "small.safetensors"
    save_model(path, model_of("cpm"), {"preset": "mine", "world": "glyphs"})
    return path


def properties(path: Path) -> dict[str, str]:
    return {each.key: each.value for each in onnx.load(path).metadata_props}


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(["export", *map(str, arguments)])
    assert exit_.value.code == 2
    return capsys.readouterr().err


def test_the_command_leaves_two_files_and_says_how_well_they_agree(robot: Path) -> None:
    assert {path.name for path in robot.iterdir()} >= {"robot.onnx", "robot.begin.onnx", "about.json"}
    about = json.loads((robot / "about.json").read_text())
    assert about["largest_difference"] <= 1e-4
    assert about["slots"] == 50
    assert about["inputs"]["image"] == "float [batch, 1, 28, 28]"
    assert about["inputs"]["state.memory.prototypes"] == "float [batch, 50, 64]"
    assert list(about["outputs"])[:2] == ["scores", "novelty"]


def test_the_example_of_the_page_runs_without_torch(robot: Path) -> None:
    page = (ROOT / "docs/export.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.S)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_TORCH + example],
        cwd=robot, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    said = re.search(r"It prints (.*?)\.\n", page)
    assert said is not None
    assert ran.stdout.split() == re.findall(r"`(\w+)`", said[1])


def test_the_files_say_what_they_are(robot: Path) -> None:
    path = shipped_weights()["cpm-glyphs"]
    shared = {
        "weights": "cpm-glyphs",
        "weights_sha256": digest_of(path),
        "learner": "cpm",
        "world": "glyphs",
        "licence": wanderlearn.weights()["cpm-glyphs"].licence,
        "slots": "50",
        "unlabeled": "-1",
        "wanderlearn_version": wanderlearn.__version__,
    }
    for name in ("step", "begin"):
        said = properties(robot / {"step": "robot.onnx", "begin": "robot.begin.onnx"}[name])
        assert said["graph"] == name
        assert {key: said[key] for key in shared} == shared
        assert from_json(ModelConfig, json.loads(said["config"])) == load_model(path).config
        assert "[batch, 1, 28, 28]" in said["preprocessing"]
        assert "/ 127.5 - 1" in said["preprocessing"]
        assert "novelty above 0" in said["answer"]


@pytest.mark.usefixtures("ready_made")
def test_what_is_exported_is_shown(weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new folder" / "mine.onnx"
    main(["export", str(weights), str(out), "--slots", str(SLOTS)])
    shown = capsys.readouterr().out
    assert "mine.onnx: one meeting" in shown
    assert f"float [batch, {SLOTS}, 8]" in shown
    assert "largest difference from the learner in 60 random meetings" in shown
    said = properties(out)
    assert (said["weights"], said["world"], said["licence"]) == ("mine", "glyphs", "not stated")
    assert str(tmp_path) not in str(said)


@pytest.mark.parametrize("missing", ["onnx", "onnxscript", "onnxruntime"])
def test_a_missing_extra_is_named(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    told = refused(capsys, "cpm-glyphs", tmp_path / "m.onnx")
    assert f"needs {missing}, which is not installed" in told
    assert "wanderlearn[onnx]" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody", "m.onnx"], "no run folder or file of weights nobody"),
        (["cpm-glyphs", "m.pt"], "ends in .onnx"),
        (["cpm-glyphs", "m.onnx", "--opset", "12"], "between 18 and 23"),
        (["cpm-glyphs", "m.onnx", "--slots", "0"], "at least 1"),
        (["cpm-glyphs", "folder.onnx"], "is a folder"),
        (["cpm-glyphs", "file/m.onnx"], "Cannot write"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "file").write_text("not a folder")
    assert words in refused(capsys, *arguments)
    assert {path.name for path in tmp_path.iterdir()} == {"folder.onnx", "file"}


def test_more_classes_than_a_learner_has_weights_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lstm.safetensors"
    save_model(path, model_of("lstm"), {})
    assert "at most 6 classes" in refused(capsys, path, tmp_path / "m.onnx", "--slots", 7)
    assert [each.name for each in tmp_path.iterdir()] == ["lstm.safetensors"]


def test_a_broken_file_of_weights(weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "truncated or altered" in refused(capsys, weights, tmp_path / "m.onnx")


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["export", "--help"])
    assert exit_.value.code == 0
    shown = capsys.readouterr().out
    assert "OUT.begin.onnx gives the empty memory" in shown
    assert "--slots" in shown
