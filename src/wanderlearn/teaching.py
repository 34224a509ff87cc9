"""What an encoder learns from a teacher: a larger encoder that has seen every picture whole.

    lesson[i] = unit(sum over a few crops of unit(teacher(picture i)))        nothing of it is hidden
    known[c]  = unit(sum_{i of c} lesson[i])
    p[i, c]   = softmax_c(sharpness lesson[i] . known[c])                     what it may be taken for
    loss      = - sum_c p[i, c] log softmax_c(scale cos(feature of i, cropped and hidden; w_c))

A name says only which class is right; a lesson also says which others are alike, and how good an example of
its class a picture is. The teacher looks once, before the first step: afterwards lessons cost nothing.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from wanderlearn.distributed.compute import Compute
from wanderlearn.progress import bar
from wanderlearn.singles import SinglePictures

__all__ = ["Lessons", "class_means", "looks"]

CROPS: Final = ((0, 0), (-1, 1), (1, -1))  # off the middle, down and right
AT_ONCE: Final = 512


class Lessons:
    """What a teacher says of all pictures, the mirrored ones too where they are classes of their own."""

    def __init__(self, teacher: Any, data: SinglePictures, sharpness: float, compute: Compute) -> None:
        self.sharpness, self.compute = sharpness, compute
        self.said = looks(teacher.to(compute.device), data, CROPS if data.margin else CROPS[:1], compute)
        self.known = _means(self.said, data)  # [classes, D]

    def of(
        self, pictures: npt.NDArray[np.int64], mirrored: npt.NDArray[np.int64]
    ) -> Float[Tensor, "N classes"]:
        """What these pictures, mirrored where it says 1, may be taken for: shares that add up to one."""
        here = self.compute.here
        said = self.said[here(torch.from_numpy(mirrored)), here(torch.from_numpy(pictures))]  # [N, D]
        return (self.sharpness * said @ self.known.T).softmax(-1)


def class_means(encoder: Any, data: SinglePictures, compute: Compute) -> Float[Tensor, "classes D"]:
    """What an encoder makes of every class as it is now, as directions of length 1."""
    was_training = encoder.training
    means = _means(looks(encoder, data, CROPS[:1], compute), data)
    encoder.train(was_training)
    return means


def looks(
    encoder: Any, data: SinglePictures, crops: tuple[tuple[int, int], ...], compute: Compute
) -> Float[Tensor, "kinds N D"]:
    """What an encoder makes of all pictures, and (the second kind) of all mirrored ones, at length 1.

    The processes of a group share the work by whole pieces, so nothing depends on how many they are.
    """
    encoder.eval()
    pieces = range(0, data.count, AT_ONCE)
    found = torch.zeros(1 + data.mirror, data.count, encoder.feature_dim, device=compute.device)
    with torch.no_grad(), bar("lessons", data.count, shown=compute.group.first) as shown:
        for n in compute.group.share(len(pieces)):
            rows = np.arange(pieces[n], min(pieces[n] + AT_ONCE, data.count))
            for down, right in crops:
                pictures = compute.here(data.unhidden(rows, down, right))  # [n, C, H, W]
                for kind in range(len(found)):
                    seen = encoder(pictures.flip(3) if kind else pictures)  # [n, D]
                    found[kind, rows[0] : rows[-1] + 1] += F.normalize(seen, dim=-1)
            shown.advance(len(rows) * compute.group.size)
    return F.normalize(compute.group.sum(found), dim=-1)


def _means(said: Float[Tensor, "kinds N D"], data: SinglePictures) -> Float[Tensor, "classes D"]:
    class_of = torch.from_numpy(data.class_of).to(said.device)  # [N]
    sums = said.new_zeros(data.classes, said.shape[-1])
    for kind, some in enumerate(said):
        sums.index_add_(0, class_of + kind * data.real, some)
    return F.normalize(sums, dim=-1)
