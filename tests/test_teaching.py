"""Learning from a teacher: lessons are what it says of whole pictures, and who is taught comes to agree."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.distributed.threads import together
from tests.test_training import interrupt, stop_after
from tests.tiny_runs import PROTONET, clock_by_steps, log_of, pictures, run, tiny_preset, weights_of
from tests.tiny_world import tiny_pictures
from wanderlearn.distributed.compute import Compute
from wanderlearn.errors import WanderError
from wanderlearn.learners.encoders import Conv4, Conv4Config
from wanderlearn.model import ModelConfig, about_model, build, load_model, save_model
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.singles import SinglePictures
from wanderlearn.teaching import CROPS, Lessons, class_means
from wanderlearn.train import train
from wanderlearn.worlds import RoamingConfig

PICTURES = tiny_pictures(families=2, classes_per_family=2, per_class=3)  # 12 pictures


def encoder(seed: int = 0) -> Conv4:
    torch.manual_seed(seed)
    return Conv4(Conv4Config(channels=8, last_relu=False)).eval()


@pytest.mark.parametrize("mirror", [False, True])
def test_lessons_are_what_the_teacher_says_of_whole_pictures(mirror: bool) -> None:
    teacher, sharpness = encoder(), 7.0
    data = SinglePictures(PICTURES, RoamingConfig(), 0, 4, mirror=mirror)
    lessons = Lessons(teacher, data, sharpness, Compute())
    said: dict[tuple[int, int], torch.Tensor] = {}
    for kind in range(1 + mirror):
        for n, image in enumerate(PICTURES.images):
            padded = np.pad(image, ((0, 0), (2, 2), (2, 2))).astype(np.float64) / 127.5 - 1
            total = torch.zeros(8)
            for down, right in CROPS:
                crop = padded[:, 2 + down : 30 + down, 2 + right : 30 + right]
                crop = crop[..., ::-1] if kind else crop
                with torch.no_grad():
                    seen = teacher(torch.from_numpy(crop.copy()).float()[None])[0]
                total += seen / seen.norm()
            said[kind, n] = total / total.norm()
    classes = 4 * (1 + mirror)
    known = torch.zeros(classes, 8)
    for (kind, n), each in said.items():
        known[4 * kind + n // 3] += each
    known = known / known.norm(dim=-1, keepdim=True)
    asked = [(0, 5), (mirror * 1, 7), (0, 11)]
    kinds, rows = (np.array(some) for some in zip(*asked, strict=True))
    expected = torch.stack([(sharpness * known @ said[one]).softmax(-1) for one in asked])
    torch.testing.assert_close(lessons.of(rows, kinds), expected, atol=1e-5, rtol=1e-4)


def test_lessons_of_a_group_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wanderlearn.teaching.AT_ONCE", 5)  # three pieces
    data, teacher = SinglePictures(PICTURES, RoamingConfig(), 0, 4, mirror=True), encoder()
    alone = Lessons(teacher, data, 7.0, Compute())
    for size in (2, 4):  # in the second somebody has nothing to do
        for found in together(size, lambda group: Lessons(teacher, data, 7.0, Compute(group=group))):
            torch.testing.assert_close(found.said, alone.said)
            torch.testing.assert_close(found.known, alone.known)


def test_class_means_leave_the_encoder_as_it_was() -> None:
    own = encoder().train()
    before = {name: tensor.clone() for name, tensor in own.state_dict().items()}
    data = SinglePictures(PICTURES, RoamingConfig(), 0, 4)
    means = class_means(own, data, Compute())
    assert own.training
    assert all(torch.equal(before[name], tensor) for name, tensor in own.state_dict().items())
    with torch.no_grad():
        seen = F.normalize(own.eval()(torch.from_numpy(PICTURES.images).float() / 127.5 - 1), dim=-1)
    for c in range(4):
        torch.testing.assert_close(means[c], F.normalize(seen[3 * c : 3 * c + 3].sum(0), dim=-1))


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with a pretrained encoder."""
    folder = tmp_path_factory.mktemp("teacher") / "run"
    how = PretrainConfig(epochs=25, batch_size=24, lr=2e-2)
    run(tiny_preset(PROTONET, pretrain=how, steps=1), folder)
    return folder


def test_who_is_taught_comes_to_agree_with_the_teacher(teacher: Path, tmp_path: Path) -> None:
    how = PretrainConfig(epochs=20, batch_size=24, lr=2e-2, teacher=str(teacher))
    outcome = run(tiny_preset(PROTONET, pretrain=how, steps=1, seed=5), tmp_path / "run")
    log = [line for line in log_of(tmp_path / "run") if line["stage"] == "pretrain"]
    assert log[-1]["loss"] < 0.8 * log[0]["loss"]
    assert sum(line["accuracy"] for line in log[-8:]) > 2 * sum(line["accuracy"] for line in log[:8])
    # The time the teacher took counts.
    spent = about_model(teacher / "pretrained" / "model.safetensors")["seconds"]
    assert outcome.seconds > spent > 0


