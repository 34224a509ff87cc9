"""The pictures of docs/assistant.md: `wander serve` in a real Chromium, used by keyboard and pen.

python benchmarks/assistant_pictures.py
"""

import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageFilter, ImageOps
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from wanderlearn.errors import WanderError
from wanderlearn.pictures.glyphs import draw_alphabet

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
NAMES = ("swallow", "harbour", "lantern", "meadow", "whisper", "anchor", "thistle", "ladder")


def scans(folder: Path) -> Path:
    """Drawings as somebody would scan them: ink on light paper, larger than the world's own pictures."""
    folder.mkdir(parents=True)
    characters = draw_alphabet(1012, len(NAMES))
    order = [(k, hand) for hand in range(10) for k in range(len(NAMES))]
    random.Random(3).shuffle(order)
    for n, (k, hand) in enumerate(order):
        large = Image.fromarray(characters[k][hand]).resize((560, 560), Image.Resampling.BICUBIC)
        smooth = large.filter(ImageFilter.GaussianBlur(11)).point(lambda v: max(0, min(255, (v - 92) * 9)))
        ink = ImageOps.colorize(ImageOps.invert(smooth), "#22304a", "#fdfcf8")
        ink.save(folder / f"scan-{n + 1:03}-{NAMES[k]}.png")
    return folder


def launch(playwright: Playwright) -> Browser:
    found = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if found is None and Path(playwright.chromium.executable_path).exists():
        found = playwright.chromium.executable_path
    if found is None:
        raise WanderError("There is no Chromium. Install one: `playwright install chromium`.")
    expect.set_options(timeout=120_000)
    return playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])


def awake(page: Page) -> None:
    expect(page.locator("#guess")).to_have_text(re.compile("%"))


def label(page: Page, times: int) -> None:
    """Decide as a person who knows."""
    for _ in range(times):
        name = page.locator("#picture-name").text_content() or ""
        wanted = name.removesuffix(".png").split("-")[2]
        if page.locator("#guess").evaluate("node => node.firstChild.textContent") == wanted:
            page.keyboard.press("Enter")
        else:
            page.keyboard.press("/")
            page.keyboard.type(wanted)
            page.keyboard.press("Enter")
        expect(page.locator("#picture-name")).not_to_have_text(name)
        awake(page)


def shoot(page: Page, name: str) -> None:
    page.mouse.move(2, 2)
    page.wait_for_timeout(600)  # thumbnails
    path = PICTURES / f"assistant-{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path)
    with Image.open(path) as picture:  # few colours: a quarter of the size, and nobody can tell
        picture.convert("RGB").quantize(200, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"written to {path}")


def stroke(page: Page, points: list[tuple[float, float]]) -> None:
    box = page.locator("#pad").bounding_box()
    assert box is not None
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


def spiral(turns: float, shift: float = 0.0) -> list[tuple[float, float]]:
    angles = [2 * math.pi * turns * n / 60 for n in range(61)]
    return [
        (0.5 + shift + (0.05 + 0.045 * a) * math.cos(a), 0.5 + (0.05 + 0.045 * a) * math.sin(a))
        for a in angles
    ]


def wave(shift: float = 0.0) -> list[tuple[float, float]]:
    return [(0.2 + 0.6 * n / 40, 0.5 + shift + 0.22 * math.sin(n / 40 * 4 * math.pi)) for n in range(41)]


def take_all(browser: Browser, url: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    page.goto(url)
    awake(page)
    label(page, 57)
    shoot(page, "sort")
    page.keyboard.press("/")
    page.keyboard.type("l")
    expect(page.locator(".naming li").first).to_contain_text("la")
    shoot(page, "name")
    page.keyboard.press("Escape")

    dark = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="dark")
    dark.goto(url)
    awake(dark)
    dark.locator("#classes button", has_text="lantern").click()
    expect(dark.locator("#class-examples img").first).to_be_visible()
    shoot(dark, "class")
    dark.close()

    phone = browser.new_context(
        viewport={"width": 390, "height": 844}, device_scale_factor=2, is_mobile=True, has_touch=True,
        color_scheme="light",
    ).new_page()  # fmt: skip
    phone.goto(url)
    awake(phone)
    shoot(phone, "phone")
    phone.close()

    page.locator("#tab-draw").click()
    for name, points in (("spiral", spiral(1.4)), ("wave", wave())):
        stroke(page, points)
        expect(page.locator("#pad-guess")).to_have_text(re.compile("%"))
        page.keyboard.press("/")
        page.keyboard.type(name)
        page.keyboard.press("Enter")
        expect(page.locator("#pad-guess")).to_have_text("Draw something")
    stroke(page, spiral(1.35, 0.02))
    expect(page.locator("#pad-guess")).to_have_text(re.compile("%"))
    expect(page.locator("#toast")).to_be_hidden()
    shoot(page, "draw")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = scans(Path(name) / "scans")
        command = [
            sys.executable,
            "-c",
            "from wanderlearn.cli import main; main()",
            "serve",
            str(folder),
            "--port",
            "0",
        ]
        server = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE)
        assert server.stdout is not None
        try:
            url = server.stdout.readline().decode().strip()
            with sync_playwright() as playwright:
                browser = launch(playwright)
                take_all(browser, url)
                browser.close()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(60)


if __name__ == "__main__":
    main()
