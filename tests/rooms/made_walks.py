"""Walks made up of random numbers: the process does not care what the frames show."""

import numpy as np

from wanderlearn.pictures.collection import Split
from wanderlearn.rooms.process import RoomsConfig
from wanderlearn.rooms.sightings import Sightings

SMALL = RoomsConfig(
    slots=9, length=24, per_class=4, least_meetings=12, least_classes=3,
    crop_rows=2, crop_columns=3, mask_shift=2,
)  # fmt: skip


def made_walks(
    split: Split = "test",
    walks: int = 4,
    frames: int = 30,
    things: int = 14,
    most: int = 4,
    seed: int = 0,
    size: tuple[int, int] = (12, 16),
) -> Sightings:
    """Walks of `frames` frames with 1 to `most` of `things` things in each, each walk in its own home."""
    r = np.random.default_rng(seed)
    frame, class_of, room, first = [], [], [], [0]
    for walk in range(walks):
        for n in range(frames):
            near = (n * things // frames + r.permutation(things)[: r.integers(1, most + 1)] % 5) % things
            for thing in np.unique(near).tolist():
                frame.append(walk * frames + n)
                class_of.append(walk * things + thing)
                room.append(thing // 5)
        first.append(len(frame))
    height, width = size
    masks = r.random((len(frame), height * width)) < 0.2
    return Sightings(
        name="rooms-made",
        split=split,
        frames=r.integers(0, 256, (walks * frames, 3, height, width)).astype(np.uint8),
        masks=np.packbits(masks, axis=-1),
        first=np.array(first),
        frame=np.array(frame),
        class_of=np.array(class_of),
        room=np.array(room),
        family=np.arange(walks * things) % 3,
        class_names=[f"home{c // things}/thing {c % things}" for c in range(walks * things)],
        family_names=["chair", "lamp", "plant"],
        walks=[f"walk{w}" for w in range(walks)],
        digest=f"made-{split}-{seed}",
    )
