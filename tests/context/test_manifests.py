"""Manifests: those without a background are as they always were; those with one fix it, to the pixel."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.context.textures import CHANNEL, OVERLAY, PROCESS, tiny_textures, world
from tests.tiny_world import tiny_pictures
from wanderlearn.configs import differences, from_json, to_json
from wanderlearn.errors import WanderError
from wanderlearn.worlds import Roaming, RoamingConfig, draw_manifest, read_manifest, write_manifest

# Of these worlds before there were backgrounds: results name such digests.
BEFORE = {
    False: "a94c6378365dfb3856ebe855199d8b00f237540d3c96ee205f7226a3be2bfa00",
    True: "f233d417e57520eb4f20e2b24af8855065aa9b42c053a938005646315df20520",
}


@pytest.mark.parametrize("semi", [False, True])
def test_manifests_without_a_background_keep_their_digest(semi: bool) -> None:
    assert draw_manifest(Roaming(tiny_pictures(), RoamingConfig(semi=semi)), 3, 4).sha256 == BEFORE[semi]


@pytest.mark.parametrize("background", [CHANNEL, OVERLAY])
def test_round_trip(tmp_path: Path, background: object) -> None:
    here = world("train", background)  # type: ignore[arg-type]
    manifest = draw_manifest(here, seed=5, count=3)
    write_manifest(tmp_path / "m.npz", manifest)
    again = read_manifest(tmp_path / "m.npz")
    assert (again.sha256, again.config) == (manifest.sha256, here.config)
    there = again.world(here.pictures, tiny_textures())
    assert torch.equal(there.batch(again.sequences).images, here.batch(manifest.sequences).images)
    with pytest.raises(WanderError, match="other textures"):
        again.world(here.pictures, tiny_textures(per_class=4))


def test_the_digest_sees_textures_but_not_where_they_lie() -> None:
    here = world()
    manifest = draw_manifest(here, 0, 2)
    m = manifest.sequences[1]
    assert m.background is not None
    for name in ("texture", "corner", "noise"):
        changed = getattr(m.background, name).copy()
        changed[2] += 1
        moved = replace(m, background=m.background._replace(**{name: changed}))
        assert replace(manifest, sequences=[manifest.sequences[0], moved]).sha256 != manifest.sha256
    assert replace(manifest, textures_digest="0" * 64).sha256 != manifest.sha256
    elsewhere = replace(here.config, background=replace(CHANNEL, textures="elsewhere"))
    assert replace(manifest, config=elsewhere).sha256 == manifest.sha256
    assert draw_manifest(world("test", OVERLAY), 0, 2).sha256 != manifest.sha256


def test_configs_of_before_are_read_and_equal() -> None:
    """A run of before there were backgrounds can be resumed: nothing in its config has changed."""
    told = to_json(PROCESS)
    old = {name: value for name, value in told.items() if name != "background"}
    assert not list(differences(old, told))
    assert from_json(RoamingConfig, old) == PROCESS
    with_one = replace(PROCESS, background=CHANNEL)
    assert from_json(RoamingConfig, to_json(with_one)) == with_one


def test_a_world_finds_its_textures_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wanderlearn.pictures.textures.open_textures", lambda _, split: tiny_textures(split))
    pictures = tiny_pictures("val", families=4, classes_per_family=3)
    config = replace(PROCESS, background=CHANNEL)
    one, other = Roaming(pictures, config), Roaming(pictures, config, tiny_textures("val"))
    first, second = (w.batch([w.meetings(0, 0)]).images for w in (one, other))
    assert torch.equal(first, second)
