"""Rays through the middles of pixels: the slow and simple way to see what the rasteriser must see."""

import numpy as np
import numpy.typing as npt

from wanderlearn.rooms import kernels
from wanderlearn.rooms.render import FIELD_OF_VIEW, Camera, basis_of
from wanderlearn.rooms.scene import Scene, build_tree

__all__ = ["pixel_rays", "ray_ids"]


def pixel_rays(camera: Camera, width: int, height: int) -> npt.NDArray[np.float64]:
    """The direction [H * W, 3] of every pixel's middle, one metre ahead."""
    focal = width / 2 / np.tan(np.deg2rad(FIELD_OF_VIEW) / 2)
    right, down, ahead = basis_of(camera.yaw, camera.pitch)
    u, v = np.meshgrid(
        (np.arange(width) + 0.5 - width / 2) / focal, (np.arange(height) + 0.5 - height / 2) / focal
    )
    return np.asarray((ahead + u[..., None] * right + v[..., None] * down).reshape(-1, 3))


def ray_ids(scene: Scene, camera: Camera, width: int, height: int) -> npt.NDArray[np.int32]:
    """The id [H, W] of what a ray meets first."""
    tree = build_tree(scene, np.arange(len(scene.faces)))
    rays = pixel_rays(camera, width, height)
    hit = kernels.cast_rays(np.array(camera.position), rays, tree.low, tree.high, tree.triangles)
    ids = np.where(hit >= 0, scene.ids[tree.faces[np.maximum(hit, 0)]], 0)
    return np.asarray(ids.reshape(height, width), np.int32)
