"""A walk through rooms with what a learner said, in the manner of the paper's Figure 2B."""

from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from wanderlearn.figures.style import ENVIRONMENTS, INK, QUIET, VERMILION, check_name, save_sheet
from wanderlearn.rooms.sightings import Sightings
from wanderlearn.worlds.sequence import NEW, UNLABELED, Ints, Meetings

__all__ = ["Shown", "draw_walk", "highlighted", "walk_sheet"]

PAPER, TOLD, WASH = "#ffffff", "#c0272d", "#f1efe9"
TILE: Final = (320, 240)  # width and height of a frame
GAP, MARGIN, BAND, UNDER, HEADER, LEGEND = 18, 40, 10, 62, 76, 56
DIMMED: Final = 0.55  # how bright everything is that is not met
EDGE: Final = (255, 214, 10)  # around what is met

Bytes = npt.NDArray[np.uint8]


class Shown(NamedTuple):
    """Some meetings in a row, and what a learner answered to them."""

    meetings: Meetings
    answer: Ints  # [T] slot, or NEW
    start: int  # the first meeting that is shown
    end: int  # the first that is no longer


def highlighted(rgb: Bytes, mask: npt.NDArray[np.bool_]) -> Bytes:
    """A frame [H, W, 3] in which all but a thing is grey and dark, with a bright edge around the thing."""
    bright = np.clip(rgb * (235 / max(np.quantile(rgb, 0.98), 60)), 0, 255)  # dark homes are dark in print
    grey = bright.mean(-1, keepdims=True)
    dark = (0.55 * grey + 0.45 * bright) * DIMMED
    solid = Image.fromarray(mask).convert("L").filter(ImageFilter.MaxFilter(5))
    solid = solid.filter(ImageFilter.MinFilter(5))  # without holes, as between the slats of blinds
    inner = np.asarray(solid) > 0
    edge = (np.asarray(solid.filter(ImageFilter.MaxFilter(3))) > 0) & ~inner
    shown = np.where(inner[..., None], bright, dark)
    return np.where(edge[..., None], np.array(EDGE), shown).astype(np.uint8)


def walk_sheet(pictures: Sightings, shown: Shown, title: str, across: int) -> Image.Image:
    """The meetings as tiles, `across` in a row, from left to right and down."""
    places = range(shown.start, shown.end)
    rows = -(-len(places) // across)
    pitch = (TILE[0] + GAP, BAND + TILE[1] + UNDER + GAP)
    size = (
        2 * MARGIN + across * pitch[0] - GAP,
        HEADER + rows * pitch[1] + LEGEND,
    )
    sheet = Image.new("RGB", size, PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((MARGIN, 22), title, fill=INK, font=_font(27))
    for n, t in enumerate(places):
        at = (MARGIN + n % across * pitch[0], HEADER + n // across * pitch[1])
        last = t + 1 == places.stop or (n + 1) % across == 0
        _tile(sheet, pen, at, pictures, shown, t, last=last)
    _legend(pen, HEADER + rows * pitch[1], size[0])
    return sheet


def draw_walk(path: Path, pictures: Sightings, shown: Shown, title: str, across: int) -> None:
    """Write the sheet. In an SVG or PDF the pixels are embedded."""
    check_name(path)
    save_sheet(path, walk_sheet(pictures, shown, title, across), 256, Image.Dither.FLOYDSTEINBERG)


def _tile(
    sheet: Image.Image,
    pen: ImageDraw.ImageDraw,
    at: tuple[int, int],
    pictures: Sightings,
    shown: Shown,
    t: int,
    *,
    last: bool,
) -> None:
    (x, y), m = at, shown.meetings
    room = int(m.environment[t])
    runs_on = not last and t + 1 < len(m) and m.environment[t + 1] == room
    band = (x, y, x + TILE[0] - 1 + (GAP if runs_on else 0), y + BAND - 4)
    pen.rectangle(band, fill=ENVIRONMENTS[room % len(ENVIRONMENTS)])
    row = m.picture[t : t + 1]
    frame = pictures.frames[pictures.frame[row[0]]].transpose(1, 2, 0)
    mask = pictures.mask(row)[0]
    picture = Image.fromarray(highlighted(np.asarray(frame), mask)).resize(TILE, Image.Resampling.LANCZOS)
    top = y + BAND
    sheet.paste(picture, (x, top))
    box = (x, top, x + TILE[0] - 1, top + TILE[1] - 1)
    told = m.given[t] != UNLABELED
    if told:
        pen.rectangle(box, outline=TOLD, width=4)
    else:
        _dotted(pen, box)
    _words(pen, (x, top + TILE[1] + 6), m, t, int(shown.answer[t]), _category(pictures, int(row[0])))


def _words(
    pen: ImageDraw.ImageDraw, at: tuple[int, int], m: Meetings, t: int, answer: int, category: str
) -> None:
    """What was said, and below it what was told."""
    x, y = at
    target, told = int(m.target[t]), int(m.given[t])
    said = _name(answer)
    if answer == target:
        pen.text((x, y), "says", fill=QUIET, font=_font(20))
        pen.text((x + 50, y - 2), said, fill=INK, font=_font(23))
    else:
        words = f"says {said}, right: {_name(target)}"
        end = x + pen.textlength(words, font=_font(20)) + 16
        pen.rounded_rectangle((x, y - 3, end, y + 25), radius=5, fill=VERMILION)
        pen.text((x + 8, y - 1), words, fill=PAPER, font=_font(20))
    second = f"told {told + 1}" if told != UNLABELED else "not told"
    pen.text((x, y + 29), second, fill=TOLD if told != UNLABELED else QUIET, font=_font(20))
    width = pen.textlength(category, font=_font(18))
    pen.text((x + TILE[0] - width, y + 31), category, fill=QUIET, font=_font(18))


def _legend(pen: ImageDraw.ImageDraw, top: int, width: int) -> None:
    pen.rectangle((MARGIN, top + 4, MARGIN + 24, top + 28), outline=TOLD, width=4)
    parts = ["its number is told", "dotted: it is not", "band: the room, which nobody tells", "orange: wrong"]
    parts.insert(2, "new: never told before")
    pen.text((MARGIN + 36, top + 4), "     ".join(parts), fill=INK, font=_font(20))


def _dotted(pen: ImageDraw.ImageDraw, box: tuple[int, int, int, int]) -> None:
    left, top, right, bottom = box
    for k in range(left, right, 12):
        pen.rectangle((k, top, k + 5, top + 2), fill=WASH)
        pen.rectangle((k, bottom - 2, k + 5, bottom), fill=WASH)
    for k in range(top, bottom, 12):
        pen.rectangle((left, k, left + 2, k + 5), fill=WASH)
        pen.rectangle((right - 2, k, right, k + 5), fill=WASH)


def _name(slot: int) -> str:
    return "new" if slot == NEW else str(slot + 1)


def _category(pictures: Sightings, row: int) -> str:
    family: int = int(pictures.family[pictures.class_of[row]])
    return str(pictures.family_names[family])


def _font(size: int) -> Any:
    return ImageFont.load_default(size)
