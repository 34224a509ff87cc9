"""What the scripts of benchmarks/ ask of the command line."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from wanderlearn.cli import train as command
from wanderlearn.presets import Preset
from wanderlearn.presets.pretrained import OMNIGLOT_FINISH, OMNIGLOT_TEACHER_FINISH, OMNIGLOT_TEACHING
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.shipped import find_encoder, shipped_weights
from wanderlearn.table_rows import going_on, pretrained


@pytest.mark.parametrize("name", ["protonet-omniglot-resnet", "protonet-glyphs"])
def test_pretraining_an_encoder_trains_nothing_else(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words it gives to `wander train` leave nothing but pretraining, whatever other budgets are."""
    preset = asked_for(name, ["--train.seed", "3"], tmp_path, monkeypatch)
    assert preset.features is None or not preset.features.wanted
    assert (preset.train.steps, preset.train.minutes, preset.train.seed) == (0, None, 3)


@pytest.mark.parametrize("how", [OMNIGLOT_TEACHING, OMNIGLOT_FINISH, OMNIGLOT_TEACHER_FINISH])
def test_an_encoder_goes_on_as_the_package_says_it_did(
    how: PretrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights, teacher = shipped_weights()["protonet-omniglot"], find_encoder("omniglot-resnet")
    words = going_on(weights, teacher, how)
    preset = asked_for("protonet-omniglot", words, tmp_path, monkeypatch)
    assert preset.pretrain == replace(how, teacher=str(teacher))


def asked_for(name: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Preset:
    """The preset that `pretrained` asks `wander train` for."""
    asked: list[str] = []
    monkeypatch.setattr("wanderlearn.table_rows.wander", lambda *words: asked.extend(words))
    assert pretrained(name, tmp_path / "encoder", *words) == tmp_path / "encoder"
    given: list[Preset] = []

    def stopped(preset: Preset, *others: object, **options: object) -> None:
        given.append(preset)
        sys.exit(0)

    monkeypatch.setattr(command, "train", stopped)
    monkeypatch.setattr(command, "open_collection", lambda *words, **options: None)
    with pytest.raises(SystemExit):
        command.main(asked[1:])
    [preset] = given
    return preset
