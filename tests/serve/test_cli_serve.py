"""`wander serve` at the command line: what is wrong is a sentence and exit code 2."""

import socket
from pathlib import Path

import pytest

from tests.serve.worlds import folder_of
from tests.test_cli import wander
from wanderlearn.cli import main
from wanderlearn.serve.home import Home


def test_it_explains_itself() -> None:
    told = wander("serve", "--help")
    assert told.returncode == 0
    for word in ("wander serve", "--weights", "--port", "--order", "--relearn", ".wanderlearn"):
        assert word in told.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no/such/folder"], "There is no folder no/such/folder"),
        (["--port", "70000"], "--port is a number"),
        (["--order", "sideways"], "--order is path or shuffled"),
        (["--ink", "blue"], "--ink is auto"),
        (["--seed", "-1"], "--seed must be"),
    ],
)
def test_bad_input_is_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["serve", *arguments])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []  # nothing was made


def test_a_port_that_is_taken_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SystemExit):
            main(["serve", str(folder_of(tmp_path, 1)), "--port", str(taken.getsockname()[1])])
    assert "Choose another --port" in capsys.readouterr().err


def test_weights_that_are_not_there_end_it(tmp_path: Path) -> None:
    told = wander("serve", str(folder_of(tmp_path, 1)), "--weights", "no-such-weights", "--port", "0")
    assert told.returncode == 2
    assert "no-such-weights" in told.stderr
    assert "Traceback" not in told.stderr


def test_other_weights_than_last_time_need_relearning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(tmp_path / ".wanderlearn", tmp_path)
    home.store.set_meta(weights="cpm-glyphs")
    home.close()
    with pytest.raises(SystemExit):
        main(["serve", str(tmp_path), "--weights", "protonet-glyphs", "--port", "0"])
    assert "--relearn" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit):
        main(["serve", str(folder_of(tmp_path / "p", 1)), "--state", str(tmp_path / "file" / "in")])
    assert "--state" in capsys.readouterr().err
