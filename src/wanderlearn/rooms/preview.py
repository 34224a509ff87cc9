"""A contact sheet of a home: its plan, views of its rooms, and its things with their names."""

from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from wanderlearn.errors import WanderError
from wanderlearn.files import writing
from wanderlearn.rooms.furniture import CATEGORIES
from wanderlearn.rooms.home import Home, Thing
from wanderlearn.rooms.portrait import draw_thing
from wanderlearn.rooms.render import Camera, Frame, Renderer

__all__ = ["draw_preview", "preview_sheet"]

INK, QUIET, PAPER, GROUND = "#1a1a1a", "#6b6b6b", "#ffffff", "#ececec"
VIEW: Final = (400, 300)
TILE: Final = 127
ACROSS: Final = 3  # views in a row
NAMED: Final = 8  # things named in a view
MARGIN, GAP, LINE = 24, 12, 24
TINTS: Final[dict[str, str]] = {
    "living room": "#f6dfb5",
    "bedroom": "#cfdcf2",
    "child's room": "#dccff2",
    "bathroom": "#c6e8e4",
    "kitchen": "#f3cfc6",
    "dining room": "#f0d3dd",
    "study": "#d9e6c3",
    "gym": "#e3d7c8",
    "laundry": "#d3e3ea",
    "hall": "#e6e6e6",
}


def draw_preview(path: Path, home: Home, *, names: bool = True) -> None:
    """Write the contact sheet of a home as a PNG."""
    if path.suffix.lower() != ".png":
        raise WanderError(f"The picture is a PNG: give it a name that ends in .png, not {path.name!r}.")
    sheet = preview_sheet(home, names=names)
    with writing(path) as part:
        sheet.save(part, format="PNG", optimize=True)


def preview_sheet(home: Home, *, names: bool = True) -> Image.Image:
    """The picture that `draw_preview` writes."""
    renderer = Renderer(home, *VIEW, noise=False)  # grain would make the file several times as large
    width = 2 * MARGIN + ACROSS * VIEW[0] + (ACROSS - 1) * GAP
    blocks = [
        _title(home, width),
        _plan(home, width - 2 * MARGIN),
        _views(home, renderer, names),
        _gallery(home, width - 2 * MARGIN),
    ]
    sheet = Image.new("RGB", (width, sum(b.height + GAP for b in blocks) + 2 * MARGIN), PAPER)
    top = MARGIN
    for block in blocks:
        sheet.paste(block, (MARGIN, top))
        top += block.height + GAP
    return sheet


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _title(home: Home, width: int) -> Image.Image:
    image = Image.new("RGB", (width - 2 * MARGIN, 64), PAPER)
    pen = ImageDraw.Draw(image)
    kinds = len({t.category for t in home.counted})
    pen.text((0, 0), f"Home {home.seed}", fill=INK, font=_font(30))
    words = (
        f"{len(home.plan.rooms)} rooms, {len(home.counted)} things of {kinds} categories, "
        f"{len(home.things) - len(home.counted)} others, {len(home.viewpoints)} viewpoints, "
        f"{len(home.dropped)} did not fit"
    )
    pen.text((0, 40), words, fill=QUIET, font=_font(17))
    return image


def _plan(home: Home, width: int) -> Image.Image:
    """The floor plan from above, with rooms and furniture named."""
    o = home.plan.outline
    scale = min(width / (o.width + 0.4), 640 / (o.depth + 0.4))
    image = Image.new("RGB", (width, int((o.depth + 0.4) * scale)), PAPER)
    pen = ImageDraw.Draw(image)
    left = (width - o.width * scale) / 2

    def at(x: float, y: float) -> tuple[float, float]:
        return left + (x - o.x0) * scale, (o.y1 + 0.2 - y) * scale

    def rectangle(x0: float, y0: float, x1: float, y1: float, **how: object) -> None:
        (a, d), (b, c) = at(x0, y0), at(x1, y1)
        pen.rectangle((a, c, b, d), **how)  # type: ignore[arg-type]

    rectangle(*o.grown(0.07), fill="#3a3a3a")
    for room in home.plan.rooms:
        rectangle(*room.inside, fill=TINTS[room.kind])
    for door in home.plan.doors:
        rectangle(*door.zone(0.08), fill="#ffffff")
    for window in home.plan.windows:
        wall = {
            "south": (window.start, o.y0 - 0.07, window.end, o.y0 + 0.07),
            "north": (window.start, o.y1 - 0.07, window.end, o.y1 + 0.07),
            "west": (o.x0 - 0.07, window.start, o.x0 + 0.07, window.end),
            "east": (o.x1 - 0.07, window.start, o.x1 + 0.07, window.end),
        }
        rectangle(*wall[window.side], fill="#8ecbe8")
    for thing in sorted(home.things, key=lambda t: float(t.high[2])):
        if thing.on_floor and thing.high[2] > 0.05:
            rectangle(
                thing.low[0],
                thing.low[1],
                thing.high[0],
                thing.high[1],
                fill=_colour(thing),
                outline="#555555",
            )
    for v in home.viewpoints:
        for n in v.ways:
            pen.line([at(*v.position[:2]), at(*home.viewpoints[n].position[:2])], fill="#e0783a", width=1)
    for v in home.viewpoints:
        x, y = at(*v.position[:2])
        pen.ellipse((x - 4, y - 4, x + 4, y + 4), fill="#c0481a")
    for thing in home.things:
        if thing.on_floor and thing.high[2] > 0.05 and min(thing.size[:2]) * scale > 24:
            _centred(pen, at(*thing.centre[:2]), thing.kind, 11, INK)
    for room in home.plan.rooms:
        i = room.inside
        x, y = at(i.x0 + 0.08, i.y1 - 0.06)
        wide = pen.textlength(room.kind, font=_font(19))
        pen.rectangle((x - 3, y, x + wide + 3, y + 24), fill="#ffffffd0")
        pen.text((x, y), room.kind, fill=INK, font=_font(19))
    return image


