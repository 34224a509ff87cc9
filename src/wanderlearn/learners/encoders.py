"""From a picture to a feature: Conv4, written for speed on a CPU.

A block is conv 3x3 -> BatchNorm -> ReLU -> max-pool 2x2, and the numbers are those of that plain definition.
What is different is the order of the work. ReLU and a positive scale commute with max (for a negative scale
the weights change sign first), so pooling comes first and the rest works on a quarter of the numbers. The
statistics still are those of all positions before pooling. Gradients are written by hand and exact.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from wanderlearn.learners.together import Total, joint_moments

__all__ = ["Conv4", "Conv4Config"]

CORNERS: Final = ((0, 0), (0, 1), (1, 0), (1, 1))  # the positions that one pooling window takes the best of
ROWS: Final = 4096  # windows handled at a time by the first block, to stay inside the cache
PICTURES: Final = 64  # pictures handled at a time in evaluation, for the same reason
aten: Final = torch.ops.aten


@dataclass(frozen=True)
class Conv4Config:
    """The paper's Omniglot encoder: four blocks of 64 channels, 28x28 -> 14 -> 7 -> 3 -> 1."""

    image_size: int = 28
    in_channels: int = 1
    channels: int = 64
    blocks: int = 4
    last_relu: bool = True
    """CPM and OML-U++ leave the ReLU of the last block out."""
    batch_norm_momentum: float = 0.001
    """Share of the newest batch in the averages that evaluation uses (the authors' decay is 0.999)."""
    batch_norm_eps: float = 1e-3
    length: float = 0.0
    """Every feature is brought to this length, so that distances between them are cosines; 0: as it comes."""

    @property
    def feature_dim(self) -> int:
        """Width of the feature: channels times what is left of the picture after the pooling."""
        left = self.image_size >> self.blocks  # each block halves the side, rounding down
        return self.channels * left * left


class Conv4(nn.Module):
    """Pictures [N, C, H, W] to features [N, feature_dim].

    In training, BatchNorm uses the statistics of the batch; in evaluation its running averages, folded into
    the weights. The training path can be differentiated once, the evaluation path as often as you like.
    """

    def __init__(self, config: Conv4Config | None = None) -> None:
        super().__init__()
        self.config = config = config or Conv4Config()
        widths = [config.in_channels, *[config.channels] * config.blocks]
        relus = [True] * (config.blocks - 1) + [config.last_relu]
        self.blocks = nn.ModuleList(
            _Block(*shape, config) for shape in zip(widths[:-1], widths[1:], relus, strict=True)
        )

    @property
    def feature_dim(self) -> int:
        """Width of the feature."""
        return self.config.feature_dim

    def forward(self, images: Float[Tensor, "N C H W"]) -> Float[Tensor, "N F"]:
        """The features of these pictures."""
        if self.training or len(images) <= PICTURES:
            return self._encode(images)
        return torch.cat([self._encode(some) for some in torch.split(images, PICTURES)])

    def frozen(self, traced: bool = False) -> Callable[[Float[Tensor, "N C H W"]], Float[Tensor, "N F"]]:
        """Evaluation with the weights of now, folded once, not at every call: half the time for one picture.

        For pictures of the configured size that need no gradient. `traced`: by plain convolutions alone, as a
        graph for other runtimes should have it.
        """
        config = self.config
        first = not traced and config.in_channels <= 4 and config.image_size % 2 == 0
        by_windows = [first] + [False] * config.blocks
        with torch.no_grad():
            folded: list[tuple[Any, Tensor, Tensor, bool]] = []
            for block, windows in zip(self.blocks, by_windows, strict=False):
                weight, offset = cast(_Block, block).fold(windows)
                if not windows:  # the layout that convolution would bring them to every time
                    weight = weight.contiguous(memory_format=torch.channels_last)
                folded.append((block, weight, offset, windows))

        def encode(images: Float[Tensor, "N C H W"]) -> Float[Tensor, "N F"]:
            x = images
            for block, weight, offset, windows in folded:
                x = block.apply_folded(x, weight, offset, windows)
            return self._sized(x.flatten(1))

        return encode

    def _encode(self, images: Float[Tensor, "N C H W"]) -> Float[Tensor, "N F"]:
        x = images
        for block in self.blocks:
            x = block(x)  # [N, channels, H / 2, W / 2]
        return self._sized(x.flatten(1))

    def _sized(self, features: Float[Tensor, "N F"]) -> Float[Tensor, "N F"]:
        length = self.config.length
        return length * F.normalize(features, dim=-1) if length else features


