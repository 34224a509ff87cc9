"""Glyphs: handwriting in fifty made-up alphabets, drawn by the program itself. Nothing to download.

It stands in for Omniglot: as many alphabets, characters, drawers and splits, and about as hard. An alphabet
has a style; a character is a few splines; twenty drawers, each with a hand of their own, draw every
character once. All of it is a function of the seed.
"""

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.distributed.group import Group
from wanderlearn.errors import WanderError
from wanderlearn.files import cache_dir
from wanderlearn.pictures.alphabets import Style, characters, style
from wanderlearn.pictures.cached import is_kept, load_or_build, with_rotations
from wanderlearn.pictures.collection import SPLITS, Pictures, Split
from wanderlearn.pictures.strokes import KNOTS, PAGE, Chance, Floats, bend, direction, ink, spline
from wanderlearn.progress import track

__all__ = ["CHARACTERS", "DRAWERS", "ROTATIONS", "VERSION", "draw_alphabet", "draw_together", "glyphs"]

VERSION: Final = "1"  # a change of any pixel is a change of version
DRAWERS: Final = 20
ROTATIONS: Final = (90, 180, 270, 0)  # degrees counter-clockwise, in the order of the classes

# How many characters every alphabet has: the numbers of Omniglot's alphabets, in the order of their names.
CHARACTERS: Final[dict[Split, tuple[int, ...]]] = {
    "train": (20, 20, 29, 26, 40, 26, 26, 26, 26, 24, 14, 26, 34, 33, 26, 26, 45, 43, 24, 48, 16, 52, 47, 40,
              26, 40, 33, 14, 42, 23, 17, 55),
    "val": (41, 46, 22, 22, 41),
    "test": (45, 41, 26, 47, 40, 30, 45, 46, 28, 23, 25, 42, 26),
}  # fmt: skip

MARGIN: Final = 3.0  # units of the page that a drawing keeps free at its edge, where it can
STYLE, SHAPE, HANDS, DRAWING = range(4)  # purposes of chance


def glyphs(split: Split, *, seed: int = 0) -> Pictures:
    """The pictures of one split of the procedural world with this seed, 28 x 28, strokes bright on black.

    Train, val and test have 32, 5 and 13 alphabets (families) with 987, 172 and 464 characters; the four
    rotations of a character are four classes of 20 pictures. The first call for a seed draws all splits and
    keeps them in the cache.
    """
    if split not in SPLITS:
        raise WanderError(f"There is no split {split!r}. Choose one of {', '.join(SPLITS)}.")
    if not 0 <= seed < 2**63:
        raise WanderError(f"The seed of glyphs must be a whole number from 0 on, not {seed}.")
    drawings = load_or_build(_kept_at(seed), VERSION, lambda: _draw_all(seed))
    counts = [count for part in SPLITS for count in CHARACTERS[part]]
    first_alphabet = sum(len(CHARACTERS[part]) for part in SPLITS[: SPLITS.index(split)])
    first_character = sum(counts[:first_alphabet])
    own = CHARACTERS[split]
    numbers = [(first_alphabet + a, c) for a, count in enumerate(own) for c in range(count)]
    return Pictures(
        name="glyphs",
        split=split,
        images=with_rotations(drawings[first_character : first_character + sum(own)]),
        first=np.arange(len(numbers) * len(ROTATIONS) + 1) * DRAWERS,
        family=np.repeat(np.arange(len(own)), np.array(own) * len(ROTATIONS)),
        class_names=[f"{_name(a)}/character{c + 1:02}/rot{r:03}" for a, c in numbers for r in ROTATIONS],
        family_names=[_name(first_alphabet + a) for a in range(len(own))],
    )


def draw_alphabet(alphabet: int, count: int, *, seed: int = 0) -> npt.NDArray[np.uint8]:
    """All drawings of one alphabet, [count, DRAWERS, 28, 28]."""
    manner = style(Chance(seed, alphabet, 0, STYLE))
    shapes = characters(count, manner, Chance(seed, alphabet, 0, SHAPE))
    hands = _hands(Chance(seed, alphabet, 0, HANDS))
    drawn = [
        _drawn(shape, manner, hands, Chance(seed, alphabet, n, DRAWING)) for n, shape in enumerate(shapes)
    ]
    return np.stack(drawn)


def draw_together(group: Group, *, seed: int = 0) -> None:
    """Fill the cache of every machine: each process of the group draws some alphabets, all get them all.

    A process alone need not be asked: `glyphs` draws what is missing.
    """
    if group.size == 1 or not group.any(not is_kept(_kept_at(seed), VERSION)):
        return
    counts = [count for part in SPLITS for count in CHARACTERS[part]]
    mine = range(group.rank, len(counts), group.size)
    drawn = b"".join(draw_alphabet(a, counts[a], seed=seed).tobytes() for a in mine)
    found: dict[int, npt.NDArray[np.uint8]] = {}
    for rank, data in enumerate(group.gather_bytes(drawn)):
        theirs = range(rank, len(counts), group.size)
        pages = np.frombuffer(data, np.uint8).reshape(-1, DRAWERS, 28, 28)
        ends = np.cumsum([counts[a] for a in theirs])
        found |= dict(zip(theirs, np.split(pages, ends[:-1]), strict=True))
    if group.first_here:
        load_or_build(_kept_at(seed), VERSION, lambda: np.concatenate([found[a] for a in sorted(found)]))
    group.barrier()


def _kept_at(seed: int) -> Path:
    return cache_dir() / "glyphs" / f"drawings-v{VERSION}-seed{seed}.npy"


