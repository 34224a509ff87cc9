"""Groups without processes: shares, chance, statistics of parts, and what is made of them."""

import importlib.util
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.distributed.jobs import evaluation
from tests.distributed.threads import together
from tests.rooms.recordings import TINY, contents
from tests.tiny_runs import pictures, run, tiny_preset
from wanderlearn.bench.distributed import bench_distributed
from wanderlearn.checkpoint import open_run
from wanderlearn.distributed import ALONE, Group, joined, launched, restarted
from wanderlearn.errors import WanderError
from wanderlearn.files import write_json
from wanderlearn.learners.chance import drawn, part_of
from wanderlearn.learners.encoders import Conv4, Conv4Config
from wanderlearn.learners.together import joint_moments, synchronise
from wanderlearn.learners.vectors import Vectors, VectorsConfig
from wanderlearn.pictures import glyphs as glyphs_module
from wanderlearn.rooms.recorder import record_worlds
from wanderlearn.singles import SinglePictures
from wanderlearn.worlds import RoamingConfig

ROOT = Path(__file__).parents[2]


@given(count=st.integers(0, 100), size=st.integers(1, 20))
def test_shares_leave_nothing_out_and_are_even(count: int, size: int) -> None:
    shares = [Group(rank, size).share(count) for rank in range(size)]
    assert [n for share in shares for n in share] == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_one_process_needs_neither_torch_nor_others() -> None:
    code = (
        "import sys; from wanderlearn.distributed import joined\n"
        "with joined() as group:\n"
        "    assert group.numbers(1.5) == [1.5] and group.gather('x') == ['x'] and not group.any(False)\n"
        "    assert group.by_first(lambda: 3) == 3 and group.gather_bytes(b'y') == [b'y']\n"
        "    group.barrier()\n"
        "assert not any(name.startswith('torch') for name in sys.modules)"
    )
    alone = {name: value for name, value in os.environ.items() if name not in ("WORLD_SIZE", "RANK")}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=alone)


def test_an_environment_that_does_not_add_up_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(WanderError, match=r"LOCAL_RANK.*torchrun"), joined():
        pass
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(WanderError, match="WORLD_SIZE must be a whole number"), joined():
        pass


@given(size=st.integers(1, 6), total=st.integers(1, 7), width=st.integers(1, 5), dim=st.integers(0, 1))
def test_a_sequence_draws_the_same_in_a_part_as_in_the_whole(
    size: int, total: int, width: int, dim: int
) -> None:
    def some(count: int) -> torch.Tensor:
        torch.manual_seed(3)
        return drawn(torch.empty((count, width) if dim == 0 else (width, count)), torch.Tensor.uniform_, dim)

    parts = []
    for rank in range(size):
        share = Group(rank, size).share(total)
        with part_of(share.start, total):
            parts.append(some(len(share)))
    assert torch.equal(torch.cat(parts, dim), some(total))


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=5), offset=st.floats(-100, 100))
def test_moments_of_parts_are_those_of_the_whole(counts: list[int], offset: float) -> None:
    if not sum(counts):
        counts = [*counts, 2]
    values = torch.randn(sum(counts), 3, generator=torch.Generator().manual_seed(0)).double() + offset
    split = torch.split(values, counts)
    parts = [(p.mean(0), (p - p.mean(0)).square().mean(0), len(p)) for p in split]  # of nothing: no numbers
    said: list[torch.Tensor] = []
    for part in parts:
        joint_moments(*part, lambda sums: said.append(sums) or torch.ones_like(sums))  # type: ignore[func-returns-value]
    for part in parts:
        mean, variance, count = joint_moments(*part, lambda _: torch.stack(said).sum(0))
        assert count == len(values)
        torch.testing.assert_close(mean, values.mean(0))
        torch.testing.assert_close(variance, (values - values.mean(0)).square().mean(0), atol=1e-9, rtol=1e-9)


