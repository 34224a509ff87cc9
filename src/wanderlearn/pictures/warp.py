"""Bent, turned and stretched copies of pictures, as another hand might have drawn them."""

from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

__all__ = ["DRAWS", "warped"]

# At strength 1; every picture draws evenly between minus and plus these.
TURN: Final = np.deg2rad(12.0)
STRETCH: Final = 0.15  # of height and of width, each its own
SHEAR: Final = 0.15
BEND: Final = 0.10  # of half a picture: how far the knots of the grid below move
KNOTS: Final = 4  # per side, of a grid of shifts that is made smooth in between

DRAWS: Final = 4 + 2 * KNOTS**2  # random numbers a picture needs


def warped(
    images: Float[Tensor, "N C H W"], draws: npt.NDArray[np.float64], strength: float
) -> Float[Tensor, "N C H W"]:
    """Each picture in its own way, by its [N, DRAWS] numbers in [0, 1). Outside a picture it is black (-1).

    A warp of `strength` 0 changes nothing but rounding.
    """
    signed = torch.from_numpy((2 * draws - 1) * strength).to(images.dtype)  # [N, DRAWS]
    turn, tall, wide, shear = (signed[:, :4] * torch.tensor([TURN, STRETCH, STRETCH, SHEAR])).unbind(1)
    cos, sin = turn.cos(), turn.sin()  # [N]
    shape = torch.stack([(1 + wide) * cos, shear - sin, sin, (1 + tall) * cos], 1).view(-1, 2, 2)
    matrix = F.pad(shape, (0, 1)).to(images.dtype)  # [N, 2, 3] no shift: cropping does that
    grid = F.affine_grid(matrix, list(images.shape), align_corners=False)  # [N, H, W, 2]
    knots = BEND * signed[:, 4:].view(-1, 2, KNOTS, KNOTS)
    bend = F.interpolate(knots, images.shape[2:], mode="bicubic", align_corners=True)  # [N, 2, H, W]
    seen = F.grid_sample(images + 1, grid + bend.permute(0, 2, 3, 1), align_corners=False)
    return seen - 1