def test_being_taught_resumes_to_the_bit(
    teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = PretrainConfig(epochs=2, batch_size=24, teacher=str(teacher))
    preset = tiny_preset(PROTONET, pretrain=how, steps=2, seed=3)
    run(preset, tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_after(patch, 3, interrupt)
        assert run(preset, tmp_path / "cut").stage == "pretrain"
    run(preset, tmp_path / "cut", resume=True)
    assert log_of(tmp_path / "cut") == log_of(tmp_path / "whole")
    assert weights_of(tmp_path / "cut") == weights_of(tmp_path / "whole")


def test_an_encoder_that_is_given_goes_on_only_with_a_teacher(teacher: Path, tmp_path: Path) -> None:
    given = teacher / "pretrained" / "model.safetensors"
    how = PretrainConfig(epochs=1, batch_size=24, lr=1e-5, turn=1e-4)
    stages, first = {}, {}
    for name, who in (("alone", ""), ("taught", str(teacher))):
        preset = tiny_preset(PROTONET, pretrain=replace(how, teacher=who), steps=1)
        train(preset, tmp_path / name, encoder=given, pictures=pictures)
        lines = log_of(tmp_path / name)
        stages[name], first[name] = {line["stage"] for line in lines}, lines[0]
    assert stages == {"alone": {"sequences"}, "taught": {"pretrain", "sequences"}}
    # It begins with what it knows: the first step names as well as the teacher's last ones did.
    assert first["taught"]["accuracy"] > 0.5


def test_the_time_of_a_teacher_counts_once(teacher: Path, tmp_path: Path) -> None:
    # A teacher who took far longer than anything here will.
    itself, its_own = tmp_path / "slow.safetensors", 10_000.0
    fast = teacher / "pretrained" / "model.safetensors"
    save_model(itself, load_model(fast), about_model(fast) | {"seconds": its_own})
    how = PretrainConfig(epochs=1, batch_size=24, teacher=str(itself))
    preset = tiny_preset(PROTONET, pretrain=how, steps=1)
    once = run(preset, tmp_path / "once")
    given = tmp_path / "once" / "pretrained" / "model.safetensors"
    twice = train(preset, tmp_path / "twice", encoder=given, pictures=pictures)
    before = about_model(given)["seconds"]
    assert before > its_own
    second = about_model(tmp_path / "twice" / "pretrained" / "model.safetensors")["seconds"]
    assert before < second < before + its_own
    assert once.seconds > before
    assert twice.seconds > second
    # Nor does it count twice for who is its own teacher.
    train(preset, tmp_path / "self", encoder=itself, pictures=pictures)
    alone = about_model(tmp_path / "self" / "pretrained" / "model.safetensors")["seconds"]
    assert its_own < alone < 2 * its_own


def test_the_budget_begins_when_the_teacher_was_asked(
    teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock_by_steps(monkeypatch, 15)

    class Slow(Lessons):
        def __init__(self, *args: Any) -> None:
            now[0] += 1000
            super().__init__(*args)

    monkeypatch.setattr("wanderlearn.pretrain.Lessons", Slow)
    how = PretrainConfig(
        minutes=1.0, batch_size=24, lr=0.01, schedule="cosine", warmup=0, teacher=str(teacher)
    )
    run(tiny_preset(PROTONET, pretrain=how, steps=1), tmp_path / "run")
    rates = [line["lr"] for line in log_of(tmp_path / "run") if line["stage"] == "pretrain"]
    assert rates == pytest.approx([0.005 * (1 + np.cos(np.pi * k / 4)) for k in range(4)])


def test_a_teacher_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    how = PretrainConfig(epochs=1, batch_size=24, teacher=str(tmp_path / "nobody"))
    with pytest.raises(WanderError, match="no run folder"):
        run(tiny_preset(PROTONET, pretrain=how), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_teacher_of_other_pictures_is_an_error(tmp_path: Path) -> None:
    other = ModelConfig(Conv4Config(in_channels=3, channels=8), replace(PROTONET, features=8))
    save_model(tmp_path / "other.safetensors", build(other), {})
    how = PretrainConfig(epochs=1, batch_size=24, teacher=str(tmp_path / "other.safetensors"))
    with pytest.raises(WanderError, match="28 x 28 in 3 channels, but these are of 28 x 28 in 1 channel"):
        run(tiny_preset(PROTONET, pretrain=how), tmp_path / "run")
