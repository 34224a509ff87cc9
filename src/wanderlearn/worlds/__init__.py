"""In what order pictures are met."""

from wanderlearn.worlds.backgrounds import BackgroundConfig
from wanderlearn.worlds.manifest import Manifest, draw_manifest, read_manifest, write_manifest
from wanderlearn.worlds.named import WORLDS, open_collection, open_pictures, open_roaming, open_world
from wanderlearn.worlds.roaming import Roaming, RoamingConfig
from wanderlearn.worlds.sequence import NEW, UNLABELED, Batch, Meetings
from wanderlearn.worlds.statistics import statistics
from wanderlearn.worlds.stream import batches
from wanderlearn.worlds.world import Collection, World, world_of

__all__ = [
    "NEW",
    "UNLABELED",
    "WORLDS",
    "BackgroundConfig",
    "Batch",
    "Collection",
    "Manifest",
    "Meetings",
    "Roaming",
    "RoamingConfig",
    "World",
    "batches",
    "draw_manifest",
    "open_collection",
    "open_pictures",
    "open_roaming",
    "open_world",
    "read_manifest",
    "statistics",
    "world_of",
    "write_manifest",
]
