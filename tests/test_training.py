"""Training: it learns, it resumes to the bit, it stops politely, and it says what went wrong."""

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.tiny_runs import CPM, LEARNERS, PROTONET, log_of, run, tiny_preset, weights_of
from tests.tiny_world import tiny_pictures
from wanderlearn import train as training
from wanderlearn.errors import WanderError
from wanderlearn.evaluate import gather
from wanderlearn.learners.wayfarer import WayfarerConfig
from wanderlearn.loss import sequence_loss
from wanderlearn.model import about_model, build, load_model
from wanderlearn.optimiser import DivergedError, Optimiser, Trained, trained
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.train import train


def stop_after(monkeypatch: pytest.MonkeyPatch, steps: int, how: Callable[[], None]) -> None:
    """Let something happen in the middle of the `steps`-th step of this process."""
    taken = Optimiser.step
    count = iter(range(1, 10**6))

    def step(self: Optimiser, loss: Tensor, factor: float) -> float:
        if next(count) == steps:
            how()
        return taken(self, loss, factor)

    monkeypatch.setattr(Optimiser, "step", step)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    ("learner", "semi"), [(CPM, False), (CPM, True), *((each, True) for each in LEARNERS[1:])]
)
def test_interrupted_and_resumed_equals_uninterrupted_to_the_bit(
    learner: Any, semi: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = tiny_preset(learner, semi=semi)
    whole = run(preset, tmp_path / "whole")
    for step in (2, 3):  # cut twice: after step 2, and after step 5
        with monkeypatch.context() as patch:
            stop_after(patch, step, interrupt)
            cut = run(preset, tmp_path / "cut", resume=step == 3)
        assert cut.status == "interrupted"
    resumed = run(preset, tmp_path / "cut", resume=True)
    assert (resumed.status, resumed.step, resumed.best_ap) == (whole.status, whole.step, whole.best_ap)
    assert log_of(tmp_path / "cut") == log_of(tmp_path / "whole")
    for which in ("last", "best"):
        assert weights_of(tmp_path / "cut", which) == weights_of(tmp_path / "whole", which)


def test_a_random_write_schedule_resumes_to_the_bit_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = tiny_preset(replace(PROTONET, write_schedule=10), semi=True)
    run(preset, tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_after(patch, 4, interrupt)
        run(preset, tmp_path / "cut")
    run(preset, tmp_path / "cut", resume=True)
    assert log_of(tmp_path / "cut") == log_of(tmp_path / "whole")
    plain = tiny_preset(PROTONET, semi=True)
    run(plain, tmp_path / "plain")
    assert log_of(tmp_path / "plain") != log_of(tmp_path / "whole")


def test_the_seed_decides_and_workers_do_not(tmp_path: Path) -> None:
    preset = tiny_preset(PROTONET, steps=2)
    run(preset, tmp_path / "one")
    run(replace(preset, train=replace(preset.train, workers=1)), tmp_path / "same")
    run(replace(preset, train=replace(preset.train, seed=1)), tmp_path / "other")
    assert weights_of(tmp_path / "one") == weights_of(tmp_path / "same")
    assert weights_of(tmp_path / "one") != weights_of(tmp_path / "other")


def test_training_leaves_the_global_generator_and_threads_alone(tmp_path: Path) -> None:
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    before = torch.get_num_threads(), signal.getsignal(signal.SIGINT)
    run(tiny_preset(PROTONET, steps=1), tmp_path / "run")
    assert torch.equal(torch.rand(2), expected)
    assert (torch.get_num_threads(), signal.getsignal(signal.SIGINT)) == before


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda config: type(config).__name__)
def test_the_loss_goes_down_and_the_ap_up(learner: Any, tmp_path: Path) -> None:
    preset = tiny_preset(learner, steps=60, lr=1e-2, validate_every=30, validate_sequences=10, batch_size=4)
    outcome = run(preset, tmp_path / "run")
    log = log_of(tmp_path / "run")
    losses = [line["loss"] for line in log if "loss" in line]
    assert sum(losses[-10:]) < 0.75 * sum(losses[:10])
    assert outcome.best_ap is not None
    validations = [line["validation"]["ap"] for line in log if "validation" in line]
    assert outcome.best_ap == max(validations)
    untrained = run(replace(preset, train=replace(preset.train, steps=1, lr=1e-30)), tmp_path / "untrained")
    assert untrained.best_ap is not None
    assert outcome.best_ap > untrained.best_ap + 20


def test_what_a_run_leaves_behind(tmp_path: Path) -> None:
    outcome = run(tiny_preset(PROTONET, novelty_weight=0.5), tmp_path / "run")
    log = log_of(tmp_path / "run")
    steps = [line for line in log if "loss" in line]
    assert [line["step"] for line in steps] == [1, 2, 3, 4, 5, 6]
    assert [line["step"] for line in log if "validation" in line] == [3, 6]
    for line in steps:
        assert line["loss"] == pytest.approx(line["naming"] + 0.5 * line["novelty"], rel=1e-5)
        assert line["grad_norm"] > 0
    assert [line["lr"] for line in steps[:2]] == pytest.approx([1e-3, 1e-3 * 0.9330127], rel=1e-6)
    about = about_model(tmp_path / "run" / "best" / "model.safetensors")
    assert (about["preset"], about["world"], about["step"]) == ("tiny", "tiny", outcome.best_step)
    assert about["validation_ap"] == outcome.best_ap
    assert load_model(tmp_path / "run" / "last" / "model.safetensors").config == tiny_preset(PROTONET).model
    assert json.loads((tmp_path / "run" / "config.json").read_text())["train"]["novelty_weight"] == 0.5


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    preset = tiny_preset(PROTONET, steps=2)
    first = run(preset, tmp_path / "run")
    log = (tmp_path / "run" / "log.jsonl").read_bytes()
    assert run(preset, tmp_path / "run", resume=True) == first
    assert (tmp_path / "run" / "log.jsonl").read_bytes() == log


def test_patience_ends_a_run_that_no_longer_gets_better(tmp_path: Path) -> None:
    preset = tiny_preset(PROTONET, steps=50, validate_every=1, lr=1e-30, patience=2)
    outcome = run(preset, tmp_path / "run")
    assert outcome.status == "finished"
    assert outcome.step < 50
    assert outcome.best_step is not None


def test_minutes_are_a_budget_that_lasts_over_interruptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A clock of our own: every look at it takes a second.
    ticks = iter(range(10**6))
    monkeypatch.setattr("wanderlearn.train.time.monotonic", lambda: float(next(ticks)))
    preset = tiny_preset(PROTONET, steps=None, minutes=0.5, validate_every=1000, schedule="piecewise")
    with monkeypatch.context() as patch:
        stop_after(patch, 4, interrupt)
        cut = run(preset, tmp_path / "run")
    assert cut.status == "interrupted"
    assert 0 < cut.seconds < 30
    outcome = run(preset, tmp_path / "run", resume=True)
    assert outcome.status == "finished"
    assert 30 <= outcome.seconds <= 40
    steps = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    steps = [line for line in steps if "loss" in line]
    assert [line["seconds"] for line in steps] == sorted(line["seconds"] for line in steps)
    before = [0.0] + [line["seconds"] for line in steps[:-1]]
    for seconds, line in zip(before, steps, strict=True):
        assert line["lr"] == pytest.approx(1e-3 * (1 if seconds <= 15 else 0.1 if seconds <= 22.5 else 0.01))


def test_a_loss_that_is_no_number_stops_the_run_and_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = tiny_preset(PROTONET, validate_every=2)
    real = sequence_loss
    calls = iter(range(1, 100))

    def broken(*arguments: Any, **named: Any) -> Any:
        loss = real(*arguments, **named)
        return loss if next(calls) < 4 else loss._replace(total=loss.total * float("nan"))

    monkeypatch.setattr("wanderlearn.sequence_training.sequence_loss", broken)
    with pytest.raises(WanderError, match=r"Step 4 .*the loss is nan.*last good checkpoint"):
        run(preset, tmp_path / "run")
    assert about_model(tmp_path / "run" / "last" / "model.safetensors")["step"] == 2
    model = load_model(tmp_path / "run" / "last" / "model.safetensors")
    assert all(tensor.isfinite().all() for tensor in model.state_dict().values())
    monkeypatch.setattr("wanderlearn.sequence_training.sequence_loss", real)
    assert run(preset, tmp_path / "run", resume=True).status == "finished"
    run(preset, tmp_path / "whole")
    assert log_of(tmp_path / "run") == log_of(tmp_path / "whole")


def test_a_gradient_that_is_no_number_changes_nothing() -> None:
    weight = nn.Parameter(torch.ones(2, 2))
    optimiser = Optimiser([Trained("w", weight, 1.0)], TrainConfig())
    with pytest.raises(DivergedError, match="gradient"):
        optimiser.step((weight - 1).abs().sum().sqrt(), 1.0)  # 0 with an infinite slope
    assert torch.equal(weight.detach(), torch.ones(2, 2))


def first_steps(config: TrainConfig, tensor: nn.Parameter, gradient: Tensor, steps: int = 3) -> Tensor:
    optimiser = Optimiser([Trained("w", tensor, 0.5)], config)
    for _ in range(steps):
        optimiser.step((tensor * gradient).sum(), 0.1)
    return tensor.detach()


@pytest.mark.parametrize("decays", [True, False])
def test_adam_by_hand_with_decay_on_weights_only(decays: bool) -> None:
    shape = (2, 2) if decays else (4,)
    gradient = torch.tensor([0.3, -0.2, 0.1, 0.0]).view(shape)
    config = TrainConfig(lr=0.1, weight_decay=0.5, clip=0.0, adam_eps=1e-3)
    got = first_steps(config, nn.Parameter(torch.full(shape, 2.0)), gradient)
    w, m, v = torch.full(shape, 2.0), torch.zeros(shape), torch.zeros(shape)
    for n in (1, 2, 3):
        g = gradient + 0.5 * w if decays else gradient  # d/dw of wd/2 w^2
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - 0.1 * 0.5 * 0.1 * (m / (1 - 0.9**n)) / ((v / (1 - 0.999**n)).sqrt() + 1e-3)
    torch.testing.assert_close(got, w)


def test_the_gradient_is_capped_by_its_norm() -> None:
    # Adam does not care about scale unless epsilon is large: then a step is lr * g / eps.
    config = TrainConfig(lr=1.0, weight_decay=0.0, clip=0.5, adam_eps=1e6)
    got = first_steps(config, nn.Parameter(torch.zeros(2, 1)), torch.tensor([[3.0], [4.0]]), steps=1)
    torch.testing.assert_close(got * 1e6, -0.05 * 0.5 * torch.tensor([[0.6], [0.8]]), rtol=1e-4, atol=0)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda config: type(config).__name__)