@settings(max_examples=25)
@given(sizes=st.lists(st.integers(0, 4), min_size=1, max_size=4), channels=st.sampled_from([1, 5]))
def test_batch_norm_over_parts_is_that_of_the_whole(sizes: list[int], channels: int) -> None:
    if not sum(sizes):
        sizes = [*sizes, 2]
    torch.manual_seed(0)
    whole = Conv4(Conv4Config(image_size=8, in_channels=channels, channels=3, blocks=2)).double().train()
    images = torch.randn(sum(sizes), channels, 8, 8, dtype=torch.float64)
    weights = torch.randn(sum(sizes), whole.feature_dim, dtype=torch.float64)
    copies = []
    for _ in sizes:
        copy = Conv4(whole.config).double().train()
        copy.load_state_dict(whole.state_dict())
        copies.append(copy)
    expected = whole(images)
    (expected * weights).sum().backward()
    cut, theirs = torch.split(images, sizes), torch.split(weights, sizes)

    def work(group: Group) -> torch.Tensor:
        encoder = copies[group.rank]
        synchronise(encoder, group.sum)
        features: torch.Tensor = encoder(cut[group.rank])
        (features * theirs[group.rank]).sum().backward()  # type: ignore[no-untyped-call]
        return features.detach()

    torch.testing.assert_close(torch.cat(together(len(sizes), work)), expected.detach(), atol=1e-9, rtol=1e-9)
    for name, parameter in whole.named_parameters():
        gradients = [copy.get_parameter(name).grad for copy in copies]
        total = sum(g for g in gradients if g is not None)
        torch.testing.assert_close(total, parameter.grad, atol=1e-9, rtol=1e-9)
    for copy in copies:
        for name, buffer in whole.named_buffers():
            torch.testing.assert_close(copy.get_buffer(name), buffer, atol=1e-12, rtol=1e-9)


def test_only_encoders_that_can_synchronise_do() -> None:
    synchronise(Vectors(VectorsConfig(width=3)), ALONE.sum)  # nothing to synchronise
    with pytest.raises(WanderError, match="sync-batch-norm"):
        synchronise(torch.nn.Sequential(torch.nn.BatchNorm2d(3)), ALONE.sum)


@pytest.mark.parametrize("size", range(1, 6))
def test_evaluation_is_the_same_in_any_group(size: int) -> None:
    expected = asdict(evaluation(ALONE))
    torch.manual_seed(1)
    found = together(size, lambda group: asdict(_same_model(group)))
    for each in found:
        assert all((each[name] == expected[name]).all() for name in expected)


def _same_model(group: Group) -> Any:
    """Threads share torch's generator: the first one draws the model for all."""
    from tests.distributed import jobs

    answers: list[Any] = [None]
    for rank in range(group.size):  # one after the other, as far as chance goes
        group.barrier()
        if rank == group.rank:
            answers[0] = jobs.evaluation_model()
    return jobs.evaluation(group, model=answers[0])


def test_pictures_of_shares_are_those_of_the_whole() -> None:
    data = SinglePictures(pictures("train"), RoamingConfig(), 0, batch_size=7, warp=1.0, flip=True)
    images, classes = data.batch(3)
    for size in (1, 2, 3, 7):
        parts = [data.batch(3, Group(rank, size).share(7)) for rank in range(size)]
        torch.testing.assert_close(torch.cat([part[0] for part in parts]), images, atol=1e-6, rtol=0)
        assert torch.equal(torch.cat([part[1] for part in parts]), classes)


