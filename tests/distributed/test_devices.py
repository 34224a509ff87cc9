"""Devices and precision: nothing is mixed, and less precision is only less precise."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.distributed.jobs import STAGES, stage_of, tiny_world
from tests.distributed.pretend import DEVICE, Elsewhere, MixedDevicesError, pretending
from tests.tiny_runs import CHANNELS, CPM, LEARNERS, PROTONET, run, tiny_model, tiny_preset
from wanderlearn.bench.encoder import plain_conv4
from wanderlearn.distributed.compute import Compute, backend_for, choose_device
from wanderlearn.distributed.exchange import GroupBackward
from wanderlearn.distributed.group import ALONE
from wanderlearn.distributed.scaling import FIRST, PATIENCE, LossScale
from wanderlearn.errors import WanderError
from wanderlearn.evaluate import gather
from wanderlearn.learners.dnc import DNCConfig
from wanderlearn.learners.encoders import Conv4, Conv4Config
from wanderlearn.learners.lstm import LSTMConfig
from wanderlearn.learners.offline import OfflineConfig
from wanderlearn.learners.oml import OMLConfig
from wanderlearn.metrics import Record
from wanderlearn.model import build
from wanderlearn.optimiser import DivergedError, Optimiser
from wanderlearn.sequence_training import SequenceTraining

EVERY = (
    *LEARNERS,
    LSTMConfig(features=CHANNELS, units=12, slots=8),
    DNCConfig(features=CHANNELS, slots=8),
    OMLConfig(features=CHANNELS, slots=8),
    OMLConfig(features=CHANNELS, slots=8, classifier="cosine"),
)
THERE = Compute(ALONE, DEVICE)


@pytest.fixture
def plain_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors that pretend do not know torch's inference mode."""
    monkeypatch.setattr(torch, "inference_mode", torch.no_grad)


def named(config: Any) -> str:
    return type(config).__name__


def test_a_device_cannot_be_mixed_with_another_unnoticed() -> None:
    with pretending():
        there = torch.ones(3, device=DEVICE)
        assert float((there + 1).sum()) == 6
        with pytest.raises(MixedDevicesError):
            there + torch.ones(3)


@pytest.mark.usefixtures("plain_inference")
@pytest.mark.parametrize("learner", EVERY, ids=named)
def test_training_and_evaluation_happen_where_the_model_is(learner: Any) -> None:
    preset, world = tiny_preset(learner, semi=True), tiny_world("train")
    meetings = [world.meetings(0, i) for i in range(3)]
    torch.manual_seed(0)
    model = build(preset.model).train()
    torch.manual_seed(1)
    here = SequenceTraining(model, world, preset.train).losses(0)["loss"]
    expected = gather(model, world, meetings, 2)
    torch.manual_seed(0)
    model = build(preset.model).train()
    with pretending():
        model.to(DEVICE)
        torch.manual_seed(1)
        losses = SequenceTraining(model, world, preset.train, THERE).losses(0)
        losses["loss"].backward()  # type: ignore[no-untyped-call]
        assert all(isinstance(parameter.grad, Elsewhere) for parameter in model.parameters())
        found = gather(model, world, meetings, 2)
        by_chance = (
            isinstance(learner, OMLConfig) and learner.classifier == "cosine"
        )  # each device has its own
        if not by_chance:
            assert float(losses["loss"].detach()) == pytest.approx(float(here.detach()), rel=1e-4)
    assert_like(found, expected)


@pytest.mark.usefixtures("plain_inference")
def test_the_offline_reference_does_too() -> None:
    world = tiny_world("test")
    model = build(tiny_model(OfflineConfig(features=CHANNELS)))
    expected = gather(model, world, [world.meetings(0, 0)])
    with pretending():
        model.to(DEVICE)
        found = gather(model, world, [world.meetings(0, 0)])
    assert_like(found, expected)


@pytest.mark.parametrize("name", STAGES)
def test_the_stages_before_do_too(name: str) -> None:
    preset, values = tiny_preset(CPM, semi=True), []
    for compute in (Compute(), THERE):
        torch.manual_seed(0)
        model = build(preset.model).train()
        with pretending():
            model.to(compute.device)
            stage = stage_of(name, model, tiny_world("train"), preset.train, compute)
            stage.tensors()
            losses = stage.losses(0)
            losses["loss"].backward()  # type: ignore[no-untyped-call]
            values.append({what: float(value.detach()) for what, value in losses.items()})
    assert values[0] == pytest.approx(values[1], rel=1e-4)


