"""Pretraining: single pictures drawn right, a classifier with a margin, and a stage that resumes."""

from math import exp, log
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.test_training import interrupt, stop_after
from tests.tiny_runs import PROTONET, log_of, pictures, run, tiny_model, tiny_preset, weights_of
from tests.tiny_world import tiny_pictures
from wanderlearn.errors import WanderError
from wanderlearn.model import build, load_model
from wanderlearn.pictures.warp import DRAWS, warped
from wanderlearn.pretrain import CosineClassifier, PretrainConfig, Pretraining
from wanderlearn.singles import SinglePictures
from wanderlearn.worlds import Roaming, RoamingConfig

PICTURES = tiny_pictures(families=3, classes_per_family=2, per_class=5, channels=2)  # 30 pictures


def slowly(index: int, row: int, column: int, box: tuple[int, int], side: int) -> np.ndarray:
    padded = np.zeros((2, 32, 32), dtype=np.float64)
    padded[:, 2:30, 2:30] = PICTURES.images[index]
    picture = padded[:, row : row + 28, column : column + 28] / 127.5 - 1
    picture[:, box[0] : box[0] + side, box[1] : box[1] + side] = 0
    return picture


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**40), st.integers(0, 1000))
def test_every_picture_is_a_crop_of_its_class_with_one_box(seed: int, step: int) -> None:
    data = SinglePictures(PICTURES, RoamingConfig(), seed, batch_size=7)
    images, truth = data.batch(step)
    assert images.dtype == torch.float32
    # The independent version: search for the crop and the box that explain each picture.
    for image, label in zip(images.double().numpy(), truth.tolist(), strict=True):
        grey = (image == 0).all(0)
        rows, columns = np.flatnonzero(grey.sum(1) >= 8), np.flatnonzero(grey.sum(0) >= 8)
        assert len(rows) == len(columns) == 8
        box = int(rows[0]), int(columns[0])
        assert max(box) <= 19
        members = range(PICTURES.first[label], PICTURES.first[label + 1])
        explained = any(
            np.allclose(image, slowly(index, row, column, box, 8), atol=1e-6)
            for index in members for row in range(5) for column in range(5)
        )  # fmt: skip
        assert explained


def test_an_epoch_shows_every_picture_once_and_the_next_in_another_order() -> None:
    data = SinglePictures(PICTURES, RoamingConfig(crop="none", occlusion=0.0), 0, batch_size=10)
    original = torch.from_numpy(PICTURES.images).float() / 127.5 - 1
    orders = []
    for epoch in range(2):
        shown = torch.cat([data.batch(3 * epoch + n)[0] for n in range(3)])
        same = (shown[:, None] - original[None]).abs().amax((2, 3, 4)) < 1e-6  # [30, 30]
        assert torch.equal(same.sum(0), torch.ones(30, dtype=torch.long))
        orders.append(same.long().argmax(1))
    assert not torch.equal(orders[0], orders[1])


def test_without_a_crop_pictures_are_where_a_test_shows_them() -> None:
    config = PretrainConfig(epochs=1.0, batch_size=10, crop=False)
    process = RoamingConfig(environments=1, classes=3, length=6, per_class=2, occlusion=0.0)
    world = Roaming(PICTURES, process)
    data = Pretraining(build(tiny_model()), world, config, 0).data
    assert isinstance(data, SinglePictures)
    original = torch.from_numpy(PICTURES.images).float() / 127.5 - 1
    shown = torch.cat([data.batch(n)[0] for n in range(3)])
    same = (shown[:, None] - original[None]).abs().amax((2, 3, 4)) < 1e-6  # [30, 30]
    assert torch.equal(same.sum(0), torch.ones(30, dtype=torch.long))


def test_batches_depend_on_seed_and_step_alone() -> None:
    one, other = (SinglePictures(PICTURES, RoamingConfig(), 4, batch_size=8) for _ in range(2))
    for step in (9, 2, 9, 0):
        images, truth = one.batch(step)
        again = SinglePictures(PICTURES, RoamingConfig(), 4, batch_size=8).batch(step)
        assert torch.equal(images, again[0])
        assert torch.equal(truth, again[1])
    assert not torch.equal(other.batch(0)[0], other.batch(1)[0])
    assert not torch.equal(
        SinglePictures(PICTURES, RoamingConfig(), 5, batch_size=8).batch(0)[0], other.batch(0)[0]
    )


