"""Rows compared on the same sequences: kept as results, and shown only of the rows as they are."""

from pathlib import Path

import pytest

from tests.metric_records import made
from wanderlearn.answers import SavedAnswers, write_answers
from wanderlearn.errors import WanderError
from wanderlearn.files import write_json
from wanderlearn.metrics import ap
from wanderlearn.report.pairs import pairs_markdown, pairs_of, result_of
from wanderlearn.results import read_result, seeded
from wanderlearn.table_rows import compared

PAIR = pairs_of("omniglot")[0]


def kept(folder: Path, first: float, second: float) -> None:
    found = {"difference": first - second, "low": first - second - 0.25, "high": first - second + 0.25}
    about = {"format": 1, "kind": "comparison", "first": first, "second": second}
    long_ago = {"metric": "3-shot, 51-100", "difference": -1.0, "low": -2.5, "high": 0.5}
    about |= {"long_ago": [{"metric": "1-shot, 51-100", "difference": None, "low": None}, long_ago]}
    write_json(folder / result_of(*PAIR), about | found)


def evaluated(folder: Path, ap: dict[str, float]) -> None:
    for name, value in ap.items():
        about = {"format": 1, "kind": "evaluation"}
        write_json(folder / f"{name}.json", about | {"metrics": {"ap": value}})


def test_a_comparison_is_shown_with_its_interval(tmp_path: Path) -> None:
    one, other = PAIR
    kept(tmp_path, 93.5, 91.0)
    evaluated(tmp_path, {one: 93.5, other: 91.0})
    shown = pairs_markdown(tmp_path, "omniglot")
    assert f"`{one}`" in shown
    assert f"`{other}`" in shown
    assert "+2.50 (+2.25 to +2.75)" in shown
    header, _, line = ([cell.strip() for cell in row.split("|")[1:-1]] for row in shown.splitlines())
    found = dict(zip(header, line, strict=True))
    assert found["3-shot, 51-100"] == "-1.0 (-2.5 to +0.5)"
    assert found["1-shot, 51-100"] == "-"  # nothing was asked


def test_every_kind_of_row_has_its_own_pairs(tmp_path: Path) -> None:
    one, other = PAIR
    kept(tmp_path, 93.5, 91.0)
    evaluated(tmp_path, {one: 93.5, other: 91.0})
    assert pairs_of("rooms-small")[-1] == ("wayfarer-rooms-small-semi", "cpm-rooms-small-semi")
    assert "+2.50" in pairs_markdown(tmp_path, "rooms-small", "omniglot")
    assert pairs_markdown(tmp_path, "rooms-small") == "None has been compared yet."


def test_a_comparison_of_rows_that_have_changed_since_is_not_shown(tmp_path: Path) -> None:
    one, other = PAIR
    kept(tmp_path, 93.5, 91.0)
    for now in ({}, {one: 93.5}, {one: 93.6, other: 91.0}, {one: 93.5, other: 90.0}):
        evaluated(tmp_path, now)
        assert "+2.50" not in pairs_markdown(tmp_path, "omniglot")


def test_without_answers_what_was_kept_is_what_there_is(tmp_path: Path) -> None:
    result = tmp_path / result_of(*PAIR)
    assert compared(tmp_path / "one", tmp_path / "other", result) is None
    kept(tmp_path, 93.5, 91.0)
    assert compared(tmp_path / "one", tmp_path / "other", result) == read_result(result, "comparison")


def test_answers_that_are_not_whole_are_not_passed_over(tmp_path: Path) -> None:
    one, other = PAIR
    record = made(5, sequences=6, steps=20, classes=4, labelled=0.7, ties=False, skill=0.6)
    for name in (one, other, f"{one}-seed1", f"{other}-seed1"):
        (tmp_path / name).mkdir()
        write_answers(tmp_path / name / "answers.npz", SavedAnswers("ab" * 32, name, record))
    broken = tmp_path / f"{other}-seed1" / "answers.npz"
    broken.write_bytes(broken.read_bytes()[:100])
    with pytest.raises(WanderError, match="does not hold whole answers"):
        compared(tmp_path / one, tmp_path / other, tmp_path / "result.json")
    assert not (tmp_path / "result.json").exists()


def test_all_seeds_of_both_are_compared_by_their_means(tmp_path: Path) -> None:
    record = made(5, sequences=6, steps=20, classes=4, labelled=0.7, ties=False, skill=0.6)
    worse = made(5, sequences=6, steps=20, classes=4, labelled=0.7, ties=False, skill=0.2)
    one, other = PAIR
    seeds = {one: (record, worse, record), other: (worse, worse)}  # a third seed of the first only
    for name, records in seeds.items():
        for seed, answered in enumerate(records):
            run = seeded(tmp_path / name, seed)
            run.mkdir()
            write_answers(run / "answers.npz", SavedAnswers("ab" * 32, run.name, answered))
    result = tmp_path / result_of(one, other)
    found = compared(tmp_path / one, tmp_path / other, result)
    assert found is not None
    assert found["seeds"] == [0, 1]
    assert found["difference"] == pytest.approx(100 * (ap(record) - ap(worse)) / 2)
    figures = {seeded(Path(one), 0).name: ap(record), f"{one}-seed1": ap(worse), other: ap(worse)}
    evaluated(tmp_path, {name: 100 * value for name, value in figures.items()})
    assert pairs_markdown(tmp_path, "omniglot") == "None has been compared yet."  # a seed is not there
    evaluated(tmp_path, {f"{other}-seed1": 100 * ap(worse)})
    assert f"| `{one}` | `{other}` |     2 |" in pairs_markdown(tmp_path, "omniglot")
