"""Procedural art: paintings, posters, what a television shows, and the view from a window."""

from collections.abc import Callable
from typing import Final

import numpy as np

from wanderlearn.rooms.patterns import SIZE, Chance, as_texture, clouds, grid, hsv
from wanderlearn.rooms.shapes import Floats, Texture

__all__ = ["notes", "painting", "screen", "view"]

Image = Floats


def painting(chance: Chance) -> Texture:
    """A painting or poster of one of many kinds."""
    kind = PAINTINGS[int(chance.integers(len(PAINTINGS)))]
    return as_texture(kind(chance, _colours(chance)))


def _colours(r: Chance) -> list[Floats]:
    hue, spread = r.random(), r.choice([0.08, 0.2, 0.5])
    return [hsv((hue + r.normal(0, spread)) % 1, r.uniform(0.25, 0.9), r.uniform(0.25, 1)) for _ in range(6)]


def _filled(colour: Floats) -> Image:
    return np.tile(colour, (SIZE, SIZE, 1))


def _ellipse(image: Image, px: float, py: float, rx: float, ry: float, colour: Floats) -> None:
    x, y = grid()
    image[((x - px) / rx) ** 2 + ((y - py) / ry) ** 2 < 1] = colour


def _landscape(r: Chance, c: list[Floats]) -> Image:
    _, y = grid()
    image = c[0] * (1.1 - 0.6 * y)[..., None] + 0.15
    _ellipse(image, r.uniform(0.2, 0.8), r.uniform(0.1, 0.3), 0.07, 0.07, np.array([1, 0.92, 0.65]))
    for layer in range(int(r.integers(2, 5))):
        ridge = 0.35 + 0.17 * layer + 0.25 * (clouds(r, 2)[0] - 0.5)
        image = np.where((y > ridge[None, :])[..., None], c[1 + layer] * (0.45 + 0.2 * layer), image)
    return image


def _sea(r: Chance, c: list[Floats]) -> Image:
    x, y = grid()
    horizon = r.uniform(0.4, 0.6)
    sky = hsv(r.choice([0.55, 0.08, 0.9]), 0.45, 0.95) * (0.7 + 0.5 * y)[..., None]
    water = hsv(r.uniform(0.5, 0.62), 0.6, 0.65) * (0.75 + 0.3 * clouds(r, 8))[..., None]
    image = np.where((y > horizon)[..., None], water, sky)
    px, size = r.uniform(0.25, 0.75), r.uniform(0.12, 0.25)
    sail = (x > px) & (x < px + size * (y - horizon + 1.3 * size) / size) & (y > horizon - 1.3 * size)
    image[sail & (y < horizon + 0.02)] = c[1] * 0.4 + 0.6
    image[(np.abs(y - horizon - 0.05) < 0.03) & (np.abs(x - px - 0.03) < size * 0.8)] = c[2] * 0.5
    return image


def _bands(r: Chance, c: list[Floats]) -> Image:
    level = np.clip((clouds(r, int(r.integers(2, 4))) * 6).astype(int), 0, 5)
    return np.asarray(np.array(c)[level])


def _blocks(r: Chance, c: list[Floats]) -> Image:
    x, y = grid()
    xs, ys = np.sort(r.random(4)), np.sort(r.random(4))
    tiles = np.array(c)[r.integers(0, 6, (5, 5))]
    tiles[r.random((5, 5)) < 0.5] = 0.93
    image = tiles[np.searchsorted(ys, y), np.searchsorted(xs, x)]
    for line in xs:
        image[np.abs(x - line) < 0.018] = 0.05
    for line in ys:
        image[np.abs(y - line) < 0.018] = 0.05
    return image


