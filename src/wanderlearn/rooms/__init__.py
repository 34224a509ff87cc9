"""RoamingRooms: procedural homes to wander in, drawn by the processor, and walks through them.

home = build_home(seed=3)
renderer = Renderer(home)
for camera in walk(home, seed=0, frames=600):
    rgb, ids, depth = renderer.draw(camera)
"""

from wanderlearn.rooms.furniture import CATEGORIES
from wanderlearn.rooms.home import WORLDS, Dropped, Home, Sensor, Thing, build_home, world_seeds
from wanderlearn.rooms.reading import RoomsFile, RoomsFrame, Seen, recorded_files
from wanderlearn.rooms.render import Camera, Frame, Renderer
from wanderlearn.rooms.viewpoints import Viewpoint
from wanderlearn.rooms.walk import WalkConfig, walk

__all__ = [
    "CATEGORIES", "WORLDS", "Camera", "Dropped", "Frame", "Home", "Renderer", "RoomsFile",
    "RoomsFrame", "Seen", "Sensor", "Thing", "Viewpoint", "WalkConfig", "build_home", "recorded_files",
    "walk", "world_seeds",
]  # fmt: skip
