"""The roaming world: in what order pictures are met (RoamingOmniglot and everything built like it).

Five hidden environments hold up to ten classes each. Inside an environment the classes come up by a Chinese
restaurant process; the learner drifts between environments by a Markov switch. The process is the authors'
one, including what the paper leaves out (spec: facts 1.3 to 1.5); where their code redraws until a draw
fits, we draw once from the conditional distribution, which is the same in law.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np
import torch

from wanderlearn.errors import WanderError
from wanderlearn.pictures.collection import Pictures
from wanderlearn.worlds.backgrounds import BackgroundConfig, Backgrounds
from wanderlearn.worlds.draws import Purpose, uniforms
from wanderlearn.worlds.labels import in_slots, labels_told
from wanderlearn.worlds.pixels import draw_pictures
from wanderlearn.worlds.sequence import Batch, Ints, Meetings, stack, target_of

__all__ = ["Roaming", "RoamingConfig"]


@dataclass(frozen=True)
class RoamingConfig:
    """The process, with the paper's values as defaults."""

    environments: int = 5
    """Hidden contexts in one sequence."""
    classes: int = 50
    """Most classes in one sequence, shared evenly among the environments."""
    length: int = 150
    """Most meetings in one sequence, shared evenly among the environments."""
    per_class: int = 6
    """Most items of one class."""
    discount: float = 0.2
    """Alpha of the Chinese restaurant process: higher, more classes."""
    concentration: float = 1.0
    """Theta of the Chinese restaurant process: higher, more classes early."""
    switch: float = 0.2
    """Chance to choose the environment anew after a meeting (possibly the same one again)."""
    shuffle: bool = False
    """Destroy temporal context by one random permutation of each sequence (the paper's control)."""
    semi: bool = False
    """Hide labels: frequent classes lose more of them."""
    label_ratio: float = 0.3
    """Share of labels that a very frequent class keeps in the semi-supervised setting."""
    crop: Literal["sequence", "picture", "none"] = "sequence"
    """Random crop in training: one offset for the whole sequence (as the authors), or one per picture."""
    crop_padding: int = 2
    """Zero pixels added on every side before the random crop."""
    occlusion: float = 0.3
    """Side of the grey box over every picture, as a part of the picture's height; 0 for none."""
    background: BackgroundConfig | None = None
    """A spatial cue: what lies behind the pictures of each environment (docs/context.md)."""

    def __post_init__(self) -> None:
        for name in ("environments", "classes", "length", "per_class"):
            if getattr(self, name) < 1:
                raise WanderError(f"{name} must be at least 1, not {getattr(self, name)}.")
        for name in ("discount", "switch", "label_ratio", "occlusion"):
            if not 0 <= getattr(self, name) <= 1:
                raise WanderError(f"{name} must lie between 0 and 1, not {getattr(self, name)}.")
        if self.classes < self.environments or self.length < self.environments:
            raise WanderError("classes and length must each be at least the number of environments.")


