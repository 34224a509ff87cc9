"""Counter-based randomness: every number is a function of (seed, split, sequence index, purpose).

Sequence i is therefore the same whatever the batch size, the number of workers or what was drawn before.
"""

import zlib
from enum import IntEnum

import numpy as np
import numpy.typing as npt

__all__ = ["Purpose", "uniforms"]


class Purpose(IntEnum):
    """What a stream of numbers is for: changing one leaves the others as they were."""

    ORDER = 1  # which class is met when, and which picture of it
    LABELS = 2  # which names are told
    PIXELS = 3  # crop and occlusion
    WARP = 4  # how pictures are bent in pretraining
    FLIP = 5  # which pictures are mirrored in pretraining
    BACKGROUND = 6  # which textures lie behind the pictures
    WALKS = 7  # which walk through rooms a sequence is taken from
    THINNING = 8  # which meetings of a walk are left out
    MASKS = 9  # how far masks are off in training


def uniforms(seed: int, split: str, index: int, purpose: Purpose, count: int) -> npt.NDArray[np.float64]:
    """`count` numbers in [0, 1)."""
    key = np.array([seed, index], dtype=np.uint64)
    counter = np.array([0, 0, zlib.crc32(split.encode()), purpose], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter)).random(count)
