"""The presets of natural pictures: the authors' settings, the small ones, and trees with small families."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from tests.folder.trees import tree
from tests.imagenet import benchmark
from tests.tiny_world import tiny_pictures
from wanderlearn.cli import main
from wanderlearn.files import read_json
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.resnet12 import ResNet12Config
from wanderlearn.model import about_model, load_model
from wanderlearn.paper import PAPER_AP, TABLES
from wanderlearn.places import merged_place
from wanderlearn.presets import IMAGENET_PRESETS, METHODS
from wanderlearn.singles import SinglePictures
from wanderlearn.tensors import load_tensors
from wanderlearn.worlds import RoamingConfig, open_pictures

SHORT = ["--train.minutes", "None", "--train.steps", "2", "--train.batch-size", "2", "--train.workers", "0",
         "--train.validate-every", "2", "--train.validate-sequences", "2", "--train.threads", "1",
         "--roaming.length", "20", "--roaming.per-class", "2"]  # fmt: skip
NARROW = ["--model.encoder.channels", "4", "6"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Families of two to six classes, two of them in the validation split."""
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    families = {"train": (2, 3, 6, 5, 2), "val": (5, 3), "test": (5, 4, 4)}
    names = [
        f"{split}/{split}{n}/class{c}"
        for split, sizes in families.items()
        for n, size in enumerate(sizes)
        for c in range(size)
    ]
    tree(tmp_path / "natural", names, pictures=8)
    return "imagenet:natural?size=12"


def test_there_is_one_for_every_method_setting_and_size() -> None:
    assert set(IMAGENET_PRESETS) == {
        f"{method}-imagenet{size}{end}"
        for method in METHODS
        for size in ("", "-small")
        for end in ("", "-semi")
    }
    for name, preset in IMAGENET_PRESETS.items():
        assert name == preset.name
        assert preset.roaming.semi == name.endswith("-semi")
        assert isinstance(preset.roaming, RoamingConfig)
        assert preset.roaming.occlusion == 0
        encoder = preset.model.encoder
        assert isinstance(encoder, ResNet12Config)
        assert preset.model.learner.features == encoder.feature_dim
        if "small" not in name:
            assert (encoder.image_size, encoder.feature_dim) == (84, 256)
            assert encoder.last_relu == name.startswith("oml-u-imagenet")
            assert preset.train.batch_size == 3
            assert preset.roaming.crop == "none"
            assert (f"AP {PAPER_AP[name]} on tiered-ImageNet" in preset.about) if name in PAPER_AP else True
    cpm = IMAGENET_PRESETS["cpm-imagenet"].model.learner
    assert isinstance(cpm, CPMConfig)
    assert cpm.unit_features
    assert (cpm.memory, cpm.similarity) == ("gau", "cosine")


def test_the_papers_starred_rows_are_pretrained_and_frozen() -> None:
    for learner, row in TABLES["imagenet"].items():
        preset = IMAGENET_PRESETS[f"{learner}-imagenet"]
        assert (preset.pretrain is not None) == row.pretrained
        assert (preset.train.encoder_lr == 0) == row.pretrained


def test_the_small_ones_have_the_same_budget() -> None:
    small = [preset for name, preset in IMAGENET_PRESETS.items() if "small" in name]
    assert len({preset.pretrain for preset in small}) == 1
    learners = [(preset.features.minutes, preset.train.minutes) for preset in small if preset.features]
    assert len({(features or 0) + (train or 0) for features, train in learners}) == 1


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_trained_on_a_tree_with_small_families(method: str, place: str) -> None:
    name = f"{method}-imagenet-small-semi"
    budget = ["--pretrain.minutes", "None", "--features.minutes", "None"]
    main(["train", name, "--world", place, "--name", "mine", *SHORT, *NARROW, *budget])
    about = about_model(Path("runs/mine/last/model.safetensors"))
    assert about["world"].endswith("natural?size=12,channels=3,merge=5")
    assert about["semi"]


def test_families_are_put_together_unless_the_address_says_more(place: str) -> None:
    pictures = {split: open_pictures(merged_place(place, 5), split) for split in ("train", "val", "test")}
    assert [some.families for some in pictures.values()] == [3, 1, 2]
    for some in pictures.values():
        assert min(np.bincount(some.family)) >= 5
    for said in ("imagenet:a?merge=3", "folder:a?families=4", "features:a.npy"):
        assert merged_place(said, 5) == said


