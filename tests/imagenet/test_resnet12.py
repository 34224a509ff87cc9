"""ResNet-12 against its plain definition, in training, in evaluation and folded; and where it is used."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.tiny_world import tiny_pictures
from wanderlearn.agent import Agent
from wanderlearn.configs import from_json, to_json
from wanderlearn.errors import WanderError
from wanderlearn.evaluate import evaluate
from wanderlearn.export import export_model
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.resnet12 import ResNet12, ResNet12Config
from wanderlearn.model import Model, ModelConfig, build, load_model, save_model, take_encoder
from wanderlearn.worlds import Roaming, RoamingConfig, draw_manifest

SMALL = ResNet12Config(image_size=13, channels=(4, 6, 5), batch_norm_momentum=0.1)
CASES = [
    SMALL,
    replace(SMALL, last_relu=False, image_size=16),
    replace(SMALL, in_channels=1, channels=(3,)),
    replace(SMALL, in_channels=4, pooling="attention", scale=0.1, last_relu=False),
    replace(SMALL, length=3.0),
]


class Plain(nn.Module):
    """The definition, by torch's own layers, with the weights of `encoder`."""

    def __init__(self, encoder: ResNet12) -> None:
        super().__init__()
        self.config = config = encoder.config
        self.layers: Any = nn.ModuleList()
        for block in encoder.blocks:
            for name in ("first", "second", "third", "past"):
                ours = block.get_submodule(name)
                weight, scale = ours.get_parameter("weight"), ours.get_parameter("scale")
                outputs, inputs, side, _ = weight.shape
                conv = nn.Conv2d(inputs, outputs, side, padding="same", bias=False)
                norm = nn.BatchNorm2d(outputs, eps=config.batch_norm_eps, momentum=1.0)
                with torch.no_grad():
                    conv.weight.copy_(weight)
                    norm.weight.copy_(scale)
                    norm.bias.copy_(ours.get_parameter("shift"))
                self.layers.append(nn.Sequential(conv, norm))

    def forward(self, images: Tensor) -> Tensor:
        config = self.config
        mask = images[:, -1] if config.pooling == "attention" else None
        x = images if mask is None else images[:, :-1]
        for n in range(len(config.channels)):
            first, second, third, past = self.layers[4 * n : 4 * n + 4]
            x = third(torch.relu(second(torch.relu(first(x))))) + past(x)
            last = n == len(config.channels) - 1
            if not last:
                height, width = x.shape[2:]
                x = F.max_pool2d(F.pad(x, (0, width % 2, 0, height % 2), value=-torch.inf), 2)
            if not last or config.last_relu:
                x = torch.relu(x)
        features = x.flatten(2).mean(2)
        if mask is not None:
            inside = []
            for one, seen in zip(x, mask, strict=True):
                weight = F.interpolate(seen[None, None], one.shape[1:], mode="bilinear")[0, 0]
                inside.append((one * weight).sum((1, 2)) / (weight.sum() or torch.tensor(1e-3)))
            features = torch.cat([torch.stack(inside), features], 1)
        features = config.scale * features
        if config.length:
            features = config.length * features / features.norm(dim=1, keepdim=True)
        return features


def make(config: ResNet12Config) -> ResNet12:
    """An encoder whose scales are of both signs."""
    torch.manual_seed(0)
    encoder = ResNet12(config)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if not name.endswith("weight"):
                parameter.normal_()
    return encoder


def pictures(config: ResNet12Config, count: int = 9) -> Tensor:
    torch.manual_seed(1)
    images = torch.rand(count, config.in_channels, config.image_size, config.image_size) * 2 - 1
    if config.pooling == "attention":
        images[:, -1] = (images[:, -1] > 0.5).float()
        images[0, -1] = 0.0  # an empty mask
    return images


