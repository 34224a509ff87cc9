"""A manifest fixes sequences exactly, survives the disk, and notices every change."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.tiny_world import tiny_pictures
from wanderlearn.errors import WanderError
from wanderlearn.worlds import Meetings, Roaming, RoamingConfig, draw_manifest, read_manifest, write_manifest

PICTURES = tiny_pictures()
WORLD = Roaming(PICTURES, RoamingConfig(semi=True))


def test_round_trip(tmp_path: Path) -> None:
    manifest = draw_manifest(WORLD, seed=3, count=5)
    write_manifest(tmp_path / "m.npz", manifest)
    again = read_manifest(tmp_path / "m.npz")
    assert again.sha256 == manifest.sha256
    assert again.config == WORLD.config
    for a, b in zip(manifest.sequences, again.sequences, strict=True):
        for name in Meetings.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    redrawn, read = WORLD.batch(manifest.sequences), again.world(PICTURES).batch(again.sequences)
    assert redrawn.frames is read.frames is None
    assert all((x == y).all() for x, y in zip(redrawn[:-1], read[:-1], strict=True))


def test_same_manifest_same_bytes(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        write_manifest(tmp_path / name, draw_manifest(WORLD, 0, 3))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("column", ["picture", "given", "environment", "crop", "occlusion"])
def test_digest_sees_every_column(column: str) -> None:
    manifest = draw_manifest(WORLD, 0, 2)
    changed = getattr(manifest.sequences[1], column).copy()
    changed[3] += 1
    other = replace(
        manifest, sequences=[manifest.sequences[0], replace(manifest.sequences[1], **{column: changed})]
    )
    assert other.sha256 != manifest.sha256


def test_other_pictures_are_refused() -> None:
    manifest = draw_manifest(WORLD, 0, 1)
    with pytest.raises(WanderError, match="made for other pictures"):
        manifest.world(tiny_pictures(per_class=9))


def test_broken_files_are_clear_errors(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    with pytest.raises(WanderError, match="no manifest at"):
        read_manifest(path)
    write_manifest(path, draw_manifest(WORLD, 0, 3))
    whole = path.read_bytes()
    for broken in (whole[: len(whole) // 2], b"", b"hello"):
        path.write_bytes(broken)
        with pytest.raises(WanderError, match="not a whole manifest"):
            read_manifest(path)


def test_altered_contents_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    write_manifest(path, draw_manifest(WORLD, 0, 3))
    with np.load(path) as file:
        arrays = dict(file)
    arrays["given"][0] = 1 - arrays["given"][0]
    np.savez_compressed(path, **arrays)
    with pytest.raises(WanderError, match="was altered"):
        read_manifest(path)


def test_empty_manifest_is_refused() -> None:
    with pytest.raises(WanderError, match="at least one sequence"):
        draw_manifest(WORLD, 0, 0)
