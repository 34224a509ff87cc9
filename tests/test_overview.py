"""The table of all worlds on the first page."""

from pathlib import Path

from tests.test_table import put
from wanderlearn.report.overview import overview
from wanderlearn.results import fill

ROOT = Path(__file__).parent.parent


def rows_of(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_first_page_is_up_to_date(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text((ROOT / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    written = page.read_text(encoding="utf-8")
    fill(page, "worlds-results", overview(ROOT / "results"))
    assert page.read_text(encoding="utf-8") == written, "run `python benchmarks/pages.py`"


def test_every_world_has_both_settings_and_the_papers_figures(tmp_path: Path) -> None:
    put(tmp_path, "cpm-omniglot", ap=93.25)
    put(tmp_path, "cpm-rooms-small-semi", ap=71.5, world="rooms-walks")
    columns, _, *rows = rows_of(overview(tmp_path))
    paper = ["Online ProtoNet, paper", "CPM, paper"]
    assert columns == ["world", "labels", "Online ProtoNet", "CPM", *paper]
    assert [row[1] for row in rows] == ["supervised", "semi-supervised"] * 3
    assert rows[0][2:] == ["-", "93.25", "90.49", "94.17"]
    assert rows[3][2:] == ["-", "71.50", "76.36\\*", "84.12\\*"]  # of Matterport3D


def test_our_own_learner_has_a_column_once_it_has_been_run(tmp_path: Path) -> None:
    put(tmp_path, "wayfarer-imagenet-small", ap=17.5, world="imagenet-tiny")
    columns, _, *rows = rows_of(overview(tmp_path))
    assert columns[2:5] == ["Online ProtoNet", "CPM", "Wayfarer (ours)"]
    assert rows[4][4] == "17.50"
