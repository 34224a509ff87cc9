"""A training that goes on from the weights of another one: encoder and learner, perhaps with other labels."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.tiny_runs import CPM, LOOKS_FIRST, PROTONET, log_of, pictures, run, tiny_preset
from wanderlearn.checkpoint import progress_of
from wanderlearn.cli import main
from wanderlearn.errors import WanderError
from wanderlearn.feature_training import FeaturesConfig
from wanderlearn.learners.lstm import LSTMLearner
from wanderlearn.model import about_model, load_model
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.shipped import find_weights
from wanderlearn.train import train


def weights(folder: Path) -> Path:
    return find_weights(str(folder))


def test_encoder_and_learner_go_on_from_where_they_were(tmp_path: Path) -> None:
    run(tiny_preset(CPM, steps=2), tmp_path / "first")
    on = tiny_preset(CPM, semi=True, pretrain=PretrainConfig(epochs=3), steps=1, lr=1e-9)
    train(on, tmp_path / "second", start=weights(tmp_path / "first"), pictures=pictures)
    assert {line["stage"] for line in log_of(tmp_path / "second")} == {"sequences"}  # nothing is pretrained
    before, after = (load_model(weights(tmp_path / name)) for name in ("first", "second"))
    for one, other in zip(before.parameters(), after.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-7, rtol=0)
    spent = [progress_of(tmp_path / name)["total_seconds"] for name in ("first", "second")]
    assert spent[1] > spent[0] > 0


def test_weights_alone_know_the_seconds_they_took(tmp_path: Path) -> None:
    run(tiny_preset(CPM, steps=2), tmp_path / "first")
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes(weights(tmp_path / "first").read_bytes())
    cost = about_model(alone)["seconds"]
    train(tiny_preset(CPM, steps=1), tmp_path / "second", start=alone, pictures=pictures)
    assert progress_of(tmp_path / "second")["total_seconds"] > cost > 0


def test_where_thresholds_would_have_started_may_differ(tmp_path: Path) -> None:
    run(tiny_preset(PROTONET, steps=1), tmp_path / "first")
    other = replace(PROTONET, beta_read=3.0, beta_write=1.0)
    on = tiny_preset(other, semi=True, steps=1, lr=1e-9)
    train(on, tmp_path / "second", start=weights(tmp_path / "first"), pictures=pictures)
    assert load_model(weights(tmp_path / "second")).config.learner == other
    before, after = (load_model(weights(tmp_path / name)).learner for name in ("first", "second"))
    torch.testing.assert_close(before.state_dict(), after.state_dict(), atol=1e-7, rtol=0)


@pytest.mark.parametrize("learner", [PROTONET, replace(CPM, units=CPM.units + 1)])
def test_another_learner_is_refused_in_words(tmp_path: Path, learner: object) -> None:
    run(tiny_preset(learner, steps=1), tmp_path / "first")
    with pytest.raises(WanderError, match=r"The learner in .*first.* is another one than this model's"):
        train(tiny_preset(CPM), tmp_path / "second", start=weights(tmp_path / "first"), pictures=pictures)
    assert not (tmp_path / "second").exists()  # nothing is in the way of another try


def test_resuming_asks_for_the_same_start(tmp_path: Path) -> None:
    for seed in (0, 1):
        run(tiny_preset(CPM, steps=1, seed=seed), tmp_path / f"first{seed}")
    on = tiny_preset(CPM, steps=1)
    starts = [weights(tmp_path / f"first{seed}") for seed in (0, 1)]
    train(on, tmp_path / "second", start=starts[0], pictures=pictures)
    train(on, tmp_path / "second", start=starts[0], pictures=pictures, resume=True)
    with pytest.raises(WanderError, match="begun with another config: start"):
        train(on, tmp_path / "second", start=starts[1], pictures=pictures, resume=True)


def test_a_learner_that_knows_something_takes_no_first_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = replace(tiny_preset(LOOKS_FIRST, steps=1), features=FeaturesConfig(steps=1, copies=1))
    run(preset, tmp_path / "first")
    looks: list[torch.Tensor] = []
    monkeypatch.setattr(LSTMLearner, "look_at", lambda _, features: looks.append(features))
    train(preset, tmp_path / "second", start=weights(tmp_path / "first"), pictures=pictures)
    assert not looks


def test_an_encoder_beside_weights_to_start_with_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", "cpm-glyphs", "--start", "cpm-glyphs", "--encoder", "protonet-glyphs"])
    assert ended.value.code == 2
    assert "give --start or --encoder" in capsys.readouterr().err
