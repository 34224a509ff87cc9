"""Made-up alphabets: each has a style of its own, and characters put together from shared strokes."""

from typing import NamedTuple

import numpy as np

from wanderlearn.pictures.strokes import KNOTS, Chance, Floats, path

__all__ = ["Style", "characters", "style"]

Character = Floats  # [strokes, KNOTS, 2], in a box of about -1 to 1, x to the right and y down


class Style(NamedTuple):
    """What the characters of one alphabet have in common."""

    angles: tuple[float, ...]  # directions of straight lines, in turns; none: any direction
    kinds: tuple[float, ...]  # weights of line, angle, arc, hook, wave, loop, curl, dot
    strokes: tuple[float, ...]  # weights of 1, 2, ... strokes
    parts: int  # how many strokes the alphabet shares
    sharing: float  # chance that a stroke is one of these
    turning: float  # chance that a shared stroke is turned or mirrored
    mirrored: float  # chance that a stroke is followed by its mirror image
    derived: float  # chance that a character is an earlier one with one stroke changed
    joined: float  # chance that a stroke starts on an earlier one
    headline: float  # chance of a bar over the character
    width: float  # half the usual width on the page
    height: float


LINE, ANGLE, ARC, HOOK, WAVE, LOOP, CURL, DOT = range(8)
GRIDS = (
    (0.0, 0.25),
    (0.0, 0.25),
    (0.0, 0.125, 0.25, 0.375),
    (0.0, 0.25, 0.17, 0.33),
    (0.083, 0.25, 0.417),
    (),
)


def style(chance: Chance) -> Style:
    """A new style."""
    curved = chance.number(0.0, 1.0)
    straight = 1.0 - curved
    kinds = (
        1.0 + 2.0 * straight,
        0.6 + 2.0 * straight,
        0.2 + 2.5 * curved,
        0.3 + 1.5 * curved,
        0.1 + 1.0 * curved,
        chance.number(0.0, 0.9),
        chance.number(0.0, 1.2) * curved,
        chance.number(0.0, 0.7) if chance.yes(0.5) else 0.0,
    )
    busy = chance.number(1.6, 3.8)
    size, aspect = 1.0 + 0.13 * float(chance.bell()), 1.0 + 0.13 * float(chance.bell())
    return Style(
        angles=GRIDS[chance.pick(len(GRIDS))],
        kinds=kinds,
        strokes=tuple(max(0.03, 1.0 - abs(n - busy) / 1.6) for n in range(1, 7)),
        parts=6 + chance.pick(12),
        sharing=chance.number(0.5, 0.95),
        turning=chance.number(0.0, 0.6),
        mirrored=chance.number(0.0, 0.35) * chance.number(0.0, 1.0),
        derived=chance.number(0.1, 0.5),
        joined=chance.number(0.55, 0.98),
        headline=chance.number(0.5, 1.0) if chance.yes(0.12) else 0.0,
        width=25.8 * size / aspect,
        height=25.8 * size * aspect,
    )


def characters(count: int, style: Style, chance: Chance) -> list[Character]:
    """That many characters in this style, no two of them alike."""
    parts = [_stroke(style, chance) for _ in range(style.parts)]
    done: list[Character] = []
    looks: list[Floats] = []
    likeness = 0.7
    while len(done) < count:
        if done and chance.yes(style.derived):
            raw = _derived(done[chance.pick(len(done))], style, parts, chance)
        else:
            raw = _composed(style, parts, chance)
        if sum(map(_length, raw)) < chance.number(1.2, 3.2):
            continue  # a bare line says little; most characters are more than that
        new = _fitted(raw, chance)
        look = _look(new)
        if looks and max(float((look * other).sum()) for other in looks) > likeness:
            likeness += 0.002  # a small style cannot fill a large alphabet with very different characters
            continue
        done.append(new)
        looks.append(look)
    return done


