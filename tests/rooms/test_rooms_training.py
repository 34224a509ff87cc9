"""From a recording to a trained, evaluated and drawn learner, on the command line."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.rooms.made_walks import SMALL, made_walks
from tests.rooms.recordings import record_tiny
from wanderlearn import WanderError
from wanderlearn.cli import main
from wanderlearn.evaluate import evaluate
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.resnet12 import ResNet12Config
from wanderlearn.model import ModelConfig, build, load_model
from wanderlearn.pictures.collection import Split
from wanderlearn.presets import METHODS, ROOMS_PRESETS, Preset
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.rooms import Home
from wanderlearn.rooms.recording import RecordConfig
from wanderlearn.rooms.sightings import Sightings
from wanderlearn.rooms.world import Rooms
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.train import train
from wanderlearn.worlds import draw_manifest, read_manifest, write_manifest

ENCODER = ResNet12Config(
    image_size=12, in_channels=4, channels=(4, 6), pooling="attention", batch_norm_momentum=0.1
)
CPM = CPMConfig(features=ENCODER.feature_dim, units=12, memory="average")


def walks(split: Split) -> Sightings:
    """Things with colours of their own, so that there is something to learn."""
    made = made_walks(split, seed=len(split))
    r = np.random.default_rng(0)
    colours = r.integers(0, 256, (made.classes, 3, 1, 1))
    frames = made.frames // 4
    for row in range(len(made.class_of)):
        inside = made.mask(np.array([row]))[0]
        frame = frames[made.frame[row]]
        frame[:, inside] = colours[made.class_of[row]][:, :, 0]
    return replace(made, frames=frames)


def preset(*, semi: bool = False, **changes: Any) -> Preset:
    config = TrainConfig(
        steps=6, batch_size=2, validate_every=3, validate_sequences=3, threads=1, workers=0, schedule="cosine"
    )
    roaming = replace(SMALL, semi=semi, mask_shift=0)
    return Preset("tiny", "tiny", roaming, ModelConfig(ENCODER, CPM), replace(config, **changes))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_model(folder / "last" / "model.safetensors").state_dict()


@pytest.mark.parametrize("semi", [False, True])
def test_training_goes_through_all_stages_and_repeats_to_the_bit(tmp_path: Path, semi: bool) -> None:
    from wanderlearn.feature_training import FeaturesConfig

    whole = replace(
        preset(semi=semi),
        pretrain=PretrainConfig(epochs=1.0, batch_size=24, flip=True),
        features=FeaturesConfig(steps=4, copies=2, batch_size=2),
    )
    outcome = train(whole, tmp_path / "whole", pictures=walks)
    assert (outcome.status, outcome.step) == ("finished", 6)
    lines = [json.loads(line) for line in (tmp_path / "whole" / "log.jsonl").read_text().splitlines()]
    stages = [line["stage"] for line in lines if "loss" in line]
    assert stages == ["pretrain"] * 5 + ["features"] * 4 + ["sequences"] * 6
    again = train(whole, tmp_path / "again", pictures=walks)
    assert again.best_ap == outcome.best_ap
    for one, other in zip(
        weights(tmp_path / "whole").values(), weights(tmp_path / "again").values(), strict=True
    ):
        assert torch.equal(one, other)


def test_pretraining_learns_to_name_things(tmp_path: Path) -> None:
    config = PretrainConfig(epochs=12.0, batch_size=24, margin=0.0, lr=1e-2)
    train(replace(preset(steps=1), pretrain=config), tmp_path / "run", pictures=walks)
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    accuracy = [line["accuracy"] for line in lines if line["stage"] == "pretrain"]
    assert np.mean(accuracy[-5:]) > 5 * max(np.mean(accuracy[:2]), 1 / 56)


def test_workers_change_nothing(tmp_path: Path) -> None:
    for workers in (0, 1):
        train(preset(workers=workers, steps=3), tmp_path / f"{workers}", pictures=walks)
    for one, other in zip(weights(tmp_path / "0").values(), weights(tmp_path / "1").values(), strict=True):
        assert torch.equal(one, other)


def test_a_manifest_fixes_sequences_of_rooms(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = build(ModelConfig(ENCODER, ProtoNetConfig(features=ENCODER.feature_dim))).eval()
    for split in ("train", "test"):
        world = Rooms(walks(split), replace(SMALL, semi=True))
        manifest = draw_manifest(world, 3, 5)
        write_manifest(tmp_path / f"{split}.npz", manifest)
        again = read_manifest(tmp_path / f"{split}.npz")
        assert (again.sha256, again.config) == (manifest.sha256, manifest.config)
        for one, other in zip(manifest.sequences, again.sequences, strict=True):
            np.testing.assert_array_equal(one.picture, other.picture)
            np.testing.assert_array_equal(np.asarray(one.mask_crop), np.asarray(other.mask_crop))
        results = [evaluate(model, m.world(walks(split)), m) for m in (manifest, again)]
        assert results[0]["metrics"] == results[1]["metrics"]
        with pytest.raises(WanderError, match="other pictures"):
            again.world(made_walks("val", seed=9))


def test_every_method_has_presets_for_rooms() -> None:
    assert len(ROOMS_PRESETS) == 4 * len(METHODS)
    for name, made in ROOMS_PRESETS.items():
        encoder = made.model.encoder
        assert isinstance(encoder, ResNet12Config)
        assert made.model.learner.features == encoder.feature_dim == (256 if "-small" in name else 512)
        assert getattr(made.model.learner, "slots", 40) >= 40
        assert made.roaming.semi == name.endswith("-semi")
        assert "rooms:PATH" in made.about
    build(ROOMS_PRESETS["lstm-rooms-small"].model)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, home: Home, other: Home) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    config = RecordConfig(frames=60, width=40, height=30, per_file=30, light=False)
    record_tiny(folder / "train", home, config)
    for split in ("val", "test"):
        record_tiny(folder / split, other, config)
    return folder


def test_the_command_line_from_walks_to_figures(
    tmp_path: Path, recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    process = ["--roaming.least-meetings", "10", "--roaming.least-classes", "2", "--roaming.length", "25"]
    main(
        [
            "train", "cpm-rooms-small-semi", "--world", f"rooms:{recorded}?size=15", "--name", "tiny",
            "--model.encoder.channels", "4", "6", "--model.learner.features", "12",
            "--model.learner.units", "12", "--pretrain.minutes", "None", "--pretrain.epochs", "1",
            "--pretrain.batch-size", "8", "--features.minutes", "None", "--features.steps", "2",
            "--train.minutes", "None", "--train.steps", "2", "--train.batch-size", "2",
            "--train.validate-sequences", "2", "--train.workers", "0", "--train.threads", "1", *process,
        ]
    )  # fmt: skip
    capsys.readouterr()
    main(["evaluate", "runs/tiny", "--json", "-"])
    result = json.loads(capsys.readouterr().out)
    assert result["world"] == f"rooms-{recorded.name}"
    assert result["semi"]
    assert result["sequences"] == walks_to_test(recorded)
    main(["figure", "rooms-walk", "runs/tiny", "--meetings", "7", "--across", "3", "--json", "walk.json"])
    drawn = json.loads(Path("walk.json").read_text())
    assert len(drawn["meetings"]) == 7
    with Image.open("figure-rooms-walk.png") as sheet:
        assert sheet.width > 900
    main(["figure", "rooms-controls", "runs/tiny", "--sequences", "2", "--out", "controls.svg"])
    assert Path("controls.svg").read_text().startswith("<?xml")
    main(["sample", f"rooms:{recorded}", "--count", "3", "--json", "-", "--roaming.length", "20"])


def walks_to_test(recorded: Path) -> int:
    return len(list((recorded / "test").glob("*imgs.h5")))


def test_wrong_worlds_are_sentences(
    tmp_path: Path, recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def refused(*words: str) -> str:
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 2
        return capsys.readouterr().err

    assert "cpm-rooms-small" in refused("train", "cpm", "--world", f"rooms:{recorded}")
    assert "behind drawings" in refused("sample", f"rooms:{recorded}", "--background", "channel")
    assert "no --roaming.environments" in refused(
        "sample", f"rooms:{recorded}", "--roaming.environments", "2"
    )
    assert "not in rooms" in refused("figure", "rooms-walk", "cpm-glyphs")
    assert "wander rooms record" in refused("train", "cpm-rooms")


def test_the_table_of_rooms_stands_beside_another_datasets_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from wanderlearn.report.methods import read_method_table

    shots = [{"shots": n, "mean": 70.0 + n, "standard_error": 0.5} for n in (1, 2, 3)]
    metrics = {"ap": 80.0, "ap_joint": 81.0, "shots": {"labelled": shots}, "forgetting": {"appearance": []}}
    result = {
        "format": 1, "kind": "evaluation", "preset": "cpm-rooms-small", "learner": "cpm", "split": "test",
        "world": "rooms-walks", "semi": False, "shuffle": False, "sequences": 7, "manifest_sha256": "a" * 64,
        "metrics": metrics, "train": {}, "weights_sha256": None, "commit": None, "parameters": 1,
    }  # fmt: skip
    (tmp_path / "cpm-rooms-small.json").write_text(json.dumps(result))
    other = result | {"world": "folder-pictures", "preset": "protonet-rooms-small", "learner": "protonet"}
    (tmp_path / "protonet-rooms-small.json").write_text(json.dumps(other))
    main(["table", "rooms", "--results", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "paper, Matterport3D" in shown
    assert "another dataset, Matterport3D" in " ".join(shown.split())
    assert "--world rooms:PATH" in shown
    table = read_method_table(tmp_path, "rooms")
    assert table.ours["cpm"]["supervised"] is not None
    assert table.ours["protonet"]["supervised"] is None  # tested on pictures, not on walks
    main(["table", "rooms-forgetting", "--results", str(tmp_path), "--json", "-"])
