"""A model in memory and in a file: padding is free, what was saved comes back, what is broken is refused."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tiny_runs import CHANNELS, CPM, LEARNERS, PROTONET, pictures, tiny_model, tiny_preset
from wanderlearn.configs import differences, from_json, to_json
from wanderlearn.errors import WanderError
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.model import Model, ModelConfig, about_model, build, load_model, save_model
from wanderlearn.presets import ALL_PRESETS, Preset
from wanderlearn.worlds import Batch, world_of

WORLD = world_of(pictures("train"), tiny_preset(semi=True).roaming)
BATCH = WORLD.batch([WORLD.meetings(0, i) for i in range(3)])


def answers(model: Model, batch: Batch = BATCH) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.no_grad():
        scores, novelty = model(batch.images, batch.given, batch.valid, WORLD.slots)
    return scores, novelty


@pytest.fixture
def model() -> Model:
    torch.manual_seed(3)
    fresh = build(tiny_model())
    answers(fresh.train())  # so that BatchNorm's averages are not those of a fresh model
    return fresh.eval()


def padded(batch: Batch, by: int, garbage: float) -> Batch:
    def longer(tensor: torch.Tensor, value: Any) -> torch.Tensor:
        extra = torch.full((tensor.shape[0], by, *tensor.shape[2:]), value, dtype=tensor.dtype)
        return torch.cat([tensor, extra], 1)

    return Batch(
        longer(batch.images, garbage),
        longer(batch.given, -1),
        longer(batch.truth, 0),
        longer(batch.target, -2),
        longer(batch.valid, False),
        longer(batch.environment, 0),
    )


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda config: type(config).__name__)
def test_padding_reaches_neither_answers_nor_batchnorm(learner: Any) -> None:
    torch.manual_seed(0)
    one = build(tiny_model(learner)).train()
    torch.manual_seed(0)
    other = build(tiny_model(learner)).train()
    long = padded(BATCH, 4, garbage=1e6)
    steps = BATCH.valid.shape[1]
    for mine, theirs in zip(answers(one), answers(other, long), strict=True):
        where = BATCH.valid
        torch.testing.assert_close(mine[where], theirs[:, :steps][where], rtol=1e-5, atol=1e-5)
    for name, value in one.state_dict().items():
        torch.testing.assert_close(value, other.state_dict()[name])


def test_only_valid_pictures_are_encoded(model: Model) -> None:
    seen: list[int] = []
    model.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    answers(model)
    assert seen == [int(BATCH.valid.sum())]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda config: type(config).__name__)
def test_saved_and_loaded_answers_are_the_same(learner: Any, tmp_path: Path) -> None:
    made = build(tiny_model(learner))
    answers(made.train())
    made.eval()
    save_model(tmp_path / "m.safetensors", made, {"preset": "tiny", "step": 7})
    loaded = load_model(tmp_path / "m.safetensors")
    assert loaded.config == made.config
    assert not loaded.training
    assert about_model(tmp_path / "m.safetensors") == {"preset": "tiny", "step": 7}
    for mine, theirs in zip(answers(made), answers(loaded), strict=True):
        assert torch.equal(mine, theirs)


def test_tensors_beside_the_model_do_not_disturb_it(model: Model, tmp_path: Path) -> None:
    save_model(tmp_path / "m.safetensors", model, {}, beside={"adam.step.x": torch.ones(3)})
    assert torch.equal(answers(load_model(tmp_path / "m.safetensors"))[0], answers(model)[0])


def test_loading_draws_nothing_from_the_global_generator(model: Model, tmp_path: Path) -> None:
    save_model(tmp_path / "m.safetensors", model, {})
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_model(tmp_path / "m.safetensors")
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_truncated_file_is_a_sentence(model: Model, tmp_path: Path, keep: int) -> None:
    path = tmp_path / "m.safetensors"
    save_model(path, model, {})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(WanderError, match=r"m\.safetensors .*truncated"):
        load_model(path)


def test_a_changed_weight_is_noticed(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    save_model(path, model, {})
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(WanderError, match="altered"):
        load_model(path)


def test_a_changed_header_is_noticed(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    save_model(path, model, {"preset": "tiny"})
    data = path.read_bytes()
    assert data.count(b"tiny") == 1
    path.write_bytes(data.replace(b"tiny", b"tinx"))
    with pytest.raises(WanderError, match="altered"):
        load_model(path)


def test_foreign_and_missing_files_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(WanderError, match="There are no weights at"):
        load_model(tmp_path / "nothing.safetensors")
    with pytest.raises(WanderError, match="Cannot read"):
        load_model(tmp_path)
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    foreign = tmp_path / "foreign.safetensors"
    foreign.write_bytes(struct.pack("<Q", len(header)) + header + b"\0\0\0\0")
    with pytest.raises(WanderError, match="not a file of weights written by wanderlearn"):
        load_model(foreign)


def test_weights_that_do_not_fit_their_config(model: Model, tmp_path: Path) -> None:
    other = build(tiny_model(PROTONET))
    other.config = model.config
    save_model(tmp_path / "m.safetensors", other, {})
    with pytest.raises(WanderError, match="do not fit"):
        load_model(tmp_path / "m.safetensors")


def test_encoder_and_learner_must_agree_on_the_width() -> None:
    with pytest.raises(WanderError, match=rf"features of {CHANNELS} numbers, but the learner expects 64"):
        build(tiny_model(ProtoNetConfig(features=64)))


@pytest.mark.parametrize("preset", ALL_PRESETS.values(), ids=lambda preset: preset.name)
def test_every_preset_survives_json_and_can_be_built(preset: Preset) -> None:
    written = json.loads(json.dumps(to_json(preset)))
    assert from_json(Preset, written) == preset
    assert from_json(ModelConfig, written["model"]) == preset.model
    assert build(preset.model).config == preset.model
    assert f"wander train {preset.name}" in preset.about


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"learner": {"kind": "oracle"}},
            "kind 'oracle'.*knows cpm, dnc, imp, lstm, matchingnet, offline, oml, protonet, wayfarer",
        ),
        ({"learner": to_json(CPM) | {"wings": 2}}, "does not know: wings"),
        ({"learner": to_json(CPM) | {"units": "many"}}, r"units cannot be 'many'.*int"),
        ({"learner": to_json(CPM) | {"units": True}}, r"units cannot be True"),
        ({"learner": to_json(CPM) | {"memory": "elephant"}}, "memory cannot be 'elephant'; choose one of"),
        ({"encoder": None}, "encoder cannot be None"),
    ],
)
def test_json_that_is_not_a_model_config_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(WanderError, match=sentence):
        from_json(ModelConfig, to_json(tiny_model()) | change, "the model")


def test_differences_are_named_by_their_path() -> None:
    one, other = to_json(tiny_preset(lr=1e-3)), to_json(tiny_preset(lr=2e-3, semi=True))
    assert {name: (a, b) for name, a, b in differences(one, other)} == {
        "train.lr": (1e-3, 2e-3),
        "roaming.semi": (False, True),
    }
