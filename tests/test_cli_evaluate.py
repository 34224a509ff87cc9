"""`wander evaluate` and `wander check`, as a user gives the commands."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.tiny_world import tiny_pictures
from wanderlearn import worlds
from wanderlearn.cli import main
from wanderlearn.evaluate import evaluate
from wanderlearn.files import digest_of, write_json
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.offline import OfflineConfig, OfflineLR
from wanderlearn.model import Model, ModelConfig, build, load_model, save_model
from wanderlearn.pictures.collection import Pictures, Split
from wanderlearn.worlds import Roaming, RoamingConfig, draw_manifest, named, read_manifest, write_manifest

SMALL = ModelConfig(encoder=Conv4Config(channels=4, last_relu=False), learner=CPMConfig(features=4, units=8))


def glyphs(split: Split) -> Pictures:
    return replace(tiny_pictures(split), name="glyphs")


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The glyphs are tiny here."""

    def open_pictures(name: str, split: Split, source: Path | None = None) -> Pictures:
        assert name == "glyphs"
        return glyphs(split)

    monkeypatch.setattr(named, "open_pictures", open_pictures)
    monkeypatch.setattr(worlds, "open_pictures", open_pictures)


def small_model(seed: int = 0) -> Model:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(SMALL)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    about = {"preset": "cpm-glyphs-semi", "world": "glyphs", "semi": True, "seed": 1}
    save_model(folder / "best" / "model.safetensors", small_model(), about | {"step": 3})
    progress = {"stage": "finished", "step": 9, "total_seconds": 12.5}
    save_model(folder / "last" / "model.safetensors", small_model(1), about | {"progress": progress})
    write_json(folder / "config.json", {"kind": "preset", "name": "cpm-glyphs-semi"})
    return folder


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    return capsys.readouterr().err


def test_a_run_is_evaluated_where_it_was_trained_and_keeps_its_result(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["evaluate", str(run), "--sequences", "4", "--json", "-"])
    result = json.loads(capsys.readouterr().out)
    assert result == json.loads((run / "result-glyphs-test-semi.json").read_text())
    world = Roaming(glyphs("test"), RoamingConfig(semi=True))
    weights = run / "best" / "model.safetensors"
    expected = evaluate(load_model(weights), world, draw_manifest(world, 0, 4))
    assert result["metrics"] == expected["metrics"]
    assert result["manifest_sha256"] == expected["manifest_sha256"]
    assert (result["preset"], result["learner"], result["semi"]) == ("cpm-glyphs-semi", "cpm", True)
    assert result["weights_sha256"] == digest_of(weights)
    assert result["train"] == {
        "seed": 1, "step": 3, "seconds": 12.5, "steps": 9,
        "config": {"kind": "preset", "name": "cpm-glyphs-semi"},
    }  # fmt: skip


