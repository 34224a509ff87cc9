"""Mirrored pictures as classes of their own: characters that nobody has drawn, but might have."""

from dataclasses import replace

import numpy as np

from wanderlearn.pictures.collection import Pictures

__all__ = ["with_mirrored"]


def with_mirrored(pictures: Pictures) -> Pictures:
    """All pictures, then all of them mirrored left to right, whose classes are others of the same families.

    Picture n mirrored is picture n + N, and class c mirrored is class c + C.
    """
    images, first = pictures.images, pictures.first
    return replace(
        pictures,
        images=np.concatenate([images, images[..., ::-1]]),
        first=np.concatenate([first, first[-1] + first[1:]]),
        family=np.tile(pictures.family, 2),
        class_names=[*pictures.class_names, *(f"{name}, mirrored" for name in pictures.class_names)],
    )