def test_too_few_pictures_for_a_batch_is_a_sentence() -> None:
    with pytest.raises(WanderError, match="30 training pictures, fewer than a batch of 31"):
        SinglePictures(PICTURES, RoamingConfig(), 0, batch_size=31)


def test_the_classifier_by_hand() -> None:
    classifier = CosineClassifier(2, 2, scale=4.0, margin=0.25)
    with torch.no_grad():
        classifier.weight.copy_(torch.tensor([[3.0, 0.0], [0.0, 0.5]]))
        scores = classifier(torch.tensor([[0.6, 0.8], [5.0, 0.0]]))
        torch.testing.assert_close(scores, torch.tensor([[2.4, 3.2], [4.0, 0.0]]))
        loss = classifier.loss(scores, torch.tensor([1, 0])).item()
    # the right class is lowered by 4 x 0.25
    first = -log(exp(2.2) / (exp(2.2) + exp(2.4)))
    second = -log(exp(3.0) / (exp(3.0) + 1))
    assert loss == pytest.approx((first + second) / 2, rel=1e-6)


def test_the_budget_in_steps() -> None:
    assert PretrainConfig(epochs=2.5, batch_size=10).steps(45) == 10
    assert PretrainConfig(epochs=0.001, batch_size=10).steps(45) == 1
    assert PretrainConfig(minutes=1).steps(45) is None
    assert PretrainConfig(minutes=1).wanted
    assert not PretrainConfig(minutes=0, epochs=0).wanted
    with pytest.raises(WanderError, match="at least 2 pictures"):
        PretrainConfig(batch_size=1)