class _Block(nn.Module):
    """conv 3x3 SAME without bias, BatchNorm, ReLU (or none), max-pool 2x2 VALID."""

    average_mean: Tensor  # [K]
    average_variance: Tensor  # [K] biased
    average_weight: Tensor  # []

    def __init__(self, inputs: int, outputs: int, relu: bool, config: Conv4Config) -> None:
        super().__init__()
        self.relu, self.eps, self.momentum = relu, config.batch_norm_eps, config.batch_norm_momentum
        self.total: Total | None = None  # sums over the parts of a batch, see `together`
        self.weight = nn.Parameter(torch.empty(outputs, inputs, 3, 3))
        std = (2 / (9 * outputs)) ** 0.5
        nn.init.trunc_normal_(self.weight, std=std, a=-2 * std, b=2 * std)
        self.scale = nn.Parameter(torch.ones(outputs))
        self.shift = nn.Parameter(torch.zeros(outputs))
        # Running averages start at zero, as the authors' do; at a momentum of 0.001 they need thousands of
        # steps to forget it. So the weight of all that was averaged, 1 - 0.999^n, is kept and divided out.
        self.register_buffer("average_mean", torch.zeros(outputs))
        self.register_buffer("average_variance", torch.zeros(outputs))
        self.register_buffer("average_weight", torch.zeros(()))

    def forward(self, x: Float[Tensor, "N C H W"]) -> Float[Tensor, "N K h w"]:
        # The first block has few input channels and pictures that need no gradient: it is all memory traffic,
        # and a product of windows needs far less of it (in a cache, so on a processor, in full precision).
        by_windows = x.shape[1] <= 4 and x.shape[2] % 2 == x.shape[3] % 2 == 0 and not x.requires_grad
        by_windows = by_windows and x.is_cpu and _less_precise(x) is None
        if not self.training:
            return self._evaluate(x, by_windows)
        block: Any = _WindowBlock if by_windows else _ConvBlock
        out: Tensor
        out, mean, variance = block.apply(
            x, self.weight, self.scale, self.shift, self.eps, self.relu, self.total
        )
        with torch.no_grad():
            self.average_mean.lerp_(mean, self.momentum)
            self.average_variance.lerp_(variance, self.momentum)
            self.average_weight.lerp_(torch.ones_like(self.average_weight), self.momentum)
        return out

    def _evaluate(self, x: Tensor, by_windows: bool) -> Tensor:
        return self.apply_folded(x, *self.fold(by_windows), by_windows)

    def fold(self, by_windows: bool) -> tuple[Tensor, Tensor]:
        """Weights and offset that absorb the running averages, which are an affine map."""
        seen = self.average_weight > 0  # if nothing was seen yet, normalise by nothing: mean 0, variance 1
        weight = torch.where(seen, self.average_weight, 1.0)
        variance = torch.where(seen, self.average_variance / weight, 1.0)
        gain = self.scale * (variance + self.eps).rsqrt()  # [K]
        offset = self.shift - self.average_mean / weight * gain  # [K]
        folded = self.weight * gain[:, None, None, None]
        return (_spread(folded) if by_windows else folded), offset

    def apply_folded(self, x: Tensor, folded: Tensor, offset: Tensor, by_windows: bool) -> Tensor:
        """The block in evaluation, by what `fold` gave."""
        if by_windows:
            windows = _windows(x)  # [N, h, w, 16 C]
            y = (windows @ folded).view(*windows.shape[:3], 4, -1)  # [N, h, w, 4, K]
            pooled = (y.amax(-2) + offset).permute(0, 3, 1, 2)  # [N, K, h, w]
        else:
            pooled = F.max_pool2d(F.conv2d(x, folded, offset, padding=1), 2)  # [N, K, h, w]
        return pooled.relu() if self.relu else pooled


