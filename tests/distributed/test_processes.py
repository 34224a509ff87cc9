"""Real processes: the same gradients, answers and runs as one alone, whoever is stopped or killed."""

import io
import json
import signal
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.distributed.jobs import LEARNERS, evaluation, everything, whole_run
from tests.distributed.processes import start_together, torchrun
from tests.distributed.worker import at_step, me
from tests.tiny_runs import log_of, tiny_model, weights_of
from wanderlearn.cli import main
from wanderlearn.distributed import ALONE
from wanderlearn.model import about_model, build, save_model
from wanderlearn.tensors import load_tensors

BOTH = pytest.mark.parametrize("size", [2, 3])
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def alone() -> dict[str, Tensor]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return everything(ALONE)
    finally:
        torch.set_num_threads(before)


class Groups(NamedTuple):
    """What a group of two and a group of three processes left behind."""

    folder: dict[int, Path]  # by number of processes, as the next
    shown: dict[int, list[str]]  # what each process printed, also for one process
    result: dict[int, Path]
    run: Path  # begun by two, taken on by one, ended by three


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Groups:
    found = Groups({}, {}, {}, tmp_path_factory.mktemp("run") / "run")
    weights = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    torch.manual_seed(0)
    model = build(tiny_model())
    model.train().encoder(torch.rand(9, 1, 28, 28))  # so that it has averages to evaluate with
    save_model(weights, model, {"world": "glyphs", "semi": True, "preset": "tiny"})
    words = ["evaluate", str(weights), "--sequences", "5", "--batch-size", "2"]
    words += ["--roaming.length", "20", "--roaming.classes", "8", "--roaming.environments", "2", "--json"]

    found.result[1] = weights.parent / "1.json"
    with redirect_stdout(io.StringIO()) as printed:
        main([*words, str(found.result[1])])
    found.shown[1] = [printed.getvalue()]
    for size in (2, 3):
        if size == 3:
            with at_step(2, me(signal.SIGINT)):
                assert whole_run(found.run, ALONE, resume=True).step == 4
        found.folder[size] = tmp_path_factory.mktemp(f"parts-{size}")
        found.result[size] = weights.parent / f"{size}.json"
        command = json.dumps([*words, str(found.result[size])])
        done = start_together(size, "parts", str(found.folder[size]), str(found.run), command)
        assert [code for code, _, _ in done] == [0] * size, "\n".join(err for _, err, _ in done)
        found.shown[size] = [out for _, _, out in done]
    return found


@BOTH
def test_gradients_are_those_of_one_process_on_the_whole_batch(
    groups: Groups, size: int, alone: dict[str, Tensor]
) -> None:
    found = load_file(groups.folder[size] / "parts-0.safetensors")
    assert found.keys() == alone.keys()
    compared = 0
    for name, expected in alone.items():
        if name.startswith(("own statistics", "record")) or "/weight/" in name:
            continue
        error = float((found[name] - expected).abs().max())
        assert error <= 1e-9 * max(1.0, float(expected.abs().max())), name  # of doubles
        compared += "/gradient/" in name
    assert compared > 10 * len(LEARNERS)


@BOTH
def test_all_processes_hold_the_same_to_the_bit(groups: Groups, size: int) -> None:
    folder = groups.folder[size]
    first, *others = (load_file(folder / f"parts-{rank}.safetensors") for rank in range(size))
    for other in others:
        assert all(torch.equal(tensor, other[name]) for name, tensor in first.items())
    for run in ("whole", "own", "clock"):
        assert (folder / run / "last" / "model.safetensors").exists()


@BOTH
def test_evaluation_is_the_same_to_the_bit(groups: Groups, size: int, alone: dict[str, Tensor]) -> None:
    found = load_file(groups.folder[size] / "parts-0.safetensors")
    record = [name for name in alone if name.startswith("record/")]
    assert len(record) == len(asdict(evaluation(ALONE)))
    for name in record:
        assert torch.equal(found[name], alone[name]), name


@BOTH
def test_without_synchronising_each_process_goes_by_its_own_statistics(
    groups: Groups, size: int, alone: dict[str, Tensor]
) -> None:
    found = load_file(groups.folder[size] / "parts-0.safetensors")
    gradient = "own statistics/gradient/encoder.blocks.1.weight"
    assert not torch.allclose(found[gradient], alone[gradient], atol=1e-4)
    # ... and their averages are averaged, which gives the mean of the whole (but for pictures per share).
    mean = "own statistics/buffer/blocks.0.average_mean"
    torch.testing.assert_close(found[mean], alone[mean], atol=2e-3, rtol=0.05)


