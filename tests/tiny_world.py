"""A small collection of random pixels: the process does not care what the pictures show."""

import numpy as np

from wanderlearn.pictures.collection import Pictures, Split


def tiny_pictures(
    split: Split = "train",
    families: int = 12,
    classes_per_family: int = 5,
    per_class: int = 8,
    size: int = 28,
    channels: int = 1,
) -> Pictures:
    classes = families * classes_per_family
    # A class is a random pattern and its pictures are noisy copies, so that there is something to learn.
    rng = np.random.default_rng(0)
    pattern = rng.integers(0, 256, (classes, 1, channels, size, size))
    noise = rng.integers(-60, 61, (classes, per_class, channels, size, size))
    images = np.clip(pattern + noise, 0, 255).astype(np.uint8).reshape(-1, channels, size, size)
    return Pictures(
        name="tiny",
        split=split,
        images=images,
        first=np.arange(0, classes * per_class + 1, per_class),
        family=np.repeat(np.arange(families), classes_per_family),
        class_names=[f"family{c // classes_per_family}/class{c}" for c in range(classes)],
        family_names=[f"family{f}" for f in range(families)],
    )
