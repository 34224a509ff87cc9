"""The stage on kept features: what is kept, what is trained, that it resumes; and encoders of other runs."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from tests.distributed.threads import together
from tests.test_training import interrupt, stop_after
from tests.tiny_runs import (
    CPM,
    LOOKS_FIRST,
    PROTONET,
    clock_by_steps,
    log_of,
    pictures,
    run,
    tiny_model,
    tiny_preset,
    weights_of,
)
from wanderlearn.distributed import Group
from wanderlearn.distributed.compute import Compute
from wanderlearn.errors import WanderError
from wanderlearn.feature_training import FeaturesConfig, FeatureTraining, kept_features
from wanderlearn.learners.answer import Answers
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.lstm import LSTMLearner
from wanderlearn.learners.resnet12 import ResNet12Config
from wanderlearn.loss import sequence_loss
from wanderlearn.model import (
    LearnerConfig,
    ModelConfig,
    about_model,
    build,
    load_model,
    save_model,
    take_encoder,
)
from wanderlearn.presets import PRESETS, ROOMS_PRESETS, Preset
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.sequence_training import SequenceTraining, TrainConfig
from wanderlearn.shipped import find_encoder, find_weights, shipped_weights
from wanderlearn.singles import SinglePictures
from wanderlearn.train import train
from wanderlearn.worlds import Roaming, World

WITH_FEATURES = replace(tiny_preset(steps=2), features=FeaturesConfig(steps=5, copies=2, batch_size=2))


def world(preset: Preset, **changes: object) -> Roaming:
    return Roaming(pictures("train"), replace(preset.roaming, **changes))  # type: ignore[arg-type]


def test_features_are_the_encoders_own_of_differently_hidden_copies() -> None:
    model = build(tiny_model()).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    kept = kept_features(model, world(WITH_FEATURES), copies=3, seed=1)
    assert kept.shape == (len(pictures("train").images), 3, 8)
    assert not kept.requires_grad
    for one, other in ((0, 1), (1, 2)):
        assert (kept[:, one] - kept[:, other]).abs().amax(1).gt(0).all()
    assert model.encoder.training
    for name, tensor in model.state_dict().items():  # not even BatchNorm's averages move
        assert torch.equal(tensor, before[name])
    # Where nothing is cropped or hidden, every copy is the feature of the picture itself.
    plain = world(WITH_FEATURES, crop="none", occlusion=0.0)
    images = torch.from_numpy(plain.pictures.images).float() / 127.5 - 1
    with torch.no_grad():
        expected = model.eval().encoder(images)
    for copy in kept_features(model, plain, copies=2, seed=0).unbind(1):
        torch.testing.assert_close(copy, expected)
    # Nor where the world crops in training, but the stage does not want that.
    moved = world(WITH_FEATURES, occlusion=0.0)
    torch.testing.assert_close(kept_features(model, moved, copies=1, seed=0, crop=False)[:, 0], expected)
    assert not torch.allclose(kept_features(model, moved, copies=1, seed=0)[:, 0], expected)
    stage = FeatureTraining(model, moved, FeaturesConfig(steps=1, copies=1, crop=False), TrainConfig())
    torch.testing.assert_close(stage.features[:, 0], expected)


def test_a_step_is_the_loss_of_the_sequences_on_their_features() -> None:
    torch.manual_seed(0)
    model = build(tiny_model()).eval()
    plain = world(WITH_FEATURES, crop="none", occlusion=0.0)
    stage = FeatureTraining(
        model, plain, FeaturesConfig(steps=1, batch_size=3), TrainConfig(novelty_weight=0.5)
    )
    losses = stage.losses(4)
    batch = plain.batch([plain.meetings(0, i) for i in (12, 13, 14)])
    with torch.no_grad():
        answers = model(batch.images, batch.given, batch.valid, plain.slots)
    expected = sequence_loss(answers, batch.target, batch.valid, 0.5)
    torch.testing.assert_close(losses["loss"].detach(), expected.total)
    torch.testing.assert_close(losses["naming"].detach(), expected.naming)


def test_sequences_grow_from_their_first_meetings_to_all() -> None:
    torch.manual_seed(0)
    model = build(tiny_model()).eval()
    plain = world(WITH_FEATURES, crop="none", occlusion=0.0)
    stage = FeatureTraining(model, plain, FeaturesConfig(steps=9, batch_size=2, grow=6), TrainConfig())
    longest = plain.config.length
    assert longest > 12
    lengths = [stage.length(step) for step in range(9)]
    assert lengths[0] == 10
    assert lengths == sorted(lengths)
    assert lengths[5] < longest
    assert lengths[6:] == [longest] * 3
    batch = plain.batch([plain.meetings(0, i) for i in (6, 7)])
    end = lengths[3]
    with torch.no_grad():
        answers = model(batch.images, batch.given, batch.valid, plain.slots)
    first = Answers(answers.scores[:, :end], answers.novelty[:, :end])
    expected = sequence_loss(first, batch.target[:, :end], batch.valid[:, :end], 1.0)
    torch.testing.assert_close(stage.losses(3)["loss"].detach(), expected.total)


def test_the_learner_is_trained_and_the_encoder_is_not(tmp_path: Path) -> None:
    preset = replace(WITH_FEATURES, train=replace(WITH_FEATURES.train, encoder_lr=0.0, steps=1, lr=1e-9))
    run(preset, tmp_path / "run")
    log = log_of(tmp_path / "run")
    assert [line["stage"] for line in log if "loss" in line] == ["features"] * 5 + ["sequences"]
    assert [line["step"] for line in log if "validation" in line] == [3, 5, 1]  # every 3, and the last
    torch.manual_seed(preset.train.seed)
    fresh, after = build(preset.model), load_model(tmp_path / "run" / "last" / "model.safetensors")
    for one, other in zip(fresh.encoder.parameters(), after.encoder.parameters(), strict=True):
        assert torch.equal(one, other)
    for one, other in zip(fresh.learner.parameters(), after.learner.parameters(), strict=True):
        assert (one - other).abs().max() > 1e-4


def test_an_lstm_takes_one_look_at_the_features_before_its_first_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[torch.Tensor] = []
    monkeypatch.setattr(LSTMLearner, "look_at", lambda _, features: looks.append(features))
    model = build(tiny_model(LOOKS_FIRST))
    stage = FeatureTraining(model, world(WITH_FEATURES), FeaturesConfig(steps=3, copies=2), TrainConfig())
    for step in range(3):
        stage.losses(step)
    assert len(looks) == 1
    assert torch.equal(looks[0], stage.features[:, 0])


@pytest.mark.parametrize(("learner", "stop"), [(CPM, 2), (CPM, 5), (CPM, 6), (LOOKS_FIRST, 1)])
def test_resumed_equals_uninterrupted(
    tmp_path: Path, learner: LearnerConfig, stop: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = replace(WITH_FEATURES, model=tiny_model(learner))
    run(preset, tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_after(patch, stop, interrupt)
        assert run(preset, tmp_path / "parts").status == "interrupted"
    assert run(preset, tmp_path / "parts", resume=True).status == "finished"
    assert log_of(tmp_path / "parts") == log_of(tmp_path / "whole")
    assert weights_of(tmp_path / "parts") == weights_of(tmp_path / "whole")


def test_zero_steps_leave_the_stage_on_sequences_out(tmp_path: Path) -> None:
    preset = replace(WITH_FEATURES, train=replace(WITH_FEATURES.train, steps=0))
    outcome = run(preset, tmp_path / "run")
    assert outcome.status == "finished"
    assert {line["stage"] for line in log_of(tmp_path / "run")} == {"features"}
    assert outcome.best_step in (3, 5)
    load_model(find_weights(str(tmp_path / "run")))
    assert ROOMS_PRESETS["cpm-rooms-small"].about.endswith(
        "25 minutes of pretraining, then 400 steps of features"
    )
    assert "pretraining, then 10 minutes of sequences" in ROOMS_PRESETS["oml-u-rooms-small"].about
    with pytest.raises(WanderError, match="Nothing is left to train"):
        run(replace(preset, features=None), tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_a_budget_that_contradicts_itself_or_is_never_spent_is_a_sentence() -> None:
    with pytest.raises(WanderError, match="steps None to train for so long"):
        TrainConfig(steps=0, minutes=10)
    for config, name in ((TrainConfig, "train"), (FeaturesConfig, "features")):
        with pytest.raises(WanderError, match=f"{name}.steps must not be below 0"):
            config(steps=-1)
        with pytest.raises(WanderError, match=f"{name}.minutes must not be below 0"):
            config(minutes=-0.5)
        with pytest.raises(WanderError, match=f"{name}.minutes must not be below 0"):
            config(minutes=float("nan"))


def test_the_budget_begins_when_the_features_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock_by_steps(monkeypatch, 15)

    def made(*args: Any, **kwargs: Any) -> torch.Tensor:
        now[0] += 1000
        return kept_features(*args, **kwargs)

    monkeypatch.setattr("wanderlearn.feature_training.kept_features", made)
    features = FeaturesConfig(minutes=1.0, copies=1, batch_size=2, lr=0.1)
    run(replace(WITH_FEATURES, features=features), tmp_path / "run")
    rates = [
        line["lr"] for line in log_of(tmp_path / "run") if "loss" in line and line["stage"] == "features"
    ]
    assert rates == pytest.approx([0.05 * (1 + np.cos(np.pi * k / 4)) for k in range(4)])
    progress = about_model(tmp_path / "run" / "last" / "model.safetensors")["progress"]
    assert progress["total_seconds"] == 1000 + 15 * (4 + 2)  # the hours it took are told all the same


def test_who_is_asked_to_stop_while_features_are_made_stops_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wanderlearn.feature_training.PICTURES_AT_ONCE", 8)
    run(WITH_FEATURES, tmp_path / "whole")
    shown, looked = SinglePictures.shown, []

    def look(self: SinglePictures, *args: Any) -> torch.Tensor:
        looked.append(args)
        if len(looked) == 1:
            interrupt()
        return shown(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(SinglePictures, "shown", look)
        assert run(WITH_FEATURES, tmp_path / "parts").status == "interrupted"
    assert len(looked) == 2  # both copies of the first eight pictures, and of no more
    assert not (tmp_path / "parts" / "log.jsonl").exists()  # no step was taken
    assert run(WITH_FEATURES, tmp_path / "parts", resume=True).status == "finished"
    assert log_of(tmp_path / "parts") == log_of(tmp_path / "whole")
    assert weights_of(tmp_path / "parts") == weights_of(tmp_path / "whole")


def test_one_of_a_group_that_is_stopped_while_features_are_made_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wanderlearn.feature_training.PICTURES_AT_ONCE", 8)
    models = [build(tiny_model()) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    whole = kept_features(models[0], world(WITH_FEATURES), copies=1, seed=0)
    config = FeaturesConfig(steps=1, copies=1)

    def made(group: Group) -> torch.Tensor:
        met = world(WITH_FEATURES)
        stage = FeatureTraining(models[group.rank], met, config, TrainConfig(), Compute(group=group))
        stage.prepare(lambda: group.rank == 1)
        return stage.features

    one, other = together(2, made)
    assert torch.equal(one, other)
    left_out = (one == 0).all(2)[:, 0]  # [N]: the second's share
    assert 0 < left_out.sum() < len(left_out)
    torch.testing.assert_close(one[~left_out], whole[~left_out])


def test_another_runs_encoder_is_taken_with_the_seconds_it_cost(tmp_path: Path) -> None:
    pretrained = tiny_preset(PROTONET, pretrain=PretrainConfig(epochs=1, batch_size=24), steps=1)
    run(pretrained, tmp_path / "first")
    encoder = find_encoder(str(tmp_path / "first"))
    assert encoder == tmp_path / "first" / "pretrained" / "model.safetensors"
    preset = tiny_preset(CPM, pretrain=PretrainConfig(epochs=3, batch_size=24), steps=1, encoder_lr=0.0)
    train(preset, tmp_path / "second", encoder=encoder, pictures=pictures)
    assert {line["stage"] for line in log_of(tmp_path / "second")} == {"sequences"}
    taken, theirs = load_model(tmp_path / "second" / "last" / "model.safetensors"), load_model(encoder)
    for one, other in zip(taken.encoder.parameters(), theirs.encoder.parameters(), strict=True):
        assert torch.equal(one, other)
    cost = take_encoder(encoder, build(preset.model))
    progress = about_model(tmp_path / "second" / "last" / "model.safetensors")["progress"]
    assert progress["total_seconds"] > cost > 0


def test_an_encoder_of_omniglot_comes_with_the_package(tmp_path: Path) -> None:
    preset = PRESETS["cpm-omniglot"]
    model, before = build(preset.model), build(preset.model)
    seconds = take_encoder(find_encoder("omniglot"), model)
    assert 60 < seconds < 3 * 3600
    taken, fresh = next(model.encoder.parameters()), next(before.encoder.parameters())
    assert not torch.equal(taken, fresh)
    assert float(dict(model.encoder.named_buffers())["blocks.0.average_weight"]) > 0.99  # it has seen a lot
    assert "omniglot" not in shipped_weights()  # an encoder is no learner
    picture = torch.rand(1, 1, 28, 28) * 2 - 1
    assert model.eval().encoder(picture).shape == (1, 64)


def test_a_resnet_may_come_from_pictures_of_another_size(tmp_path: Path) -> None:
    small = ResNet12Config(image_size=8, in_channels=1, channels=(4, 8))
    learner = replace(PROTONET, features=small.feature_dim)
    save_model(tmp_path / "small.safetensors", theirs := build(ModelConfig(small, learner)), {})
    take_encoder(
        tmp_path / "small.safetensors", ours := build(ModelConfig(replace(small, image_size=16), learner))
    )
    picture = torch.rand(2, 1, 16, 16)
    assert torch.equal(ours.eval().encoder(picture), theirs.eval().encoder(picture))
    wider = replace(small, image_size=16, channels=(4, 16))
    other = build(ModelConfig(wider, replace(learner, features=wider.feature_dim)))
    with pytest.raises(WanderError, match="another one than this model's"):
        take_encoder(tmp_path / "small.safetensors", other)


def test_an_encoder_that_does_not_fit_is_a_sentence(tmp_path: Path) -> None:
    other = ModelConfig(Conv4Config(channels=16), replace(PROTONET, features=16))
    save_model(tmp_path / "wide.safetensors", build(other), {})
    with pytest.raises(WanderError, match="another one than this model's"):
        take_encoder(tmp_path / "wide.safetensors", build(tiny_model()))
    with pytest.raises(WanderError, match="no run folder or file of weights nothing"):
        find_encoder("nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(WanderError, match="no best weights yet"):
        find_weights(str(tmp_path / "empty"))
    with pytest.raises(WanderError, match=r"features.copies must be at least 1"):
        FeaturesConfig(copies=0)


def test_mirrored_pictures_are_met_as_other_classes() -> None:
    model = build(tiny_model()).eval()
    plain = world(WITH_FEATURES, crop="none", occlusion=0.0)
    config = FeaturesConfig(steps=1, copies=1, batch_size=8, mirror=True)
    stage = FeatureTraining(model, plain, config, TrainConfig())
    images = torch.from_numpy(plain.pictures.images).float() / 127.5 - 1
    with torch.no_grad():
        expected = model.encoder(torch.cat([images, images.flip(3)]))
    torch.testing.assert_close(stage.features[:, 0], expected)
    met, real = stage.world.pictures, plain.pictures
    assert met.classes == 2 * real.classes
    assert met.family.tolist() == [*real.family, *real.family]
    assert met.class_of[len(real.class_of) :].tolist() == (real.class_of + real.classes).tolist()
    seen = np.concatenate([stage.world.meetings(0, i).picture for i in range(8)])
    assert (seen < len(real.class_of)).any()
    assert (seen >= len(real.class_of)).any()
    assert torch.isfinite(stage.losses(0)["loss"])


def test_what_has_no_mirror_image_is_not_mirrored() -> None:
    vectors = replace(pictures("train"), images=pictures("train").images.astype(np.float32))
    made_of_vectors = Roaming(vectors, world(WITH_FEATURES).config)
    with pytest.raises(WanderError, match="leave --features"):
        FeatureTraining(build(tiny_model()), made_of_vectors, FeaturesConfig(mirror=True), TrainConfig())


def stages(
    train: TrainConfig, semi: bool = False, per_class: int = 2
) -> list[FeatureTraining | SequenceTraining]:
    """Both stages in which sequences are met, before their first step, from the same weights."""
    features = FeaturesConfig(steps=1, copies=1, batch_size=4)
    train = replace(train, batch_size=4, workers=0)
    torch.manual_seed(0)
    one, other = build(tiny_model()), build(tiny_model())
    met = world(WITH_FEATURES, length=40, per_class=per_class, semi=semi)
    return [FeatureTraining(one, met, features, train), SequenceTraining(other, met, train)]


@pytest.mark.parametrize("which", [0, 1])
def test_things_may_return_as_often_as_there_are_pictures_of_them(which: int) -> None:
    often = {}
    for share in (0.0, 0.5, 1.0):
        stage = stages(TrainConfig(returning=share))[which]
        pictures = cast(Roaming, stage.world).pictures
        met = [np.bincount(stage.world.meetings(0, i).truth).max() for i in range(40)]
        often[share] = np.mean(np.array(met) > 2)
        assert max(met) <= min(np.diff(pictures.first))
        assert torch.isfinite(stage.losses(0)["loss"])
    assert often[0.0] == 0
    assert 0.2 < often[0.5] < 0.8 < often[1.0]


def test_both_stages_and_all_processes_meet_the_same_sequences() -> None:
    one, other = (stage.world for stage in stages(TrainConfig(returning=0.5)))
    for i in range(10):
        assert one.meetings(3, i).picture.tolist() == other.meetings(3, i).picture.tolist()


@pytest.mark.parametrize("share", [-0.5, 1.5])
@pytest.mark.parametrize("name", ["returning", "balance"])
def test_an_impossible_share_is_refused_in_words(name: str, share: float) -> None:
    with pytest.raises(WanderError, match=rf"^{name} must lie between 0 and 1"):
        TrainConfig(**cast(Any, {name: share}))


def test_a_run_goes_on_whose_settings_stood_elsewhere_if_they_did_nothing(tmp_path: Path) -> None:
    run(WITH_FEATURES, folder := tmp_path / "run")
    config = json.loads((folder / "config.json").read_text())
    config["features"] |= {name: config["train"].pop(name) for name in ("returning", "balance")}
    (folder / "config.json").write_text(json.dumps(config))
    assert run(WITH_FEATURES, folder, resume=True).status == "finished"
    config["features"]["balance"] = 0.5
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(WanderError, match=r"features\.balance was 0\.5 and is now None"):
        run(WITH_FEATURES, folder, resume=True)


def test_a_world_that_is_recorded_has_no_limit_to_lift() -> None:
    walks = cast(World, SimpleNamespace(config=None))  # anything but the roaming world
    with pytest.raises(WanderError, match=r"leave --train\.returning"):
        FeatureTraining(build(tiny_model()), walks, FeaturesConfig(), TrainConfig(returning=0.5))
    with pytest.raises(WanderError, match=r"leave --train\.returning"):
        SequenceTraining(build(tiny_model()), walks, TrainConfig(returning=0.5))


@pytest.mark.parametrize("which", [0, 1])
def test_with_balance_naming_counts_otherwise_and_novelty_as_before(which: int) -> None:
    met = [stages(TrainConfig(balance=balance), semi=True, per_class=4)[which] for balance in (0.0, 0.5)]
    found = [stage.losses(0) for stage in met]
    assert found[0]["naming"] != found[1]["naming"]
    assert found[0]["novelty"] == found[1]["novelty"]