def test_a_starred_row_leaves_the_encoder_it_was_given_as_it_is(place: str) -> None:
    pretrain = ["--pretrain.epochs", "1", "--pretrain.minutes", "None", "--pretrain.batch-size", "16"]
    words = ["--world", place, *SHORT, *NARROW]
    main(["train", "protonet-imagenet", *words, "--name", "first", *pretrain])
    main(["train", "lstm-imagenet", *words, "--name", "second", "--encoder", "runs/first"])
    main(["train", "cpm-imagenet", *words, "--name", "third", "--encoder", "runs/first"])
    given, _ = load_tensors(Path("runs/first/pretrained/model.safetensors"))
    weights = [name for name in given if name.startswith("encoder.") and "average" not in name]
    frozen, _ = load_tensors(Path("runs/second/last/model.safetensors"))
    assert all(torch.equal(given[name], frozen[name]) for name in weights)
    tuned, _ = load_tensors(Path("runs/third/last/model.safetensors"))
    assert not all(torch.equal(given[name], tuned[name]) for name in weights)
    main(["evaluate", "runs/third", "--sequences", "2"])
    assert read_json(Path("runs/third/result-imagenet-natural-test.json"))["preset"] == "cpm-imagenet"


def test_a_run_with_statistics_of_the_sequence_says_so(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = ["--model.encoder.evaluate-with", "batch"]
    main(["train", "cpm-imagenet", "--world", place, "--name", "mine", *SHORT, *NARROW, *batch])
    main(["evaluate", "runs/mine", "--sequences", "2"])
    assert "transductive" in capsys.readouterr().out
    kept = read_json(Path("runs/mine/result-imagenet-natural-test-transductive.json"))
    assert "later" in kept["transductive"]


def test_half_of_the_pictures_are_mirrored() -> None:
    pictures = tiny_pictures("train", size=12, channels=3)
    config = RoamingConfig(crop="none", occlusion=0.0)
    plain, mirrored = (SinglePictures(pictures, config, 0, 64, flip=flip) for flip in (False, True))
    (images, classes), (shown, others) = plain.batch(3), mirrored.batch(3)
    assert torch.equal(classes, others)
    same = [torch.equal(a, b) for a, b in zip(images, shown, strict=True)]
    turned = [torch.equal(a.flip(2), b) for a, b in zip(images, shown, strict=True)]
    assert all(one != other for one, other in zip(same, turned, strict=True))
    assert 20 <= sum(turned) <= 44
    assert torch.equal(mirrored.batch(3)[0], shown)
    cropped = SinglePictures(pictures, replace(config, crop="picture", crop_padding=2), 0, 64, flip=True)
    assert not torch.equal(cropped.batch(3)[0], shown)


def test_a_preset_without_a_world_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "cpm-imagenet"])
    said = capsys.readouterr().err
    assert "wander train cpm-imagenet --world folder:PATH" in said
    assert "-glyphs" not in said
    main(["train", "--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in IMAGENET_PRESETS)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark, with its commands run in this process."""
    module = benchmark("imagenet")

    monkeypatch.setattr("wanderlearn.table_rows.wander", lambda *words: main(list(words)))
    return module


def test_the_benchmark_trains_one_encoder_and_every_row_once(
    place: str, rows: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["imagenet.py", place, "protonet-imagenet-small", "cpm-imagenet-small-semi", "--runs", "runs",
             "--results", "results", "--sequences", "2", "--", *SHORT, *NARROW, "--features.minutes", "None",
             "--pretrain.minutes", "None", "--pretrain.epochs", "1",
             "--pretrain.batch-size", "16"]  # fmt: skip
    monkeypatch.setattr(sys, "argv", asked)
    Path("results").mkdir()
    rows.main()
    assert sorted(path.name for path in Path("runs").iterdir()) == [
        "cpm-imagenet-small-semi",
        "encoder-imagenet-small",
        "protonet-imagenet-small",
    ]
    for name in ("protonet-imagenet-small", "cpm-imagenet-small-semi"):
        result = read_json(Path("results") / f"{name}.json")
        assert (result["preset"], result["world"], result["sequences"]) == (name, "imagenet-natural", 2)
        assert result["train"]["config"]["encoder"]  # it was given one
        assert load_model(f"runs/{name}/best/model.safetensors").config.encoder.image_size == 12
    monkeypatch.setattr("wanderlearn.table_rows.wander", _never)
    rows.main()  # all is there


def _never(*_: Any, **__: Any) -> None:
    raise AssertionError("nothing is to be run again")


def test_the_page_is_filled_in_from_results(rows: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "imagenet.md"
    text = rows.PAGE.read_text(encoding="utf-8")
    page.write_text(text, encoding="utf-8")
    rows.tables(rows.RESULTS, page)
    assert page.read_text(encoding="utf-8") == text, "run `python benchmarks/imagenet.py --tables`"
