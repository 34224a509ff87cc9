"""Two encoders side by side: one for the picture, one for what lies behind it.

The paper's encoder for pictures with a background (its context experiment): the last channel of a picture is
the background, and each part has a Conv4 of its own. The feature is that of the picture followed by that of
the background.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wanderlearn.learners.encoders import Conv4, Conv4Config

__all__ = ["Double", "DoubleConfig"]


@dataclass(frozen=True)
class DoubleConfig:
    """Two encoders of the same make, with weights of their own; 128 numbers in all."""

    picture: Conv4Config = field(default_factory=Conv4Config)
    """Of the picture; that of the background is the same, but for one channel and its length."""
    background_length: float = 0.0
    """Every feature of a background is brought to this length; 0: as it comes."""

    @property
    def background(self) -> Conv4Config:
        """The encoder of the background."""
        return replace(self.picture, in_channels=1, length=self.background_length)

    @property
    def feature_dim(self) -> int:
        """Width of the feature: both parts."""
        return self.picture.feature_dim + self.background.feature_dim

    @property
    def in_channels(self) -> int:
        """Those of the picture and one for the background."""
        return self.picture.in_channels + 1

    @property
    def image_size(self) -> int:
        """Side of the picture and of the background."""
        return self.picture.image_size

    @property
    def last_relu(self) -> bool:
        """Whether the last blocks have a ReLU."""
        return self.picture.last_relu


class Double(nn.Module):
    """Pictures with a background [N, C + 1, H, W] to features [N, feature_dim]."""

    def __init__(self, config: DoubleConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or DoubleConfig()
        self.picture, self.background = Conv4(config.picture), Conv4(config.background)

    @property
    def feature_dim(self) -> int:
        """Width of the feature."""
        return self.config.feature_dim

    def forward(self, images: Float[Tensor, "N C H W"]) -> Float[Tensor, "N F"]:
        """The features of these pictures."""
        return torch.cat([self.picture(images[:, :-1]), self.background(images[:, -1:])], 1)

    def frozen(self, traced: bool = False) -> Callable[[Float[Tensor, "N C H W"]], Float[Tensor, "N F"]]:
        """Evaluation with the weights of now (see `Conv4.frozen`)."""
        picture, background = self.picture.frozen(traced), self.background.frozen(traced)

        def encode(images: Float[Tensor, "N C H W"]) -> Float[Tensor, "N F"]:
            return torch.cat([picture(images[:, :-1]), background(images[:, -1:])], 1)

        return encode
