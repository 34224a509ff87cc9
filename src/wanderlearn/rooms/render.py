"""The renderer: RGB, instance ids and depth of a home in one pass, with nothing but the processor."""

import zlib
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.rooms import kernels
from wanderlearn.rooms.home import Home
from wanderlearn.rooms.light import bake_light
from wanderlearn.rooms.plan import WALL
from wanderlearn.rooms.scene import GAMMA, Chunk, Scene, build_scene

__all__ = ["FIELD_OF_VIEW", "Camera", "Frame", "Renderer", "basis_of", "means", "middles", "scene_of"]

Number = TypeVar("Number", np.int32, np.float32)

FIELD_OF_VIEW: Final = 90.0  # degrees, horizontally
NEAR: Final = 0.05
BRIGHTEST: Final = 3.0  # light beyond which everything is white
STEPS: Final = 8192
GRAIN: Final = 1 << 16
FULL: Final = 1e6


class Camera(NamedTuple):
    """Where the eye is and where it looks: yaw from the x axis towards y, pitch up, both in radians."""

    viewpoint: int
    position: tuple[float, float, float]
    yaw: float
    pitch: float = 0.0


class Frame(NamedTuple):
    """What is seen: colours, the id of the thing at every pixel (0: the home itself), metres ahead."""

    rgb: npt.NDArray[np.uint8]  # [H, W, 3]
    ids: npt.NDArray[np.int32]  # [H, W]
    depth: npt.NDArray[np.float32]  # [H, W], along the way the camera looks; 0 where nothing is


def scene_of(home: Home) -> Scene:
    """All triangles of a home."""
    chunks = [Chunk(thing.id, (thing.room,), thing.parts) for thing in home.things]
    chunks += [Chunk(0, piece.rooms, piece.parts) for piece in home.shell]  # last: mostly hidden by then
    return build_scene(chunks, len(home.plan.rooms))


def basis_of(yaw: float, pitch: float) -> npt.NDArray[np.float64]:
    """Rows: to the right, down, ahead."""
    cy, sy, cp, sp = np.cos(yaw), np.sin(yaw), np.cos(pitch), np.sin(pitch)
    ahead, right = np.array([cy * cp, sy * cp, sp]), np.array([sy, -cy, 0.0])
    return np.stack([right, np.cross(ahead, right), ahead])


def means(rgb: npt.NDArray[np.uint8], k: int) -> npt.NDArray[np.uint8]:
    """A picture shrunk: the mean of every k x k pixels."""
    height, width = rgb.shape[0] // k, rgb.shape[1] // k
    small = rgb.reshape(height, k, width, k, 3).mean((1, 3))
    return np.asarray(small + 0.5).astype(np.uint8)