def _composed(style: Style, parts: list[Floats], chance: Chance) -> Character:
    strokes: list[Floats] = []
    wanted = 1 + chance.among(style.strokes)
    while len(strokes) < wanted:
        shape = _part(style, parts, chance)
        if not strokes and chance.yes(0.8):
            while _length(shape) < 0.9:  # begin with a stroke of some size
                shape = _part(style, parts, chance)
        strokes.append(_placed(shape, strokes, style, chance))
        if len(strokes) < wanted and chance.yes(style.mirrored):
            strokes.append(_mirrored(strokes[-1], strokes, chance))
    if style.headline and chance.yes(style.headline):
        every = np.stack(strokes)
        left, right, top = every[..., 0].min() - 0.15, every[..., 0].max() + 0.15, every[..., 1].min()
        bar = path(0.0, [(0.0, float(right - left), 0.0)])
        strokes.append(bar + np.array((left, top)))
    return np.stack(strokes)


def _derived(base: Character, style: Style, parts: list[Floats], chance: Chance) -> Character:
    strokes = list(base)
    if len(strokes) > 1 and chance.yes(0.5):
        strokes.pop(chance.pick(len(strokes)))
    shape = _part(style, parts, chance) * chance.number(0.6, 1.0)
    return np.stack([*strokes, _placed(shape, strokes, style, chance)])


def _part(style: Style, parts: list[Floats], chance: Chance) -> Floats:
    """A shared stroke, or a new one."""
    if not chance.yes(style.sharing):
        return _stroke(style, chance)
    place = int(chance.number(0.0, 1.0) * chance.number(0.0, 1.0) * len(parts))  # the first ones more often
    shape = parts[place] * chance.number(0.85, 1.15)
    if chance.yes(style.turning):
        if chance.yes(0.5):
            shape = shape * (-1.0, 1.0)
        if chance.yes(0.5):
            shape = shape[:, ::-1].copy()
    return shape


def _stroke(style: Style, chance: Chance) -> Floats:
    """A new stroke from the origin."""
    kind = chance.among(style.kinds)
    heading = _heading(style, chance)
    long, short = chance.number(1.0, 2.1), chance.number(0.4, 1.0)
    curl = chance.sign() * chance.number(0.2, 0.7)
    corner = _corner(style, chance)
    if kind == LINE:
        return path(heading, [(0.0, long, chance.number(-0.04, 0.04) * (not style.angles))])
    if kind == ANGLE:
        pieces = [(0.0, chance.number(0.6, 1.7), 0.0), (corner, chance.number(0.5, 1.5), 0.0)]
        if chance.yes(0.45):
            again = corner if chance.yes(0.5) else -corner
            pieces.append((again, chance.number(0.4, 1.4), 0.0))
        return path(heading, pieces)
    if kind == ARC:
        return path(heading, [(0.0, long * 1.3, curl)])
    if kind == HOOK:
        line, arc = (0.0, long * 0.8, 0.0), (0.0, short * 1.6, curl)
        return path(heading, [line, arc] if chance.yes(0.5) else [arc, line])
    if kind == WAVE:
        pieces = [(0.0, short * 1.5, curl), (0.0, chance.number(0.6, 1.5), -chance.number(0.7, 1.2) * curl)]
        if chance.yes(0.3):
            pieces.append((chance.sign() * 0.4 if chance.yes(0.5) else 0.0, short, curl))
        return path(heading, pieces)
    if kind == LOOP:
        return path(heading, [(0.0, chance.number(1.3, 3.6), chance.sign() * chance.number(0.93, 1.05))])
    if kind == CURL:
        loop = (0.0, chance.number(1.2, 2.2), chance.sign() * chance.number(0.8, 1.2))
        tail = (0.0, chance.number(0.5, 1.4), chance.number(-0.2, 0.2))
        return path(heading, [loop, tail] if chance.yes(0.6) else [tail, loop])
    return path(heading, [(0.0, chance.number(0.08, 0.3), 0.0)])