def test_the_encoder_learns_and_hands_its_weights_on(tmp_path: Path) -> None:
    pretrain = PretrainConfig(epochs=25, batch_size=24, lr=2e-2)
    preset = tiny_preset(PROTONET, pretrain=pretrain, steps=1, encoder_lr=0.0)
    run(preset, tmp_path / "run")
    log = [line for line in log_of(tmp_path / "run") if line["stage"] == "pretrain"]
    assert len(log) == 25 * (len(pictures("train").images) // 24)
    accuracy = [line["accuracy"] for line in log]
    assert sum(accuracy[-8:]) > 2 * sum(accuracy[:8])
    assert log[-1]["loss"] < 0.7 * log[0]["loss"]
    # One step on sequences with a frozen encoder: its weights are still those of pretraining, not fresh ones.
    torch.manual_seed(preset.train.seed)
    fresh, after = build(preset.model), load_model(tmp_path / "run" / "last" / "model.safetensors")
    for one, other in zip(fresh.encoder.parameters(), after.encoder.parameters(), strict=True):
        assert not torch.equal(one, other)


@pytest.mark.parametrize("cut", [3, 9])  # in the middle of pretraining (8 steps), and just after it
def test_pretraining_resumes_to_the_bit(cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preset = tiny_preset(PROTONET, pretrain=PretrainConfig(epochs=2, batch_size=24), steps=3)
    whole = run(preset, tmp_path / "whole")
    assert [line["stage"] for line in log_of(tmp_path / "whole")].count("pretrain") == 8
    with monkeypatch.context() as patch:
        stop_after(patch, cut, interrupt)
        stopped = run(preset, tmp_path / "cut")
    assert (stopped.status, stopped.stage) == ("interrupted", "pretrain" if cut == 3 else "sequences")
    resumed = run(preset, tmp_path / "cut", resume=True)
    assert resumed.best_ap == whole.best_ap
    assert log_of(tmp_path / "cut") == log_of(tmp_path / "whole")
    for which in ("last", "best"):
        assert weights_of(tmp_path / "cut", which) == weights_of(tmp_path / "whole", which)


def test_without_a_budget_there_is_no_pretraining(tmp_path: Path) -> None:
    run(tiny_preset(PROTONET, pretrain=PretrainConfig(), steps=1), tmp_path / "run")
    assert {line["stage"] for line in log_of(tmp_path / "run")} == {"sequences"}


def test_class_directions_turn_at_the_usual_rate() -> None:
    """Only directions count: a large weight would need thousands of steps of Adam to turn."""
    torch.manual_seed(0)
    classes = 500
    features = torch.randn(classes, 64)
    classifier = CosineClassifier(64, classes, scale=20.0, margin=0.1)
    adam = torch.optim.Adam(classifier.parameters(), lr=3e-3)
    truth = torch.arange(classes)
    for _ in range(60):
        adam.zero_grad()
        classifier.loss(classifier(features), truth).backward()  # type: ignore[no-untyped-call]
        adam.step()
    assert (classifier(features).argmax(-1) == truth).float().mean() > 0.95


def test_half_of_the_pictures_are_warped_each_in_its_own_way() -> None:
    plain, bent, again = (SinglePictures(PICTURES, RoamingConfig(), 3, 8, warp) for warp in (0.0, 1.0, 1.0))
    (before, truth), (after, same_truth) = plain.batch(2), bent.batch(2)
    assert torch.equal(truth, same_truth)
    assert torch.equal(after, again.batch(2)[0])
    changed = (before - after).abs().amax((1, 2, 3)) > 0.05
    assert changed.tolist() == [True] * 4 + [False] * 4
    assert (after >= -1).all() and (after <= 1.0001).all()  # noqa: PT018
    # The grey box is in front of the picture: it stays where and as large as it was.
    assert torch.equal((before == 0).all(1).sum((1, 2)) >= 64, (after == 0).all(1).sum((1, 2)) >= 64)


def test_a_warp_is_what_it_says() -> None:
    image = torch.full((1, 1, 28, 28), -1.0)
    image[..., 10:18, 6:10] = 1.0  # a bar left of the middle
    still = np.full((1, DRAWS), 0.5)
    torch.testing.assert_close(warped(image, still, 1.0), image, atol=1e-5, rtol=0)
    torch.testing.assert_close(warped(image, np.random.rand(1, DRAWS), 0.0), image, atol=1e-5, rtol=0)

    def moments(picture: torch.Tensor) -> tuple[float, float, float]:
        ink = picture[0, 0] + 1
        down, right = torch.meshgrid(torch.arange(28.0) - 13.5, torch.arange(28.0) - 13.5, indexing="ij")
        mass = ink.sum()
        return float((ink * down).sum() / mass), float((ink * right).sum() / mass), float(mass)

    turned = still.copy()
    turned[0, 0] = 1.0  # 12 degrees
    down, right, _ = moments(warped(image, turned, 1.0))
    assert abs(np.hypot(down, right) - 6) < 0.1  # as far from the middle as before
    assert abs(np.rad2deg(np.arctan2(down, -right))) == pytest.approx(12, abs=0.5)
    wide = still.copy()
    wide[0, 2] = 0.0  # looking at 85 % of the width: everything appears 1 / 0.85 as wide
    assert moments(warped(image, wide, 1.0))[2] == pytest.approx(moments(image)[2] / 0.85, rel=0.03)
    with pytest.raises(WanderError, match="warp of pretraining is from 0 to 3, not 4"):
        PretrainConfig(warp=4)


def test_mirrored_pictures_can_be_classes_of_their_own() -> None:
    plain = RoamingConfig(crop="none", occlusion=0.0)
    real, mirrored = (SinglePictures(PICTURES, plain, 2, 10, mirror=mirror) for mirror in (False, True))
    assert (real.classes, mirrored.classes) == (PICTURES.classes, 2 * PICTURES.classes)
    turned_of_all = 0
    for step in range(6):
        images, truth = real.batch(step)
        seen, theirs = mirrored.batch(step)
        turned = theirs >= PICTURES.classes
        turned_of_all += int(turned.sum())
        assert torch.equal(theirs - PICTURES.classes * turned, truth)
        assert torch.equal(seen[turned], images[turned].flip(3))
        assert torch.equal(seen[~turned], images[~turned])
        part, classes = mirrored.batch(step, range(3, 7))  # a share of it is the same
        assert torch.equal(part, seen[3:7])
        assert torch.equal(classes, theirs[3:7])
    assert 15 <= turned_of_all <= 45  # of 60
    with pytest.raises(WanderError, match="not both"):
        PretrainConfig(flip=True, mirror=True)


def test_mirrored_classes_are_learned_beside_the_real_ones(tmp_path: Path) -> None:
    preset = tiny_preset(pretrain=PretrainConfig(epochs=1.0, batch_size=10, mirror=True))
    assert run(preset, tmp_path / "run").status == "finished"
