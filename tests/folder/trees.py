"""Small folders of pictures, made for one test: every class has a colour of its own."""

import io
from pathlib import Path

import numpy as np
from PIL import Image


def picture(seed: int, size: tuple[int, int] = (12, 12), mode: str = "RGB") -> Image.Image:
    """A plain colour that depends on the seed, with a little noise."""
    rng = np.random.default_rng(seed)
    colour = np.random.default_rng(seed // 1000).integers(20, 236, 3)
    pixels = np.clip(colour + rng.integers(-8, 9, (size[1], size[0], 3)), 0, 255).astype(np.uint8)
    return Image.fromarray(pixels).convert(mode)


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    holder = io.BytesIO()
    image.save(holder, kind, **options)
    return holder.getvalue()


def tree(root: Path, classes: list[str], pictures: int = 3, kind: str = "PNG") -> Path:
    """Folders `classes` below the root, each with so many pictures of its colour."""
    for c, name in enumerate(classes):
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        for n in range(pictures):
            (folder / f"{n}.{kind.lower()}").write_bytes(encoded(picture(1000 * c + n), kind))
    return root


def three_splits(root: Path, families: int = 2, classes: int = 5, pictures: int = 3) -> Path:
    names = [
        f"{split}/{split}family{f}/class{c}"
        for split in ("train", "val", "test")
        for f in range(families)
        for c in range(classes)
    ]
    return tree(root, names, pictures)
