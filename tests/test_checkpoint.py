"""The run folder: it is refused when it is not what was asked for, and is whole whatever happens."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.tiny_runs import PROTONET, log_of, run, tiny_preset, weights_of
from wanderlearn.checkpoint import Progress, open_run
from wanderlearn.errors import WanderError
from wanderlearn.model import build, save_model
from wanderlearn.optimiser import Optimiser, Trained
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.train import train

PRESET = tiny_preset(PROTONET, steps=4, validate_every=2)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "finished"
    run(PRESET, folder)
    return folder


@pytest.fixture
def begun(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "begun")


def test_a_folder_with_anything_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(WanderError, match=r"not empty.*--resume"):
        run(PRESET, tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["notes.txt"]


def test_an_empty_folder_is_fine(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert run(PRESET, tmp_path / "run").status == "finished"


def test_there_must_be_something_to_resume(tmp_path: Path) -> None:
    with pytest.raises(WanderError, match="no run to resume"):
        run(PRESET, tmp_path / "run", resume=True)
    assert not (tmp_path / "run").exists()


def test_another_config_is_refused_by_the_names_of_its_fields(begun: Path) -> None:
    other = replace(
        PRESET, train=replace(PRESET.train, lr=0.5, seed=3), roaming=replace(PRESET.roaming, semi=True)
    )
    with pytest.raises(WanderError) as refused:
        run(other, begun, resume=True)
    for part in ("train.lr was 0.001 and is now 0.5", "train.seed was 0 and is now 3", "roaming.semi"):
        assert part in str(refused.value)
    assert "batch_size" not in str(refused.value)


def test_how_a_run_is_carried_out_may_change(begun: Path) -> None:
    other = replace(PRESET, train=replace(PRESET.train, threads=2, workers=1, checkpoint_minutes=1.0))
    assert run(other, begun, resume=True).status == "finished"


def test_other_pictures_are_refused(begun: Path) -> None:
    from tests.tiny_world import tiny_pictures

    with pytest.raises(WanderError, match=r"pictures\.train"):
        train(PRESET, begun, resume=True, pictures=lambda split: tiny_pictures(split, families=5))


@pytest.mark.parametrize("keep", [0, 1000, -1])
def test_a_truncated_checkpoint_is_a_sentence(begun: Path, keep: int) -> None:
    last = begun / "last" / "model.safetensors"
    last.write_bytes(last.read_bytes()[:keep])
    with pytest.raises(WanderError, match=r"last.model\.safetensors.*truncated"):
        run(PRESET, begun, resume=True)


def test_a_model_is_not_a_checkpoint(begun: Path) -> None:
    save_model(begun / "last" / "model.safetensors", build(PRESET.model), {})
    with pytest.raises(WanderError, match="holds no progress"):
        run(PRESET, begun, resume=True)


def test_a_broken_config_is_a_sentence(begun: Path) -> None:
    (begun / "config.json").write_text('{"kind": "pre')
    with pytest.raises(WanderError, match=r"config\.json is not valid JSON"):
        run(PRESET, begun, resume=True)


def test_a_log_that_lost_lines_is_refused(begun: Path) -> None:
    (begun / "log.jsonl").write_text("")
    with pytest.raises(WanderError, match="shorter than the checkpoint remembers"):
        run(PRESET, begun, resume=True)


def test_killed_before_the_first_checkpoint_starts_again(begun: Path, finished: Path) -> None:
    shutil.rmtree(begun / "last")
    shutil.rmtree(begun / "best")
    assert run(PRESET, begun, resume=True).status == "finished"
    assert log_of(begun) == log_of(finished)
    assert weights_of(begun) == weights_of(finished)


def test_lines_after_the_checkpoint_are_cut(tmp_path: Path) -> None:
    model = build(PRESET.model)
    with open_run(tmp_path / "run", {}, {}, resume=False) as opened:
        opened.log(step=1)
        saved = opened.save(model, Progress("sequences", step=1), {})
        opened.log(step=2)
        with (tmp_path / "run" / "log.jsonl").open("a") as file:
            file.write('{"step": 3, "lo')  # killed while writing
    assert saved.log_bytes == len('{"step": 1}\n')
    with open_run(tmp_path / "run", {}, {}, resume=True) as opened:
        restored = opened.restore(model)
        opened.log(step=2)
    assert restored is not None
    assert restored[0] == saved
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2]


def test_two_processes_cannot_train_in_one_folder(tmp_path: Path) -> None:
    with (
        open_run(tmp_path / "run", {}, {}, resume=False),
        pytest.raises(WanderError, match="Another process"),
        open_run(tmp_path / "run", {}, {}, resume=True),
    ):
        pass


def test_a_full_disk_is_a_sentence_and_the_old_checkpoint_stays(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = weights_of(begun)

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:100])
        raise OSError(28, "No space left on device")

    with open_run(begun, json.loads((begun / "config.json").read_text()), {}, resume=True) as opened:
        monkeypatch.setattr(Path, "write_bytes", full)
        with pytest.raises(WanderError, match="No space left on device"):
            opened.save(build(PRESET.model), Progress("sequences", step=9), {})
    monkeypatch.undo()
    assert weights_of(begun) == before
    assert [path.name for path in (begun / "last").iterdir()] == ["model.safetensors"]


def test_a_crash_before_the_swap_leaves_the_old_checkpoint(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = weights_of(begun)

    def crash(*_: Any) -> None:
        raise SystemError("killed")

    with open_run(begun, json.loads((begun / "config.json").read_text()), {}, resume=True) as opened:
        monkeypatch.setattr("wanderlearn.files.os.fsync", crash)
        with pytest.raises(SystemError):
            opened.save(build(PRESET.model), Progress("sequences", step=9), {})
    monkeypatch.undo()
    assert weights_of(begun) == before


def test_the_optimiser_comes_back_in_any_memory_layout() -> None:
    def fresh() -> tuple[nn.Parameter, Optimiser]:
        start = torch.arange(2 * 3 * 3 * 3.0).view(2, 3, 3, 3)
        weight = nn.Parameter(start.contiguous(memory_format=torch.channels_last))
        return weight, Optimiser([Trained("conv.weight", weight, 1.0)], TrainConfig(lr=0.1))

    def advance(weight: nn.Parameter, optimiser: Optimiser, step: int) -> None:
        generator = torch.Generator().manual_seed(step)
        optimiser.step((weight * torch.randn(2, 3, 3, 3, generator=generator)).sum(), 1.0)

    one, whole = fresh()
    for step in range(4):
        advance(one, whole, step)
    other, first = fresh()
    for step in range(2):
        advance(other, first, step)
    state = {name: tensor.detach().contiguous() for name, tensor in first.state().items()}
    third, second = fresh()
    third.data.copy_(other.data)
    second.restore(state)
    for step in range(2, 4):
        advance(third, second, step)
    assert torch.equal(one, third)