def _name(alphabet: int) -> str:
    return f"alphabet{alphabet + 1:02}"


def _draw_all(seed: int) -> npt.NDArray[np.uint8]:
    counts = [count for part in SPLITS for count in CHARACTERS[part]]
    alphabets = track(enumerate(counts), "drawing glyphs", len(counts))
    return np.concatenate([draw_alphabet(a, count, seed=seed) for a, count in alphabets])


class _Hands(NamedTuple):
    """The twenty drawers of an alphabet: what is peculiar to each in all they draw. Arrays are [DRAWERS]."""

    pen: Floats  # half width of the line
    size: Floats  # factor
    aspect: Floats  # height / width, factor
    slant: Floats  # x per y
    turn: Floats  # turns
    offset: Floats  # [DRAWERS, 2] units on the page
    haste: Floats  # how freely strokes depart from the model, factor
    rounding: Floats  # how far corners are cut
    tremor: Floats  # units on the page


def _hands(chance: Chance) -> _Hands:
    n = DRAWERS
    return _Hands(
        pen=chance.numbers(2.1, 2.8, n),
        size=1.0 + 0.07 * chance.bell(n),
        aspect=1.0 + 0.025 * chance.bell(n),
        slant=0.08 * chance.bell(n),
        turn=0.012 * chance.bell(n),
        offset=2.3 * chance.bell(n, 2),
        haste=chance.numbers(0.55, 1.6, n),
        rounding=chance.numbers(0.0, 0.8, n),
        tremor=chance.numbers(0.15, 0.55, n),
    )


def _drawn(shape: Floats, manner: Style, hands: _Hands, chance: Chance) -> npt.NDArray[np.uint8]:
    """One character by every drawer, [DRAWERS, 28, 28]."""
    n, strokes = DRAWERS, len(shape)
    haste = hands.haste * chance.numbers(0.6, 1.4, n)
    knots = np.broadcast_to(shape, (n, strokes, KNOTS, 2))
    knots = _loose(knots, haste[:, None, None, None], chance)
    knots = bend(bend(knots, hands.rounding[:, None, None, None]), hands.rounding[:, None, None, None])

    # The page is warped gently as a whole, which keeps strokes together that belong together.
    x, y = knots[..., 0], knots[..., 1]
    w = 0.06 * chance.bell(6, n)[:, :, None, None] * haste[:, None, None]
    knots = np.stack(
        (x + w[0] * x * x + w[1] * x * y + w[2] * y * y, y + w[3] * x * x + w[4] * x * y + w[5] * y * y), -1
    )
    page = _on_page(knots, manner, hands, chance)
    page += hands.tremor[:, None, None, None] * chance.bell(n, strokes, KNOTS, 2)
    points = spline(page)
    return ink(points.reshape(n, -1, 2), hands.pen)


def _loose(knots: Floats, haste: Floats, chance: Chance) -> Floats:
    """Every stroke shifted, stretched, turned, bent and run over or cut short at its ends."""
    n, strokes = knots.shape[:2]
    u = np.linspace(-1.0, 1.0, KNOTS)[:, None]
    low, high = knots.min(axis=2, keepdims=True), knots.max(axis=2, keepdims=True)
    reach = (high - low).max(axis=3, keepdims=True) * 0.5  # [n, strokes, 1, 1]
    noise = chance.bell(4, n, strokes, 1, 2)
    shift = 0.075 * noise[0]
    stretch = 0.10 * noise[1] * u * reach
    bow = 0.12 * noise[2] * (u * u - 0.5) * reach
    wave = 0.10 * noise[3] * (u * u * u - 0.6 * u) * 2.0 * reach
    factor = 1.0 + 0.07 * chance.bell(n, strokes, 1, 2) * haste
    middle = (low + high) * 0.5
    moved: Floats = (knots - middle) * factor + middle + (shift + stretch + bow + wave) * haste
    over = chance.bell(2, n, strokes, 1) * 0.6
    moved[:, :, 0] += (moved[:, :, 0] - moved[:, :, 1]) * over[0]
    moved[:, :, -1] += (moved[:, :, -1] - moved[:, :, -2]) * over[1]
    return moved


def _on_page(knots: Floats, manner: Style, hands: _Hands, chance: Chance) -> Floats:
    """From the box of the character to the page: size, slant, turn and place."""
    n = DRAWERS

    def per_drawer(values: Floats) -> Floats:
        return values[:, None, None]

    size = hands.size * (1.0 + 0.08 * chance.bell(n))
    aspect = hands.aspect * (1.0 + 0.04 * chance.bell(n))
    slant = hands.slant + 0.06 * chance.bell(n)
    c, s = direction(hands.turn + 0.012 * chance.bell(n))
    place = hands.offset + 3.5 * chance.bell(n, 2) + 50.0
    y = knots[..., 1] * per_drawer(manner.height * size * aspect)
    x = knots[..., 0] * per_drawer(manner.width * size / aspect) - y * per_drawer(slant)
    turned_x = x * per_drawer(c) - y * per_drawer(s) + per_drawer(place[:, 0])
    turned_y = x * per_drawer(s) + y * per_drawer(c) + per_drawer(place[:, 1])
    page: Floats = np.stack((turned_x, turned_y), axis=-1)
    low, high = page.min(axis=(1, 2), keepdims=True), page.max(axis=(1, 2), keepdims=True)
    inwards = np.maximum(MARGIN - low, 0.0) - np.maximum(high - (PAGE - 1.0 - MARGIN), 0.0)
    page += inwards
    return page