def test_decay_finds_exactly_the_weights_of_a_model(learner: Any) -> None:
    model = build(tiny_preset(learner).model)
    weights = {each.name for each in trained(model, "model") if each.tensor.ndim > 1}
    expected = {f"model.encoder.blocks.{n}.weight" for n in range(4)}
    if learner is CPM:
        expected |= {f"model.learner.{n}.weight" for n in ("lstm.gates", "readout", "memory.gate")}
    if isinstance(learner, WayfarerConfig):
        layers = (
            "lstm.gates",
            "readout",
            "seen",
            "scorer.0",
            "scorer.2",
            "judge.0",
            "judge.2",
        )
        expected |= {f"model.learner.{n}.weight" for n in layers}
    assert weights == expected


def test_a_frozen_encoder_keeps_its_weights(tmp_path: Path) -> None:
    preset = tiny_preset(PROTONET, encoder_lr=0.0)
    run(preset, tmp_path / "run")
    torch.manual_seed(preset.train.seed)
    fresh = build(preset.model)
    after = load_model(tmp_path / "run" / "last" / "model.safetensors")
    for (name, one), other in zip(fresh.named_parameters(), after.parameters(), strict=True):
        assert torch.equal(one, other) == name.startswith("encoder"), name


def test_a_worse_validation_does_not_replace_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = iter([0.5, 0.4, 0.6, 0.1])
    monkeypatch.setattr(training, "ap", lambda record: next(figures))
    outcome = run(tiny_preset(PROTONET, steps=4, validate_every=1), tmp_path / "run")
    assert (outcome.best_ap, outcome.best_step) == (60.0, 3)
    assert about_model(tmp_path / "run" / "best" / "model.safetensors")["step"] == 3


