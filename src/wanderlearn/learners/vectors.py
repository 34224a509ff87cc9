"""The encoder of worlds that are vectors already: somebody else's network has looked at the pictures."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["Vectors", "VectorsConfig"]


@dataclass(frozen=True)
class VectorsConfig:
    """Features that were computed before (`features:PATH.npy`)."""

    width: int = 64
    """How many numbers a vector has."""
    unit: bool = False
    """Bring every vector to length 1."""

    @property
    def feature_dim(self) -> int:
        """Width of the feature."""
        return self.width

    @property
    def in_channels(self) -> int:
        """A vector is a picture of one pixel with that many channels."""
        return self.width

    @property
    def image_size(self) -> int:
        """Its side."""
        return 1

    @property
    def last_relu(self) -> bool:
        """Vectors are taken as they are."""
        return False


class Vectors(nn.Module):
    """Vectors [N, D, 1, 1] to features [N, D]: nothing to learn."""

    def __init__(self, config: VectorsConfig) -> None:
        super().__init__()
        self.config = config

    @property
    def feature_dim(self) -> int:
        """Width of the feature."""
        return self.config.feature_dim

    def forward(self, images: Float[Tensor, "N D 1 1"]) -> Float[Tensor, "N D"]:
        """The vectors themselves."""
        flat = images.flatten(1)
        return F.normalize(flat, dim=1) if self.config.unit else flat
