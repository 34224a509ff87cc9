"""In what order pictures are met."""

from wanderlearn.worlds.manifest import Manifest, draw_manifest, read_manifest, write_manifest
from wanderlearn.worlds.named import WORLDS, open_pictures, open_world
from wanderlearn.worlds.roaming import Roaming, RoamingConfig
from wanderlearn.worlds.sequence import NEW, UNLABELED, Batch, Meetings
from wanderlearn.worlds.statistics import statistics
from wanderlearn.worlds.stream import batches

__all__ = [
    "NEW",
    "UNLABELED",
    "WORLDS",
    "Batch",
    "Manifest",
    "Meetings",
    "Roaming",
    "RoamingConfig",
    "batches",
    "draw_manifest",
    "open_pictures",
    "open_world",
    "read_manifest",
    "statistics",
    "write_manifest",
]
