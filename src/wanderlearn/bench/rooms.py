"""How many frames of a home one core draws, and how many of their ids a ray cast agrees with."""

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from wanderlearn.rooms import Camera, Renderer, build_home, walk
from wanderlearn.rooms.raycast import pixel_rays, ray_ids

__all__ = ["bench_rooms", "embree_ids"]


def bench_rooms(
    *, seeds: tuple[int, ...] = (60, 61, 62), frames: int = 100, rounds: int = 3, checked: int = 8,
    size: tuple[int, int] = (160, 120), light: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Frames along walks through some homes, 2 x 2 samples a pixel, with ids and depth, after warming up.

    `frames_per_second` counts seconds of this process's own processor time: drawing uses one thread, so this
    is what one core does, whoever else uses the machine. `frames_per_second_by_the_clock` is what was seen
    meanwhile. `id_agreement` is the share of pixels, one sample each, whose id equals that of a ray through
    the pixel's middle (Embree's where embreex is installed, else our own).
    """
    own, clock, build, agree, pixels = [], [], [], 0, 0
    for seed in seeds:
        start = time.process_time()
        home = build_home(seed)
        renderer = Renderer(home, *size, light=light)
        build.append(time.process_time() - start)
        cameras = list(walk(home, 0, frames))
        for _ in range(rounds + 1):
            seconds = _timed(lambda r=renderer, c=cameras: [r.draw(camera) for camera in c])  # type: ignore[misc]
            own.append(seconds[0])
            clock.append(seconds[1])
        del own[-rounds - 1], clock[-rounds - 1]  # warming up
        renderer.resize(*size, samples=1)
        for camera in cameras[:: max(1, frames // checked)]:
            ids = _cast(renderer, camera)
            agree += int((ids == renderer.draw(camera).ids).sum())
            pixels += ids.size
    return {
        "frames_per_second": frames / float(np.median(own)),
        "frames_per_second_by_the_clock": frames / float(np.median(clock)),
        "id_agreement": agree / pixels,
        "ray_cast": "embree" if _embree() else "own",
        "pixels_compared": pixels,
        "width": size[0],
        "height": size[1],
        "samples": 4,
        "seconds_to_build_and_light_a_home": float(np.median(build)),
    }


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    own, clock = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - own, time.perf_counter() - clock


def _embree() -> bool:
    return importlib.util.find_spec("embreex") is not None


def _cast(renderer: Renderer, camera: Camera) -> npt.NDArray[np.int32]:
    if not _embree():
        return ray_ids(renderer.scene, camera, renderer.width, renderer.height)
    return embree_ids(renderer, camera)


def embree_ids(renderer: Renderer, camera: Camera) -> npt.NDArray[np.int32]:
    """The ids Embree sees through the middle of every pixel."""
    from embreex import rtcore_scene  # type: ignore[import-untyped, import-not-found, unused-ignore]
    from embreex.mesh_construction import TriangleMesh  # type: ignore[import-untyped, import-not-found, unused-ignore]

    s = renderer.scene
    world = rtcore_scene.EmbreeScene()
    mesh = TriangleMesh(world, np.ascontiguousarray(s.vertices[s.faces], np.float32))
    rays = pixel_rays(camera, renderer.width, renderer.height).astype(np.float32)
    origins = np.tile(np.array(camera.position, np.float32), (len(rays), 1))
    hit = world.run(origins, rays)
    del mesh
    ids = np.where(hit >= 0, s.ids[np.maximum(hit, 0)], 0)
    return np.asarray(ids.reshape(renderer.height, renderer.width), np.int32)