class Roaming:
    """A world of pictures to wander in. `meetings(seed, i)` is sequence i; `batch` adds the pixels."""

    def __init__(
        self, pictures: Pictures, config: RoamingConfig | None = None, textures: Pictures | None = None
    ) -> None:
        """`textures` are those of this split; without them, if any are wanted, the config says which."""
        self.pictures = pictures
        self.config = config or RoamingConfig()
        self.backgrounds = self._behind(textures)
        self._members = [np.flatnonzero(pictures.family == f).tolist() for f in range(pictures.families)]
        self._first = pictures.first.tolist()
        self._check()

    @property
    def channels(self) -> int:
        """How many channels a met picture has."""
        behind = self.config.background
        return int(self.pictures.images.shape[1]) + (behind is not None and behind.how == "channel")

    @property
    def slots(self) -> int:
        """How many class slots a learner needs here."""
        return self.config.classes

    @property
    def most_per_class(self) -> int:
        """How often any class could be met in one sequence, with a picture of its own each time."""
        config, pictures = self.config, self.pictures
        together = ceil(config.classes // config.environments / pictures.families)  # stand for one class
        return max(config.per_class, int(np.diff(pictures.first).min()) // together)

    def meetings(self, seed: int, index: int) -> Meetings:
        """Sequence number `index` of the world with this seed."""
        concrete, environment, picture = self._order(seed, index)
        labelled = self._labelled(seed, index, concrete)
        appeared = {e: n for n, e in enumerate(dict.fromkeys(environment))}
        truth, given = in_slots(concrete, labelled)
        crop, occlusion = self._pixel_draws(seed, index, len(truth))
        numbered = np.array([appeared[e] for e in environment])
        behind = None
        if self.backgrounds is not None:
            behind = self.backgrounds.draw(seed, self.pictures.split, index, numbered, self.config)
        return Meetings(
            index=index,
            picture=np.array(picture),
            truth=truth,
            given=given,
            target=target_of(truth, given),
            environment=numbered,
            crop=crop,
            occlusion=occlusion,
            background=behind,
        )

    def batch(self, meetings: Sequence[Meetings], *, pixels: bool = True) -> Batch:
        """Stack sequences, padded to the longest, with their pixels or (where features will do) without."""
        longest = max(len(m) for m in meetings)
        size = (self.channels, *self.pictures.images.shape[2:]) if pixels else (0, 0, 0)
        images = np.zeros((len(meetings), longest, *size), dtype=np.float32)
        for row, m in enumerate(meetings if pixels else ()):
            draw = self.backgrounds.draw_pictures if self.backgrounds else draw_pictures
            draw(self.pictures.images, m, self.config, out=images[row, : len(m)])
        return stack(meetings, torch.from_numpy(images))

    def _order(self, seed: int, index: int) -> tuple[list[int], list[int], list[int]]:
        """Concrete class, environment and picture of every meeting."""
        config, families = self.config, self.pictures.families
        seats, room = config.length // config.environments, config.classes // config.environments
        used = min(room, families)
        draws = uniforms(
            seed, self.pictures.split, index, Purpose.ORDER,
            config.environments * (seats + used) + used + 4 * config.length,
        )  # fmt: skip
        u = iter(draws.tolist())

        # Class index c of every environment comes from the c-th family (modulo their number: with fewer than
        # ten families two indices of one environment are one class, as in the authors' validation split).
        chosen = _distinct(families, used, u)
        concrete = [
            [self._members[f][i] for i in _distinct(len(self._members[f]), config.environments, u)]
            for f in chosen
        ]  # [family][environment]
        queues = [
            [concrete[c % used][s] for c in _restaurant([next(u) for _ in range(seats)], room, config)]
            for s in range(config.environments)
        ]
        classes, environment = _switching(queues, config.switch, u)
        if config.shuffle:
            by_chance = np.argsort([next(u) for _ in classes], kind="stable").tolist()
            classes = [classes[i] for i in by_chance]
            environment = [environment[i] for i in by_chance]

        taken: dict[int, list[int]] = {}
        picture = []
        for c in classes:  # without replacement: a place among the pictures of this class not yet taken
            before = taken.setdefault(c, [])
            place = _free_place(int(next(u) * (self._first[c + 1] - self._first[c] - len(before))), before)
            picture.append(self._first[c] + place)
        return classes, environment, picture

    def _labelled(self, seed: int, index: int, concrete: list[int]) -> list[bool]:
        """Which meetings come with their name. Every class is told at least once."""
        if not self.config.semi:
            return [True] * len(concrete)
        u = uniforms(seed, self.pictures.split, index, Purpose.LABELS, 2 * self.config.length)
        return labels_told(concrete, u.tolist(), self.config.label_ratio)

    def _pixel_draws(self, seed: int, index: int, length: int) -> tuple[Ints, Ints]:
        """Crop and occlusion corners, [T, 2] each."""
        config = self.config
        u = uniforms(seed, self.pictures.split, index, Purpose.PIXELS, 4 * config.length + 2)
        height, width = self.pictures.images.shape[2:]
        crop = np.full((length, 2), config.crop_padding)
        if self.pictures.split == "train" and config.crop != "none":
            offsets = u[:2] if config.crop == "sequence" else u[2 : 2 + 2 * length].reshape(length, 2)
            crop[:] = offsets * (2 * config.crop_padding + 1)
        side = int(config.occlusion * height)
        if side == 0:
            return crop, np.full((length, 2), -1)
        corner = u[2 + 2 * config.length :][: 2 * length].reshape(length, 2)
        return crop, (corner * (height - side, width - side)).astype(np.int64)

    def _behind(self, textures: Pictures | None) -> Backgrounds | None:
        background, pictures = self.config.background, self.pictures
        if background is None:
            return None
        if pictures.images.dtype != np.uint8 or (
            background.how == "overlay" and pictures.images.shape[1] != 1
        ):
            raise WanderError(
                f"Nothing can be put behind the pictures of {pictures.name}: a background as a channel needs "
                "pictures, not vectors, and an overlay needs pictures of one channel."
            )
        if textures is None:
            from wanderlearn.pictures.textures import open_textures

            textures = open_textures(background.textures, pictures.split)
        height, width = pictures.images.shape[2:]
        return Backgrounds(textures, background, (height, width))

    def _check(self) -> None:
        config, pictures = self.config, self.pictures
        where = f"The {pictures.split} split of {pictures.name}"
        if pictures.families == 0:
            raise WanderError(f"{where} has no pictures.")
        for f, members in enumerate(self._members):
            if len(members) < config.environments:
                raise WanderError(
                    f"{where}: family {pictures.family_names[f]!r} has {len(members)} classes, but every "
                    f"family gives one class to each of {config.environments} environments. Add classes "
                    "to it, merge it with another family, or lower `environments`."
                )
        room = config.classes // config.environments
        needed = min(config.per_class * ceil(room / pictures.families), config.length // config.environments)
        sizes = np.diff(pictures.first)
        if sizes.min() < needed:
            c = int(sizes.argmin())
            raise WanderError(
                f"{where}: class {pictures.class_names[c]!r} has {sizes[c]} pictures, but up to {needed} "
                "may be met in one sequence and no picture is met twice. Add pictures or lower `per_class`."
            )


def _restaurant(draws: list[float], room: int, config: RoamingConfig) -> list[int]:
    """Classes of one environment in order, by a two-parameter Chinese restaurant process.

    P(new) is proportional to theta + k alpha, P(old i) to m_i - alpha. A class that has had its fill is not
    drawn again. Drawing a class beyond the last ends the environment early.
    """
    alpha, most = config.discount, config.per_class
    counts: list[int] = []
    seats: list[int] = []
    open_mass = 0.0  # sum of m_i - alpha over the classes that may still come
    for draw in draws:
        at = draw * (open_mass + config.concentration + alpha * len(counts))
        if at < open_mass:
            for c, m in enumerate(counts):
                if m < most:
                    at -= m - alpha
                    last = c
                    if at < 0:
                        break
            counts[last] += 1
            open_mass += 1 if counts[last] < most else alpha - (most - 1)  # a full class leaves
        else:
            if len(counts) == room:
                break
            last = len(counts)
            counts.append(1)
            open_mass += 1 - alpha if most > 1 else 0.0
        seats.append(last)
    return seats


def _switching(queues: list[list[int]], switch: float, u: Iterator[float]) -> tuple[list[int], list[int]]:
    """Empty all queues one item at a time, from one environment until chance or its end moves us on."""
    left = [len(q) for q in queues]
    classes: list[int] = []
    environment: list[int] = []
    current = 0
    for _ in range(sum(left)):
        classes.append(queues[current][-left[current]])
        environment.append(current)
        left[current] -= 1
        moved, where = next(u) < switch, next(u)
        if moved or left[current] == 0:
            open_ones = [e for e, n in enumerate(left) if n]
            current = open_ones[int(where * len(open_ones))] if open_ones else current
    return classes, environment


def _distinct(among: int, wanted: int, u: Iterator[float]) -> list[int]:
    """`wanted` different numbers below `among`, in random order."""
    taken: list[int] = []
    return [_free_place(int(next(u) * (among - n)), taken) for n in range(wanted)]


def _free_place(place: int, taken: list[int]) -> int:
    """The `place`-th number not in the sorted list `taken`; it is taken from now on."""
    for n, t in enumerate(taken):
        if place < t:
            taken.insert(n, place)
            return place
        place += 1
    taken.append(place)
    return place