def _portrait(r: Chance, c: list[Floats]) -> Image:
    image = _filled(c[0] * 0.6) * (0.7 + 0.5 * clouds(r, 2))[..., None]
    skin = hsv(r.uniform(0.04, 0.09), r.uniform(0.3, 0.6), r.uniform(0.45, 0.95))
    px, hair = r.uniform(0.42, 0.58), c[3] * 0.5
    _ellipse(image, px, 1.02, 0.36, 0.36, c[1])
    _ellipse(image, px, 0.4, 0.2, r.uniform(0.24, 0.42), hair)
    image[58:84, int(px * SIZE) - 8 : int(px * SIZE) + 8] = skin * 0.85
    _ellipse(image, px, 0.42, 0.145, 0.19, skin)
    for side in (-0.055, 0.055):
        _ellipse(image, px + side, 0.4, 0.022, 0.016, np.full(3, 0.1))
    _ellipse(image, px, 0.52, 0.045, 0.014, np.array([0.6, 0.2, 0.2]))
    return image


def _circles(r: Chance, c: list[Floats]) -> Image:
    image = _filled(c[0])
    for k in range(int(r.integers(4, 10))):
        radius = r.uniform(0.05, 0.26)
        px, py = r.random(2)
        _ellipse(image, px, py, radius, radius, c[1 + k % 5])
        if r.random() < 0.4:
            _ellipse(image, px, py, radius * 0.55, radius * 0.55, c[1 + (k + 2) % 5])
    return image


def _vase(r: Chance, c: list[Floats]) -> Image:
    x, y = grid()
    image = _filled(c[0] * 0.5 + 0.4)
    image[y > 0.8] = c[1] * 0.5
    _ellipse(image, 0.5, 0.72, r.uniform(0.1, 0.17), 0.17, c[2])
    image[(np.abs(x - 0.5) < 0.05) & (y > 0.48) & (y < 0.6)] = c[2]
    for k in range(int(r.integers(5, 11))):
        px, py, radius = r.uniform(0.2, 0.8), r.uniform(0.12, 0.45), r.uniform(0.05, 0.11)
        stem = np.abs((x - 0.5) * (0.5 - py) - (px - 0.5) * (0.5 - y)) < 0.005
        image[stem & (y > py) & (y < 0.5)] = [0.2, 0.45, 0.2]
        _ellipse(image, px, py, radius, radius, c[3 + k % 3])
        _ellipse(image, px, py, radius * 0.35, radius * 0.35, np.array([0.95, 0.8, 0.2]))
    return image


def _city(r: Chance, c: list[Floats]) -> Image:
    x, y = grid()
    image = c[0] * (0.45 + 0.6 * y)[..., None]
    left = 0.0
    while left < 1:
        wide, top = r.uniform(0.07, 0.18), r.uniform(0.2, 0.65)
        house = (x >= left) & (x < left + wide) & (y > top)
        lit = ((x * 36).astype(int) % 2 == 0) & ((y * 28).astype(int) % 2 == 0)
        image[house] = c[int(r.integers(1, 4))] * 0.3
        image[house & lit & (clouds(r, 16, 1) > 0.45)] = [0.95, 0.85, 0.45]
        left += wide
    return image


def _cat(r: Chance, c: list[Floats]) -> Image:
    x, y = grid()
    image = _filled(c[0] * 0.4 + 0.5)
    image[y > 0.85] = c[1] * 0.6
    coat, px = c[2] * r.uniform(0.3, 0.9), r.uniform(0.4, 0.6)
    _ellipse(image, px, 0.72, 0.2, 0.26, coat)
    _ellipse(image, px, 0.4, 0.15, 0.13, coat)
    for side in (-1, 1):
        image[(np.abs(x - px - side * 0.1) < (y - 0.2) * 0.35) & (y > 0.2) & (y < 0.36)] = coat
        _ellipse(image, px + side * 0.06, 0.38, 0.028, 0.03, np.array([0.85, 0.9, 0.3]))
        _ellipse(image, px + side * 0.06, 0.38, 0.01, 0.026, np.zeros(3))
    _ellipse(image, px, 0.45, 0.02, 0.014, np.array([0.8, 0.45, 0.45]))
    return image


