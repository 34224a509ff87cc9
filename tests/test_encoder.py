"""Conv4 against its plain definition: outputs, every gradient, running averages, evaluation."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from wanderlearn.bench.encoder import bench_encoder, plain_conv4
from wanderlearn.learners.encoders import Conv4, Conv4Config

CASES = [
    Conv4Config(),
    Conv4Config(last_relu=False),
    Conv4Config(in_channels=3, last_relu=False),
    Conv4Config(image_size=27, channels=16),  # odd from the first block on
    Conv4Config(image_size=30, in_channels=3, channels=16, blocks=3),
    Conv4Config(image_size=22, in_channels=6, channels=8, blocks=3),
    Conv4Config(image_size=16, channels=3, blocks=2),
]


def make(config: Conv4Config, seed: int = 0) -> Conv4:
    """An encoder whose scales are of both signs."""
    torch.manual_seed(seed)
    encoder = Conv4(config)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if not name.endswith("weight"):
                parameter.normal_()
    return encoder


def pictures(config: Conv4Config, count: int = 12) -> Tensor:
    """Drawings: noise with blank and full stretches, where many values of a pooling window are equal."""
    images = torch.rand(count, config.in_channels, config.image_size, config.image_size)
    images[:, :, :6] = 0.0
    images[:, :, -6:] = 1.0
    return images


def close(got: Tensor, wanted: Tensor) -> None:
    """To 1e-4 of the largest value."""
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-4 * max(1.0, wanted.abs().max().item()))


def gradients(network: nn.Module, images: Tensor) -> tuple[Tensor, list[Tensor]]:
    output = network(images)
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(output.dtype)
    return output, list(torch.autograd.grad((output * weights).sum(), list(network.parameters())))


@pytest.mark.parametrize("config", CASES)
def test_training_equals_the_plain_definition(config: Conv4Config) -> None:
    encoder, images = make(config), pictures(config)
    plain = plain_conv4(encoder)
    output, ours = gradients(encoder, images)
    expected, theirs = gradients(plain, images)
    assert output.shape == (len(images), encoder.feature_dim)
    close(output, expected)
    for got, wanted in zip(ours, theirs, strict=True):
        close(got, wanted)


@pytest.mark.parametrize("config", CASES)
def test_in_double_precision_the_difference_is_rounding(config: Conv4Config) -> None:
    encoder, images = make(config).double(), pictures(config, 5).double()
    plain = plain_conv4(encoder).double()
    for parameter, source in zip(plain.parameters(), encoder.parameters(), strict=True):
        parameter.data.copy_(source)
    output, ours = gradients(encoder, images)
    expected, theirs = gradients(plain, images)
    torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-9)
    for got, wanted in zip(ours, theirs, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-8, atol=1e-8)


@settings(deadline=None, max_examples=20)
@given(
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(4, 9),
    st.integers(4, 9),
    st.booleans(),
    st.integers(0, 99),
)
def test_one_block_of_any_shape(
    count: int, inputs: int, height: int, width: int, relu: bool, seed: int
) -> None:
    encoder = make(Conv4Config(in_channels=inputs, channels=4, blocks=1, last_relu=relu), seed).double()
    images = torch.randn(count, inputs, height, width).double()
    block = dict(encoder.named_parameters())
    weight, scale, shift = (block[f"blocks.0.{name}"] for name in ("weight", "scale", "shift"))
    y = F.batch_norm(F.conv2d(images, weight, padding=1), None, None, scale, shift, True, 0.0, 1e-3)
    plain = F.max_pool2d(y.relu() if relu else y, 2).flatten(1)
    ours = encoder(images)
    torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-9)
    weights = torch.randn_like(plain)
    for got, wanted in zip(
        torch.autograd.grad((ours * weights).sum(), [weight, scale, shift]),
        torch.autograd.grad((plain * weights).sum(), [weight, scale, shift]),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("training", [True, False])
def test_gradient_of_the_pictures(training: bool) -> None:
    config = Conv4Config(image_size=12, channels=4, blocks=2)
    encoder = make(config).double()
    encoder(torch.rand(9, 1, 12, 12).double())
    encoder.train(training)
    images = torch.rand(3, 1, 12, 12).double().requires_grad_()
    assert torch.autograd.gradcheck(encoder, (images,))


def test_more_windows_than_fit_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Conv4Config(channels=8)
    encoder, images = make(config), pictures(config, 5)
    whole, expected = gradients(encoder, images)
    monkeypatch.setattr("wanderlearn.learners.encoders.ROWS", 96)  # does not divide 5 x 14 x 14
    parts, got = gradients(encoder, images)
    close(parts, whole)
    for a, b in zip(got, expected, strict=True):
        close(a, b)


def test_running_averages_are_debiased() -> None:
    config = Conv4Config(channels=8)
    encoder = make(config)
    plain = plain_conv4(encoder)
    batches = [pictures(config, 4) + n for n in range(3)]
    means: list[Tensor] = []
    variances: list[Tensor] = []

    def note(_: nn.Module, __: object, y: Tensor) -> None:
        """The statistics by their definition, from the plain convolution."""
        means.append(y.mean((0, 2, 3)))
        variances.append(y.var((0, 2, 3), correction=0))

    plain[0].register_forward_hook(note)
    for batch in batches:
        encoder(batch)
        plain(batch)
    shares = [0.001 * 0.999 ** (2 - n) for n in range(3)]
    total = 1 - 0.999**3
    state = encoder.state_dict()
    weight = state["blocks.0.average_weight"]
    assert weight.item() == pytest.approx(total, rel=1e-4)
    for name, values in (("mean", means), ("variance", variances)):
        expected = sum((s * v for s, v in zip(shares, values, strict=True)), torch.zeros(8)) / total
        close(state[f"blocks.0.average_{name}"] / weight, expected.detach())


@pytest.mark.parametrize("config", CASES)
def test_evaluation_equals_the_plain_definition(config: Conv4Config) -> None:
    encoder = make(config)
    plain = plain_conv4(encoder).eval()
    for _ in range(3):
        encoder(pictures(config))
    encoder.eval()
    state = encoder.state_dict()
    norms = [layer for layer in plain if isinstance(layer, nn.BatchNorm2d)]
    for n, norm in enumerate(norms):
        assert norm.running_mean is not None
        assert norm.running_var is not None
        weight = state[f"blocks.{n}.average_weight"]
        norm.running_mean.copy_(state[f"blocks.{n}.average_mean"] / weight)
        norm.running_var.copy_(state[f"blocks.{n}.average_variance"] / weight)
    for count in (1, 70):
        images = pictures(config, count)
        close(encoder(images), plain(images))


def test_after_one_step_evaluation_is_near_training() -> None:
    config = Conv4Config(channels=8)
    encoder, images = make(config), pictures(config)
    trained = encoder(images)
    close(encoder.eval()(images), trained)  # one batch: its statistics are the averages


def test_before_any_step_evaluation_is_finite_and_normalises_by_nothing() -> None:
    encoder = make(Conv4Config(channels=8)).eval()
    images = pictures(encoder.config, 2)
    close(encoder(images), plain_conv4(encoder).eval()(images))


def test_evaluation_leaves_the_averages_alone() -> None:
    encoder = make(Conv4Config(channels=8))
    encoder(pictures(encoder.config))
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    encoder.eval()(pictures(encoder.config))
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())


def test_saving_and_loading_changes_no_feature() -> None:
    encoder, other = make(Conv4Config(channels=8)), make(Conv4Config(channels=8), seed=1)
    images = pictures(encoder.config)
    encoder(images)
    other.load_state_dict(encoder.state_dict())
    assert torch.equal(encoder.eval()(images), other.eval()(images))


def test_starting_values_are_the_papers() -> None:
    torch.manual_seed(0)
    encoder = Conv4(Conv4Config())
    assert sum(p.numel() for p in encoder.parameters()) == 111_680
    std = (2 / (9 * 64)) ** 0.5
    weight = dict(encoder.named_parameters())["blocks.1.weight"]
    assert weight.abs().max().item() <= 2 * std
    assert weight.std().item() == pytest.approx(0.8796 * std, rel=0.02)  # a normal cut at two deviations


@pytest.mark.parametrize(
    ("size", "blocks", "width"), [(28, 4, 64), (84, 4, 1600), (27, 2, 2304), (35, 3, 1024)]
)
def test_feature_dim_is_the_width_that_comes_out(size: int, blocks: int, width: int) -> None:
    config = Conv4Config(image_size=size, blocks=blocks)
    assert config.feature_dim == width
    assert Conv4(config)(torch.rand(2, 1, size, size)).shape == (2, width)


def test_training_is_deterministic() -> None:
    encoder, images = make(Conv4Config()), pictures(Conv4Config())
    (first, a), (again, b) = gradients(encoder, images), gradients(encoder, images)
    assert torch.equal(first, again)
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_the_benchmark_reports_what_it_says() -> None:
    result = bench_encoder(pictures=4, repeats=1)
    assert set(result) == {"speedup", "pictures_per_second", "plain_pictures_per_second", "threads"}
    assert all(value > 0 for value in result.values())


@pytest.mark.parametrize("training", [True, False])
def test_a_length_scales_every_feature_and_turns_none(training: bool) -> None:
    config = Conv4Config(last_relu=False)
    plain, sized = make(config), make(Conv4Config(last_relu=False, length=3.2))
    images = pictures(config)
    for encoder in (plain, sized):
        encoder.train()
        encoder(images)  # so that the averages are of something
        encoder.train(training)
    features, scaled = plain(images), sized(images)
    torch.testing.assert_close(scaled.norm(dim=-1), torch.full((len(images),), 3.2))
    torch.testing.assert_close(scaled, 3.2 * features / features.norm(dim=-1, keepdim=True))
    torch.testing.assert_close(sized.eval().frozen()(images), sized(images))