class _ConvBlock(torch.autograd.Function):
    """A block in training: convolve, take the statistics, pool, and only then normalise."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        scale: Tensor,
        shift: Tensor,
        eps: float,
        relu: bool,
        total: Total | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        sign = torch.where(scale < 0, -1.0, 1.0).to(scale.dtype)  # [K] so that the scale is positive below
        signed = (weight * sign[:, None, None, None]).contiguous(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
        if less := _less_precise(x):  # the big tensors; statistics stay in full precision
            x, signed = x.to(less), signed.to(less)
        y = F.conv2d(x, signed, padding=1).contiguous(memory_format=torch.channels_last)  # [N, K, H, W]
        measured = y.to(scale.dtype) if y.is_cpu else y  # a GPU adds up in full precision by itself
        if len(y):
            mean, variance = torch.batch_norm_update_stats(measured, None, None, 0.0)  # [K] biased
        else:  # a part without pictures
            mean, variance = torch.zeros_like(scale), torch.zeros_like(scale)
        ctx.count, ctx.total = y.numel() / len(mean), total
        if total is not None:
            mean, variance, ctx.count = joint_moments(mean, variance, int(ctx.count), total)
        pooled, places = F.max_pool2d(y, 2, return_indices=True)  # [N, K, h, w]
        inverse = (variance + eps).rsqrt()  # [K] 1 / deviation
        gain = scale.abs() * inverse
        out = torch.addcmul(_per_channel(shift - mean * gain), pooled.to(gain.dtype), _per_channel(gain))
        out = out.to(y.dtype)
        ctx.save_for_backward(
            x, y, pooled, places, out.relu_() if relu else None, signed, sign, mean, inverse, gain
        )
        ctx.mark_non_differentiable(mean := mean * sign, variance)
        return out, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, y, pooled, places, out, signed, sign, mean, inverse, gain = ctx.saved_tensors
        kind = mean.dtype
        d = d_out if out is None else aten.threshold_backward(d_out, out, 0)  # [N, K, h, w]
        d_shift = d.sum((0, 2, 3), dtype=kind)
        d_product = (d * pooled).sum((0, 2, 3), dtype=kind)
        d_scale = inverse * (d_product - mean * d_shift)  # sum of d times the normalised y
        d_shifts, d_scales = d_shift, d_scale  # of all parts: the statistics are theirs
        if ctx.total is not None:
            d_shifts, d_scales = ctx.total(torch.stack([d_shift, d_scale]))
        # dy = gain (scatter(d) - (d_shift + normalised y * d_scale) / M): only the first is sparse
        d_y = aten.max_pool2d_with_indices_backward(
            d * _per_channel(gain).to(d.dtype), y, [2, 2], [2, 2], [0, 0], [1, 1], False, places
        )  # [N, K, H, W]
        share = gain / ctx.count
        slope = share * inverse * d_scales
        d_y.addcmul_(y, _per_channel(-slope).to(y.dtype))
        d_y.sub_(_per_channel(share * d_shifts - slope * mean).to(y.dtype))
        one, wanted = [1, 1], [ctx.needs_input_grad[0], True, False]
        d_x, d_signed, _ = aten.convolution_backward(
            d_y, x, signed, None, one, one, one, False, [0, 0], 1, wanted
        )
        d_weight = d_signed.to(kind) * _per_channel(sign)[:, None]
        return d_x, d_weight, d_scale * sign, d_shift, None, None, None


class _WindowBlock(torch.autograd.Function):
    """The same for few input channels: y is never stored, because all that is asked of it has a closed form.

    A pooling window sees 4x4 pixels. With the moments of its four 3x3 patches, y = w . patch has the mean
    w . mean(patch) and the variance w . Cov(patch) w; so normalising, too, can be folded into the weights.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        scale: Tensor,
        shift: Tensor,
        eps: float,
        relu: bool,
        total: Total | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        windows = _windows(x)  # [N, h, w, 16 C]
        rows, (K, C) = windows.flatten(0, 2), weight.shape[:2]
        sums, squares = rows.sum(0).view(C, 4, 4), (rows.t() @ rows).view(C, 4, 4, C, 4, 4)
        first = torch.stack([sums[:, r : r + 3, c : c + 3] for r, c in CORNERS]).mean(0)  # [C, 3, 3]
        second = torch.stack([squares[:, r : r + 3, c : c + 3, :, r : r + 3, c : c + 3] for r, c in CORNERS])
        ones, twos, count = first.flatten().double(), second.mean(0).flatten().double(), float(len(rows))
        if total is not None:
            sums = total(torch.cat([ones, twos, ones.new_tensor([count])]))
            ones, twos, count = sums[: 9 * C], sums[9 * C : -1], float(sums[-1])
        center = ones / count  # [9 C]
        covariance = twos.view(9 * C, 9 * C) / count - torch.outer(center, center)
        center, covariance = center.to(x.dtype), covariance.to(x.dtype)

        flat = weight.flatten(1)  # [K, 9 C]
        mean = flat @ center  # [K]
        variance = ((flat @ covariance) * flat).sum(1).clamp_min_(0)  # [K]
        inverse = (variance + eps).rsqrt()
        gain = scale * inverse  # of either sign: folded into the weights, the maximum comes out right
        folded = _spread(weight * gain[:, None, None, None])  # [16 C, 4 K]
        out = x.new_empty(len(rows), K)
        for some, best in zip(torch.split(rows, ROWS), torch.split(out, ROWS), strict=True):
            torch.amax((some @ folded).view(-1, 4, K), 1, out=best).add_(shift - mean * gain)
            if relu:
                best.relu_()
        out = out.view(*windows.shape[:3], K).permute(0, 3, 1, 2)  # [N, K, h, w]
        ctx.save_for_backward(
            rows, out if relu else None, weight, folded, center, covariance, mean, inverse, gain
        )
        ctx.mark_non_differentiable(mean, variance)
        return out, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        rows, out, weight, folded, center, covariance, mean, inverse, gain = ctx.saved_tensors
        K, C = weight.shape[:2]
        d_rows = d_out.permute(0, 2, 3, 1).reshape(len(rows), K)
        out = None if out is None else out.permute(0, 2, 3, 1).view(len(rows), K)
        d_shift, sums = d_rows.new_zeros(K), d_rows.new_zeros(4 * K, 16 * C)
        for start in range(0, len(rows), ROWS):
            part = slice(start, start + ROWS)
            d = d_rows[part] if out is None else aten.threshold_backward(d_rows[part], out[part], 0)  # [m, K]
            d_shift += d.sum(0)
            y = rows[part] @ folded  # [m, 4 K] again, to see where the maximum was; becomes d_y in place
            left, right = y.view(-1, 2, 2, K).unbind(2)  # [m, 2, K]
            best = torch.maximum(left, right)
            top, bottom = best.unbind(1)  # [m, K]
            right.gt_(left)  # 1 or 0; the first of equals wins, as in max_pool2d
            torch.sub(d, bottom.gt_(top).mul_(d), out=top)  # d goes to the better row ...
            torch.sub(best, right.mul_(best), out=left)  # ... and there to the better side
            sums.addmm_(y.t(), rows[part])
        corners = sums.view(2, 2, K, C, 4, 4)
        taken = torch.stack([corners[r, c, :, :, r : r + 3, c : c + 3] for r, c in CORNERS]).sum(0)
        taken = taken.flatten(1)  # [K, 9 C] sum of d times the patch that won
        flat = weight.flatten(1)
        d_scale = inverse * ((taken * flat).sum(1) - mean * d_shift)
        through_mean = torch.outer(d_shift, center)
        through_variance = (d_scale * inverse)[:, None] * (flat @ covariance)
        # Linear in sums over this part, with the moments of all: the parts' gradients add up to the whole.
        d_weight = gain[:, None] * (taken - through_mean - through_variance)
        return None, d_weight.view_as(weight), d_scale, d_shift, None, None, None


def _per_channel(values: Float[Tensor, " K"]) -> Float[Tensor, "K 1 1"]:
    return values[:, None, None]


def _less_precise(x: Tensor) -> torch.dtype | None:
    """What `torch.autocast` asks for where x is."""
    kind = x.device.type
    asked = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.get_autocast_dtype(kind) if asked else None


def _windows(x: Float[Tensor, "N C H W"]) -> Float[Tensor, "N h w 16*C"]:
    """The 4x4 pixels that each 2x2 pooling window of a 3x3 convolution sees."""
    return F.pad(x, (1, 1, 1, 1)).unfold(2, 4, 2).unfold(3, 4, 2).permute(0, 2, 3, 1, 4, 5).flatten(3)


def _spread(weight: Float[Tensor, "K C 3 3"]) -> Float[Tensor, "16*C 4*K"]:
    """The convolution as a matrix from such a window to its four positions."""
    return torch.stack([F.pad(weight, (c, 1 - c, r, 1 - r)) for r, c in CORNERS]).flatten(2).flatten(0, 1).t()
