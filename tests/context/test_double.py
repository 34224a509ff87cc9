"""The double encoder is two plain ones, in training, evaluation and frozen; and how weights come in."""

from pathlib import Path

import numpy as np
import pytest
import torch

from wanderlearn.agent import Agent
from wanderlearn.errors import WanderError
from wanderlearn.learners.double import Double, DoubleConfig
from wanderlearn.learners.encoders import Conv4, Conv4Config
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.model import ModelConfig, build, load_model, save_model, take_encoder

SMALL = Conv4Config(channels=8, batch_norm_momentum=0.1)


def halves(config: DoubleConfig) -> tuple[Double, Conv4, Conv4]:
    """A double encoder and two plain ones with the same weights."""
    torch.manual_seed(0)
    double, picture, behind = Double(config), Conv4(config.picture), Conv4(config.background)
    picture.load_state_dict(double.picture.state_dict())
    behind.load_state_dict(double.background.state_dict())
    return double, picture, behind


@pytest.mark.parametrize(
    "config", [DoubleConfig(SMALL), DoubleConfig(Conv4Config(channels=8, length=3.0), 1.5)]
)
def test_equals_two_plain_encoders(config: DoubleConfig) -> None:
    double, picture, behind = halves(config)
    images = torch.rand(70, 2, 28, 28) * 2 - 1
    assert double.feature_dim == config.feature_dim == 16
    found = double(images)
    expected = torch.cat([picture(images[:, :1]), behind(images[:, 1:])], 1)
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(found)
    for output in (found, expected):
        (output * weights).sum().backward()
    alone = [*picture.parameters(), *behind.parameters()]
    for ours, theirs in zip(double.parameters(), alone, strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    for encoder in (double, picture, behind):
        encoder.eval()
    with torch.no_grad():
        expected = torch.cat([picture(images[:, :1]), behind(images[:, 1:])], 1)
        torch.testing.assert_close(double(images), expected)
        for traced in (False, True):
            torch.testing.assert_close(double.frozen(traced)(images), expected, rtol=1e-4, atol=1e-4)


def test_each_half_sees_its_own_channel_only() -> None:
    double = Double(DoubleConfig(SMALL)).eval()
    images = torch.rand(3, 2, 28, 28)
    before = double(images)
    images[:, 1] = 0
    after = double(images)
    assert torch.equal(before[:, :8], after[:, :8])
    assert not torch.allclose(before[:, 8:], after[:, 8:])


def model_config() -> ModelConfig:
    encoder = DoubleConfig(SMALL, 1.5)
    return ModelConfig(encoder, ProtoNetConfig(features=encoder.feature_dim))


def test_save_and_load(tmp_path: Path) -> None:
    model = build(model_config()).eval()
    save_model(tmp_path / "m.safetensors", model, {})
    again = load_model(tmp_path / "m.safetensors")
    assert again.config == model.config
    images = torch.rand(2, 2, 28, 28)
    assert torch.equal(model.encoder(images), again.encoder(images))


def test_a_plain_encoder_becomes_the_half_for_pictures(tmp_path: Path) -> None:
    plain = build(ModelConfig(Conv4Config(channels=8, last_relu=False), ProtoNetConfig(features=8)))
    save_model(tmp_path / "plain.safetensors", plain, {"seconds": 12.0})
    model = build(model_config())
    behind = {name: t.clone() for name, t in model.encoder.background.state_dict().items()}  # type: ignore[union-attr]
    assert take_encoder(tmp_path / "plain.safetensors", model) == 12.0
    assert isinstance(model.encoder, Double)
    for name, tensor in plain.encoder.state_dict().items():
        assert torch.equal(model.encoder.picture.state_dict()[name], tensor)
    for name, tensor in model.encoder.background.state_dict().items():
        assert torch.equal(behind[name], tensor)
    save_model(tmp_path / "double.safetensors", model, {})
    with pytest.raises(WanderError, match="another one"):
        take_encoder(tmp_path / "double.safetensors", plain)
    with pytest.raises(WanderError, match="another one"):
        take_encoder(
            tmp_path / "double.safetensors",
            build(ModelConfig(DoubleConfig(Conv4Config(channels=4)), ProtoNetConfig(features=8))),
        )


def test_an_agent_looks_at_both_channels() -> None:
    agent = Agent(build(model_config()).eval())
    picture = np.random.default_rng(0).integers(0, 256, (28, 28, 2), dtype=np.uint8)
    agent.tell(agent.look(picture), "one")
    one, other = agent.look(picture), agent.look(np.moveaxis(picture, 2, 0))
    assert one.ranking == other.ranking
    with pytest.raises(WanderError, match="two channels"):
        agent.look(picture[..., 0])
    with pytest.raises(WanderError, match="two channels"):
        agent.look(np.zeros((28, 28, 3), dtype=np.uint8))