def _lines(r: Chance, c: list[Floats]) -> Image:
    x, y = grid()
    image = _filled(c[0] * 0.15 + 0.82)
    for k in range(int(r.integers(6, 14))):
        turn, shift = r.uniform(0, np.pi), r.uniform(-0.4, 0.4)
        along = (x - 0.5) * np.cos(turn) + (y - 0.5) * np.sin(turn)
        across = (y - 0.5) * np.cos(turn) - (x - 0.5) * np.sin(turn)
        image[(np.abs(across - shift) < r.uniform(0.006, 0.03)) & (along > r.uniform(-0.6, 0))] = (
            c[k % 6] * 0.8
        )
    for k in range(3):
        _ellipse(image, r.random(), r.random(), r.uniform(0.04, 0.14), r.uniform(0.04, 0.14), c[k])
    return image


def _fruit(r: Chance, c: list[Floats]) -> Image:
    x, y = grid()
    image = _filled(c[0] * 0.35) * (0.8 + 0.4 * clouds(r))[..., None]
    image[y > 0.7] = c[1] * 0.5 + 0.1
    for _ in range(int(r.integers(4, 8))):
        radius = r.uniform(0.08, 0.14)
        fruit = hsv(r.choice([0.0, 0.05, 0.11, 0.16, 0.28, 0.8]), 0.85, r.uniform(0.6, 0.95))
        px, py = r.uniform(0.25, 0.75), r.uniform(0.5, 0.64)
        _ellipse(image, px, py, radius, radius, fruit)
        _ellipse(
            image, px - radius * 0.35, py - radius * 0.35, radius * 0.25, radius * 0.2, fruit * 0.4 + 0.6
        )
    image[(((x - 0.5) / 0.38) ** 2 + ((y - 0.66) / 0.2) ** 2 < 1) & (y > 0.66)] = c[3]
    return image


def _night(r: Chance, c: list[Floats]) -> Image:
    x, y = grid()
    image = np.array([0.05, 0.07, 0.2]) + 0.25 * c[0] * clouds(r)[..., None]
    for _ in range(40):
        _ellipse(image, r.random(), r.random() * 0.8, 0.007, 0.007, np.array([1, 1, 0.85]))
    px, py = r.uniform(0.2, 0.8), r.uniform(0.15, 0.4)
    _ellipse(image, px, py, 0.1, 0.1, np.array([0.97, 0.94, 0.75]))
    if r.random() < 0.5:
        _ellipse(image, px + 0.05, py - 0.02, 0.085, 0.085, np.array([0.06, 0.08, 0.2]))
    for k in range(int(r.integers(3, 8))):
        top, at = r.uniform(0.45, 0.75), r.random()
        image[(np.abs(x - at) < (y - top) * 0.22) & (y > top)] = [0.03, 0.1 + 0.02 * k, 0.07]
    return image


def _poster(r: Chance, c: list[Floats]) -> Image:
    x, y = grid()
    image = _filled(c[0])
    inner = PICTURED[int(r.integers(len(PICTURED)))](r, c)
    image[10:84, 10:118] = inner[20:94, 10:118]
    for k in range(int(r.integers(2, 4))):
        top, wide = 0.7 + 0.09 * k, r.uniform(0.15, 0.42)
        image[(y > top) & (y < top + (0.06 if k == 0 else 0.03)) & (np.abs(x - 0.5) < wide)] = c[1] * 0.3
    return image


PICTURED: Final[tuple[Callable[[Chance, list[Floats]], Image], ...]] = (
    _landscape, _sea, _bands, _blocks, _portrait, _circles, _vase, _city, _cat, _lines, _fruit, _night,
)  # fmt: skip
PAINTINGS: Final = (*PICTURED, _poster)


