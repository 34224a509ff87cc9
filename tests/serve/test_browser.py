"""The page in a real Chromium, as a person uses it: by keyboard, in two tabs, through a kill, with a pen."""

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.serve.browser import (
    Server,
    awake,
    glyph_folder,
    label_next,
    launch,
    picture_name,
    stroke,
    truth,
    type_name,
)
from wanderlearn.agent import Agent

WEIGHTS = ("--weights", "cpm-glyphs", "--port", "0")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    made = context.new_page()
    problems: list[str] = []
    made.on("pageerror", lambda error: problems.append(str(error)))
    made.on("console", lambda said: problems.append(said.text) if "Content Security" in said.text else None)
    yield made
    context.close()
    assert not problems


@pytest.fixture(scope="module")
def pad(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without a folder, for all tests that draw."""
    server = Server("--port", "0", cwd=tmp_path_factory.mktemp("pad"))
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def sorting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a folder, for all tests that do not kill it."""
    folder = glyph_folder(tmp_path_factory.mktemp("sorting") / "scans", 3)
    server = Server(str(folder), *WEIGHTS, cwd=folder.parent)
    yield server
    assert server.stop() == 0


def classes(page: Page) -> dict[str, int]:
    """The classes with their counts, as the page lists them."""
    labels = page.locator("#classes li span:not(:empty)").all_text_contents()
    counts = page.locator("#classes li i").all_text_contents()
    return {label: int(count) for label, count in zip(labels, counts, strict=True)}


def test_label_twenty_undo_rename_merge_reload_kill_and_go_on(page: Page, tmp_path: Path) -> None:
    folder = glyph_folder(tmp_path / "scans")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    server = Server(str(folder), *WEIGHTS, cwd=tmp_path)
    try:
        page.goto(server.url)
        awake(page)
        assert "token" not in page.url
        expect(page.locator("#guess")).to_contain_text("New?")
        pressed = [label_next(page) for _ in range(20)]
        assert pressed.count("Enter") >= 8, pressed  # it learns: most are recognised
        assert classes(page) == {"arch": 5, "bow": 5, "cross": 5, "door": 5}
        expect(page.locator("#figure-done")).to_have_text("20 of 32")

        # Undo, twice, and decide again.
        names = []
        for _ in range(2):
            shown = picture_name(page)
            page.keyboard.press("u")
            expect(page.locator("#picture-name")).not_to_have_text(shown)
            names.append(picture_name(page))
        assert names == ["04-door.png", "04-cross.png"]
        expect(page.locator("#figure-done")).to_have_text("18 of 32")
        for _ in range(2):
            label_next(page)

        # Rename: the pictures of the past have the new name, too.
        page.locator("#classes button", has_text="arch").click()
        page.locator("#rename-field").fill("archway")
        page.keyboard.press("Enter")
        expect(page.locator("#classes")).to_contain_text("archway")
        expect(page.locator("#strip")).to_contain_text("archway")

        # Merge.
        page.locator("#classes button", has_text="bow").click()
        page.locator("#merge-field").select_option("archway")
        page.locator("#merge-button").click()
        expect(page.locator("#classes li")).to_have_count(3)
        assert classes(page) == {"archway": 10, "cross": 5, "door": 5}

        # Reload: all of it is still there.
        shown = picture_name(page)
        page.reload()
        awake(page)
        assert picture_name(page) == shown
        assert classes(page) == {"archway": 10, "cross": 5, "door": 5}

        # Kill, start again at the same place: the open page goes on by itself.
        guess = page.locator("#guess").text_content()
        server.kill()
        expect(page.locator("#banner")).to_contain_text("not running")
        server.start(["--port", server.port])
        expect(page.locator("#banner")).to_be_hidden()
        # It may still show the old answer, then "Waking up": wait for what is to come back.
        expect(page.locator("#guess")).to_have_text(guess or "")
        assert guess
        assert picture_name(page) == shown
        assert classes(page) == {"archway": 10, "cross": 5, "door": 5}
        page.keyboard.press("u")  # even the merge can still be taken back
        expect(page.locator("#classes li")).to_have_count(4)
        page.locator("#classes button", has_text="archway").click()
        page.locator("#rename-field").fill("arch")
        page.locator("#rename-button").click()
        expect(page.locator("#classes button", has_text="archway")).to_have_count(0)
        for _ in range(12):
            label_next(page)
        expect(page.locator("#guess")).to_have_text("All done")

        # Export.
        page.locator("#export-button").click()
        page.locator("#export-to").fill(str(tmp_path / "sorted"))
        page.locator("#export-go").click()
        expect(page.locator("#export-says")).to_contain_text("32 pictures in 4 classes")
    finally:
        stopped = server.stop()
    assert stopped == 0
    with (tmp_path / "sorted" / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["picture"]: row["label"] for row in rows} == {name: truth(name) for name in before}
    assert len(list((tmp_path / "sorted" / "classes" / "cross").iterdir())) == 8
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    agent = Agent.open(folder / ".wanderlearn" / "memory.agent")
    assert set(agent.labels) == {"arch", "bow", "cross", "door"}


def test_two_tabs_see_one_state(sorting: Server, page: Page) -> None:
    other = page.context.new_page()
    for one in (page, other):
        one.goto(sorting.url)
        awake(one)
    first = picture_name(page)
    assert picture_name(other) == first
    type_name(page, truth(first))
    expect(other.locator("#picture-name")).not_to_have_text(first)
    expect(other.locator("#classes")).to_contain_text(truth(first))
    expect(page.locator("#picture-name")).to_have_text(picture_name(other))
    other.keyboard.press("s")
    expect(other.locator("#strip")).to_contain_text("skipped")
    expect(page.locator("#strip")).to_contain_text("skipped")
    for _ in range(2):
        before = picture_name(page)
        page.keyboard.press("u")
        expect(page.locator("#picture-name")).not_to_have_text(before)
    expect(other.locator("#picture-name")).to_have_text(first)
    expect(other.locator("#classes")).to_contain_text("No class yet")


def test_a_picture_of_the_past_is_decided_again(sorting: Server, page: Page) -> None:
    page.goto(sorting.url)
    awake(page)
    first = picture_name(page)
    type_name(page, "mistake")
    expect(page.locator("#picture-name")).not_to_have_text(first)
    page.locator("#strip button").first.click()
    expect(page.locator("#picture-name")).to_have_text(first)
    expect(page.locator("#reason")).to_contain_text("You said “mistake”")
    page.locator("#stage").focus()
    type_name(page, truth(first))
    expect(page.locator("#strip li").first).to_contain_text(truth(first))
    for _ in range(2):
        page.keyboard.press("u")
        expect(page.locator("#toast")).to_contain_text("Taken back")
        page.wait_for_timeout(300)
    expect(page.locator("#picture-name")).to_have_text(first)


def test_everything_is_reached_by_keyboard_and_has_a_name(sorting: Server, page: Page) -> None:
    page.goto(sorting.url)
    awake(page)
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.id"))
    wanted = {"tab-sort", "auto", "export-button", "theme-button", "help-button", "accept-button",
              "name-button", "skip-button", "class-search"}  # fmt: skip
    assert wanted <= reached
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, canvas, img")].filter(node =>
            !(node.textContent.trim() || node.getAttribute("aria-label") || node.labels?.length
              || node.hasAttribute("alt"))).map(node => node.outerHTML)"""
    )
    assert nameless == []


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_it_fits_a_phone(colours: Literal["light", "dark"], sorting: Server, chromium: Browser) -> None:
    context = chromium.new_context(
        viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True, color_scheme=colours
    )
    page = context.new_page()
    page.goto(sorting.url)
    awake(page)
    assert page.evaluate("() => document.documentElement.dataset.theme") == colours
    for tab in ("#tab-sort", "#tab-draw"):
        page.locator(tab).tap()
        wide = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0  # nothing sticks out
    page.locator("#tab-sort").tap()
    box = page.locator("#accept-button").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 844  # it can be pressed without scrolling
    assert box["height"] >= 40
    first = picture_name(page)
    page.locator("#skip-button").tap()
    expect(page.locator("#picture-name")).not_to_have_text(first)
    page.locator("#undo-button").tap()
    expect(page.locator("#picture-name")).to_have_text(first)
    page.locator("#theme-button").tap()
    assert page.evaluate("() => document.documentElement.dataset.theme") != colours
    context.close()


RING = [(0.5 + 0.28 * math.cos(t / 4), 0.5 + 0.3 * math.sin(t / 4)) for t in range(26)]
ZIGZAG = [(0.25, 0.22), (0.75, 0.25), (0.28, 0.72), (0.76, 0.74)]


def test_draw_two_characters_new_then_recognised(pad: Server, page: Page) -> None:
    page.goto(pad.url)
    expect(page.locator("#draw")).to_be_visible()  # without a folder the pad is what there is
    for name, points in (("ring", RING), ("zigzag", ZIGZAG)):
        stroke(page, points)
        expect(page.locator("#pad-guess")).to_contain_text("New?")
        page.keyboard.press("Enter")
        page.keyboard.type(name)
        page.keyboard.press("Enter")
        expect(page.locator("#pad-guess")).to_have_text("Draw something")
    for name, points in (("ring", RING), ("zigzag", ZIGZAG)):
        stroke(page, [(x + 0.02, y - 0.03) for x, y in points])  # by hand it is never quite the same
        expect(page.locator("#pad-guess")).to_have_text(re.compile(rf"{name} \d+ %"))
        page.keyboard.press("Enter")
        expect(page.locator("#pad-guess")).to_have_text("Draw something")
    assert len(list((pad.cwd / ".wanderlearn" / "drawings").glob("*.png"))) == 4
