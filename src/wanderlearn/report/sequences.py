"""Sequences as a picture, in the manner of the paper's Figure 2A: what was met, where, and what was told."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from wanderlearn.errors import WanderError
from wanderlearn.files import writing
from wanderlearn.worlds.roaming import Roaming
from wanderlearn.worlds.sequence import NEW, UNLABELED, Ints, Meetings

__all__ = ["draw_sequences", "sequence_sheet"]

# Okabe and Ito's colours, told apart by colour-blind readers too.
ENVIRONMENTS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
INK, QUIET, PAPER, LABELLED, WRONG = "#1a1a1a", "#757575", "#ffffff", "#c0272d", "#D55E00"

ACROSS = 25  # meetings in a row
TILE, BAND, CAPTION, GAP, MARGIN, HEADER = 84, 16, 22, 10, 36, 56
LEGEND_LINE = 30

Floats = npt.NDArray[np.float32]


def draw_sequences(
    path: Path, world: Roaming, sequences: Sequence[Meetings], answers: Sequence[Ints] | None = None
) -> None:
    """Write a PNG of whole sequences; `answers` (a slot or NEW per meeting) marks a learner's mistakes."""
    if path.suffix.lower() != ".png":
        raise WanderError(f"The picture is a PNG: give it a name that ends in .png, not {path.name!r}.")
    sheet = sequence_sheet(world, sequences, answers)
    with writing(path) as part:
        sheet.save(part, format="PNG", optimize=True)


def sequence_sheet(
    world: Roaming,
    sequences: Sequence[Meetings],
    answers: Sequence[Ints] | None = None,
    *,
    across: int = ACROSS,
    titles: Sequence[str] | None = None,
) -> Image.Image:
    """The picture that `draw_sequences` writes, with `across` meetings in a row and other titles if given."""
    rows = [-(-len(m) // across) for m in sequences]
    pitch = TILE + BAND + CAPTION + GAP
    width = 2 * MARGIN + across * (TILE + GAP) - GAP
    legend = _legend_lines(width - 2 * MARGIN, with_answers=answers is not None)
    height = MARGIN + sum(HEADER + r * pitch for r in rows) + HEADER + (len(legend) - 1) * LEGEND_LINE
    sheet = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(sheet)
    top = MARGIN // 2
    for n, m in enumerate(sequences):
        title = _title(world, m) if titles is None else titles[n]
        pen.text((MARGIN, top + 12), title, fill=INK, font=_font(26))
        top += HEADER
        pictures = _ink_on_paper(world, m)
        for t in range(len(m)):
            x, y = MARGIN + (t % across) * (TILE + GAP), top + (t // across) * pitch
            said = None if answers is None else int(answers[n][t])
            _tile(sheet, pen, (x, y), pictures[t], m, t, said, ends_row=(t + 1) % across == 0)
        top += rows[n] * pitch
    pen.rectangle((MARGIN, top + 8, MARGIN + 26, top + 34), outline=LABELLED, width=3)
    for line, words in enumerate(legend):
        pen.text((MARGIN + 36, top + 10 + line * LEGEND_LINE), words, fill=INK, font=_font(19))
    return sheet


def _title(world: Roaming, m: Meetings) -> str:
    told = int((m.given != UNLABELED).sum())
    return (
        f"{world.pictures.name} · sequence {m.index}: {len(m)} meetings, {m.truth.max() + 1} classes, "
        f"{m.environment.max() + 1} environments, {told} labels told"
    )


def _tile(
    sheet: Image.Image,
    pen: ImageDraw.ImageDraw,
    at: tuple[int, int],
    picture: npt.NDArray[np.uint8],
    m: Meetings,
    t: int,
    answer: int | None,
    *,
    ends_row: bool,
) -> None:
    x, y = at
    environment = int(m.environment[t])
    # The band runs on over the gap while the environment stays, so that a switch is seen at a glance.
    runs_on = t + 1 < len(m) and m.environment[t + 1] == environment and not ends_row
    colour = ENVIRONMENTS[environment % len(ENVIRONMENTS)]
    pen.rectangle((x, y, x + TILE - 1 + (GAP if runs_on else 0), y + BAND - 5), fill=colour)
    box = (x, y + BAND, x + TILE - 1, y + BAND + TILE - 1)
    sheet.paste(Image.fromarray(picture).resize((TILE, TILE), Image.Resampling.BICUBIC), box[:2])
    if m.given[t] == UNLABELED:
        _dotted(pen, box)
    else:
        pen.rectangle(box, outline=LABELLED, width=3)
    target = int(m.target[t])
    caption = "new" if target == NEW else str(target + 1)
    under = (x, y + BAND + TILE + 2)
    if answer is None or answer == target:
        pen.text(under, caption, fill=INK if target == NEW else QUIET, font=_font(18))
    else:
        said = "new" if answer == NEW else str(answer + 1)
        # White on a filled box: found at a glance, in grey too.
        words, font = f"{said} ({caption})", _font(18)
        end = x + pen.textlength(words, font=font) + 10
        pen.rounded_rectangle((x, y + BAND + TILE + 3, end, y + BAND + TILE + 24), radius=4, fill=WRONG)
        pen.text((x + 5, under[1]), words, fill=PAPER, font=font)


def _dotted(pen: ImageDraw.ImageDraw, box: tuple[int, int, int, int]) -> None:
    left, top, right, bottom = box
    for k in range(0, TILE, 7):
        for dash in (
            (left + k, top, left + k + 3, top + 1),
            (left + k, bottom - 1, left + k + 3, bottom),
            (left, top + k, left + 1, top + k + 3),
            (right - 1, top + k, right, top + k + 3),
        ):
            pen.rectangle(dash, fill=QUIET)


def _legend_lines(width: int, *, with_answers: bool) -> list[str]:
    """The words of the legend in as few lines as the width allows; the first follows a red frame."""
    parts = [
        "the name is told",
        "dotted: it is not",
        "band: the hidden environment",
        "number: the class, by when it was first named",
        "new: not named before",
    ]
    if with_answers:
        parts.append("orange: a wrong answer (and the right one)")
    lines, font = parts[:1], _font(19)
    for part in parts[1:]:
        longer = f"{lines[-1]}        {part}"
        if font.getlength(longer) <= width - 36:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def _ink_on_paper(world: Roaming, m: Meetings) -> npt.NDArray[np.uint8]:
    """The pictures as the learner sees them, drawings dark on white, [T, H, W] or [T, H, W, 3]."""
    seen = world.batch([m]).images[0].numpy()  # [T, C, H, W] in [-1, 1]
    if world.backgrounds is not None and world.backgrounds.config.how == "channel":
        seen = _before(seen[:, :-1], seen[:, -1:])
    grey = seen.shape[1] == 1
    if seen.shape[1] not in (1, 3):
        raise WanderError(f"{world.pictures.name} holds vectors, and there is no way to draw those.")
    turned = grey and world.pictures.drawn
    shown = np.clip((1 - seen if turned else 1 + seen) * 127.5, 0, 255).astype(np.uint8)
    return shown[:, 0] if grey else shown.transpose(0, 2, 3, 1)


def _before(pictures: Floats, behind: Floats) -> Floats:
    """Pictures on what lies behind them in a channel of its own: ink covers paper.

    Where a box hides both, it hides the result.
    """
    return np.where((behind == 0) & (pictures == 0), 0, np.maximum(pictures, 0.7 * behind - 0.3))


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
