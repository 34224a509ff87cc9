"""Small archives laid out like Omniglot's, and its shrinking once more, slowly, in whole numbers."""

import hashlib
import io
import zipfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from wanderlearn.pictures.omniglot import Part

Bits = npt.NDArray[np.bool_]
Files = dict[str, bytes]  # what an archive holds, by name
SMALL = {"images_background": {"Greek": 1, "Angelic": 2}, "images_evaluation": {"Futurama": 1}}


def png(white: Bits) -> bytes:
    holder = io.BytesIO()
    Image.fromarray(white).save(holder, "PNG")
    return holder.getvalue()


def pack(path: Path, content: Files) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def unpack(folder: Path, content: Files) -> None:
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def shrink_slowly(white: Bits) -> npt.NDArray[np.uint8]:
    """Bicubic as OpenCV does it on bytes: whole-number weights of 11 bits, clamped borders, one rounding."""
    weights = np.zeros((28, 105), dtype=np.int64)
    for row in range(28):
        at = (row + 0.5) * 105 / 28 - 0.5
        base = int(np.floor(at))
        for tap in range(base - 1, base + 3):
            d = abs(at - tap)
            near, far = 1.25 * d**3 - 2.25 * d**2 + 1, -0.75 * (d**3 - 5 * d**2 + 8 * d - 4)
            weights[row, min(max(tap, 0), 104)] += round(2048 * (near if d <= 1 else far))
    total = weights @ (white.astype(np.int64) * 255) @ weights.T
    inverted: npt.NDArray[np.uint8] = 255 - np.clip((total + (1 << 21)) >> 22, 0, 255).astype(np.uint8)
    return inverted


class Small:
    """A folder with two small archives, and what is in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.content: dict[str, Files] = defaultdict(dict)
        self.white: dict[str, list[Bits]] = defaultdict(list)
        random = np.random.default_rng(0)
        parts = []
        for name, alphabets in SMALL.items():
            seen = hashlib.sha256()
            for alphabet, count in sorted(alphabets.items()):
                for character in (f"{alphabet}/character{n:02d}" for n in range(1, count + 1)):
                    names = [f"{character}/0042_{n:02d}.png" for n in range(1, 21)]
                    pictures = [random.random((105, 105)) < 0.9 for _ in names]
                    seen.update("\n".join(names).encode())
                    for file, white in zip(names, pictures, strict=True):
                        seen.update(np.packbits(white).tobytes())
                        self.content[name][f"{name}/{file}"] = png(white)
                        self.white[character].append(white)
            md5 = hashlib.md5(pack(self.zip(name), self.content[name]).read_bytes()).hexdigest()
            parts.append(Part(name, md5, seen.hexdigest(), alphabets))
        self.parts = tuple(parts)

    def zip(self, name: str = "images_background") -> Path:
        return self.folder / f"{name}.zip"

    def expected(self) -> npt.NDArray[np.uint8]:
        return np.stack([[shrink_slowly(white) for white in self.white[c]] for c in sorted(self.white)])

    def rewrite(self, change: Callable[[Files], object]) -> None:
        content = dict(self.content["images_background"])
        change(content)
        pack(self.zip(), content)
