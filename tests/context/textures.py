"""Small collections of textures, and places that hold some."""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from tests.tiny_world import tiny_pictures
from wanderlearn.pictures.collection import Pictures, Split
from wanderlearn.worlds import BackgroundConfig, Roaming, RoamingConfig

PROCESS = RoamingConfig(environments=3, classes=9, length=24, per_class=4, semi=True)
CHANNEL, OVERLAY = BackgroundConfig("channel"), BackgroundConfig("overlay")


def tiny_textures(split: Split = "train", classes: int = 5, per_class: int = 3, size: int = 40) -> Pictures:
    """Textures with a pattern per class, so that there is something to learn."""
    rng = np.random.default_rng(7)
    pattern = rng.integers(0, 256, (classes, 1, 1, 4, 4)).repeat(size // 4, 3).repeat(size // 4, 4)
    noise = rng.integers(-40, 41, (classes, per_class, 1, size, size))
    images = np.clip(pattern + noise, 0, 255).astype(np.uint8).reshape(-1, 1, size, size)
    return Pictures(
        name="tiny textures",
        split=split,
        images=images,
        first=np.arange(0, classes * per_class + 1, per_class),
        family=np.zeros(classes, dtype=np.int64),
        class_names=[f"texture{c}" for c in range(classes)],
        family_names=["textures"],
        drawn=False,
    )


def world(
    split: Split = "test", background: BackgroundConfig | None = CHANNEL, classes: int = 5, **changes: object
) -> Roaming:
    config = replace(PROCESS, background=background, **changes)  # type: ignore[arg-type]
    textures = None if background is None else tiny_textures(split, classes)
    return Roaming(tiny_pictures(split, families=4, classes_per_family=3), config, textures)


def picture_bytes(shade: int = 100, size: int = 32, mode: str = "L", kind: str = "PNG") -> bytes:
    values = np.arange(size * size).reshape(size, size) * 7 % 150 + shade
    held = io.BytesIO()
    Image.fromarray(values.clip(0, 255).astype(np.uint8)).convert(mode).save(held, kind)
    return held.getvalue()


def folder_of(root: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def zip_of(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path
