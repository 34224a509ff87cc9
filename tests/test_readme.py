"""What the README shows works as written."""

import re
from pathlib import Path

import pytest

from tests.test_cli import wander
from wanderlearn.shipped import shipped_weights

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]


def test_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # it saves something
    for block in re.findall(r"```python\n(.*?)```", PAGES[0].read_text(), re.S):
        exec(compile(block, "README.md", "exec"), {})


def test_learner_of_the_docs_keeps_the_contract(tmp_path: Path) -> None:
    page = (ROOT / "docs/learners.md").read_text()
    code = next(
        block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "class NearestMean" in block
    )
    (tmp_path / "mine.py").write_text(code)
    told = wander("check", f"{tmp_path}/mine.py:NearestMean")
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.parametrize("page", [page.relative_to(ROOT) for page in PAGES], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()):
        assert (ROOT / page).parent.joinpath(target).exists(), f"{page} links to {target}"


def test_tables_are_filled() -> None:
    for page in PAGES:
        for marker, inside in re.findall(
            r"<!-- ([\w-]+):begin -->(.*?)<!-- \1:end -->", page.read_text(), re.S
        ):
            assert inside.strip(), f"{page.name}: {marker} is empty"


def test_demo_leaves_a_report_and_a_picture(tmp_path: Path) -> None:
    told = wander("demo", "--out", str(tmp_path / "demo"), "--sequences", "3")
    assert told.returncode == 0, told.stderr
    assert "CPM" in told.stdout
    assert (tmp_path / "demo/report.html").stat().st_size > 50_000
    assert (tmp_path / "demo/meetings.png").exists()


def test_shipped_weights_are_small_and_load() -> None:
    assert {"cpm-glyphs", "protonet-glyphs"} <= shipped_weights().keys()
    assert all(path.stat().st_size < 4_000_000 for path in shipped_weights().values())