def screen(chance: Chance) -> Texture:
    """What a television or a computer shows: news, football, a film, windows with text."""
    x, y = grid()
    c, kind = _colours(chance), int(chance.integers(4))
    if kind == 0:
        image = _portrait(chance, c)
        image[y > 0.84] = c[4] * 0.7
        image[(y > 0.88) & (y < 0.93) & (x < chance.uniform(0.5, 0.9)) & (x > 0.06)] = 0.95
    elif kind == 1:
        image = np.array([0.2, 0.55, 0.22]) * (0.9 + 0.2 * ((x * 8).astype(int) % 2))[..., None]
        image[np.abs(np.hypot(x - 0.5, (y - 0.5) * 0.6) - 0.14) < 0.01] = 0.95
        image[np.abs(x - 0.5) < 0.008] = 0.95
        for k in range(12):
            _ellipse(image, chance.uniform(0.08, 0.92), chance.uniform(0.08, 0.92), 0.018, 0.035, c[k % 2])
    elif kind == 2:
        image = PICTURED[int(chance.integers(len(PICTURED)))](chance, c)
        image[(y < 0.1) | (y > 0.9)] = 0.02
    else:
        image = _filled(c[0] * 0.4 + 0.1)
        for k in range(int(chance.integers(2, 4))):
            left, top = chance.uniform(0.03, 0.5, 2)
            window = (x > left) & (x < left + 0.45) & (y > top) & (y < top + 0.42)
            image[window] = 0.94
            image[window & (y < top + 0.06)] = c[1 + k]
            image[window & (y > top + 0.1) & ((y * 30).astype(int) % 2 == 0) & (x < left + 0.38)] = 0.6
    return as_texture(image)


def notes(chance: Chance, ground: Floats) -> Texture:
    """A pin board, white board or calendar with what people put on it."""
    x, y = grid()
    image = _filled(ground) * (0.9 + 0.15 * clouds(chance, 32, 2))[..., None]
    for _ in range(int(chance.integers(4, 10))):
        px, py, wide, high = *chance.uniform(0.05, 0.75, 2), *chance.uniform(0.1, 0.24, 2)
        note = (x > px) & (x < px + wide) & (y > py) & (y < py + high)
        image[note] = hsv(chance.random(), chance.uniform(0.05, 0.6), 0.96)
        image[note & ((y * 40).astype(int) % 3 == 0) & (x > px + 0.02) & (x < px + wide * 0.8)] *= 0.55
        _ellipse(image, px + wide / 2, py + 0.015, 0.014, 0.014, hsv(chance.random(), 0.9, 0.8))
    for _ in range(int(chance.integers(0, 3))):
        turn, shift = chance.uniform(0, np.pi), chance.uniform(-0.3, 0.3)
        across = (y - 0.5 - shift) * np.cos(turn) - (x - 0.5) * np.sin(turn) + 0.03 * np.sin(20 * x)
        image[(np.abs(across) < 0.008) & (np.abs(x - 0.5) < 0.35)] = hsv(chance.random(), 0.8, 0.5)
    return as_texture(image)


def view(chance: Chance, horizon: float) -> Texture:
    """The view from a window: sky, far hills, trees or houses; `horizon` from the top, from 0 to 1."""
    x, y = grid()
    blue = hsv(chance.uniform(0.54, 0.6), 0.35, 1.0)
    sky = blue + (1 - blue) * np.clip(y / horizon, 0, 1)[..., None]
    puffs = np.clip(2.5 * (clouds(chance, 2, 5) - 0.5), 0, 1)[..., None] * np.clip(1 - y, 0, 1)[..., None]
    image = sky * (1 - puffs) + puffs
    green = hsv(chance.uniform(0.22, 0.33), 0.45, 0.62)
    hills = horizon - 0.06 * clouds(chance, 3, 3)[0]
    image = np.where((y > hills[None, :])[..., None], green * 0.6 + 0.25, image)
    image = np.where((y > horizon)[..., None], green * (0.8 + 0.3 * clouds(chance, 16, 2))[..., None], image)
    for _ in range(int(chance.integers(6, 14))):
        at, size, tone = chance.random(), chance.uniform(0.03, 0.09), chance.uniform(0.5, 0.95)
        if chance.random() < 0.3:
            house = (np.abs(x - at) < size) & (y > horizon - 1.1 * size) & (y < horizon + 0.03)
            roof = (np.abs(x - at) < (y - horizon + 2 * size) * 1.2) & (y > horizon - 2 * size)
            image[roof & (y < horizon - 1.1 * size)] = [0.55, 0.28, 0.22]
            image[house] = hsv(chance.random(), 0.12, 0.9)
        else:
            image[(np.abs(x - at) < 0.007) & (y > horizon - size) & (y < horizon + 0.03)] = [0.35, 0.25, 0.2]
            _ellipse(image, at, horizon - 1.5 * size, size * 0.7, size, green * tone * 0.8)
    return as_texture(image)