def middles(values: npt.NDArray[Number], k: int) -> npt.NDArray[Number]:
    """What is in the middle of every k x k pixels."""
    return values[k // 2 :: k, k // 2 :: k].copy()


class Renderer:
    """Draws one home. Making one bakes the light, which takes some seconds; a frame takes milliseconds.

    `samples` x `samples` samples a pixel smooth edges; 1 shows exactly what is at the middle of a pixel.
    `reduced` draws at five times the width and height and shrinks (colours averaged, ids and depth of the
    middle), as the paper's pictures were made. `noise` adds the sensor's grain, the same for one camera.
    """

    def __init__(
        self, home: Home, width: int = 160, height: int = 120, *,
        samples: int = 2, reduced: bool = False, noise: bool = True, light: bool = True,
    ) -> None:  # fmt: skip
        if min(width, height) < 1 or not 1 <= samples <= 8:
            raise WanderError(
                f"Cannot draw {width} x {height} with {samples} samples: at least 1 x 1, 1 to 8 samples."
            )
        self.home, self.scene = home, scene_of(home)
        self.noise, self.reduce = noise, 5 if reduced else 1
        self.samples = samples
        self._light = bake_light(home, self.scene) if light else np.ones_like(self.scene.vertices)
        self._linear = ((np.arange(256) / 255) ** GAMMA).astype(np.float32)
        self._tone = _tone(home)
        self._grain = (
            np.random.Generator(np.random.Philox(key=home.seed)).standard_normal(GRAIN).astype(np.float32)
        )
        self._doors = np.array([_corners(d) for d in home.plan.doors]).reshape(-1, 8, 3)
        self.resize(width, height)

    def resize(self, width: int, height: int, samples: int | None = None) -> None:
        """Draw frames of another size from now on; the light stays."""
        self.width, self.height = width, height
        self.samples = samples or self.samples
        wide, high = width * self.reduce, height * self.reduce
        self._focal = wide / 2 / np.tan(np.deg2rad(FIELD_OF_VIEW) / 2)
        shape = (high * self.samples, wide * self.samples)
        self._buffers: tuple[Any, ...] = (
            np.zeros(shape, np.float32),
            np.zeros(shape, np.int32),
            np.zeros(shape, np.float32),
            np.zeros(shape, np.float32),
        )
        self._seen = np.zeros(self.scene.vertices.shape, np.float32)

    def draw(self, camera: Camera) -> Frame:
        """The frame this camera sees. The same camera always gives the same frame."""
        s, wide, high = self.scene, self.width * self.reduce, self.height * self.reduce
        basis, eye = basis_of(camera.yaw, camera.pitch), np.asarray(camera.position, np.float64)
        kernels.draw_triangles(
            s.vertices,
            s.faces,
            s.face_normals,
            s.solid,
            s.chunks,
            s.spheres,
            s.sees,
            self._windows(eye, basis),
            eye,
            basis,
            self._focal * self.samples,
            NEAR,
            self._seen,
            *self._buffers,
        )
        rgb, ids = np.empty((high, wide, 3), np.uint8), np.empty((high, wide), np.int32)
        depth = np.empty((high, wide), np.float32)
        sensor = self.home.sensor
        start = zlib.crc32(np.array([*camera.position, camera.yaw, camera.pitch], np.float64).tobytes())
        kernels.shade(
            s.faces, s.uv, s.colours, s.textures, s.ids, s.density, s.face_normals, self._light, s.texels,
            s.levels, 2 ** (len(s.levels) + 1), self._linear, self._tone, BRIGHTEST, self._grain, start,
            sensor.noise if self.noise else 0.0, sensor.vignette, basis, self._focal, self.samples,
            *self._buffers, rgb, ids, depth,
        )  # fmt: skip
        if self.reduce == 1:
            return Frame(rgb, ids, depth)
        return Frame(means(rgb, self.reduce), middles(ids, self.reduce), middles(depth, self.reduce))

    def visible_rooms(self, camera: Camera) -> list[int]:
        """The rooms that may be seen from here, through however many doors."""
        windows = self._windows(np.asarray(camera.position, np.float64), basis_of(camera.yaw, camera.pitch))
        return [int(n) for n in np.flatnonzero(windows[:, 0] <= windows[:, 1])]

    def _windows(
        self, eye: npt.NDArray[np.float64], basis: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """For every room the part of the view it can be seen in, as tangents: left, right, top, bottom."""
        plan = self.home.plan
        edge, rise = (
            np.tan(np.deg2rad(FIELD_OF_VIEW) / 2),
            np.tan(np.deg2rad(FIELD_OF_VIEW) / 2) * self.height / self.width,
        )
        whole = (-edge, edge, -rise, rise)
        windows = np.tile([FULL, -FULL, FULL, -FULL], (len(plan.rooms), 1))
        near = [r.number for r in plan.rooms if r.cell.grown(WALL).holds(eye[0], eye[1])]
        if not near:  # outside: no walls to hide anything
            windows[:] = whole
            return windows
        doors = self._openings(eye, basis)
        queue = [(room, whole) for room in near]
        while queue:
            room, (left, right, top, bottom) = queue.pop()
            w = windows[room]
            if w[0] <= left and w[1] >= right and w[2] <= top and w[3] >= bottom:
                continue
            windows[room] = min(w[0], left), max(w[1], right), min(w[2], top), max(w[3], bottom)
            for door, opening in zip(plan.doors, doors, strict=True):
                if room in door.rooms and opening is not None:
                    a, b, c, d = (
                        max(left, opening[0]),
                        min(right, opening[1]),
                        max(top, opening[2]),
                        min(bottom, opening[3]),
                    )
                    if a <= b and c <= d:
                        queue.append(
                            (door.rooms[0] if door.rooms[1] == room else door.rooms[1], (a, b, c, d))
                        )
        return windows

    def _openings(
        self, eye: npt.NDArray[np.float64], basis: npt.NDArray[np.float64]
    ) -> list[tuple[float, float, float, float] | None]:
        if not len(self._doors):
            return []
        seen = (self._doors - eye) @ basis.T  # [doors, 8, 3]
        ahead = seen[..., 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            flat = seen[..., :2] / ahead[..., None]
        out: list[tuple[float, float, float, float] | None] = []
        for depth, points in zip(ahead, flat, strict=True):
            if depth.max() < NEAR:
                out.append(None)
            elif depth.min() < NEAR:  # the opening reaches past the eye: anything may be seen through it
                out.append((-FULL, FULL, -FULL, FULL))
            else:
                (x0, y0), (x1, y1) = points.min(0), points.max(0)
                out.append((float(x0), float(x1), float(y0), float(y1)))
        return out


def _corners(door: Any) -> npt.NDArray[np.float64]:
    zone = door.zone(WALL / 2)
    return np.array(
        [[x, y, z] for x in (zone.x0, zone.x1) for y in (zone.y0, zone.y1) for z in (0.0, door.high)]
    )


def _tone(home: Home) -> npt.NDArray[np.float32]:
    """From light to what the sensor writes, for each channel: exposure, white balance, a soft shoulder."""
    light = np.linspace(0, BRIGHTEST, STEPS)
    sensor = home.sensor
    curves = []
    for balance in sensor.balance:
        x = light * sensor.exposure * balance
        curves.append(255 * np.clip(1.12 * (1 - np.exp(-1.35 * x)), 0, 1) ** (sensor.contrast / GAMMA))
    return np.array(curves, np.float32)
