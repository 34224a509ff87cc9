"""Pictures of any world through an encoder of the user's, once: what it gave is kept as a world of vectors.

    wander train cpm --world folder:PATH --encoder mine.py:encode

The vectors lie in the cache with the names of their classes, families and splits beside them, and have the
address `features:FILE.npy` like any others. The key is made of the pixels, the encoder's name and what the
encoder gives for a few of the pictures, so other weights under the same name are noticed.
"""

import hashlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from wanderlearn.errors import WanderError
from wanderlearn.files import cache_dir, write_json, writing
from wanderlearn.loading import build_object, load_object, needed_arguments
from wanderlearn.pictures.address import Address
from wanderlearn.pictures.collection import Pictures
from wanderlearn.progress import bar

__all__ = ["UserEncoder", "encoded", "is_named_encoder", "load_encoder"]

AT_ONCE: Final = 64
PROBES: Final = 8  # pictures that say whether the encoder is the one whose vectors are kept

Floats = npt.NDArray[np.float32]


def is_named_encoder(name: str) -> bool:
    """Whether this is MODULE:CALLABLE or FILE.py:CALLABLE rather than a run folder or a file of weights."""
    return ":" in name and not Path(name).exists()


@dataclass(frozen=True)
class UserEncoder:
    """What the user named, and how it is called: pictures [N, C, H, W] in [-1, 1] to vectors [N, D]."""

    name: str
    encode: Callable[[Tensor], Any]

    def __call__(self, images: npt.NDArray[Any]) -> Floats:
        """The vectors of these pictures, or a sentence on what is wrong with them."""
        shown = torch.from_numpy(images.astype(np.float32) / np.float32(127.5) - 1)
        try:
            with torch.no_grad():
                given = self.encode(shown)
        except Exception as error:
            raise WanderError(
                f"{self.name} failed on pictures {list(shown.shape)} in [-1, 1]: "
                f"{type(error).__name__}: {error}. Size and channels are those of the address: "
                "'folder:PATH?size=224,channels=3'."
            ) from error
        if isinstance(given, Tensor):
            given = given.detach().cpu().float().numpy() if given.is_floating_point() else given.cpu().numpy()
        if not isinstance(given, np.ndarray) or given.dtype.kind != "f":
            what = f"{given.dtype} numbers" if isinstance(given, np.ndarray) else f"a {type(given).__name__}"
            raise WanderError(f"{self.name} gives {what}, but a tensor or array of floats [N, D] is needed.")
        if given.ndim != 2 or len(given) != len(images) or given.shape[1] < 1:
            raise WanderError(
                f"{self.name} gives {list(given.shape)} for {len(images)} pictures, but one vector each "
                f"is needed: [{len(images)}, D]. Take the mean over places, or flatten."
            )
        vectors: Floats = given.astype(np.float32)
        if not np.isfinite(vectors).all():
            raise WanderError(
                f"{self.name} gives numbers that are not finite (NaN or infinity). Mend it first."
            )
        return vectors


def load_encoder(name: str) -> UserEncoder:
    """The encoder that MODULE:NAME or FILE.py:NAME points to.

    NAME is a torch module or a function that takes pictures; or a class, or a function without arguments,
    that makes one of these. Torch modules are put into evaluation mode.
    """
    found = load_object(name, "an encoder", "mine.py:encode")
    if isinstance(found, type) or (
        callable(found) and not isinstance(found, nn.Module) and not needed_arguments(found)
    ):
        found = build_object(found, name, "encoder")
    if not callable(found):
        raise WanderError(
            f"{name} is a {type(found).__name__}, not a function or torch module from pictures to vectors."
        )
    return UserEncoder(name, found.eval() if isinstance(found, nn.Module) else found)


def encoded(pictures: list[Pictures], encoder: UserEncoder) -> Address:
    """The address of the vectors of these pictures, of several splits; made if they are not there."""
    probes = _probes(pictures, encoder)
    seen = hashlib.sha256(encoder.name.encode())
    for some in pictures:
        seen.update(f"{some.split}{some.digest}{some.class_names}{some.family_names}".encode())
    seen.update((probes / (np.abs(probes).max() or 1)).round(3).tobytes())
    word = re.sub(r"\W+", "-", encoder.name.rpartition(":")[2]).strip("-")
    stem = f"{pictures[0].name}-{word}-{seen.hexdigest()[:16]}"
    path = cache_dir() / "encoded" / f"{stem}.npy"
    labels = path.with_name(f"{stem}.labels.json")  # written last: where it is, the vectors are whole
    if not labels.exists():
        _encode_all(pictures, encoder, probes.shape[1], path)
        write_json(labels, _labels(pictures))
        count = sum(len(some.images) for some in pictures)
        print(
            f"{encoder.name}: {count:,} vectors of {probes.shape[1]} numbers kept in {path}", file=sys.stderr
        )
    return Address("features", str(path))


def _probes(pictures: list[Pictures], encoder: UserEncoder) -> Floats:
    """The vectors of a few pictures, after a check that the encoder gives the same for the same."""
    images = np.concatenate([_few(some.images) for some in pictures])
    first, again = encoder(images), encoder(images)
    if not np.allclose(first, again, rtol=1e-3, atol=1e-4):
        raise WanderError(
            f"{encoder.name} gives other vectors for the same pictures each time. Put it into evaluation "
            "mode (no dropout, BatchNorm by its averages)."
        )
    one = encoder(images[:1])
    if not np.allclose(first[:1], one, rtol=1e-2, atol=1e-3):
        raise WanderError(
            f"{encoder.name} gives another vector for a picture when others come with it. Put it into "
            "evaluation mode (BatchNorm by its averages)."
        )
    return first


def _few(images: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    if images.dtype != np.uint8:
        raise WanderError("These are vectors already: an encoder takes pictures. Leave --encoder out.")
    rows = np.unique(np.linspace(0, len(images) - 1, PROBES).astype(int))
    few: npt.NDArray[np.uint8] = images[rows]
    return few


def _encode_all(pictures: list[Pictures], encoder: UserEncoder, width: int, path: Path) -> None:
    count = sum(len(some.images) for some in pictures)
    with writing(path) as part, bar(f"encoding by {encoder.name}", count) as shown:
        out = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=(count, width))
        row = 0
        for some in pictures:
            for start in range(0, len(some.images), AT_ONCE):
                vectors = encoder(some.images[start : start + AT_ONCE])
                if vectors.shape[1] != width:
                    raise WanderError(
                        f"{encoder.name} gives vectors of {width} numbers at first and of {vectors.shape[1]} "
                        "later. They must have one length."
                    )
                out[row : row + len(vectors)] = vectors
                row += len(vectors)
                shown.advance(len(vectors))
        out.flush()
        del out


def _labels(pictures: list[Pictures]) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {"class": [], "family": [], "split": []}
    for some in pictures:
        for c in some.class_of.tolist():
            family = some.family_names[some.family[c]]
            columns["class"].append(some.class_names[c].removeprefix(f"{family}/"))
            columns["family"].append(family)
            columns["split"].append(some.split)
    return columns