@pytest.mark.parametrize("config", CASES)
def test_training_equals_the_plain_definition(config: ResNet12Config) -> None:
    encoder, images = make(config).double(), pictures(config).double()
    plain = Plain(encoder).double()
    ours, theirs = encoder(images), plain(images)
    assert ours.shape == (len(images), encoder.feature_dim)
    torch.testing.assert_close(ours, theirs)
    weights = torch.randn(ours.shape).double()
    got = torch.autograd.grad((ours * weights).sum(), list(encoder.parameters()))
    wanted = dict(
        zip(
            (id(p) for p in plain.parameters()),
            torch.autograd.grad((theirs * weights).sum(), list(plain.parameters())),
            strict=True,
        )
    )
    modules = [
        block.get_submodule(n) for block in encoder.blocks for n in ("first", "second", "third", "past")
    ]
    found = dict(zip((id(p) for p in encoder.parameters()), got, strict=True))
    for module, layer in zip(modules, plain.layers, strict=True):
        for name, other in (
            ("weight", layer[0].weight),
            ("scale", layer[1].weight),
            ("shift", layer[1].bias),
        ):
            torch.testing.assert_close(found[id(module.get_parameter(name))], wanted[id(other)])


@pytest.mark.parametrize("config", CASES)
def test_evaluation_uses_the_averages_folded_or_not(config: ResNet12Config) -> None:
    encoder, images = make(config).double(), pictures(config, 40).double()
    plain = Plain(encoder).double()
    plain.train()
    plain(images[:20])
    encoder(images[:20])  # averages of one batch, their weight divided out: that batch
    for module in plain.modules():
        if isinstance(module, nn.BatchNorm2d):  # torch keeps the unbiased variance
            count = _places(config, plain, module) * 20
            assert module.running_var is not None
            module.running_var.mul_((count - 1) / count)
    encoder.eval(), plain.eval()
    with torch.no_grad():
        expected = plain(images)
        torch.testing.assert_close(encoder(images), expected)
        torch.testing.assert_close(encoder.frozen()(images), expected)
        torch.testing.assert_close(encoder.frozen(traced=True)(images[:1]), expected[:1])


def _places(config: ResNet12Config, plain: Plain, norm: nn.Module) -> int:
    """How many places a norm sees in a picture."""
    block = [layer[1] for layer in plain.layers].index(norm) // 4
    side = config.image_size
    for _ in range(block):
        side = (side + 1) // 2
    return side * side


def test_the_papers_encoder_has_as_many_numbers_as_the_authors() -> None:
    config = ResNet12Config()
    encoder = ResNet12(config)
    assert sum(parameter.numel() for parameter in encoder.parameters()) == 2_001_600
    assert config.feature_dim == encoder.feature_dim == 256
    rooms = replace(config, in_channels=4, pooling="attention")
    assert rooms.feature_dim == 512
    assert sum(parameter.numel() for parameter in ResNet12(rooms).parameters()) == 2_001_600
    with torch.no_grad():
        assert ResNet12(rooms)(torch.rand(1, 4, 120, 160)).shape == (1, 512)


