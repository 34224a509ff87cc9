"""Export: folders by class that are whole or not there, with names every system can hold."""

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.test_session import decide_next
from tests.serve.worlds import draw, drop, folder_of, session_of
from wanderlearn.errors import WanderError
from wanderlearn.serve import export as exporting
from wanderlearn.serve.export import HOW, _safe, export, suggested
from wanderlearn.serve.session import Session


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    folder = folder_of(tmp_path / "pictures", 4)
    draw(folder / "c" / "000.png", 50)  # the same name as in another folder
    made = session_of(folder)
    for label in ("cat", "CAT", "../../etc", "cat"):
        decide_next(made, label)
    decide_next(made, "cat")
    yield made
    drop(made)


@pytest.mark.parametrize("how", HOW)
def test_every_decision_is_in_the_tables_and_the_folders(how: str, session: Session, tmp_path: Path) -> None:
    made = export(session.home, tmp_path / "out", how)  # type: ignore[arg-type]
    assert made["pictures"] == 5
    with (tmp_path / "out" / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    plain = json.loads((tmp_path / "out" / "labels.json").read_text())["pictures"]
    assert [(row["picture"], row["label"]) for row in rows] == [
        ("a/001.png", "cat"), ("a/003.png", "CAT"), ("b/000.png", "../../etc"), ("b/002.png", "cat"),
        ("c/000.png", "cat"),
    ]  # fmt: skip
    assert [row["label"] for row in plain] == [row["label"] for row in rows]
    for row in plain:
        if how == "none":
            assert row["file"] is None
            continue
        file = tmp_path / "out" / row["file"]
        original = tmp_path / "pictures" / row["picture"]
        assert file.read_bytes() == original.read_bytes()
        assert file.is_symlink() == (how == "links")
        assert (os.stat(file).st_ino == os.stat(original).st_ino) == (how in ("hard links", "links"))
    folders = {path.name for path in (tmp_path / "out" / "classes").glob("*")}
    assert len({name.casefold() for name in folders}) == (0 if how == "none" else 3)


def test_nothing_is_replaced_and_nothing_is_left_behind(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    for to, sentence in [
        (tmp_path / "there", "exists already"),
        (tmp_path / "no" / "where", "no folder"),
        (tmp_path / "pictures" / "in", "outside the folder"),
        (tmp_path / "pictures" / ".wanderlearn" / "in", "outside the folder"),
    ]:
        with pytest.raises(WanderError, match=sentence):
            export(session.home, to)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "_put", full)
    with pytest.raises(WanderError, match="No space left"):
        export(session.home, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"pictures", "there"}


def test_a_picture_that_went_is_counted(session: Session, tmp_path: Path) -> None:
    (tmp_path / "pictures" / "b" / "002.png").unlink()
    made = export(session.home, tmp_path / "out")
    assert (made["pictures"], made["missing"]) == (5, 1)


def test_a_free_place_is_suggested(session: Session, tmp_path: Path) -> None:
    assert suggested(session.home) == tmp_path / "pictures-sorted"
    export(session.home, tmp_path / "pictures-sorted")
    assert suggested(session.home) == tmp_path / "pictures-sorted-2"


@settings(max_examples=200)
@given(name=st.text(max_size=300))
def test_names_are_safe_everywhere(name: str) -> None:
    safe = _safe(name)
    assert safe == os.path.basename(safe)
    assert safe.strip() not in ("", ".", "..")
    assert not safe.startswith(".")
    assert not set(safe) & set('<>:"/\\|?*\0\n')
    assert len(safe.encode("utf-8", "surrogatepass")) <= 255
    assert safe.split(".")[0].lower() not in {"con", "nul", "com1", "lpt9"}
