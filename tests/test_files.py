"""Atomic writes: whole or not there, and nothing but files is ever replaced."""

import json
import os
import threading
from pathlib import Path

import pytest

from wanderlearn.errors import WanderError
from wanderlearn.files import write_json, writing


def test_a_failure_leaves_what_was_there_and_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_json(path, {"old": 1})

    def fail() -> None:
        with writing(path) as part:
            part.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert json.loads(path.read_text()) == {"old": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    write_json(pipe, {"said": "all of it"})
    reader.join(timeout=10)
    assert json.loads(heard[0]) == {"said": "all of it"}
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(WanderError, match="folder"):
        write_json(tmp_path / "folder", 1)
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]
