"""A run in a process of its own: interrupted, killed, stopped, and always going on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tiny_runs import PROTONET, log_of, pictures, tiny_preset
from wanderlearn.model import about_model, build, load_model
from wanderlearn.optimiser import Optimiser
from wanderlearn.presets import Preset
from wanderlearn.schedule import rate_factor
from wanderlearn.sequence_training import SequenceTraining
from wanderlearn.worlds import world_of

SCRIPT = """
import sys
from pathlib import Path
from tests.tiny_runs import PROTONET, run, tiny_preset
train = dict(steps=4000, validate_every=10**6, checkpoint_minutes=0, workers={workers})
preset = tiny_preset(PROTONET, semi=True, **train)
outcome = run(preset, Path(sys.argv[1]), resume="resume" in sys.argv)
print(outcome.status)
"""


def start(folder: Path, *more: str, workers: int = 0) -> subprocess.Popen[str]:
    here = Path(__file__).parent.parent
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(workers=workers), str(folder), *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=here,
        start_new_session=True,
    )  # fmt: skip


def wait_for_lines(folder: Path, count: int, process: subprocess.Popen[str]) -> None:
    log = folder / "log.jsonl"
    deadline = time.monotonic() + 60
    while not (log.exists() and log.read_bytes().count(b"\n") >= count):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def finish(folder: Path, steps: int) -> list[dict[str, Any]]:
    """The first lines of the log of an uninterrupted run."""
    preset = tiny_preset(PROTONET, semi=True, steps=4000, validate_every=10**6)
    stage = SequenceTraining(build_seeded(preset), world_of(pictures("train"), preset.roaming), preset.train)
    optimiser = Optimiser(stage.tensors(), preset.train)
    lines = []
    for step in range(steps):
        losses = stage.losses(step)
        factor = rate_factor("cosine", step / 4000)
        norm = optimiser.step(losses["loss"], factor)
        lines.append({"step": step + 1, "loss": losses["loss"].item(), "grad_norm": norm})
    return lines


def build_seeded(preset: Preset) -> Any:
    torch.manual_seed(preset.train.seed)
    return build(preset.model).train()


def compare_with_uninterrupted(folder: Path) -> None:
    log = log_of(folder)
    assert [line["step"] for line in log] == list(range(1, len(log) + 1))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        expected = finish(folder, len(log))
    finally:
        torch.set_num_threads(before)
    assert [{name: line[name] for name in ("step", "loss", "grad_norm")} for line in log] == expected


def test_a_real_process_is_interrupted_killed_and_stopped_and_always_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(folder, workers=1)
    wait_for_lines(folder, 10, process)
    end_politely(process, signal.SIGINT, folder)

    process = start(folder, "resume")
    wait_for_lines(folder, 20, process)
    process.kill()  # in the middle of whatever it is doing
    process.communicate()
    load_model(folder / "last" / "model.safetensors")

    process = start(folder, "resume")
    wait_for_lines(folder, 30, process)
    end_politely(process, signal.SIGTERM, folder)
    compare_with_uninterrupted(folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_ends_politely_too(number: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(folder, workers=2)
    wait_for_lines(folder, 5, process)
    end_politely(process, number, folder, group=True)


def end_politely(
    process: subprocess.Popen[str], number: signal.Signals, folder: Path, *, group: bool = False
) -> None:
    if group:  # what a terminal does on Ctrl-C, and a service manager to stop a service
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out.strip()) == (0, "interrupted"), err
    assert about_model(folder / "last" / "model.safetensors")["step"] == len(log_of(folder))
