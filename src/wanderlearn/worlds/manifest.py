"""A manifest fixes a set of sequences exactly, in a file, with a SHA-256 that every result names.

The file is a zip of plain arrays (`numpy.load` without pickle) and one JSON text. A picture's id is its
row in the collection, which for characters is ((character * 4) + rotation) * 20 + drawing; the collection
itself is pinned by its digest.
"""

import hashlib
import json
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wanderlearn.errors import WanderError
from wanderlearn.files import writing
from wanderlearn.pictures.collection import Pictures
from wanderlearn.rooms.process import RoomsConfig
from wanderlearn.worlds.backgrounds import BackgroundConfig
from wanderlearn.worlds.roaming import RoamingConfig
from wanderlearn.worlds.sequence import Background, Meetings, target_of
from wanderlearn.worlds.world import Collection, Process, World, world_of

__all__ = ["Manifest", "draw_manifest", "read_manifest", "write_manifest"]

FORMAT = 1
# What is stored of every meeting, and how small; target follows from truth and given.
COLUMNS = {
    "picture": np.int32,
    "truth": np.int16,
    "given": np.int16,
    "environment": np.int8,
    "crop": np.int8,
    "occlusion": np.int16,
}
MASKED = {"mask_crop": np.int16}  # of masks, in rooms
BEHIND = {"texture": np.int32, "corner": np.int16, "noise": np.int32}  # of what lies behind, if anything does


@dataclass(frozen=True, eq=False)
class Manifest:
    """A fixed set of sequences and where they come from."""

    pictures: str  # name of the collection
    split: str
    pictures_digest: str
    config: Process
    seed: int
    sequences: Sequence[Meetings]
    textures_digest: str | None = None
    """Of the textures behind the pictures, where there are any."""

    @cached_property
    def sha256(self) -> str:
        """Identifies the set: equal exactly when every meeting of every sequence is equal."""
        seen = hashlib.sha256(json.dumps(self._header(), sort_keys=True).encode())
        for name, array in self._arrays().items():
            seen.update(name.encode())
            seen.update(np.ascontiguousarray(array, dtype="<i8").data)
        return seen.hexdigest()

    def world(self, pictures: Collection, textures: Pictures | None = None) -> World:
        """The world these sequences live in, after checking that these are the same pictures and textures."""
        if pictures.digest != self.pictures_digest:
            raise WanderError(
                f"The manifest was made for other pictures: it names {self.pictures}/{self.split} with "
                f"digest {self.pictures_digest[:12]}, but these are {pictures.name}/{pictures.split} with "
                f"digest {pictures.digest[:12]}. Evaluate on the world and data the manifest was drawn from."
            )
        world = world_of(pictures, self.config, textures)
        if (found := _textures_digest(world)) != self.textures_digest:
            raise WanderError(
                f"The manifest was made for other textures: their digest is "
                f"{str(self.textures_digest)[:12]}, but these have {str(found)[:12]}. Evaluate with the "
                "textures it was drawn with."
            )
        return world

    def _header(self) -> dict[str, Any]:
        config = asdict(self.config)
        header = {
            "format": FORMAT,
            "pictures": self.pictures,
            "split": self.split,
            "pictures_digest": self.pictures_digest,
            "config": config,
            "seed": self.seed,
        }
        if isinstance(self.config, RoomsConfig):
            return header | {"world": "rooms"}
        if self.config.background is None:  # as before there were any
            del config["background"]
            return header
        del config["background"]["textures"]  # where they lie: what they are is said by their digest
        return header | {"textures_digest": self.textures_digest}

    def _arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        arrays: dict[str, np.ndarray[Any, Any]] = {
            "index": np.array([m.index for m in self.sequences], dtype=np.int64),
            "length": np.array([len(m) for m in self.sequences], dtype=np.int32),
        }
        for name, kind in COLUMNS.items():
            arrays[name] = np.concatenate([getattr(m, name) for m in self.sequences]).astype(kind)
        if isinstance(self.config, RoomsConfig):
            for name, kind in MASKED.items():
                arrays[name] = np.concatenate([getattr(m, name) for m in self.sequences]).astype(kind)
        if self.config.background is not None:
            for name, kind in BEHIND.items():
                arrays[name] = np.concatenate([getattr(m.background, name) for m in self.sequences]).astype(
                    kind
                )
        return arrays


def draw_manifest(world: World, seed: int, count: int) -> Manifest:
    """The first `count` sequences of a world."""
    if count < 1:
        raise WanderError(f"A manifest needs at least one sequence, not {count}.")
    pictures = world.pictures
    sequences = [world.meetings(seed, i) for i in range(count)]
    return Manifest(
        pictures.name, pictures.split, pictures.digest, world.config, seed, sequences, _textures_digest(world)
    )


def _textures_digest(world: World) -> str | None:
    return None if world.backgrounds is None else world.backgrounds.textures.digest


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest atomically; the same manifest always gives the same bytes."""
    told: dict[str, Any] = manifest._header() | {"sha256": manifest.sha256}
    if manifest.config.background is not None:
        told["textures"] = manifest.config.background.textures
    header = json.dumps(told, sort_keys=True).encode()
    with writing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, header=np.frombuffer(header, dtype=np.uint8), **manifest._arrays())  # type: ignore[arg-type]


def read_manifest(path: Path) -> Manifest:
    """Read a manifest and verify its SHA-256."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            behind = BEHIND if header["config"].get("background") else {}
            masked = MASKED if header.get("world") == "rooms" else {}
            names = ("index", "length", *COLUMNS, *masked, *behind)
            arrays = {name: file[name].astype(np.int64) for name in names}
    except FileNotFoundError as error:
        raise WanderError(f"There is no manifest at {path}.") from error
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        raise WanderError(
            f"{path} is not a whole manifest ({error}). Draw it again with `wander sample`."
        ) from error
    if header.get("format") != FORMAT:
        raise WanderError(f"{path} has manifest format {header.get('format')}; this version reads {FORMAT}.")
    ends = np.cumsum(arrays["length"])[:-1]
    columns = {name: np.split(arrays[name], ends) for name in (*COLUMNS, *masked, *behind)}
    sequences = [
        Meetings(
            index=int(index),
            target=target_of(columns["truth"][n], columns["given"][n]),
            **{name: columns[name][n] for name in (*COLUMNS, *masked)},
            background=Background(*(columns[name][n] for name in behind)) if behind else None,
        )
        for n, index in enumerate(arrays["index"])
    ]
    config: Process
    if masked:
        config = RoomsConfig(**header["config"])
    elif behind:
        background = BackgroundConfig(**header["config"].pop("background"), textures=header["textures"])
        config = RoamingConfig(**header["config"], background=background)
    else:
        config = RoamingConfig(**header["config"])
    manifest = Manifest(
        pictures=header["pictures"],
        split=header["split"],
        pictures_digest=header["pictures_digest"],
        config=config,
        seed=header["seed"],
        sequences=sequences,
        textures_digest=header.get("textures_digest"),
    )
    if manifest.sha256 != header["sha256"]:
        raise WanderError(
            f"{path} was altered: its contents do not match its SHA-256. Draw or download it again."
        )
    return manifest
