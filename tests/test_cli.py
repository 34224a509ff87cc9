"""The command line as a user meets it: real processes, exit codes, files that are whole or absent."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from wanderlearn.cli import main
from wanderlearn.pictures import glyphs


def wander(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from wanderlearn.cli import main; main()", *arguments],
        capture_output=True, text=True, env=os.environ | environment, timeout=300, check=False,
    )  # fmt: skip


def test_overview_and_version() -> None:
    assert "wander sample" in wander().stdout
    assert wander("--version").stdout.startswith("wanderlearn ")


@pytest.mark.parametrize(
    "command",
    [
        "demo",
        "data",
        "sample",
        "train",
        "evaluate",
        "table",
        "figure",
        "export",
        "serve",
        "rooms",
        "check",
        "bench",
    ],
)
def test_every_command_explains_itself(command: str) -> None:
    told = wander(command, "--help")
    assert told.returncode == 0, told.stderr
    assert f"wander {command}" in told.stdout


def test_sample_gives_statistics_picture_and_manifest(tmp_path: Path) -> None:
    png, manifest = tmp_path / "m.png", tmp_path / "m.npz"
    told = wander("sample", "glyphs", "--count", "20", "--semi", "--json", "-", "--png", str(png),
                  "--manifest", str(manifest))  # fmt: skip
    assert told.returncode == 0, told.stderr
    numbers = json.loads(told.stdout)
    wanted = {"mean_length", "classes", "new_fraction", "labelled_fraction", "environment_change_rate",
              "families", "queries_per_shot"}  # fmt: skip
    assert wanted <= numbers.keys()
    assert len(numbers["queries_per_shot"]) == 5
    assert numbers["sequences"] == 20
    with Image.open(png) as picture:
        assert picture.width > 1000
    assert manifest.exists()
    again = json.loads(wander("sample", "glyphs", "--count", "20", "--semi", "--json", "-").stdout)
    assert again == numbers


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["wonder"], "There is no command 'wonder'"),
        (["sample", "narnia"], "There is no world 'narnia'. Choose one of glyphs, omniglot"),
        (["sample", "glyphs", "--split", "exam"], "There is no split 'exam'. Choose one of train, val, test"),
        (["sample", "glyphs", "--count", "0"], "--count must be at least 1, not 0"),
        (["sample", "glyphs", "--seed", "-1"], "--seed must be between 0"),
        (["sample", "glyphs", "--count", "1", "--png", "picture.txt"], "ends in .png"),
        (["sample", "omniglot", "--from", "no/such/folder"], "no/such/folder"),
        (["data", "get", "mnist"], "There is no source 'mnist'"),
        (["train", "cpm-narnia"], "cpm-narnia"),
        (["evaluate", "no/such/run"], "no/such/run"),
        (["bench", "speed"], "speed"),
        (["check", "no.such.module:Thing"], "no.such.module"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_a_sentence_and_exit_code_2(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    told = wander(*arguments)
    assert told.returncode == 2
    assert sentence in " ".join(told.stderr.split()) + " ".join(told.stdout.split())
    assert "Traceback" not in told.stderr


def test_unwritable_output_is_a_sentence(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    told = wander("sample", "glyphs", "--count", "1", "--json", str(blocked / "out.json"))
    assert told.returncode == 2
    assert "Cannot write" in told.stderr


def test_reader_that_goes_away_is_not_an_error() -> None:
    command = f"{sys.executable} -c 'from wanderlearn.cli import main; main()'"
    script = f"{command} sample glyphs --count 2 --json - | head -n 1"
    told = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert "Traceback" not in told.stderr


def test_damaged_archive_at_the_command_line(tmp_path: Path) -> None:
    """The other kinds of damage are in test_omniglot; here, that they reach the user as a sentence."""
    for name in ("images_background.zip", "images_evaluation.zip"):
        (tmp_path / name).write_bytes(b"PK\x03\x04 and then nothing")
    cache = tmp_path / "cache"
    told = wander("data", "get", "omniglot", "--from", str(tmp_path), WANDERLEARN_CACHE=str(cache))
    assert told.returncode == 2
    assert "images_background.zip is truncated or damaged" in told.stderr
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_interrupting_a_cache_write_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def half(path: Path, data: bytes) -> None:
        with path.open("wb") as file:
            file.write(data[:1000])
        raise KeyboardInterrupt

    def blank(alphabet: int, count: int, *, seed: int = 0) -> np.ndarray[Any, Any]:
        return np.zeros((count, 20, 28, 28), np.uint8)

    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path))
    monkeypatch.setattr(glyphs, "draw_alphabet", blank)
    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(SystemExit) as ended:
        main(["sample", "glyphs"])
    assert ended.value.code == 2
    assert "Interrupted" in capsys.readouterr().err
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