def assert_like(found: Record, expected: Record) -> None:
    assert (found.valid == expected.valid).all()
    sure = np.abs(expected.novelty) < 1e4
    np.testing.assert_allclose(found.novelty[sure], expected.novelty[sure], rtol=1e-3, atol=1e-3)
    assert (found.predicted == expected.predicted).mean() > 0.98


def test_bfloat16_trains_and_differs_by_rounding(tmp_path: Any) -> None:
    full = run(tiny_preset(PROTONET, steps=20, lr=1e-2, batch_size=2, validate_every=20), tmp_path / "full")
    less = run(
        tiny_preset(PROTONET, steps=40, lr=1e-2, batch_size=4, precision="bfloat16"), tmp_path / "less"
    )
    assert full.best_ap is not None
    assert less.best_ap is not None
    assert less.best_ap != full.best_ap
    assert less.best_ap > 0.6 * full.best_ap


def test_bfloat16_costs_our_encoder_no_more_digits_than_its_plain_definition() -> None:
    torch.manual_seed(0)
    encoder, pictures = Conv4(Conv4Config(channels=16)).train(), torch.rand(6, 1, 28, 28) * 2 - 1
    weights = torch.randn(6, encoder.feature_dim)
    lost = []
    for module in (encoder, plain_conv4(encoder).train()):
        found = [_features_and_gradient(module, pictures, weights, less) for less in (False, True)]
        lost.append([float((one - other).norm() / one.norm()) for one, other in zip(*found, strict=True)])
    for ours, plain in zip(*lost, strict=True):
        assert 0 < ours < 1.2 * plain


def _features_and_gradient(
    encoder: nn.Module, pictures: Tensor, weights: Tensor, less: bool
) -> tuple[Tensor, Tensor]:
    encoder.zero_grad()
    compute = Compute(precision="bfloat16" if less else "float32")
    features = compute.encode(encoder, pictures).flatten(1)
    (features * weights).sum().backward()  # type: ignore[no-untyped-call]
    gradient = torch.cat([p.grad.flatten() for p in encoder.parameters() if p.grad is not None])
    assert features.dtype == gradient.dtype == torch.float32
    return features.detach(), gradient


def test_the_loss_scale_halves_at_an_overflow_and_doubles_after_many_good_steps() -> None:
    scale = LossScale()
    assert scale.overflowed()
    assert scale.value == FIRST / 2
    for _ in range(PATIENCE):
        scale.went_well()
    assert scale.value == FIRST
    other = LossScale()
    other.overflowed()
    other.went_well()
    again = LossScale()
    again.restore(other.state())
    assert (again.value, again.since) == (FIRST / 2, 1)


def test_a_scaled_step_is_the_same_step_and_an_overflow_is_left_out() -> None:
    preset, weights = tiny_preset(PROTONET), []
    for scaled in (False, True):
        torch.manual_seed(0)
        model = build(preset.model).train()
        stage = SequenceTraining(model, tiny_world("train"), preset.train)
        backward = GroupBackward(Compute(), (), 2)
        backward.scale = LossScale() if scaled else None
        optimiser = Optimiser(stage.tensors(), preset.train, backward)
        norm = optimiser.step(stage.losses(0)["loss"], 1.0)
        assert norm > 0
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
        if backward.scale:
            before = weights[-1].clone()
            backward.scale.value = 1e38
            assert np.isnan(optimiser.step(1e10 * stage.losses(1)["loss"], 1.0))
            assert torch.equal(before, torch.cat([p.detach().flatten() for p in model.parameters()]))
            assert backward.scale.value == 5e37
            backward.scale.value = 1e-30  # no scale helps: it has diverged
            with pytest.raises(DivergedError):
                optimiser.step(float("1e38") * stage.losses(1)["loss"] ** 9, 1.0)
    torch.testing.assert_close(*weights)


def test_what_cannot_be_had_is_said() -> None:
    assert choose_device("cpu") == choose_device("auto") == torch.device("cpu")
    assert backend_for("cpu") == "gloo"
    assert backend_for("cuda:1") == "cpu:gloo,cuda:nccl"
    for name, words in (("cuda", "no GPU"), ("moon", "no device"), ("meta", "do not know")):
        with pytest.raises(WanderError, match=words):
            choose_device(name)
    with pytest.raises(WanderError, match="bfloat16"):
        Compute(precision="float16")
