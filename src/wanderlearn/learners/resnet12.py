"""From a picture to a feature: the paper's ResNet-12, for natural pictures.

A block is conv 3x3 -> norm -> ReLU twice, conv 3x3 -> norm, plus a 1x1 convolution of its input with a norm
of its own; then max-pool 2x2, and only then ReLU. The last block does not pool. The feature is the mean over
all places; with a mask as the last channel of the picture (RoamingRooms), the mean inside it and that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from wanderlearn.errors import WanderError
from wanderlearn.worlds.frames import Frames

__all__ = ["ResNet12", "ResNet12Config"]

PICTURES: Final = 32  # handled at a time in evaluation, to stay inside the cache
EMPTY: Final = 1e-3  # what an empty mask is taken to weigh

Folded = tuple[Tensor, Tensor]  # weights and offsets of a convolution that has taken its norm in


@dataclass(frozen=True)
class ResNet12Config:
    """The paper's encoder of RoamingImageNet (and, with attention, of RoamingRooms)."""

    image_size: int = 84
    in_channels: int = 3
    """Channels of a picture, the mask included if pooling is by attention."""
    channels: tuple[int, ...] = (32, 64, 128, 256)
    """Of every block; all blocks but the last halve the side, rounding up."""
    last_relu: bool = True
    """On ImageNet the authors leave the ReLU of the last block out, but for OML-U."""
    pooling: Literal["mean", "attention"] = "mean"
    """mean: over all places. attention: the mean inside the mask, which is the last channel, and that."""
    scale: float = 1.0
    """What features are multiplied with (the authors: 0.1 for CPM in Rooms)."""
    batch_norm_momentum: float = 0.001
    """Share of the newest batch in the averages that evaluation uses (the authors' decay is 0.999)."""
    batch_norm_eps: float = 1e-3
    evaluate_with: Literal["averages", "batch"] = "averages"
    """What BatchNorm uses in evaluation: what it saw in training, or (as the authors in Rooms) the statistics
    of the whole test sequence, its future included. That is transductive, and results say so."""
    length: float = 0.0
    """Every feature is brought to this length, so that distances between them are cosines; 0: as it comes."""

    def __post_init__(self) -> None:
        if not self.channels or min(self.channels) < 1:
            raise WanderError(f"A ResNet-12 needs at least one channel in every block, not {self.channels}.")
        if self.pooling == "attention" and self.in_channels < 2:
            raise WanderError(
                "Pooling by attention takes the last channel of a picture for the mask, so there must be "
                f"two channels or more, not {self.in_channels} (colour and a mask: 4)."
            )

    @property
    def seen_channels(self) -> int:
        """Channels that are convolved: not the mask."""
        return self.in_channels - (self.pooling == "attention")

    @property
    def feature_dim(self) -> int:
        """Width of the feature."""
        return self.channels[-1] * (2 if self.pooling == "attention" else 1)

    @property
    def multiplications(self) -> int:
        """Multiply-adds of the convolutions for one picture."""
        side, before, total = self.image_size, self.seen_channels, 0
        for n, width in enumerate(self.channels):
            total += side * side * width * (9 * before + 2 * 9 * width + before)
            before = width
            side = side if n == len(self.channels) - 1 else -(-side // 2)
        return total


class ResNet12(nn.Module):
    """Pictures [N, C, H, W] of any size to features [N, feature_dim]."""

    def __init__(self, config: ResNet12Config | None = None) -> None:
        super().__init__()
        self.config = config = config or ResNet12Config()
        widths, last = [config.seen_channels, *config.channels], len(config.channels) - 1
        self.blocks = nn.ModuleList(
            _Block(widths[n], widths[n + 1], n < last, n < last or config.last_relu, config)
            for n in range(last + 1)
        )

    @property
    def feature_dim(self) -> int:
        """Width of the feature."""
        return self.config.feature_dim

    @property
    def transductive(self) -> bool:
        """Whether a feature depends on the pictures that come with it, also in evaluation."""
        return self.config.evaluate_with == "batch"

    def forward(self, images: Float[Tensor, "N C H W"] | Frames) -> Float[Tensor, "N F"]:
        """The features of these pictures. Of frames each is convolved once, whatever is met in it.

        The statistics of BatchNorm, where they are those of the batch, are those of its frames: one that is
        met three times counts once.
        """
        if isinstance(images, Frames):
            return self._of_frames(images)
        if self.training or self.transductive:
            return self._encode(images, None)
        folded = [cast(_Block, block).fold() for block in self.blocks]
        return torch.cat([self._encode(some, folded) for some in torch.split(images, PICTURES)])

    def frozen(self, traced: bool = False) -> Callable[[Float[Tensor, "N C H W"]], Float[Tensor, "N F"]]:
        """Evaluation with the weights of now, folded once, not at every call.

        `traced` is for graphs of other runtimes; here both are plain convolutions.
        """
        if self.transductive:
            raise WanderError(
                "This encoder takes BatchNorm's statistics from the whole sequence (evaluate_with batch), "
                "which nobody knows who meets one picture after the other. Set evaluate_with to averages."
            )
        with torch.no_grad():
            folded = [cast(_Block, block).fold() for block in self.blocks]
            if not traced:  # the layout that convolution would bring them to every time
                folded = [
                    [(w.contiguous(memory_format=torch.channels_last), o) for w, o in f] for f in folded
                ]

        def encode(images: Float[Tensor, "N C H W"]) -> Float[Tensor, "N F"]:
            return self._encode(images, folded, traced)

        return encode

    def _encode(
        self, images: Float[Tensor, "N C H W"], folded: list[list[Folded]] | None, traced: bool = False
    ) -> Float[Tensor, "N F"]:
        x = self._convolved(images[:, : self.config.seen_channels], folded, traced)  # [N, K, h, w]
        features = x.mean((2, 3))  # [N, K]
        if self.config.pooling == "attention":
            features = torch.cat([_inside(x, images[:, -1:]), features], 1)  # [N, 2 K]
        return self._scaled(features)

    def _of_frames(self, frames: Frames) -> Float[Tensor, "N F"]:
        """As `forward` of whole pictures, with every frame convolved once."""
        if self.config.pooling != "attention":  # the mask is convolved too: nothing can be shared
            return cast(Tensor, self(frames.whole()))
        if self.training or self.transductive:
            return self._met(self._convolved(frames.rgb, None), frames.masks, frames.of)
        folded = [cast(_Block, block).fold() for block in self.blocks]
        found = frames.rgb.new_zeros(len(frames.of), self.feature_dim)
        for start in range(0, len(frames.rgb), PICTURES):
            x = self._convolved(frames.rgb[start : start + PICTURES], folded)
            here = (frames.of >= start) & (frames.of < start + PICTURES)
            found[here] = self._met(x, frames.masks[here], frames.of[here] - start).to(found)
        return found

    def _met(
        self, x: Float[Tensor, "M K h w"], masks: Float[Tensor, "N 1 H W"], of: Int[Tensor, " N"]
    ) -> Float[Tensor, "N F"]:
        """The features of what is met in frames that are convolved already."""
        return self._scaled(torch.cat([_inside(x[of], masks), x.mean((2, 3))[of]], 1))

    def _convolved(
        self, x: Float[Tensor, "N C H W"], folded: list[list[Folded]] | None, traced: bool = False
    ) -> Float[Tensor, "N K h w"]:
        x = x if traced else x.contiguous(memory_format=torch.channels_last)
        for n, block in enumerate(self.blocks):
            x = block(x) if folded is None else cast(Any, block).apply_folded(x, folded[n])
        return x

    def _scaled(self, features: Float[Tensor, "N F"]) -> Float[Tensor, "N F"]:
        if self.config.scale != 1:
            features = features * self.config.scale
        length = self.config.length
        return length * F.normalize(features, dim=-1) if length else features


def _inside(x: Float[Tensor, "N K h w"], mask: Float[Tensor, "N 1 H W"]) -> Float[Tensor, "N K"]:
    """The mean inside a mask."""
    weight = F.interpolate(mask, x.shape[2:], mode="bilinear", align_corners=False)  # [N, 1, h, w]
    total = weight.sum((2, 3))  # [N, 1]
    return (x * weight).sum((2, 3)) / torch.where(total == 0, EMPTY, total)


class _Block(nn.Module):
    """Three convolutions and one past them; pooled, then ReLU."""

    def __init__(self, inputs: int, outputs: int, pool: bool, relu: bool, config: ResNet12Config) -> None:
        super().__init__()
        self.pool, self.relu = pool, relu
        self.first = _Conv(inputs, outputs, 3, config)
        self.second = _Conv(outputs, outputs, 3, config)
        self.third = _Conv(outputs, outputs, 3, config)
        self.past = _Conv(inputs, outputs, 1, config)

    def forward(self, x: Float[Tensor, "N C H W"]) -> Float[Tensor, "N K h w"]:
        inner = self.second(self.first(x).relu_()).relu_()
        return self._end(self.third(inner) + self.past(x))

    def fold(self) -> list[Folded]:
        """The four convolutions with their norms taken in; the last two share an offset."""
        first, second, (third, one), (past, other) = (
            conv.fold() for conv in (self.first, self.second, self.third, self.past)
        )
        return [first, second, (third, one + other), (past, torch.zeros_like(other))]

    def apply_folded(self, x: Float[Tensor, "N C H W"], folded: list[Folded]) -> Float[Tensor, "N K h w"]:
        """The block in evaluation, by what `fold` gave."""
        (first, a), (second, b), (third, c), (past, _) = folded
        inner = F.conv2d(F.conv2d(x, first, a, padding=1).relu(), second, b, padding=1).relu()
        return self._end(F.conv2d(inner, third, c, padding=1) + F.conv2d(x, past))

    def _end(self, x: Tensor) -> Tensor:
        pooled = F.max_pool2d(x, 2, ceil_mode=True) if self.pool else x
        return pooled.relu() if self.relu else pooled


class _Conv(nn.Module):
    """A convolution SAME without bias, and BatchNorm."""

    average_mean: Tensor  # [K]
    average_variance: Tensor  # [K] biased
    average_weight: Tensor  # [] how much was averaged, to be divided out: the averages start at zero

    def __init__(self, inputs: int, outputs: int, side: int, config: ResNet12Config) -> None:
        super().__init__()
        self.padding, self.eps, self.momentum = side // 2, config.batch_norm_eps, config.batch_norm_momentum
        weight = torch.empty(outputs, inputs, side, side).contiguous(memory_format=torch.channels_last)
        self.weight = nn.Parameter(weight)
        std = (2 / (side * side * outputs)) ** 0.5
        nn.init.trunc_normal_(self.weight, std=std, a=-2 * std, b=2 * std)
        self.scale = nn.Parameter(torch.ones(outputs))
        self.shift = nn.Parameter(torch.zeros(outputs))
        self.register_buffer("average_mean", torch.zeros(outputs))
        self.register_buffer("average_variance", torch.zeros(outputs))
        self.register_buffer("average_weight", torch.zeros(()))

    def forward(self, x: Float[Tensor, "N C H W"]) -> Float[Tensor, "N K H W"]:
        """With the statistics of the batch, which training remembers."""
        y = F.conv2d(x, self.weight, padding=self.padding)
        out: Tensor
        out, mean, inverse = torch.native_batch_norm(
            y, self.scale, self.shift, None, None, True, 0.0, self.eps
        )
        if self.training:
            with torch.no_grad():
                self.average_mean.lerp_(mean, self.momentum)
                self.average_variance.lerp_(inverse.pow(-2) - self.eps, self.momentum)
                self.average_weight.lerp_(torch.ones_like(self.average_weight), self.momentum)
        return out

    def fold(self) -> Folded:
        """Weights and offset that absorb the running averages, which are an affine map."""
        seen = self.average_weight > 0  # if nothing was seen yet, normalise by nothing: mean 0, variance 1
        weight = torch.where(seen, self.average_weight, 1.0)
        variance = torch.where(seen, self.average_variance / weight, 1.0)
        gain = self.scale * (variance + self.eps).rsqrt()  # [K]
        return self.weight * gain[:, None, None, None], self.shift - self.average_mean / weight * gain