def test_glyphs_drawn_by_many_are_those_drawn_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"train": (2, 1), "val": (1,), "test": (1, 2)}
    for split, counts in few.items():
        monkeypatch.setitem(glyphs_module.CHARACTERS, split, counts)  # type: ignore[misc]
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "one"))
    expected = glyphs_module.glyphs("test").images
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "many"))
    together(3, glyphs_module.draw_together)
    monkeypatch.setattr(glyphs_module, "_draw_all", None)  # it must be there
    assert (glyphs_module.glyphs("test").images == expected).all()
    one, many = (sorted((tmp_path / name / "glyphs").iterdir()) for name in ("one", "many"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in many]


def test_homes_recorded_by_many_are_those_recorded_by_one(tmp_path: Path) -> None:
    config, seeds = replace(TINY, frames=12), (3, 4)
    expected = record_worlds(seeds, tmp_path / "one", config)
    found = together(2, lambda group: record_worlds(seeds, tmp_path / "many", config, group=group))
    assert found == [expected] * 2
    assert contents(tmp_path / "many") == contents(tmp_path / "one")


def test_the_page_is_filled_in_from_the_result(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("scaling", ROOT / "benchmarks" / "scaling.py")
    assert spec
    assert spec.loader
    scaling = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scaling)
    # A step of one second and a message of 10 MB over 1 Gbit/s: each of two sends all of it once.
    assert scaling.expected(1.0, 10_000_000, 2, scaling.GIGABIT) == pytest.approx(1 / (0.5 + 0.08))
    names = (
        "seconds",
        "seconds_together",
        "part_seconds",
        "exchange_seconds",
        "predicted_speedup",
        "speedup",
    )
    figures = dict.fromkeys((*names, "efficiency"), 1.25)
    counts = {"parameters": 476357, "exchange_bytes": 1907568, "batch_size": 16}
    machine = {"cores": 2, "torch": "2.6"}
    write_json(
        tmp_path / "r.json", {"format": 1, "kind": "bench"} | figures | counts | {"measured_on": machine}
    )
    page = tmp_path / "scaling.md"
    page.write_text((ROOT / "docs" / "scaling.md").read_text())
    scaling.tables(tmp_path / "r.json", page)
    assert page.read_text().count("1907568") == 1
    assert "Not measured yet" not in page.read_text()


def test_what_torchrun_starts_again_goes_on_with_its_own_run_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "first")
    assert (launched(), restarted()) == ("first", False)
    folder, config = tmp_path / "run", {"seed": 1}
    with open_run(folder, config, {}, resume=False, launch=launched()):
        pass
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert restarted()
    with open_run(folder, config, {}, resume=False, launch=launched(), again=restarted()) as opened:
        assert opened.folder == folder
    with (
        pytest.raises(WanderError, match="is not empty"),
        open_run(folder, config, {}, resume=False, launch="second", again=True),
    ):
        pass
    with open_run(tmp_path / "new", config, {}, resume=False, launch="second", again=True):
        pass  # it had ended before it had begun


def test_a_run_from_before_there_were_these_options_goes_on(tmp_path: Path) -> None:
    before, now = {"train": {"seed": 1}}, {"train": {"seed": 1, "precision": "float32"}}
    with open_run(tmp_path / "run", before, {}, resume=False):
        pass
    with open_run(tmp_path / "run", now, {}, resume=True):
        pass
    changed = {"train": {"seed": 1, "precision": "bfloat16"}}
    with pytest.raises(WanderError, match="precision"), open_run(tmp_path / "run", changed, {}, resume=True):
        pass


def test_more_processes_than_pictures_to_pretrain_on_is_an_error() -> None:
    from tests.distributed.jobs import stage_of, tiny_world
    from wanderlearn.distributed.compute import Compute
    from wanderlearn.model import build

    preset = tiny_preset()
    with pytest.raises(WanderError, match=r"raise --pretrain\.batch-size"):
        stage_of("pretrain", build(preset.model), tiny_world("train"), preset.train, Compute(Group(0, 8)))


def test_one_process_alone_logs_nothing_of_processes(tmp_path: Path) -> None:
    run(tiny_preset(steps=1), tmp_path / "run")
    assert "processes" not in (tmp_path / "run" / "log.jsonl").read_text()


def test_the_benchmark_measures_two_real_processes() -> None:
    found = bench_distributed(batch_size=2, rounds=1, small=True)
    assert found["processes"] == 2
    assert found["speedup"] == pytest.approx(found["seconds"] / found["seconds_together"])  # of one round
    assert found["efficiency"] == pytest.approx(found["speedup"] / 2)
    assert found["exchange_bytes"] > 4 * found["parameters"]
    assert min(value for value in found.values() if isinstance(value, float)) > 0
    assert np.isfinite(list(found.values())).all()
