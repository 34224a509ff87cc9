"""Places of the user's through the command line: drawn from, trained in, evaluated on."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.folder.trees import three_splits, tree
from wanderlearn.cli import main
from wanderlearn.files import read_json
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.vectors import VectorsConfig
from wanderlearn.model import about_model, load_model
from wanderlearn.places import model_for
from wanderlearn.presets import METHOD_PRESETS, METHODS
from wanderlearn.worlds import RoamingConfig, open_world, read_manifest

SMALL = ["--roaming.environments", "3", "--roaming.classes", "9", "--roaming.length", "30",
         "--roaming.per-class", "4"]  # fmt: skip
SHORT = ["--pretrain.minutes", "None", "--features.minutes", "None", "--train.minutes", "None",
         "--train.steps", "4", "--train.batch-size", "2", "--train.validate-every", "2",
         "--train.validate-sequences", "4", "--train.workers", "0", "--train.threads", "1"]  # fmt: skip
NARROW = ["--model.encoder.channels", "4"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


@pytest.fixture
def world(tmp_path: Path) -> str:
    three_splits(tmp_path / "mine", families=3, classes=3, pictures=4)
    return "folder:mine?size=8"


def fails(*args: str, says: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(args))
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert says in said, said
    return said


def test_sample_gives_statistics_a_picture_and_a_manifest(
    world: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["sample", world, *SMALL, "--count", "5", "--json", "-", "--png", "x.png", "--manifest", "m.npz"])
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["sequences"] == 5
    assert numbers["classes"] == 9
    assert numbers["longest"] <= 30
    with Image.open("x.png") as drawn:
        assert drawn.size[0] > 100
    manifest = read_manifest(Path("m.npz"))
    again = open_world(world, "test", manifest.config)
    assert manifest.pictures == "folder-mine"
    assert isinstance(manifest.config, RoamingConfig)
    assert manifest.config.occlusion == 0
    for sequence in manifest.sequences:
        assert (again.meetings(0, sequence.index).picture == sequence.picture).all()


def test_the_options_in_the_error_are_those_that_help(world: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["sample", world, "--split", "train"],
        ["train", "protonet", "--world", world, *SHORT, *NARROW],
    ):
        command += ["--roaming.length", "30"]
        said = fails(*command, says="What fits here", capsys=capsys)
        options = re.findall(r"--roaming\.[a-z-]+ \d+", said)
        assert options
        main([*command, *" ".join(options).split()])
        merged = re.findall(r"'(folder:[^']+merge=5)'", said)
        assert merged


def test_train_and_evaluate_on_a_folder(
    world: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["sample", world, *SMALL, "--count", "3", "--manifest", "m.npz"])
    main(["train", "protonet", "--world", world, *SMALL, *SHORT, *NARROW])
    run = tmp_path / "runs" / "protonet-mine"
    weights = run / "best" / "model.safetensors"
    assert about_model(weights)["world"] == f"folder:{tmp_path}/mine?size=8,channels=3"
    encoder = load_model(weights).config.encoder
    assert isinstance(encoder, Conv4Config)
    assert (encoder.image_size, encoder.in_channels, encoder.blocks) == (8, 3, 3)
    capsys.readouterr()
    for where in (
        [],
        ["--world", "folder:mine"],
        ["--manifest", "m.npz"],
        ["--manifest", "m.npz", "--world", world],
    ):
        main(["evaluate", "runs/protonet-mine", "--sequences", "3", "--json", "-", *where])
        result = json.loads(capsys.readouterr().out)
        assert (result["world"], result["split"], result["sequences"]) == ("folder-mine", "test", 3)
    written = read_json(run / "result-folder-mine-test.json")
    assert written["metrics"] == result["metrics"]
    assert written["train"]["config"]["world"] == "folder:mine?size=8,channels=3"
    assert str(tmp_path) not in json.dumps(written)  # results are passed on; where things lie is not
    fails("evaluate", "runs/protonet-mine", "--world", "folder:mine?size=16", says="3x16x16", capsys=capsys)
    main(["train", "protonet", "--world", world, *SMALL, *SHORT, *NARROW, "--resume"])  # nothing left to do


def test_semi_supervised_training_in_classes_without_families(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree(tmp_path / "flat", [f"class{c:02}" for c in range(25)], 6)
    options = ["--roaming.classes", "5", "--roaming.length", "20", "--name", "flat"]
    place = "folder:flat?size=8,channels=1"
    main(["train", "cpm-semi", "--world", place, *options, *SHORT, *NARROW, "--model.learner.units", "8"])
    assert about_model(Path("runs/flat/best/model.safetensors"))["semi"]
    main(["evaluate", "runs/flat", "--sequences", "2"])
    assert "few labels" in capsys.readouterr().out


def test_a_preset_of_another_world_takes_a_folder_in_its_own_size(world: str) -> None:
    main(["train", "protonet-glyphs", "--world", "folder:mine", *SMALL, *SHORT, *NARROW])
    weights = Path("runs/protonet-glyphs-mine/best/model.safetensors")
    assert about_model(weights)["world"].endswith("mine?size=28,channels=1")


def test_the_picture_of_a_shipped_learner_s_size(world: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", "protonet-glyphs", "--world", "folder:mine", *SMALL, "--sequences", "2", "--json", "-"])
    result = json.loads(capsys.readouterr().out)
    assert result["world"] == "folder-mine"


def test_a_method_without_a_world_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    fails("train", "cpm", says="wander train cpm --world folder:PATH", capsys=capsys)
    main(["train", "--help"])
    assert "cpm-semi --world folder:PATH" in capsys.readouterr().out


def test_every_method_has_a_preset_whose_parts_fit() -> None:
    assert METHOD_PRESETS.keys() == {f"{method}{end}" for method in METHODS for end in ("", "-semi")}
    for preset in METHOD_PRESETS.values():
        assert preset.model.learner.features == preset.model.encoder.feature_dim == 256
        for size in (8, 28, 32, 84, 100):
            fitted = model_for(f"folder:x?size={size},channels=1", preset.model)
            assert fitted.learner.features == fitted.encoder.feature_dim > 0
            assert (fitted.encoder.image_size, fitted.encoder.in_channels) == (size, 1)


def vectors(count: int = 30, rows: int = 8, width: int = 6) -> None:
    rng = np.random.default_rng(0)
    middle = 3 * rng.normal(size=(count, 1, width))
    noisy = middle + rng.normal(size=(count, rows, width))
    np.save("v.npy", noisy.reshape(-1, width).astype(np.float32))
    names = [f"thing {c}" for c in range(count) for _ in range(rows)]
    Path("v.labels.json").write_text(json.dumps(names))


def test_vectors_go_all_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    vectors()
    small = ["--roaming.classes", "5", "--roaming.length", "20", "--roaming.per-class", "4"]
    main(["sample", "features:v.npy", *small, "--count", "3", "--json", "-"])
    assert json.loads(capsys.readouterr().out)["classes"] == 5
    fails("sample", "features:v.npy", *small, "--png", "x.png", says="no way to draw", capsys=capsys)
    short = [*SHORT, "--features.steps", "2"]
    main(["train", "cpm", "--world", "features:v.npy", *small, *short, "--model.learner.units", "8"])
    model = load_model("runs/cpm-v/best/model.safetensors")
    assert model.config.encoder == VectorsConfig(width=6)
    assert not list(model.encoder.parameters())
    capsys.readouterr()
    main(["evaluate", "runs/cpm-v", "--sequences", "4", "--json", "-"])
    result = json.loads(capsys.readouterr().out)
    assert (result["world"], result["split"]) == ("features-v", "test")
    fails(
        "evaluate", "protonet-glyphs", "--world", "features:v", *small, says="takes pictures", capsys=capsys
    )