def _centred(pen: ImageDraw.ImageDraw, at: tuple[float, float], words: str, size: int, colour: str) -> None:
    left = at[0] - pen.textlength(words, font=_font(size)) / 2
    pen.text(
        (left, at[1] - size * 0.6), words, fill=colour, font=_font(size), stroke_width=2, stroke_fill=PAPER
    )


def _colour(thing: Thing) -> tuple[int, int, int]:
    """The mean colour of a thing."""
    total, count = np.zeros(3), 0.0
    for part in thing.parts:
        colour = np.array(part.paint.colour)
        if part.paint.texture is not None:
            colour = colour * part.paint.texture.reshape(-1, 3).mean(0) / 255
        total += colour * len(part.faces)
        count += len(part.faces)
    red, green, blue = (np.clip(total / count, 0, 1) * 255).astype(int)
    return int(red), int(green), int(blue)


def _views(home: Home, renderer: Renderer, names: bool) -> Image.Image:
    """Every room as the agent sees it, from where most things are seen."""
    cameras = {room.number: _best(home, renderer, room.number) for room in home.plan.rooms}
    shown = [(home.plan.rooms[n].kind, camera) for n, found in cameras.items() for camera in found]
    rows = -(-len(shown) // ACROSS)
    image = Image.new("RGB", (ACROSS * (VIEW[0] + GAP) - GAP, rows * (VIEW[1] + LINE + GAP)), PAPER)
    pen = ImageDraw.Draw(image)
    renderer.resize(*VIEW, 3)
    for k, (kind, camera) in enumerate(shown):
        x, y = (k % ACROSS) * (VIEW[0] + GAP), (k // ACROSS) * (VIEW[1] + LINE + GAP)
        frame = renderer.draw(camera)
        pen.text((x, y), kind, fill=INK, font=_font(18))
        image.paste(Image.fromarray(frame.rgb), (x, y + LINE))
        if names:
            _names(pen, home, frame, x, y + LINE)
    return image


def _best(home: Home, renderer: Renderer, room: int) -> list[Camera]:
    """Two views of a room with many things in them that look different ways."""
    renderer.resize(80, 60, 1)
    scored = []
    for v in home.viewpoints:
        if v.room == room:
            for turn in range(16):
                camera = Camera(v.number, v.position, turn * np.pi / 8, np.deg2rad(-2.5))
                frame = renderer.draw(camera)
                ids, sizes = np.unique(frame.ids, return_counts=True)
                own = [home.thing(int(i)) for i, n in zip(ids, sizes, strict=True) if i > 0 and n > 24]
                count = len({t.category for t in own if t.room == room}) + 0.5 * len(own)
                scored.append((count - 4 * float((frame.depth < 0.7).mean()), camera))
    scored.sort(key=lambda s: -s[0])
    first = scored[0][1]
    apart = [c for _, c in scored if np.cos(c.yaw - first.yaw) < 0.2]
    return [first, *apart[:1]]


def _names(pen: ImageDraw.ImageDraw, home: Home, frame: Frame, left: int, top: int) -> None:
    """Write what things are called where they are seen."""
    ids, sizes = np.unique(frame.ids, return_counts=True)
    taken: list[tuple[float, float, float, float]] = []
    for i, n in sorted(zip(ids, sizes, strict=True), key=lambda pair: -pair[1]):
        if i == 0 or n < 600 or len(taken) == NAMED or not home.thing(int(i)).counted:
            continue
        rows, columns = np.nonzero(frame.ids == i)
        words, font = home.thing(int(i)).kind, _font(11)
        wide = pen.textlength(words, font=font)
        x = min(max(float(np.median(columns)) - wide / 2, 2.0), VIEW[0] - wide - 2)
        y = min(max(float(np.median(rows)) - 6, 2.0), VIEW[1] - 16)
        if any(x < c and a < x + wide and y < d and b < y + 13 for a, b, c, d in taken):
            continue
        taken.append((x, y, x + wide, y + 13))
        pen.text((left + x, top + y), words, fill="#ffffff", font=font, stroke_width=2, stroke_fill="#000000")


def _gallery(home: Home, width: int) -> Image.Image:
    """Things of every category, one by one."""
    tiles: list[tuple[str, Thing]] = []
    for category in CATEGORIES:
        of = [t for t in home.counted if t.category == category]
        seen: dict[str, Thing] = {}
        for thing in of:  # different kinds first
            seen.setdefault(thing.kind, thing)
        chosen = (list(seen.values()) + [t for t in of if t not in seen.values()])[:4]
        tiles += [(category, t) for t in chosen]
    across = width // (TILE + 8)
    rows = -(-len(tiles) // across)
    image = Image.new("RGB", (width, LINE + 8 + rows * (TILE + 34)), PAPER)
    pen = ImageDraw.Draw(image)
    missing = [c for c in CATEGORIES if c not in {t.category for t in home.counted}]
    note = f"   (not in this home: {', '.join(missing)})" if missing else ""
    pen.text((0, 0), f"Things in this home{note}", fill=INK, font=_font(18))
    for k, (category, thing) in enumerate(tiles):
        x, y = (k % across) * (TILE + 8), LINE + 8 + (k // across) * (TILE + 34)
        image.paste(Image.fromarray(draw_thing(thing, TILE)), (x, y))
        pen.text((x + 2, y + TILE + 1), thing.kind, fill=INK, font=_font(13))
        pen.text((x + 2, y + TILE + 15), category, fill=QUIET, font=_font(11))
    return image
