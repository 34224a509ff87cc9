"""The world of rooms: recorded walks as sequences of meetings, by the authors' rules without their slips.

Every annotated thing of a frame is one meeting. What the authors' program does otherwise, and why we do not,
is in docs/rooms.md.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from wanderlearn.errors import WanderError
from wanderlearn.rooms.process import RoomsConfig
from wanderlearn.rooms.sightings import Sightings
from wanderlearn.worlds.draws import Purpose, uniforms
from wanderlearn.worlds.frames import Frames
from wanderlearn.worlds.labels import in_slots, labels_told
from wanderlearn.worlds.pixels import cropped
from wanderlearn.worlds.sequence import Batch, Ints, Meetings, stack, target_of

__all__ = ["Rooms"]

TRIES: Final = 1000  # of thinning; a walk that is used at all succeeds by the first few


class Rooms:
    """A world of recorded walks. `meetings(seed, i)` is sequence i; `batch` adds the pixels.

    In training every pass over the walks is in a new order. Else they come as recorded, and what is shown of
    a walk begins at its start; in passes beyond the first it begins anywhere.
    """

    backgrounds: Final = None

    def __init__(self, pictures: Sightings, config: RoomsConfig | None = None) -> None:
        self.pictures = pictures
        self.config = config or RoomsConfig()
        self.training = pictures.split == "train"
        self.walks = [w for w in range(len(pictures.walks)) if self._is_enough(w)]
        if not self.walks:
            raise WanderError(
                f"None of the {len(pictures.walks)} walks in {pictures.name}/{pictures.split} leaves "
                f"{self.config.least_meetings} meetings of {self.config.least_classes} things. Record longer "
                "walks (wander rooms record --frames 600), or lower --roaming.least-meetings and "
                "--roaming.least-classes."
            )

    @property
    def channels(self) -> int:
        """Colours and the mask."""
        return self.pictures.shape[0]

    @property
    def slots(self) -> int:
        """How many class slots a learner needs here."""
        return self.config.slots

    @property
    def once(self) -> int:
        """How many sequences one pass over all walks has."""
        return len(self.walks)

    def meetings(self, seed: int, index: int) -> Meetings:
        """Sequence number `index` of the world with this seed."""
        rows = self._order(seed, index)
        pictures, config, split = self.pictures, self.config, self.pictures.split
        concrete = pictures.class_of[rows].tolist()
        labelled = [True] * len(rows)
        if config.semi:
            u = uniforms(seed, split, index, Purpose.LABELS, 2 * config.length)
            labelled = labels_told(concrete, u.tolist(), config.label_ratio)
        truth, given = in_slots(concrete, labelled)
        rooms = pictures.room[rows].tolist()
        appeared = {room: n for n, room in enumerate(dict.fromkeys(rooms))}
        crop, mask_crop = self._crops(seed, index, pictures.frame[rows])
        return Meetings(
            index=index,
            picture=rows,
            truth=truth,
            given=given,
            target=target_of(truth, given),
            environment=np.array([appeared[room] for room in rooms]),
            crop=crop,
            occlusion=np.full((len(rows), 2), -1),
            mask_crop=mask_crop,
        )

    def batch(self, meetings: Sequence[Meetings], *, pixels: bool = True) -> Batch:
        """Stack sequences, padded to the longest; `frames` has the pixels, if they are wanted."""
        images = torch.zeros(len(meetings), max(len(m) for m in meetings), 0, 0, 0)
        frames = None
        if pixels:
            rows, crops = (np.concatenate([getattr(m, n) for m in meetings]) for n in ("picture", "crop"))
            masks = np.concatenate([m.crop if m.mask_crop is None else m.mask_crop for m in meetings])
            frames = self.seen(rows, crops, masks)
        return stack(meetings, images, frames)

    def seen(self, rows: Ints, crops: Ints, mask_crops: Ints) -> Frames:
        """These sightings as pixels. A frame that is seen several times in one crop is there once."""
        pictures, padding = self.pictures, self.padding
        what = np.column_stack([pictures.frame[rows], crops])  # [N, 3]
        distinct, of = np.unique(what, axis=0, return_inverse=True)
        moved = cropped(pictures.frames[distinct[:, 0]], distinct[:, 1:] - padding)
        rgb = np.multiply(moved, np.float32(1 / 127.5), dtype=np.float32)
        rgb -= 1
        masks = cropped(pictures.mask(rows)[:, None], mask_crops - padding).astype(np.float32)
        return Frames(torch.from_numpy(rgb), torch.from_numpy(masks), torch.from_numpy(of.reshape(-1)))

    @property
    def padding(self) -> Ints:
        """Where the crop is that changes nothing: row and column."""
        return np.array([self.config.crop_rows, self.config.crop_columns])

    def crops_of(self, moves: npt.NDArray[np.float64], shifts: npt.NDArray[np.float64]) -> tuple[Ints, Ints]:
        """Random crops of frames and masks, from numbers in [0, 1), [N, 2] each."""
        padding, most = self.padding, self.config.mask_shift
        crop = (moves * (2 * padding + 1)).astype(np.int64)
        return crop, crop + (shifts * (2 * most + 1)).astype(np.int64) - most

    def _is_enough(self, walk: int) -> bool:
        """Whether a walk leaves enough meetings on average, and enough things."""
        rows = np.arange(self.pictures.first[walk], self.pictures.first[walk + 1])
        counts = np.unique(self.pictures.class_of[self._within_cap(rows)], return_counts=True)[1]
        kept = np.minimum(counts, self.config.per_class).sum() * (1 - self.config.drop * self.training)
        return len(counts) >= self.config.least_classes and kept >= self.config.least_meetings

    def _order(self, seed: int, index: int) -> Ints:
        """The sightings of a sequence in the order in which they are met."""
        pictures, config, split = self.pictures, self.config, self.pictures.split
        turn, place = divmod(index, len(self.walks))
        walk = self.walks[_shuffled(seed, split, turn, len(self.walks))[place] if self.training else place]
        rows = np.arange(pictures.first[walk], pictures.first[walk + 1])
        u = uniforms(seed, split, index, Purpose.ORDER, len(rows) + 2 + config.length)
        rows = rows[np.lexsort((u[: len(rows)], pictures.frame[rows]))]  # chance among those of one frame
        rows = self._thinned(seed, index, self._within_cap(rows))
        start, backward, *by_chance = u[-2 - config.length :]
        spare = len(rows) - config.length
        if spare > 0:
            begin = int(start * (spare + 1)) if self.training or turn else 0
            rows = rows[begin : begin + config.length]
        if config.shuffle:
            return rows[np.argsort(by_chance[: len(rows)], kind="stable")]
        return rows[::-1].copy() if self.training and backward < config.reverse else rows

    def _within_cap(self, rows: Ints) -> Ints:
        """Without the things that come up when as many are known as a sequence may have."""
        classes = self.pictures.class_of[rows]
        found, first = np.unique(classes, return_index=True)
        known = found[np.argsort(first)][: self.config.classes]
        return rows[np.isin(classes, known)]

    def _thinned(self, seed: int, index: int, rows: Ints) -> Ints:
        """Without most meetings of things that are met often; drawn again until enough are left."""
        config, classes = self.config, self.pictures.class_of[rows]
        _, of, counts = np.unique(classes, return_inverse=True, return_counts=True)
        chance = np.minimum(1, config.per_class / counts)[of.reshape(-1)] * (1 - config.drop * self.training)
        for attempt in range(TRIES):
            u = uniforms(seed, self.pictures.split, index, Purpose.THINNING, (attempt + 1) * len(rows))
            kept = u[attempt * len(rows) :] < chance
            enough = kept.sum() >= config.least_meetings
            if enough and len(np.unique(classes[kept])) >= config.least_classes:
                return rows[kept]
        raise WanderError(
            f"Sequence {index} of {self.pictures.name}: {TRIES} draws left too few meetings. Lower "
            "--roaming.least-meetings or --roaming.least-classes."
        )

    def _crops(self, seed: int, index: int, frame: Ints) -> tuple[Ints, Ints]:
        """Where frames and masks are cropped: in training by chance, once for all things of a frame."""
        if not self.training:
            still = np.tile(self.padding, (len(frame), 1))
            return still, still
        split, count = self.pictures.split, 2 * self.config.length
        moves = uniforms(seed, split, index, Purpose.PIXELS, count).reshape(-1, 2)
        shifts = uniforms(seed, split, index, Purpose.MASKS, count).reshape(-1, 2)
        place = np.unique(frame, return_inverse=True)[1].reshape(-1)  # the how-manieth frame
        return self.crops_of(moves[place], shifts[: len(frame)])


@lru_cache(maxsize=8)
def _shuffled(seed: int, split: str, turn: int, count: int) -> list[int]:
    """In which order the walks come in one pass."""
    order: list[int] = np.argsort(uniforms(seed, split, turn, Purpose.WALKS, count), kind="stable").tolist()
    return order