def test_the_table_shows_the_figures_of_the_result(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", str(run), "--sequences", "4", "--supervised", "--shuffle"])
    shown = capsys.readouterr().out
    result = json.loads((run / "result-glyphs-test-shuffle.json").read_text())
    assert not result["semi"]
    assert result["shuffle"]
    for figure in (result["metrics"]["ap"], result["metrics"]["shots"]["labelled"][2]["mean"]):
        assert f"{figure:.2f}" in shown
    assert "all labels, shuffled" in shown
    assert "AP-joint" in shown
    assert "21-50" in shown


def test_weights_alone_are_evaluated_too_and_write_nothing_unasked(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = run / "best" / "model.safetensors"
    before = sorted(tmp_path.rglob("*"))
    main(["evaluate", str(weights), "--sequences", "2", "--split", "val", "--seed", "7"])
    assert "2 sequences of glyphs/val, few labels" in capsys.readouterr().out
    assert sorted(tmp_path.rglob("*")) == before


def test_a_manifest_fixes_the_sequences(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = Roaming(glyphs("val"), RoamingConfig(length=60, classes=20))
    path = tmp_path / "some.npz"
    write_manifest(path, draw_manifest(world, 5, 3))
    main(["evaluate", str(run), "--manifest", str(path), "--json", str(tmp_path / "out.json")])
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["manifest_sha256"] == read_manifest(path).sha256
    assert (result["split"], result["sequences"], result["seed"], result["semi"]) == ("val", 3, 5, False)
    assert "manifest of glyphs" not in capsys.readouterr().err
    assert "not of omniglot" in refused(
        capsys, "evaluate", str(run), "--manifest", str(path), "--world", "omniglot"
    )


def test_two_learners_are_compared_by_their_answers(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = tmp_path / "mine.npz"
    main(["evaluate", str(run), "--sequences", "4", "--answers", str(answers)])
    with np.load(answers, allow_pickle=False) as file:
        assert file["novelty"].shape[0] == 4
    capsys.readouterr()
    other = str(run / "last" / "model.safetensors")
    main(["evaluate", other, "--sequences", "4", "--compare", str(answers), "--json", "-"])
    result = json.loads(capsys.readouterr().out)
    mine = json.loads((run / "result-glyphs-test-semi.json").read_text())
    found = {row["metric"]: row for row in result["compared"]}
    assert found["ap"]["first"] == result["metrics"]["ap"]
    assert found["ap"]["second"] == pytest.approx(mine["metrics"]["ap"])
    assert found["3-shot"]["second"] == pytest.approx(mine["metrics"]["shots"]["labelled"][2]["mean"])
    assert found["ap"]["low"] <= found["ap"]["difference"] <= found["ap"]["high"]
    main(["evaluate", other, "--sequences", "4", "--compare", str(answers)])
    assert "against cpm-glyphs-semi" in capsys.readouterr().out
    told = refused(capsys, "evaluate", other, "--sequences", "3", "--compare", str(answers))
    assert "Evaluate both on one manifest" in told


def test_offline_judges_the_features_of_a_run_and_leaves_its_own_result(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["evaluate", str(run), "--sequences", "2"])
    own, answers = (run / "result-glyphs-test-semi.json").read_text(), tmp_path / "offline.npz"
    main(["evaluate", str(run), "--sequences", "2", "--offline", "--answers", str(answers)])
    assert "offline-lr on the features of cpm-glyphs-semi" in capsys.readouterr().out
    assert (run / "result-glyphs-test-semi.json").read_text() == own
    result = json.loads((run / "result-glyphs-test-semi-offline.json").read_text())
    weights = run / "best" / "model.safetensors"
    assert (result["learner"], result["preset"]) == ("offline-lr", "cpm-glyphs-semi")
    assert result["weights_sha256"] == digest_of(weights)
    assert result["config"]["learner"] == {
        "kind": "offline", "features": 4, "strength": 1.0, "least_classes": 5
    }  # fmt: skip
    assert result["config"]["encoder"] == json.loads(own)["config"]["encoder"]
    encoder = load_model(weights).encoder
    assert result["parameters"] == sum(parameter.numel() for parameter in encoder.parameters())
    world = Roaming(glyphs("test"), RoamingConfig(semi=True))
    model = Model(SMALL, encoder, OfflineLR(OfflineConfig(features=4)))
    assert result["metrics"] == evaluate(model, world, draw_manifest(world, 0, 2))["metrics"]
    main(["evaluate", str(run), "--sequences", "2", "--compare", str(answers)])
    shown = " ".join(capsys.readouterr().out.split())  # the title may be wrapped
    assert "against offline-lr on the features of cpm-glyphs-semi" in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "no run folder or file of weights nowhere"),
        (["{run}", "--sequences", "0"], "--sequences must be at least 1"),
        (["{run}", "--batch-size", "0"], "--batch-size must be at least 1"),
        (["{run}", "--seed", "-1"], "--seed must be between 0"),
        (["{run}", "--semi", "--supervised"], "choose one"),
        (["{run}", "--answers", "answers.txt"], "ends in .npz"),
        (["{run}", "--compare", "none.npz"], "no answers at none.npz"),
        (["{run}", "--manifest", "none.npz"], "no manifest at none.npz"),
        (["{run}/best"], "has no best weights yet"),
        (["{run}/config.json"], "not a file of weights"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_in_words(
    run: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    told = refused(capsys, "evaluate", *(each.format(run=run) for each in arguments))
    assert told.startswith("wander: ")
    assert sentence in told
    assert not list(run.glob("result-*"))


def test_weights_that_name_no_world_need_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "weights.safetensors"
    save_model(path, small_model(), {})
    assert "Name one with --world" in refused(capsys, "evaluate", str(path))
    main(["evaluate", str(path), "--world", "glyphs", "--sequences", "2", "--json", "-"])
    result = json.loads(capsys.readouterr().out)
    assert (result["preset"], result["train"], result["semi"]) == (None, None, False)


LEARNERS = """
from wanderlearn.learners.protonet import OnlineProtoNet, ProtoNetConfig

class Peeking(OnlineProtoNet):
    def forward(self, features, given, slots):
        answers = super().forward(features, given, slots)
        return answers._replace(novelty=answers.novelty + features.mean())

def good():
    return OnlineProtoNet(ProtoNetConfig(features=16))

def bad():
    return Peeking(ProtoNetConfig(features=16))
"""


@pytest.fixture
def learners(tmp_path: Path) -> Path:
    path = tmp_path / "my_learners.py"
    path.write_text(LEARNERS)
    return path


def test_a_sound_learner_passes_the_check(learners: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", f"{learners}:good", "--feature-dim", "16"])
    shown = capsys.readouterr().out
    assert "keeps the contract" in shown
    assert "✓" in shown
    assert "✗" not in shown


def test_a_broken_law_is_named_and_the_exit_code_is_1(
    learners: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["check", f"{learners}:bad", "--feature-dim", "16"])
    assert exit_.value.code == 1
    assert "✗" in capsys.readouterr().out
    with pytest.raises(SystemExit) as exit_:
        main(["check", f"{learners}:bad", "--feature-dim", "16", "--json", "-"])
    assert exit_.value.code == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["passed"]
    broken = {law["law"]: law["sentence"] for law in found["laws"] if law["outcome"] == "broken"}
    assert "meeting" in broken["causal"]


@pytest.mark.parametrize("named_", ["{file}:absent", "no_such_module:Learner", "{file}"])
def test_a_learner_that_cannot_be_loaded_exits_with_2(
    learners: Path, capsys: pytest.CaptureFixture[str], named_: str
) -> None:
    assert refused(capsys, "check", named_.format(file=learners)).startswith("wander: ")