def test_multiplications_are_counted_as_convolutions_are_run() -> None:
    config, counted = replace(SMALL, image_size=13), 0
    encoder = ResNet12(config).eval()

    def count(module: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
        nonlocal counted
        weight = module.get_parameter("weight")
        counted += output[0, 0].numel() * weight.numel()

    for name, module in encoder.named_modules():
        if name.endswith(("first", "second", "third", "past")):
            module.register_forward_hook(count)
    encoder.train()(torch.rand(1, 3, 13, 13))
    assert counted == config.multiplications


def test_first_weights_are_drawn_as_the_authors_draw_them() -> None:
    encoder = ResNet12(ResNet12Config())
    for name, parameter in encoder.named_parameters():
        if name.endswith("weight"):
            outputs, _, side, _ = parameter.shape
            std = (2 / (side * side * outputs)) ** 0.5
            assert parameter.abs().max() <= 2 * std * (1 + 1e-6)
            if parameter.numel() > 10_000:  # a normal cut off at two deviations has 0.88 of them
                assert parameter.std().item() == pytest.approx(0.88 * std, rel=0.05)


def test_configs_are_checked_and_kept() -> None:
    for config in CASES:
        assert from_json(ResNet12Config, to_json(config)) == config
    with pytest.raises(WanderError, match="channel"):
        ResNet12Config(channels=())
    with pytest.raises(WanderError, match="mask"):
        ResNet12Config(pooling="attention", in_channels=1)


def tiny(config: ResNet12Config = SMALL, *, seen: bool = True) -> Model:
    torch.manual_seed(2)
    model = build(ModelConfig(config, CPMConfig(features=config.feature_dim, units=6)))
    if seen:
        model.encoder(torch.rand(8, config.in_channels, config.image_size, config.image_size))
    return model.eval()


def test_weights_are_saved_loaded_and_handed_on(tmp_path: Path) -> None:
    model, path = tiny(), tmp_path / "model.safetensors"
    save_model(path, model, {"seconds": 5.0})
    images = pictures(SMALL)
    with torch.no_grad():
        torch.testing.assert_close(load_model(path).encoder(images), model.encoder(images))
    other = build(
        ModelConfig(replace(SMALL, last_relu=False, length=2.0), ProtoNetConfig(features=SMALL.feature_dim))
    )
    assert take_encoder(path, other) == 5.0
    for name, tensor in model.encoder.state_dict().items():
        torch.testing.assert_close(other.encoder.state_dict()[name], tensor)
    wider = build(ModelConfig(replace(SMALL, channels=(4, 6, 8)), ProtoNetConfig(features=8)))
    with pytest.raises(WanderError, match="another one"):
        take_encoder(path, wider)


def test_an_agent_looks_with_it() -> None:
    model = tiny()
    agent = Agent(model)
    random = np.random.default_rng(0)
    kinds = [random.integers(0, 256, (13, 13, 3), dtype=np.uint8) for _ in range(3)]
    for n, picture in enumerate(kinds):
        agent.tell(agent.look(picture), f"kind {n}")
    assert {name for name, _ in agent.look(kinds[1]).ranking} == {"kind 0", "kind 1", "kind 2"}


def test_it_is_exported(tmp_path: Path) -> None:
    exported = export_model(tiny(), tmp_path / "small.onnx", slots=4)
    assert exported.largest_difference < 1e-4


def test_statistics_of_the_batch_are_transductive_and_said_so(
    natural: Roaming,
) -> None:
    batch = tiny(replace(SMALL, image_size=12, evaluate_with="batch"))
    averages = tiny(replace(SMALL, image_size=12))
    manifest = draw_manifest(natural, 0, 3)
    one, all_at_once = (evaluate(batch, natural, manifest, size) for size in (1, 3))
    assert "transductive" in one
    assert one["metrics"]["ap"] == pytest.approx(all_at_once["metrics"]["ap"], abs=1e-3)
    assert "transductive" not in evaluate(averages, natural, manifest)
    images = pictures(replace(SMALL, image_size=12))
    with torch.no_grad():
        whole, part = batch.encoder(images), batch.encoder(images[:4])
        assert not torch.allclose(whole[:4], part, atol=1e-3)  # what comes with a picture changes it
        plain = Plain(batch.encoder)  # type: ignore[arg-type]
        torch.testing.assert_close(whole, plain(images), atol=1e-4, rtol=1e-4)
        before = {name: tensor.clone() for name, tensor in batch.encoder.state_dict().items()}
        batch.encoder(images)
    for name, tensor in batch.encoder.state_dict().items():
        torch.testing.assert_close(tensor, before[name])  # evaluation remembers nothing
    with pytest.raises(WanderError, match="evaluate_with"):
        Agent(batch)


@pytest.fixture
def natural() -> Roaming:
    shown = tiny_pictures("test", families=4, classes_per_family=3, size=12, channels=3)
    config = RoamingConfig(environments=2, classes=8, length=20, per_class=4, crop="none", occlusion=0.0)
    return Roaming(shown, config)
