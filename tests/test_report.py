"""The picture of sequences and the page: they show what they should and are whole files."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.tiny_world import tiny_pictures
from wanderlearn.errors import WanderError
from wanderlearn.report import html
from wanderlearn.report.sequences import ENVIRONMENTS, LABELLED, WRONG, draw_sequences
from wanderlearn.worlds import NEW, UNLABELED, Roaming, RoamingConfig

WORLD = Roaming(tiny_pictures("test"), RoamingConfig(semi=True))


def pixels_of(path: Path) -> np.ndarray[Any, Any]:
    with Image.open(path) as image:
        return np.asarray(image)


def colours(path: Path) -> set[str]:
    pixels = pixels_of(path).reshape(-1, 3)
    return {"#{:02x}{:02x}{:02x}".format(*p) for p in np.unique(pixels, axis=0)}


def test_picture_shows_environments_labels_and_mistakes(tmp_path: Path) -> None:
    m = WORLD.meetings(0, 0)
    draw_sequences(tmp_path / "plain.png", WORLD, [m])
    plain = colours(tmp_path / "plain.png")
    for e in range(int(m.environment.max()) + 1):
        assert ENVIRONMENTS[e].lower() in plain
    assert LABELLED in plain
    draw_sequences(tmp_path / "right.png", WORLD, [m], [m.target])
    wrong = np.where(m.target == NEW, 0, NEW)
    draw_sequences(tmp_path / "wrong.png", WORLD, [m], [wrong])
    # The fifth environment has the colour of mistakes nowhere near it: count pixels, not presence.
    orange = [
        (pixels_of(tmp_path / f"{n}.png") == tuple(bytes.fromhex(WRONG[1:]))).all(-1).sum()
        for n in ("right", "wrong")
    ]
    assert orange[1] > orange[0] + 1000


def test_unlabelled_frames_are_not_red(tmp_path: Path) -> None:
    world = Roaming(tiny_pictures("test"), RoamingConfig(semi=True))
    m = world.meetings(0, 0)
    draw_sequences(tmp_path / "m.png", world, [m])
    image = pixels_of(tmp_path / "m.png")
    red = (image == tuple(bytes.fromhex(LABELLED[1:]))).all(-1).sum()
    frame = 4 * 3 * (84 - 3)  # pixels of one solid frame
    labelled = int((m.given != UNLABELED).sum())
    assert red == pytest.approx(frame * labelled, rel=0.03)


def test_picture_must_be_a_png(tmp_path: Path) -> None:
    with pytest.raises(WanderError, match=r"ends in \.png"):
        draw_sequences(tmp_path / "m.jpg", WORLD, [WORLD.meetings(0, 0)])
    assert not list(tmp_path.iterdir())


class Balanced(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opened and closed at once."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_whole_and_escapes_what_it_is_given(tmp_path: Path) -> None:
    chart = html.line_chart(
        {"a<b": [(0, 10), (1, float("nan")), (2, 90)], "c": [(0, 20), (2, 91)]},
        across="t",
        up="%",
        low=0,
        high=100,
    )
    parts = [html.paragraph("1 < 2 & 3", heading="<h>"), html.table(["x"], [["<script>"]]), chart]
    html.write_page(tmp_path / "p.html", "T & T", parts)
    text = (tmp_path / "p.html").read_text()
    checker = Balanced()
    checker.feed(text)
    assert checker.open == []
    assert "<script>" not in text
    assert "nan" not in text
    assert "http" not in re.sub(r'xmlns="[^"]*"', "", text), "the page needs no network"
    heights = [float(y) for y in re.findall(r'<text x="720" y="([\d.]+)"', text)]
    assert len(heights) == 2
    assert abs(heights[0] - heights[1]) >= 17, "names of lines do not overlap"
