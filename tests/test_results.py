"""Result files and the documents filled in from them."""

import subprocess
from pathlib import Path

import pytest

from wanderlearn.errors import WanderError
from wanderlearn.results import commit, fill, load_results, markdown_table, read_result, write_result


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    package = tmp_path / "checkout" / "package"
    package.mkdir(parents=True)
    (package / "code.py").write_text("one = 1\n")
    git(package.parent, "init", "--quiet")
    git(package.parent, "add", ".")
    git(package.parent, "commit", "--quiet", "-m", "first")
    return package


def test_the_commit_is_the_checkouts_head(checkout: Path) -> None:
    assert commit(checkout) == git(checkout, "rev-parse", "HEAD")


def test_a_changed_or_added_source_file_makes_the_commit_dirty(checkout: Path) -> None:
    (checkout / "code.py").write_text("one = 2\n")
    assert commit(checkout) == git(checkout, "rev-parse", "HEAD") + "+dirty"
    git(checkout, "checkout", "--quiet", "code.py")
    assert "dirty" not in str(commit(checkout))
    (checkout / "more.py").write_text("")
    assert commit(checkout) == git(checkout, "rev-parse", "HEAD") + "+dirty"


def test_a_change_outside_the_package_does_not_make_it_dirty(checkout: Path) -> None:
    (checkout.parent / "notes.md").write_text("words")
    assert commit(checkout) == git(checkout, "rev-parse", "HEAD")


def test_there_is_no_commit_outside_a_checkout_or_untracked_within_another(
    checkout: Path, tmp_path: Path
) -> None:
    assert commit(tmp_path) is None
    installed = checkout.parent / "venv" / "package"
    installed.mkdir(parents=True)
    (installed / "code.py").write_text("")
    assert commit(installed) is None


def test_there_is_no_commit_before_the_first_or_without_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "code.py").write_text("")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    assert commit(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert commit(tmp_path) is None


def test_a_result_is_read_as_written(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "result.json"
    write_result(path, {"kind": "evaluation", "metrics": {"ap": 1 / 3, "none": None}})
    assert read_result(path) == {"format": 1, "kind": "evaluation", "metrics": {"ap": 1 / 3, "none": None}}
    assert read_result(path, "evaluation") == read_result(path)
    with pytest.raises(WanderError, match="kind 'evaluation', but 'bench' is needed"):
        read_result(path, "bench")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"format": 1', "not valid JSON"),
        ("[1]", "does not say its kind"),
        ('{"format": 1}', "does not say its kind"),
        ('{"format": 9, "kind": "bench"}', "format 9; this version reads 1"),
    ],
)
def test_what_is_no_result_is_refused_in_words(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(WanderError, match=says):
        read_result(path)


def test_a_result_must_say_its_kind(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="kind"):
        write_result(tmp_path / "result.json", {"metrics": {}})
    assert not list(tmp_path.iterdir())


def test_a_folder_of_results_is_read_in_order_and_by_kind(tmp_path: Path) -> None:
    write_result(tmp_path / "b.json", {"kind": "bench", "n": 1})
    write_result(tmp_path / "a" / "z.json", {"kind": "evaluation", "n": 2})
    write_result(tmp_path / "a" / "c.json", {"kind": "evaluation", "n": 3})
    (tmp_path / "config.json").write_text('{"steps": 1}')
    (tmp_path / "words.txt").write_text("not JSON")
    assert list(load_results(tmp_path)) == ["a/c.json", "a/z.json", "b.json"]
    assert [r["n"] for r in load_results(tmp_path, "evaluation").values()] == [3, 2]
    with pytest.raises(WanderError, match="no folder"):
        load_results(tmp_path / "nowhere")


def test_a_table_aligns_figures_right_and_words_left() -> None:
    table = markdown_table(["method", "AP", "n"], [["cpm", 94.1666, 2000], ["a|b", None, 7]])
    assert table == (
        "| method |   AP |    n |\n"
        "| ------ | ---: | ---: |\n"
        "| cpm    | 94.2 | 2000 |\n"
        "| a\\|b   |    - |    7 |"
    )


@pytest.mark.parametrize(
    ("value", "shown"), [(0.012345, "0.0123"), (1.0, "1.00"), (12345.6, "12346"), (123.4, "123")]
)
def test_floats_have_three_significant_digits(value: float, shown: str) -> None:
    assert markdown_table(["x"], [[value]]).splitlines()[2].strip("| ") == shown


def test_a_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="2 cells"):
        markdown_table(["a", "b"], [[1]])


def test_filling_replaces_what_stands_between_the_marks_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    head, tail = (
        b"# Page\r\n<!-- a:begin -->",
        b"<!-- a:end -->\nrest \xc3\xa9\n<!-- b:begin --><!-- b:end -->",
    )
    path.write_bytes(head + b"old\nolder" + tail)
    assert fill(path, "a", "\nnew | line\n")
    assert path.read_bytes() == head + b"\nnew | line\n" + tail
    assert not fill(path, "a", "new | line")  # a second time changes nothing
    assert fill(path, "b", "two")
    assert b"new | line" in path.read_bytes()


@pytest.mark.parametrize(
    "text",
    ["none", "<!-- a:begin -->", "<!-- a:end --><!-- a:begin -->", "<!-- a:begin -->" * 2 + "<!-- a:end -->"],
)
def test_a_document_without_its_marks_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "page.md"
    path.write_text(text)
    with pytest.raises(WanderError, match="exactly one"):
        fill(path, "a", "new")
    assert path.read_text() == text


def test_a_missing_document_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(WanderError, match="Cannot read"):
        fill(tmp_path / "page.md", "a", "new")
