"""The command line as a user meets it: real processes, exit codes, files that are whole or absent."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image


def wander(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from wanderlearn.cli import main; main()", *arguments],
        capture_output=True, text=True, env=os.environ | environment, timeout=300, check=False,
    )  # fmt: skip


def test_overview_and_version() -> None:
    assert "wander sample" in wander().stdout
    assert wander("--version").stdout.startswith("wanderlearn ")


@pytest.mark.parametrize("command", ["demo", "data", "sample", "train", "evaluate", "check", "bench"])
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
    assert Image.open(png).width > 1000
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
