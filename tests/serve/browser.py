"""A real Chromium, and a real `wander serve` that can be killed and started again."""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, Playwright, expect

from wanderlearn.pictures.glyphs import draw_alphabet

PATIENCE = 180_000  # milliseconds; machines are shared and slow at times
NAMES = ("arch", "bow", "cross", "door")


def launch(playwright: Playwright) -> Browser:
    """The system's Chromium, or Playwright's own."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None and Path(playwright.chromium.executable_path).exists():
        found = playwright.chromium.executable_path
    if found is None:
        pytest.fail(
            "There is no Chromium for the tests of the page. Install one, for example with "
            "`.venv/bin/playwright install chromium` or the package chromium of the system."
        )
    expect.set_options(timeout=PATIENCE)
    return playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])


def glyph_folder(folder: Path, per_class: int = 8) -> Path:
    """Four characters by several hands, one picture each, dark on light; the name says which."""
    folder.mkdir(parents=True, exist_ok=True)
    characters = draw_alphabet(1001, len(NAMES))
    for hand in range(per_class):
        for name, drawings in zip(NAMES, characters, strict=True):
            path = folder / f"{hand:02}-{name}.png"
            Image.fromarray(255 - drawings[hand]).save(path)
    return folder


class Server:
    """`wander serve` as a process."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self.arguments, self.cwd = arguments, cwd
        self.start()

    def start(self, extra: Sequence[str] = ()) -> None:
        """Start it, and wait until it says where it is."""
        code = "from wanderlearn.cli import main; main()"
        command = [sys.executable, "-c", code, "serve", *self.arguments, *extra]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, cwd=self.cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE / 1000)
        line = self.process.stdout.readline().decode() if ready else ""
        found = re.match(r"http://127\.0\.0\.1:(\d+)/\?token=\S+", line)
        if found is None:
            self.process.kill()
            raise AssertionError(f"it said {line!r} and {self.process.communicate()[1].decode()!r}")
        self.url, self.port = found[0], found[1]

    def kill(self) -> None:
        """End it as a power cut would: no chance to save anything."""
        self.process.send_signal(signal.SIGKILL)
        self._gone()

    def stop(self) -> int:
        """End it as Ctrl-C does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self._gone()

    def _gone(self) -> int:
        code = self.process.wait(30)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return code


def awake(page: Page) -> None:
    """Wait until there is an answer."""
    expect(page.locator("#guess")).to_have_text(re.compile("%|All done"))


def picture_name(page: Page) -> str:
    """What is being shown."""
    return page.locator("#picture-name").text_content() or ""


def truth(name: str) -> str:
    """Which character a file shows."""
    return name.removesuffix(".png").split("-")[1]


def type_name(page: Page, name: str) -> None:
    """Name what is shown, by keyboard alone."""
    page.keyboard.press("/")
    expect(page.locator(".naming:visible input")).to_be_focused()
    page.keyboard.type(name)
    page.keyboard.press("Enter")


def label_next(page: Page) -> str:
    """Decide the picture that is shown, by keyboard alone: accept if the guess is right, else name it.

    Gives what was pressed.
    """
    name = picture_name(page)
    wanted = truth(name)
    guess = page.locator("#guess").evaluate("node => node.firstChild.textContent")
    labels = page.locator("#ranking .label").all_text_contents()
    if guess == wanted:
        page.keyboard.press("Enter")
        pressed = "Enter"
    elif wanted in labels[:9]:
        pressed = str(1 + labels.index(wanted))
        page.keyboard.press(pressed)
    else:
        type_name(page, wanted)
        pressed = "/"
    expect(page.locator("#picture-name")).not_to_have_text(name)
    awake(page)
    return pressed


def stroke(page: Page, points: Sequence[tuple[float, float]]) -> None:
    """Draw on the pad, in shares of its width and height."""
    box = page.locator("#pad").bounding_box()
    assert box is not None
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=6)
    page.mouse.up()


def soon(check: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for something outside the page."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
