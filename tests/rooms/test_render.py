"""The renderer sees what rays see, through every door, the same every time."""

import numpy as np
import numpy.typing as npt
import pytest
import trimesh  # type: ignore[import-untyped, unused-ignore]
from trimesh.ray.ray_pyembree import RayMeshIntersector  # type: ignore[import-untyped, unused-ignore]

from wanderlearn.errors import WanderError
from wanderlearn.rooms import Camera, Home, Renderer, walk
from wanderlearn.rooms.raycast import pixel_rays, ray_ids

WIDE, HIGH = 160, 120


def cameras(home: Home, count: int) -> list[Camera]:
    return list(walk(home, 1, count * 7))[::7]


def embree(renderer: Renderer, camera: Camera) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Ids and depths by Embree."""
    s = renderer.scene
    mesh = trimesh.Trimesh(s.vertices, s.faces, process=False)
    rays = pixel_rays(camera, renderer.width, renderer.height)
    origins = np.tile(np.array(camera.position), (len(rays), 1))
    face, ray, points = RayMeshIntersector(mesh).intersects_id(
        origins, rays, multiple_hits=False, return_locations=True
    )
    ids, depth = np.zeros(len(rays), np.int32), np.zeros(len(rays))
    ids[ray] = s.ids[face]
    ahead = np.array(
        [
            np.cos(camera.yaw) * np.cos(camera.pitch),
            np.sin(camera.yaw) * np.cos(camera.pitch),
            np.sin(camera.pitch),
        ]
    )
    depth[ray] = (points - np.array(camera.position)) @ ahead
    shape = (renderer.height, renderer.width)
    return ids.reshape(shape), depth.reshape(shape)


def test_ids_and_depth_are_those_of_a_ray_cast(renderer: Renderer, home: Home) -> None:
    renderer.resize(WIDE, HIGH, samples=1)
    wrong = far = total = 0
    for camera in cameras(home, 10):
        frame = renderer.draw(camera)
        ids, depth = embree(renderer, camera)
        wrong += int((ids != frame.ids).sum())
        far += int((np.abs(depth - frame.depth) > 0.01).sum())
        total += ids.size
    assert wrong / total < 1e-4
    assert far / total < 1e-4


def test_our_own_ray_cast_agrees_too(renderer: Renderer, home: Home) -> None:
    renderer.resize(80, 60, samples=1)
    for camera in cameras(home, 2):
        same = renderer.draw(camera).ids == ray_ids(renderer.scene, camera, 80, 60)
        assert same.mean() > 0.999


def test_leaving_out_unseen_rooms_changes_nothing(
    renderer: Renderer, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    renderer.resize(80, 60, samples=1)
    shots = cameras(home, 12)
    with_culling = [renderer.draw(c) for c in shots]
    assert min(len(renderer.visible_rooms(c)) for c in shots) < len(home.plan.rooms)
    monkeypatch.setattr(
        renderer, "_windows", lambda eye, basis: np.tile([-2.0, 2.0, -2.0, 2.0], (len(home.plan.rooms), 1))
    )
    for camera, frame in zip(shots, with_culling, strict=True):
        whole = renderer.draw(camera)
        assert np.array_equal(whole.ids, frame.ids)
        assert np.array_equal(whole.depth, frame.depth)
        assert np.array_equal(whole.rgb, frame.rgb)


def test_a_frame_has_the_promised_shapes_and_is_always_the_same(renderer: Renderer, home: Home) -> None:
    renderer.resize(WIDE, HIGH, samples=2)
    camera = cameras(home, 3)[2]
    frame = renderer.draw(camera)
    assert (frame.rgb.shape, str(frame.rgb.dtype)) == ((HIGH, WIDE, 3), "uint8")
    assert (frame.ids.shape, str(frame.ids.dtype)) == ((HIGH, WIDE), "int32")
    assert (frame.depth.shape, str(frame.depth.dtype)) == ((HIGH, WIDE), "float32")
    assert 0 <= frame.ids.min() <= frame.ids.max() <= len(home.things)
    renderer.draw(camera._replace(yaw=camera.yaw + 1))
    again = renderer.draw(camera)
    assert np.array_equal(frame.rgb, again.rgb)
    assert np.array_equal(frame.ids, again.ids)
    assert np.array_equal(frame.depth, again.depth)


def test_smooth_ids_are_those_of_most_samples(renderer: Renderer, home: Home) -> None:
    camera = cameras(home, 2)[1]
    renderer.resize(80, 60, samples=2)
    smooth = renderer.draw(camera)
    renderer.resize(160, 120, samples=1)
    fine = renderer.draw(camera).ids.reshape(60, 2, 80, 2).transpose(0, 2, 1, 3).reshape(60, 80, 4)
    votes = (fine == smooth.ids[..., None]).sum(-1)
    most = (fine[..., None] == fine[..., None, :]).sum(-1).max(-1)
    assert (votes == most).all()


def test_light_noise_and_reduction(home: Home) -> None:
    """The one test that bakes light."""
    lit = Renderer(home, 80, 60, noise=False)
    camera = cameras(home, 2)[1]
    clean = lit.draw(camera)
    assert 40 < clean.rgb.mean() < 230
    assert clean.rgb.std() > 15
    lit.noise = True
    grain = lit.draw(camera).rgb.astype(float) - clean.rgb
    assert 0.5 * home.sensor.noise < grain.std() < 1.5 * home.sensor.noise
    assert abs(grain.mean()) < 1
    lit.noise, lit.reduce = False, 5
    lit.resize(80, 60, samples=1)
    reduced = lit.draw(camera)
    assert reduced.rgb.shape == (60, 80, 3)
    assert (reduced.ids == clean.ids).mean() > 0.95
    assert np.abs(reduced.rgb.astype(float) - clean.rgb).mean() < 6


def test_nonsense_is_refused(home: Home) -> None:
    with pytest.raises(WanderError, match="0 x 120"):
        Renderer(home, 0, 120)
    with pytest.raises(WanderError, match="9 samples"):
        Renderer(home, samples=9)
