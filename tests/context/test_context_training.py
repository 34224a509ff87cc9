"""The experiment end to end, tiny: every stage, both learners, resuming, presets and what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.context.textures import CHANNEL, OVERLAY, PROCESS, tiny_textures, world
from tests.tiny_runs import log_of, weights_of
from tests.tiny_world import tiny_pictures
from wanderlearn.distributed.compute import Compute
from wanderlearn.double_training import COPIES, DoublePretraining, KeptBackgrounds, TexturePieces
from wanderlearn.errors import WanderError
from wanderlearn.feature_training import FeaturesConfig
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.double import Double, DoubleConfig
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.model import LearnerConfig, Model, ModelConfig, build, save_model
from wanderlearn.pictures.collection import Pictures, Split
from wanderlearn.places import check_seen, model_before
from wanderlearn.presets import CONTEXT_PRESETS, Preset
from wanderlearn.presets.context import CONDITIONS, CONTEXT_LEARNERS, context_name
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.train import Outcome, train

ENCODER = DoubleConfig(Conv4Config(channels=8, last_relu=False, batch_norm_momentum=0.1))
CPM = CPMConfig(features=16, units=12, memory="average", similarity="euclidean")
STEPS = TrainConfig(steps=3, batch_size=2, validate_every=3, validate_sequences=2, threads=1, workers=0)


@pytest.fixture(autouse=True)
def own_textures(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("wanderlearn.pictures.textures", "wanderlearn.train"):
        monkeypatch.setattr(f"{module}.open_textures", lambda _, split: tiny_textures(split))


def pictures(split: Split) -> Pictures:
    return tiny_pictures(split, families=4, classes_per_family=3)


def tiny(learner: LearnerConfig = CPM, **changes: Any) -> Preset:
    preset = Preset(
        name="tiny",
        world="tiny",
        roaming=replace(PROCESS, background=CHANNEL),
        model=ModelConfig(ENCODER, learner),
        train=STEPS,
        pretrain=PretrainConfig(epochs=1, batch_size=24),
        features=FeaturesConfig(steps=3, batch_size=2, copies=2),
    )
    return replace(preset, **changes)


def run(preset: Preset, folder: Path, **options: Any) -> Outcome:
    return train(preset, folder, pictures=pictures, **options)


@pytest.mark.parametrize("learner", [CPM, ProtoNetConfig(features=16)])
@pytest.mark.parametrize("shuffle", [False, True])
def test_all_stages_run_and_end_with_a_score(tmp_path: Path, learner: LearnerConfig, shuffle: bool) -> None:
    preset = tiny(learner, roaming=replace(PROCESS, background=CHANNEL, shuffle=shuffle))
    outcome = run(preset, tmp_path / "run")
    assert outcome.status == "finished"
    assert outcome.best_ap is not None
    lines = log_of(tmp_path / "run")
    assert list(dict.fromkeys(line["stage"] for line in lines)) == [
        "pretrain",
        "features",
        "sequences",
    ]
    assert {"texture_accuracy", "accuracy"} <= lines[0].keys()


def test_resumed_equals_uninterrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tiny(), tmp_path / "whole")
    kept, calls = KeptBackgrounds.of, []

    def stop_at_the_second(self: KeptBackgrounds, meetings: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyError("power cut")
        return kept(self, meetings)

    monkeypatch.setattr(KeptBackgrounds, "of", stop_at_the_second)
    with pytest.raises(KeyError, match="power cut"):
        run(tiny(), tmp_path / "again")
    monkeypatch.setattr(KeptBackgrounds, "of", kept)
    run(tiny(), tmp_path / "again", resume=True)
    assert weights_of(tmp_path / "again") == weights_of(tmp_path / "whole")


def test_with_an_encoder_of_pictures_only_the_other_half_is_pretrained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wanderlearn.double_training.TEXTURE_STEPS", 4)
    plain = build(ModelConfig(ENCODER.picture, ProtoNetConfig(features=8)))
    save_model(tmp_path / "plain.safetensors", plain, {"seconds": 60.0})
    preset = tiny(features=None, train=replace(STEPS, encoder_lr=0.0, steps=1))
    outcome = run(preset, tmp_path / "run", encoder=tmp_path / "plain.safetensors")
    assert outcome.seconds > 60
    lines = [line for line in log_of(tmp_path / "run") if line["stage"] == "pretrain"]
    assert len(lines) == 4
    assert all("accuracy" not in line for line in lines)
    digests = weights_of(tmp_path / "run", "pretrained")
    save_model(tmp_path / "same" / "best" / "model.safetensors", plain, {})
    given = weights_of(tmp_path / "same", "best")
    for name, digest in given.items():
        if name.startswith("encoder.") and name.endswith(("weight", "scale", "shift")):
            assert digests[name.replace("encoder.", "encoder.picture.", 1)] == digest
    # What that run pretrained is a whole encoder: another run has nothing left to pretrain.
    run(preset, tmp_path / "next", encoder=tmp_path / "run" / "pretrained" / "model.safetensors")
    assert all(line["stage"] != "pretrain" for line in log_of(tmp_path / "next"))


def test_texture_pieces_are_even_and_repeatable() -> None:
    here = world("train")
    pieces, again = TexturePieces(here, 3, 64), TexturePieces(here, 3, 64)
    images, truth = pieces.batch(5, range(64))
    assert images.shape == (64, 1, 28, 28)
    assert images.abs().max() <= 1
    part, some = again.batch(5, range(16, 48))
    assert torch.equal(part, images[16:48])
    assert torch.equal(some, truth[16:48])
    counts = torch.bincount(torch.cat([pieces.batch(n, range(64))[1] for n in range(20)]))
    assert len(counts) == 5
    assert counts.min() > 180  # of 256 each


def test_the_half_for_textures_learns_to_name_them() -> None:
    torch.manual_seed(0)
    from wanderlearn.optimiser import Optimiser

    model, config = build(ModelConfig(ENCODER, CPM)).train(), PretrainConfig(epochs=1, batch_size=48, lr=1e-2)
    stage = DoublePretraining(model, world("train"), config, 0, only_background=True)
    optimiser = Optimiser(stage.tensors(), config)
    found = [stage.losses(step) for step in range(1)]
    for step in range(30):
        found.append(stage.losses(step))
        optimiser.step(found[-1]["loss"], 1.0)
    assert float(found[-1]["texture_accuracy"]) > 0.6 > 0.45 > float(found[0]["texture_accuracy"])


def test_kept_features_are_those_of_pieces_cut_at_one_place() -> None:
    torch.manual_seed(0)
    model, here = build(ModelConfig(ENCODER, CPM)).train(), world("train", occlusion=0.0)
    kept = KeptBackgrounds(model, here, 0, Compute())
    assert kept.features.shape == (15, COPIES, 8)
    assert model.encoder.training
    meetings = [here.meetings(0, i) for i in range(3)]
    found = kept.of(meetings)
    assert len(found) == sum(map(len, meetings))
    m, start = meetings[1], len(meetings[0])
    assert m.background is not None
    rows = found[start : start + len(m)]
    first = [int(t) for t in m.background.texture].index(int(m.background.texture[0]))
    same = (m.background.texture == m.background.texture[first]).nonzero()[0]
    for t in same.tolist():
        assert torch.equal(rows[t], rows[first])  # one copy for the whole sequence


def test_an_overlay_has_no_kept_features_but_trains_on_sequences(tmp_path: Path) -> None:
    model = ModelConfig(ENCODER.picture, ProtoNetConfig(features=8))
    preset = tiny(model=model, roaming=replace(PROCESS, background=OVERLAY))
    with pytest.raises(WanderError, match="kept of pictures alone"):
        run(preset, tmp_path / "a")
    assert run(replace(preset, features=None), tmp_path / "b").status == "finished"


def test_a_double_encoder_needs_a_background(tmp_path: Path) -> None:
    with pytest.raises(WanderError, match="--background channel"):
        run(tiny(roaming=PROCESS), tmp_path / "run")


def test_models_before_backgrounds() -> None:
    plain, double = ModelConfig(ENCODER.picture, CPMConfig(features=8)), ModelConfig(ENCODER, CPM)
    assert model_before(double, CHANNEL) is double
    assert isinstance(build(model_before(plain, CHANNEL)).encoder, Double)
    assert model_before(double, None).encoder == ENCODER.picture
    assert model_before(plain, OVERLAY) is plain
    seen = pictures("test")
    check_seen(double, seen, CHANNEL)
    check_seen(plain, seen, OVERLAY)
    with pytest.raises(WanderError, match="--background channel"):
        check_seen(double, seen)
    with pytest.raises(WanderError, match="--background none"):
        check_seen(plain, seen, CHANNEL)


def test_presets_are_the_four_conditions_of_both_learners_with_one_budget() -> None:
    for name in ("omniglot", "glyphs"):
        presets = {
            (learner, c): CONTEXT_PRESETS[context_name(learner, c, name)]
            for learner in CONTEXT_LEARNERS
            for c in CONDITIONS
        }
        for (learner, condition), preset in presets.items():
            spatial, temporal = CONDITIONS[condition]
            assert preset.roaming.semi
            assert preset.roaming.shuffle != temporal
            assert (preset.roaming.background is not None) == spatial
            model: Model = build(preset.model)
            assert isinstance(model.encoder, Double) == spatial
            config = preset.model.learner
            assert isinstance(config, CPMConfig if learner == "cpm" else ProtoNetConfig)
            assert config.similarity == "euclidean"
            assert config.features == (128 if spatial else 64)
            if isinstance(config, CPMConfig):
                assert config.memory == "average"
        assert (
            len({(p.train.steps, p.train.batch_size, p.features, p.pretrain) for p in presets.values()}) == 1
        )
    assert len(CONTEXT_PRESETS) == 16
