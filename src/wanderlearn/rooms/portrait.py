"""One thing alone, on grey: for the gallery, and to see whether two things can be told apart."""

from typing import Final

import numpy as np
import numpy.typing as npt

from wanderlearn.rooms import kernels
from wanderlearn.rooms.home import Thing
from wanderlearn.rooms.render import basis_of
from wanderlearn.rooms.scene import GAMMA, Chunk, build_scene
from wanderlearn.rooms.shapes import moved

__all__ = ["draw_thing"]

BACKGROUND: Final = 236


def draw_thing(
    thing: Thing, size: int = 128, *, turn: float = 0.5, samples: int = 3
) -> npt.NDArray[np.uint8]:
    """A square picture [size, size, 3] of the thing from its front, a little to one side and above."""
    parts = moved(moved(thing.parts, *(-thing.centre)), 0, 0, 0, -thing.yaw + turn)
    scene = build_scene([Chunk(1, (0,), parts)], 1)
    reach = float(np.linalg.norm(scene.vertices, axis=1).max())
    pitch = -0.3
    basis = basis_of(np.pi / 2, pitch)
    focal = size * 1.5
    eye = -basis[2] * reach * 3.4
    shape = (size * samples, size * samples)
    buffers = [
        np.zeros(shape, np.float32),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.float32),
        np.zeros(shape, np.float32),
    ]
    kernels.draw_triangles(
        scene.vertices,
        scene.faces,
        scene.face_normals,
        scene.solid,
        scene.chunks,
        scene.spheres,
        scene.sees,
        np.array([[-9.0, 9.0, -9.0, 9.0]]),
        eye,
        basis,
        focal * samples,
        0.01,
        np.zeros(scene.vertices.shape, np.float32),
        *buffers,
    )
    lamp = np.array([-0.5, -0.75, 0.8])
    facing = np.abs(scene.normals @ (lamp / np.linalg.norm(lamp)))
    bright = np.maximum(
        0.28 + 0.75 * facing * (scene.normals @ lamp > 0) + 0.1 * scene.normals[:, 2], scene.glow * 1.2
    )
    tone = np.tile(np.clip(np.linspace(0, 1.5, 4096), 0, 1) ** (1 / GAMMA) * 255, (3, 1)).astype(np.float32)
    rgb, ids = np.empty((size, size, 3), np.uint8), np.empty((size, size), np.int32)
    kernels.shade(
        scene.faces,
        scene.uv,
        scene.colours,
        scene.textures,
        scene.ids,
        scene.density,
        scene.face_normals,
        np.repeat(bright[:, None], 3, 1).astype(np.float32),
        scene.texels,
        scene.levels,
        2 ** (len(scene.levels) + 1),
        ((np.arange(256) / 255) ** GAMMA).astype(np.float32),
        tone,
        1.5,
        np.zeros(2, np.float32),
        0,
        0.0,
        0.0,
        basis,
        focal,
        samples,
        *buffers,
        rgb,
        ids,
        np.empty((size, size), np.float32),
    )
    covered = (buffers[1].reshape(size, samples, size, samples) >= 0).mean((1, 3))[..., None]
    ground = (BACKGROUND / 255) ** GAMMA * (1 - covered)
    mixed = ((rgb / 255.0) ** GAMMA + ground) ** (1 / GAMMA)
    return np.asarray(np.clip(mixed, 0, 1) * 255 + 0.5, np.uint8)
