"""How much faster our Conv4 trains than its plain definition, on the same pictures."""

from collections import OrderedDict
from statistics import median

import torch
from torch import nn

from wanderlearn.bench.measure import interleaved, median_ratio
from wanderlearn.learners.encoders import Conv4, Conv4Config

__all__ = ["bench_encoder", "plain_conv4"]


def plain_conv4(encoder: Conv4) -> nn.Sequential:
    """The plain definition, in the default memory format: conv, BatchNorm, ReLU, pool, with copied weights.

    Its running averages are torch's (not debiased, unbiased variance); everything else is the same function.
    """
    config, layers = encoder.config, OrderedDict[str, nn.Module]()
    for n, block in enumerate(encoder.blocks, start=1):
        channels, inputs = block.get_parameter("weight").shape[:2]
        conv = nn.Conv2d(inputs, channels, 3, padding=1, bias=False)
        norm = nn.BatchNorm2d(channels, eps=config.batch_norm_eps, momentum=config.batch_norm_momentum)
        with torch.no_grad():
            conv.weight.copy_(block.get_parameter("weight"))
            norm.weight.copy_(block.get_parameter("scale"))
            norm.bias.copy_(block.get_parameter("shift"))
        layers |= {f"conv{n}": conv, f"norm{n}": norm}
        if n < config.blocks or config.last_relu:
            layers[f"relu{n}"] = nn.ReLU()
        layers[f"pool{n}"] = nn.MaxPool2d(2)
    layers["flatten"] = nn.Flatten()
    return nn.Sequential(layers)


def bench_encoder(pictures: int = 600, repeats: int = 5) -> dict[str, float]:
    """Forward and backward of our Conv4 against the plain one, taking turns, in one run.

    `speedup` is the median of the ratios within a round; the rates are medians too.
    """
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(pictures, 1, 28, 28, generator=generator)
    ours = Conv4(Conv4Config())
    plain = plain_conv4(ours)
    work = {"ours": lambda: _train(ours, images), "plain": lambda: _train(plain, images)}
    seconds = interleaved(work, repeats)
    return {
        "speedup": median_ratio(seconds["plain"], seconds["ours"]),
        "pictures_per_second": pictures / median(seconds["ours"]),
        "plain_pictures_per_second": pictures / median(seconds["plain"]),
        "threads": float(torch.get_num_threads()),
    }


def _train(encoder: nn.Module, images: torch.Tensor) -> None:
    encoder.zero_grad()
    encoder(images).square().mean().backward()
