"""What the scripts of benchmarks/ ask of the command line."""

import sys
from pathlib import Path

import pytest

from wanderlearn.cli import train as command
from wanderlearn.presets import Preset
from wanderlearn.table_rows import pretrained


@pytest.mark.parametrize("name", ["protonet-omniglot-resnet", "protonet-glyphs"])
def test_pretraining_an_encoder_trains_nothing_else(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words it gives to `wander train` leave no features stage, whatever its budget, and one step."""
    asked: list[str] = []
    monkeypatch.setattr("wanderlearn.table_rows.wander", lambda *words: asked.extend(words))
    assert pretrained(name, tmp_path / "encoder", "--train.seed", "3") == tmp_path / "encoder"
    given: list[Preset] = []

    def stopped(preset: Preset, *others: object, **options: object) -> None:
        given.append(preset)
        sys.exit(0)

    monkeypatch.setattr(command, "train", stopped)
    monkeypatch.setattr(command, "open_collection", lambda *words, **options: None)
    with pytest.raises(SystemExit):
        command.main(asked[1:])
    [preset] = given
    assert preset.features is None or not preset.features.wanted
    assert (preset.train.steps, preset.train.minutes, preset.train.seed) == (1, None, 3)