def _heading(style: Style, chance: Chance) -> float:
    """Mostly rightwards or downwards, as hands like to go."""
    if not style.angles:
        return chance.number(-0.1, 0.45)
    back = 0.5 if chance.yes(0.15) else 0.0
    return style.angles[chance.pick(len(style.angles))] + back


def _corner(style: Style, chance: Chance) -> float:
    if not style.angles:
        return chance.sign() * chance.number(0.15, 0.42)
    step = style.angles[chance.pick(len(style.angles))] - style.angles[chance.pick(len(style.angles))]
    return step if step else chance.sign() * 0.25


def _placed(shape: Floats, strokes: list[Floats], style: Style, chance: Chance) -> Floats:
    """The stroke where it fits best among some places: inside the box, and not on top of others."""
    tries = 8
    ends = (0, 0, KNOTS // 2, KNOTS - 1)
    moved = np.empty((tries, KNOTS, 2))
    for n in range(tries):
        if strokes and chance.yes(style.joined):
            other = strokes[chance.pick(len(strokes))]
            to = other[(0, KNOTS // 2, KNOTS - 1, chance.pick(KNOTS))[chance.pick(4)]]
            moved[n] = shape - shape[ends[chance.pick(4)]] + to
        else:
            middle = (shape.min(axis=0) + shape.max(axis=0)) * 0.5
            spread = 0.9 if strokes else 0.3
            moved[n] = shape - middle + chance.numbers(-spread, spread, 2)
    outside = np.maximum(np.abs(moved) - 1.0, 0.0)
    cost = (outside[..., 0] + outside[..., 1]).max(axis=1) + chance.numbers(0.0, 0.3, tries)
    if strokes:
        off = moved[:, :, None, :] - np.concatenate(strokes)[None, None, :, :]
        near = (off[..., 0] * off[..., 0] + off[..., 1] * off[..., 1]).min(axis=2) < 0.04
        cost += np.maximum(near.sum(axis=1) / KNOTS - 0.15, 0.0) * 1.5
    best: Floats = moved[int(cost.argmin())]
    return best


def _mirrored(stroke: Floats, strokes: list[Floats], chance: Chance) -> Floats:
    every = np.stack(strokes)
    axis = chance.pick(2)
    line = every[..., axis].max() if chance.yes(0.6) else every[..., axis].mean()
    copy = stroke.copy()
    copy[:, axis] = 2.0 * line - copy[:, axis]
    return copy


def _length(shape: Floats) -> float:
    step = shape[1:] - shape[:-1]
    return float(np.sqrt(step[:, 0] * step[:, 0] + step[:, 1] * step[:, 1]).sum())


def _fitted(strokes: Character, chance: Chance) -> Character:
    """Centred and brought to about the size of the others, keeping some of its own proportions."""
    low, high = strokes.min(axis=(0, 1)), strokes.max(axis=(0, 1))
    half = np.maximum((high - low) * 0.5, 0.3)
    even = np.sqrt(half[0] * half[1])
    toward = 1.0 / np.sqrt(even * half)  # half way to the unit box in each direction
    reach = half * toward
    size = (0.95 + 0.1 * float(chance.bell())) / np.sqrt(reach[0] * reach[1])
    fitted: Floats = (strokes - (low + high) * 0.5) * (toward * size)
    return fitted


def _look(strokes: Character) -> Floats:
    """A blurred picture of unit length: what two characters are compared by."""
    points = np.concatenate(((strokes[:, 1:] + strokes[:, :-1]) * 0.5, strokes), axis=1).reshape(-1, 2)
    grid = np.linspace(-1.0, 1.0, 9)
    gap_x, gap_y = np.abs(points[:, :1] - grid), np.abs(points[:, 1:] - grid)
    x, y = np.maximum(1.0 - gap_x * 3.0, 0.0), np.maximum(1.0 - gap_y * 3.0, 0.0)
    look = (y[:, :, None] * x[:, None, :]).max(axis=0)
    unit: Floats = look / np.sqrt((look * look).sum())
    return unit