def test_validation_has_as_many_classes_as_a_sequence_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = []

    def spied(model: Any, world: Any, exam: Any, *rest: Any, **named: Any) -> Any:
        most.append(max(int(each.truth.max()) + 1 for each in exam))
        return gather(model, world, exam, *rest, **named)

    monkeypatch.setattr(training, "gather", spied)
    preset = tiny_preset(PROTONET, steps=1, validate_sequences=30)
    for families in (2, 4):
        few = partial(tiny_pictures, families=families, classes_per_family=12 // families)
        train(preset, tmp_path / str(families), pictures=few)
    assert most[0] == most[1] > 4  # two families as they are give four classes


@pytest.mark.parametrize("field", ["batch_size", "lr", "warmup", "validate_every"])
def test_a_config_out_of_bounds_names_its_field(field: str) -> None:
    with pytest.raises(WanderError, match=field):
        replace(TrainConfig(), **{field: -1})  # type: ignore[arg-type]


def test_a_run_without_a_budget_is_refused_before_it_writes(tmp_path: Path) -> None:
    with pytest.raises(WanderError, match="budget"):
        run(tiny_preset(steps=None), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_tensorboard_curves_or_the_name_of_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preset = tiny_preset(PROTONET, steps=2, tensorboard=True)
    run(preset, tmp_path / "with")
    assert list((tmp_path / "with" / "tensorboard").glob("events.*"))
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(WanderError, match=r"wanderlearn\[tensorboard\]"):
        run(preset, tmp_path / "without")
