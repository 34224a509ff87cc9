"""Rows compared on the same sequences: kept as results, and shown only of the rows as they are."""

from pathlib import Path

from wanderlearn.files import write_json
from wanderlearn.report.pairs import PAIRS, pairs_markdown, result_of
from wanderlearn.results import read_result
from wanderlearn.table_rows import compared


def kept(folder: Path, first: float, second: float) -> None:
    found = {"difference": first - second, "low": first - second - 0.25, "high": first - second + 0.25}
    about = {"format": 1, "kind": "comparison", "first": first, "second": second}
    write_json(folder / result_of(*PAIRS[0]), about | found)


def test_a_comparison_is_shown_with_its_interval(tmp_path: Path) -> None:
    one, other = PAIRS[0]
    kept(tmp_path, 93.5, 91.0)
    shown = pairs_markdown(tmp_path, {one: 93.5, other: 91.0})
    assert f"`{one}`" in shown
    assert f"`{other}`" in shown
    assert "+2.50 (+2.25 to +2.75)" in shown


def test_a_comparison_of_rows_that_have_changed_since_is_not_shown(tmp_path: Path) -> None:
    one, other = PAIRS[0]
    kept(tmp_path, 93.5, 91.0)
    for ap in ({one: 93.6, other: 91.0}, {one: 93.5, other: 90.0}, {one: 93.5}, {}):
        assert "+2.50" not in pairs_markdown(tmp_path, ap)


def test_without_answers_what_was_kept_is_what_there_is(tmp_path: Path) -> None:
    result = tmp_path / result_of(*PAIRS[0])
    assert compared(tmp_path / "one", tmp_path / "other", result) is None
    kept(tmp_path, 93.5, 91.0)
    assert compared(tmp_path / "one", tmp_path / "other", result) == read_result(result, "comparison")
