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
from wanderlearn.learners.ablations import ABLATIONS, slug_of
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.model import about_model
from wanderlearn.presets import ABLATION_PRESETS, ALL_PRESETS, PRESETS, Preset, ablation_preset
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.train import train
from wanderlearn.worlds import RoamingConfig


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
    assert isinstance(original.roaming, RoamingConfig)
    assert told[0].train == replace(original.train, lr=0.5, steps=7, minutes=None)
    assert told[0].model.learner == CPMConfig(units=9)
    assert told[0].roaming == replace(original.roaming, switch=0.9, shuffle=True)
    assert told[0].pretrain is None


def test_pretraining_can_be_added_and_left_out(told: list[Preset]) -> None:
    main(["train", "protonet-glyphs", "--pretrain.minutes", "2"])
    main(["train", "imp-omniglot-semi", "--pretrain.epochs", "0"])
    main(["train", "imp-omniglot-semi"])
    assert told[0].pretrain == PretrainConfig(minutes=2.0)
    assert told[1] == replace(PRESETS["imp-omniglot-semi"], pretrain=None)
    assert told[2] == PRESETS["imp-omniglot-semi"]


def test_a_stage_is_left_out_only_where_no_other_budget_speaks_against_it(
    told: list[Preset], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "cpm-glyphs", "--pretrain.minutes", "1", "--train.steps", "0"]  # a preset by minutes
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert "--train.minutes None to leave them out" in capsys.readouterr().err
    assert not told
    main([*words, "--train.minutes", "None"])
    assert not told[0].train.wanted


def test_an_encoder_alone_says_that_nothing_was_validated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def encoder(preset: Preset, run_dir: Path, **_: Any) -> training.Outcome:
        return training.Outcome("finished", run_dir, "finished", 41, 12.0, None, None)

    monkeypatch.setattr("wanderlearn.cli.train.train", encoder)
    main(["train", "cpm-glyphs", "--pretrain.minutes", "1", "--train.minutes", "None", "--train.steps", "0"])
    assert capsys.readouterr().out.endswith("finished after 41 steps, 0.2 minutes, no validation AP.\n")


def test_an_ablation_is_trained_by_its_name(told: list[Preset]) -> None:
    main(["train", "no-metric-omniglot-semi", "--train.steps", "7"])
    main(["train", "semi-online-protonet-omniglot-semi"])
    cpm, protonet = PRESETS["cpm-omniglot-semi"], PRESETS["protonet-omniglot-semi"]
    learner = CPMConfig(metric=False, memory="average", similarity="euclidean")
    assert told[0].name == "no-metric-omniglot-semi"
    encoder = cpm.model.encoder
    assert isinstance(encoder, Conv4Config)
    encoder = replace(encoder, length=5.0)  # for Euclidean distances
    assert told[0].model == replace(cpm.model, encoder=encoder, learner=learner)
    assert told[0].train == replace(cpm.train, steps=7)
    assert told[0].pretrain == cpm.pretrain
    without = ProtoNetConfig(self_write=False, write_thresholds=False, beta_read=20.0, beta_write=0.0)
    assert told[1].model == replace(protonet.model, encoder=encoder, learner=without)
    assert told[1].train == ABLATION_PRESETS["semi-online-protonet-omniglot-semi"].train
    assert told[1].roaming.semi


def test_rows_of_the_ablation_tables_are_trained_once() -> None:
    assert len(ABLATIONS) == 15  # 10 and 8 rows, of which 3 are in both
    assert len(ABLATION_PRESETS) == 15
    assert not ABLATION_PRESETS.keys() & PRESETS.keys()
    assert ablation_preset("cpm-avg-cos").model == PRESETS["cpm-omniglot-semi"].model
    assert len({(preset.train.steps, preset.train.batch_size) for preset in ABLATION_PRESETS.values()}) == 1
    assert {preset.features and preset.features.steps for preset in ABLATION_PRESETS.values()} == {600}
    assert all(name.endswith("-omniglot-semi") for name in ABLATION_PRESETS)
    for name, preset in ABLATION_PRESETS.items():
        learner = preset.model.learner
        assert isinstance(learner, CPMConfig | ProtoNetConfig)
        assert name == f"{slug_of(learner)}-omniglot-semi"
        assert not preset.model.encoder.last_relu
    assert "(paper: validation AP 93.61)" in ABLATION_PRESETS["no-metric-omniglot-semi"].about
    assert "(paper: validation AP 90.83)" in ABLATION_PRESETS["semi-online-protonet-omniglot-semi"].about


def test_an_unknown_preset_lists_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", "cpm-narnia"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert all(name in said for name in PRESETS | ABLATION_PRESETS)


def test_help_lists_the_presets(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "--help"])
    said = capsys.readouterr().out
    assert all(name in said for name in PRESETS | ABLATION_PRESETS)


def test_interrupted_at_the_command_line_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("wanderlearn.cli.train.open_collection", lambda world, split, source: pictures(split))
    monkeypatch.setitem(
        ALL_PRESETS, "protonet-glyphs", replace(tiny_preset(PROTONET), name="protonet-glyphs")
    )
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
