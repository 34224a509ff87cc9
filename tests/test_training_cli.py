"""`wander train` as it is typed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.test_training import interrupt, stop_after
from tests.tiny_runs import PROTONET, pictures, tiny_preset
from wanderlearn import train as training
from wanderlearn.checkpoint import Progress
from wanderlearn.cli import main
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.model import about_model
from wanderlearn.presets import PRESETS, Preset
from wanderlearn.train import train


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Preset]:
    """What `wander train` would train, instead of training it."""
    seen: list[Preset] = []

    def note(preset: Preset, run_dir: Path, **_: Any) -> training.Outcome:
        seen.append(preset)
        return training.Outcome("finished", run_dir, "finished", 1, 1.0, 50.0, 1)

    monkeypatch.setattr("wanderlearn.cli.train.train", note)
    return seen


def test_any_field_can_be_changed_from_the_command_line(told: list[Preset]) -> None:
    main(["train", "cpm-glyphs", "--train.lr", "0.5", "--train.steps", "7", "--train.minutes", "None",
          "--model.learner.units", "9", "--roaming.switch", "0.9", "--shuffle"])  # fmt: skip
    original = PRESETS["cpm-glyphs"]
    assert told[0].train == replace(original.train, lr=0.5, steps=7, minutes=None)
    assert told[0].model.learner == CPMConfig(units=9)
    assert told[0].roaming == replace(original.roaming, switch=0.9, shuffle=True)
    assert told[0].pretrain is None


def test_pretraining_can_be_added_and_left_out(told: list[Preset]) -> None:
    main(["train", "protonet-glyphs", "--pretrain.minutes", "2"])
    main(["train", "imp-omniglot-semi", "--pretrain.minutes", "0"])
    main(["train", "imp-omniglot-semi"])
    assert [preset.pretrain and preset.pretrain.minutes for preset in told] == [2.0, None, 30.0]
    assert told[2] == PRESETS["imp-omniglot-semi"]


def test_an_unknown_preset_lists_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", "cpm-narnia"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert all(name in said for name in PRESETS)


def test_help_lists_the_presets(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "--help"])
    said = capsys.readouterr().out
    assert all(name in said for name in PRESETS)


def test_interrupted_at_the_command_line_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("wanderlearn.cli.train.open_pictures", lambda world, split, source: pictures(split))
    monkeypatch.setitem(PRESETS, "protonet-glyphs", replace(tiny_preset(PROTONET), name="protonet-glyphs"))
    command = ["train", "protonet-glyphs", "--name", "my run", "--train.lr", "0.01"]
    with monkeypatch.context() as patch:
        stop_after(patch, 2, interrupt)
        with pytest.raises(SystemExit) as ended:
            main(command)
    assert ended.value.code == 130
    said = capsys.readouterr().err
    assert "wander train protonet-glyphs --name 'my run' --train.lr 0.01 --resume" in said
    with pytest.raises(SystemExit) as ended:
        main(command)  # without --resume: refused
    assert ended.value.code == 2
    assert "--resume" in capsys.readouterr().err
    main([*command, "--resume"])
    assert "finished after 6 steps" in capsys.readouterr().out


def test_progress_is_part_of_the_outcome(tmp_path: Path) -> None:
    outcome = train(tiny_preset(PROTONET, steps=1), tmp_path / "run", pictures=pictures)
    progress = Progress(**about_model(tmp_path / "run" / "last" / "model.safetensors")["progress"])
    assert (outcome.stage, outcome.step, outcome.best_ap) == ("finished", progress.step, progress.best_ap)
    assert outcome.seconds == progress.total_seconds