@BOTH
def test_they_understand_each_other(groups: Groups, size: int) -> None:
    folder = groups.folder[size]
    told = [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(size)]
    for each in told:
        assert each["gathered"] == [{"rank": r, "words": "x" * 5 * r} for r in range(size)]
        assert each["bytes"] == list(range(size))
        assert each["first"] == [0, 0.1]
        assert each["any"] == [False, True]
        assert each["sums"] == [sum(range(size)), size / 2]
        assert each["spread"] == [[0.0] * 3] * 2
    # Clocks that run apart: all go by the first one's.
    assert len({each["clock"] for each in told}) == 1
    assert told[0]["clock"] > 1
    # A run that cannot begin: one says why, all end.
    assert told[0]["refused"][0] == "WanderError"
    assert "is not empty" in told[0]["refused"][1]
    assert [each["refused"] for each in told[1:]] == [["SystemExit", "2"]] * (size - 1)


@BOTH
def test_a_whole_run_is_that_of_one_process(groups: Groups, size: int, tmp_path: Path) -> None:
    folder = groups.folder[size]
    whole_run(tmp_path / "alone", ALONE)
    found, expected = log_of(folder / "whole"), log_of(tmp_path / "alone")
    assert found[0] == {"stage": "sequences", "step": 0, "processes": size}
    assert_like(found[1:], expected)
    one, other = ((run / "config.json").read_text() for run in (folder / "whole", tmp_path / "alone"))
    assert one == other  # what a run is does not depend on who carries it out


def test_a_run_goes_on_with_another_number_of_processes(groups: Groups, tmp_path: Path) -> None:
    for size, ended in ((2, ["interrupted", 2]), (3, ["finished", 6])):
        told = [json.loads((groups.folder[size] / f"told-{r}.json").read_text())["run"] for r in range(size)]
        assert told == [told[0]] * size  # also of two of which one was asked to stop
        assert told[0][:2] == ended
    about = about_model(groups.run / "last" / "model.safetensors")
    assert about["processes"] == 3

    whole_run(tmp_path / "alone", ALONE)
    log = log_of(groups.run)
    assert [(line["step"], line["processes"]) for line in log if "processes" in line] == [
        (0, 2),
        (2, 1),
        (4, 3),
    ]
    assert_like([line for line in log if "processes" not in line], log_of(tmp_path / "alone"))
    run, alone = (load_tensors(r / "best" / "model.safetensors")[0] for r in (groups.run, tmp_path / "alone"))
    for name, tensor in run.items():
        torch.testing.assert_close(tensor, alone[name], atol=2e-3, rtol=2e-3)


def test_when_one_is_killed_all_end_and_torchrun_goes_on_from_the_last_checkpoint(
    groups: Groups, tmp_path: Path
) -> None:
    done = torchrun(2, 1, "killed", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "lost touch with the others" in done.stderr
    assert "--max-restarts" in done.stderr
    # To the bit what two processes do whom nobody kills.
    undisturbed = groups.folder[2] / "whole"
    assert log_of(tmp_path / "run") == log_of(undisturbed)
    for which in ("last", "best"):
        assert weights_of(tmp_path / "run", which) == weights_of(undisturbed, which)


def test_a_kill_without_restarts_ends_the_others_with_a_sentence(tmp_path: Path) -> None:
    (code, err, _), (killed, _, _) = start_together(2, "killed", str(tmp_path))
    assert killed == -signal.SIGKILL
    assert code == 1
    assert "Process 0 of 2 lost touch with the others" in err
    # What it had saved is whole: the last validation was after step 3.
    about = about_model(tmp_path / "run" / "last" / "model.safetensors")
    assert about["progress"]["step"] == 3


def test_the_command_prints_and_writes_the_same_for_any_number_of_processes(groups: Groups) -> None:
    results = {size: json.loads(path.read_text()) for size, path in groups.result.items()}
    assert [results[size].pop("processes") for size in results] == [1, 2, 3]
    for result in results.values():
        del result["seconds"], result["seconds_per_sequence"]
        assert result == results[1]
    assert len(untimed(groups.shown[1][0])) > 10
    for first, *others in groups.shown.values():
        assert untimed(first) == untimed(groups.shown[1][0])
        assert others == [""] * len(others)


def untimed(text: str) -> list[str]:
    return [line for line in text.splitlines() if "seconds" not in line]


def assert_like(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Logs that differ by rounding alone. Rounding grows along a run, so figures agree to three digits."""
    assert [line.keys() for line in found] == [line.keys() for line in expected]
    for one, other in zip(found, expected, strict=True):
        assert (one["step"], one["stage"]) == (other["step"], other["stage"])
        for name in ("loss", "naming", "novelty", "grad_norm"):
            if name in one:
                assert one[name] == pytest.approx(other[name], rel=2e-3), (one, other)
