"""Rows of a table by the commands that anybody would give: what the scripts of benchmarks/ share.

Whatever was interrupted goes on where it was.
"""

import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from wanderlearn.answers import LONG_AGO, SavedAnswers, compare, read_answers
from wanderlearn.files import write_json
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.results import commit, read_result, seeded

__all__ = ["compared", "going_on", "pages", "pretrained", "tested", "trained", "wander"]

SEEDS: Final = 10  # no row is trained with more
WANDER: Final = (sys.executable, "-c", "from wanderlearn.cli import main; main()")


def wander(*words: str) -> None:
    """Run a command in a process of its own."""
    subprocess.run([*WANDER, *words], check=True)


def trained(preset: str, run: Path, *options: str) -> None:
    """Train by a preset in this run folder, or go on."""
    again = ["--resume"] * (run / "config.json").exists()
    wander("train", preset, "--runs", str(run.parent), "--name", run.name, *options, *again)


def pretrained(preset: str, run: Path, *options: str) -> Path:
    """A run folder with a pretrained encoder to start others with: only that part of the preset counts."""
    if not (run / "pretrained" / "model.safetensors").exists():
        no_more = ["--features.minutes", "None", "--features.steps", "None"]
        no_more += ["--train.minutes", "None", "--train.steps", "0"]
        trained(preset, run, *options, *no_more)
    return run


def going_on(encoder: Path, teacher: Path, how: PretrainConfig) -> list[str]:
    """The words of a command with which an encoder goes on learning from a teacher in that way."""
    words = ["--encoder", str(encoder), "--pretrain.teacher", str(teacher)]
    for field in fields(how):
        name, value = field.name.replace("_", "-"), getattr(how, field.name)
        if isinstance(value, bool):
            words.append(f"--pretrain.{name}" if value else f"--pretrain.no-{name}")
        elif field.name != "teacher":
            words += [f"--pretrain.{name}", str(value)]
    return words


def tested(run: Path, result: Path, *options: str) -> None:
    """Evaluate a run, with its answers kept beside it."""
    wander("evaluate", str(run), "--json", str(result), "--answers", str(run / "answers.npz"), *options)


def compared(run: Path, other: Path, result: Path) -> dict[str, Any] | None:
    """By how much one run's AP is above another's, by their answers to the same sequences.

    Of all seeds of which there are answers of both (NAME, NAME-seed1, ...), by the means. Beside it stands
    how much better it names what was met long ago. All is kept as a result, because answers stay with the
    runs; None, if there is neither.
    """
    answers: dict[int, list[SavedAnswers]] = {}
    for seed in range(SEEDS):
        files = [seeded(one, seed) / "answers.npz" for one in (run, other)]
        if all(file.exists() for file in files):
            answers[seed] = [read_answers(file) for file in files]
    if 0 not in answers:
        return read_result(result, "comparison") if result.exists() else None
    first, second = zip(*answers.values(), strict=True)
    found = {"format": 1, "kind": "comparison", "commit": commit(), "seeds": list(answers)}
    found |= compare(first, second, "ap")
    found["long_ago"] = [compare(first, second, metric) for metric in LONG_AGO]
    write_json(result, found)
    return found


def pages(root: Path) -> None:
    """Write the pages of a checkout anew that count results of every world."""
    subprocess.run([sys.executable, str(root / "benchmarks" / "pages.py")], check=True)
