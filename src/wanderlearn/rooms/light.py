"""Light, baked once for every home: lamps, windows and fires, with soft shadows and dark corners."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wanderlearn.rooms import kernels
from wanderlearn.rooms.home import Home
from wanderlearn.rooms.scene import Scene, build_tree

__all__ = ["bake_light"]

RAYS: Final = 14  # how finely dark corners are felt
SAMPLES: Final = 3  # how soft shadows are
BURIED: Final = 0.22  # a vertex less open than this lies inside something


def bake_light(home: Home, scene: Scene, rays: int = RAYS, samples: int = SAMPLES) -> npt.NDArray[np.float32]:
    """Light [v, 3] at every vertex of the scene."""
    shadows = np.flatnonzero(scene.glow[scene.faces[:, 0]] <= 0)
    tree = build_tree(scene, shadows)
    lamps = np.array(
        [[*lamp.position, *lamp.colour, *lamp.spread, lamp.soft] for lamp in home.lamps], float
    ).reshape(-1, 10)
    reach = np.zeros((len(home.lamps), len(home.plan.rooms)), bool)
    for n, lamp in enumerate(home.lamps):  # a lamp lights its room and those next door
        reach[n, lamp.room] = True
        for door in home.plan.doors:
            if lamp.room in door.rooms:
                reach[n, list(door.rooms)] = True
    baked: Any = kernels.bake(
        scene.vertices,
        scene.normals,
        scene.glow,
        scene.room,
        lamps,
        reach,
        np.array(home.ambient),
        _ball(rays),
        tree.low,
        tree.high,
        tree.triangles,
        samples,
        _offsets(),
    )
    return _uncovered(np.asarray(baked, np.float32), scene)


def _uncovered(baked: npt.NDArray[np.float32], scene: Scene) -> npt.NDArray[np.float32]:
    """Give vertices that are buried in other things the light of their neighbours, which are not."""
    light, known = baked[:, :3].copy(), baked[:, 3] > BURIED
    for _ in range(3):
        total, count = np.zeros_like(light), np.zeros(len(light), np.float32)
        for a in range(3):
            for b in range(3):
                ends, starts = scene.faces[:, a], scene.faces[:, b]
                use = ~known[ends] & known[starts]
                np.add.at(total, ends[use], light[starts[use]])
                np.add.at(count, ends[use], 1)
        fill = count > 0
        light[fill] = total[fill] / count[fill, None]
        known |= fill
    return light


def _ball(count: int) -> npt.NDArray[np.float64]:
    """Directions spread evenly over a ball, by the golden angle."""
    k = np.arange(count) + 0.5
    z, turn = 1 - 2 * k / count, np.pi * (1 + np.sqrt(5)) * k
    flat = np.sqrt(1 - z * z)
    return np.stack([flat * np.cos(turn), flat * np.sin(turn), z], -1) * 0.98


def _offsets(count: int = 512) -> npt.NDArray[np.float64]:
    """Points in a cube from -1 to 1, spread evenly."""
    return np.random.Generator(np.random.Philox(key=5)).uniform(-1, 1, (count, 3))
