"""Benchmarks measure what they say, at sizes that take no time. How fast it is is not tested here."""

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.tiny_world import tiny_pictures
from wanderlearn.bench.agent import bench_agent
from wanderlearn.bench.encoder import bench_encoder
from wanderlearn.bench.evaluate import bench_evaluate
from wanderlearn.bench.measure import interleaved, measured_on, median_ratio, noise_pictures, repeated
from wanderlearn.bench.sampler import bench_sampler
from wanderlearn.bench.step import bench_step
from wanderlearn.bench.train import bench_train, encoding, training
from wanderlearn.cli import bench as bench_command
from wanderlearn.cli import main
from wanderlearn.errors import WanderError
from wanderlearn.model import build
from wanderlearn.presets import METHODS, PRESETS
from wanderlearn.results import write_result
from wanderlearn.worlds import Roaming, RoamingConfig

SHORT = RoamingConfig(environments=2, classes=8, length=16, per_class=4)
SCRIPTS = Path(__file__).parents[1] / "benchmarks"


def figures_of(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from figures_of(inner)
    elif isinstance(value, int | float):
        yield value


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_work_takes_turns_and_the_first_round_is_not_counted() -> None:
    order: list[str] = []
    seconds = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=3)
    assert order == ["a", "b"] * 4
    assert {name: len(s) for name, s in seconds.items()} == {"a": 3, "b": 3}


def test_a_ratio_is_taken_within_rounds() -> None:
    # The machine got ten times slower in the second round, for both.
    assert median_ratio([2.0, 20.0, 2.2], [1.0, 10.0, 1.0]) == 2.0


def test_repeating_repeats() -> None:
    calls: list[int] = []
    repeated(lambda: calls.append(1), 5)()
    assert len(calls) == 5


def test_noise_has_the_shape_of_omniglots_training_split() -> None:
    pictures = noise_pictures()
    assert pictures.images.shape == (3948 * 20, 1, 28, 28)
    assert (pictures.classes, pictures.families) == (3948, 31)
    assert len(pictures.class_of) == len(pictures.images)
    assert 100 < pictures.images.mean() < 155


def test_what_was_measured_on_is_told_without_naming_the_machine() -> None:
    told = measured_on()
    assert told["threads"] == torch.get_num_threads()
    assert told.keys() == {"threads", "cores", "instructions", "torch", "version", "commit"}
    json.dumps(told, allow_nan=False)


@pytest.fixture(scope="module")
def benches() -> dict[str, dict[str, Any]]:
    few: dict[str, Any] = {"batch_size": 2, "rounds": 1}
    return {
        "sampler": bench_sampler(tiny_pictures(), batches=2, **few),
        "encoder": bench_encoder(pictures=8, repeats=1),
        "train": bench_train(METHODS, tiny_pictures(), roaming=SHORT, **few),
        "evaluate": bench_evaluate(tiny_pictures("test"), roaming=SHORT, batches=1, **few),
        "step": bench_step(classes=5, growth=(5, 10, 20), meetings=1, rounds=1),
        "agent": bench_agent(classes=5, many=70, meetings=1, few=1, rounds=1),
    }


def test_every_figure_is_above_zero(benches: dict[str, dict[str, Any]]) -> None:
    for name, found in benches.items():
        named = {key: value for key, value in found.items() if key != "growth_exponent"}
        assert all(figure > 0 for figure in figures_of(named)), name
    wanted = {
        "sampler": {"sequences_per_second", "sequences_with_pictures_per_second"},
        "train": {"step_over_encoder", "step_over_encoder_semi", "encoder_seconds", "peak_memory_gb"},
        "evaluate": {"sequences_per_second", "evaluation_over_encoder"},
        "step": {"meeting_over_encoder", "growth", "growth_exponent"},
        "agent": {"meeting_over_encoder", "ms_at_100000_classes", "wayfarer"},
    }
    for name, keys in wanted.items():
        assert keys <= benches[name].keys()


def test_the_ratios_of_training_are_those_of_its_seconds(benches: dict[str, dict[str, Any]]) -> None:
    found = benches["train"]
    assert "cpm" not in found
    for figures in (found, *(found[name] for name in METHODS[1:])):
        # There was one round, so the median is that round.
        ratio = figures["step_seconds"] / figures["encoder_seconds"]
        assert figures["step_over_encoder"] == pytest.approx(ratio)
        ratio = figures["step_seconds_semi"] / figures["encoder_seconds"]
        assert figures["step_over_encoder_semi"] == pytest.approx(ratio)
    with pytest.raises(WanderError, match="no learner 'transformer'"):
        bench_train(["transformer"])


def test_the_figures_of_a_meeting_agree(benches: dict[str, dict[str, Any]]) -> None:
    found = benches["step"]
    assert found["growth"].keys() == found["growth_learner"].keys() == {"5", "10", "20"}
    assert found["meeting_over_encoder"] == pytest.approx(found["meeting_seconds"] / found["encoder_seconds"])
    assert found["growth"]["5"] == found["meeting_seconds"]
    grown = found["growth_learner"]
    assert 2 ** found["growth_exponent"] == pytest.approx(grown["20"] / grown["10"])


def test_the_training_step_is_a_real_one_and_the_encoders_is_not() -> None:
    world = Roaming(tiny_pictures(), SHORT)
    model = build(PRESETS["cpm-omniglot"].model).train()

    def weights() -> dict[str, torch.Tensor]:
        return {name: value.detach().clone() for name, value in model.named_parameters()}

    before = weights()
    floor, step = encoding(model, world, 2), training(model, world, 2)
    floor()
    assert all(torch.equal(value, before[name]) for name, value in weights().items())
    step()
    changed = {name for name, value in weights().items() if not torch.equal(value, before[name])}
    assert any(name.startswith("encoder") for name in changed)
    assert any(name.startswith("learner") for name in changed)


def stand_in(name: str) -> Any:
    def measure(learners: tuple[str, ...] = ()) -> dict[str, Any]:
        return {"ratio": 1.5, "growth": {"50": 0.25}} | {"learners": list(learners)} | {"of": name}

    return measure


def test_the_command_shows_one_or_all_benchmarks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(bench_command, "_bench", stand_in)
    main(["bench", "step", "--json", "-"])
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["kind"], found["name"], found["ratio"]) == (1, "bench", "step", 1.5)
    assert found["measured_on"]["torch"] == torch.__version__
    main(["bench", "train", "--learner", "protonet", "imp", "--json", str(tmp_path / "train.json")])
    assert json.loads((tmp_path / "train.json").read_text())["learners"] == ["protonet", "imp"]
    shown = capsys.readouterr().out
    assert "growth 50" in shown
    assert "0.25" in shown
    main(["bench", "--json", "-"])
    every = json.loads(capsys.readouterr().out)
    assert {name: every[name]["of"] for name in bench_command.BENCHES} == {
        n: n for n in bench_command.BENCHES
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["speed"], "no benchmark 'speed'"),
        (["step", "--learner", "imp"], "--learner is for the benchmark train"),
        (["step", "--threads", "0"], "--threads must be at least 1"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_words(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["bench", *arguments])
    assert exit_.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("name", bench_command.BENCHES)
def test_every_benchmark_the_command_names_exists(name: str) -> None:
    assert callable(bench_command._bench(name))


def test_the_page_is_filled_in_from_results_alone(
    benches: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    growth = script("cost_growth", monkeypatch)
    profile = script("step_profile", monkeypatch)
    performance = script("performance", monkeypatch)
    small = {"length": 6, "classes": 3, "batch": 2, "features": 4}
    grown = growth.cost_growth(small, {"length": (3, 6), "classes": (2, 3)}, rounds=1)
    row = grown["axes"]["length"]["seconds"]
    assert 2 ** grown["axes"]["length"]["exponent"]["told"] == pytest.approx(row[1]["told"] / row[0]["told"])
    parts = profile.step_profile(tiny_pictures(), roaming=SHORT, batch_size=2, rounds=1)
    assert all(figure > 0 for figure in figures_of(parts))
    told = {"measured_on": measured_on() | {"commit": "0123456789abcdef+dirty"}}
    for name, figures in (benches | {"encoder": {"pictures_per_second": 12345.6, "speedup": 3.214}}).items():
        write_result(tmp_path / f"bench-{name}.json", {"kind": "bench", **figures, **told})
    write_result(tmp_path / "cost-growth.json", {"kind": "cost-growth", **grown, **told})
    write_result(tmp_path / "step-profile.json", {"kind": "step-profile", "parts": parts, **told})
    page = tmp_path / "performance.md"
    page.write_text(performance.PAGE.read_text())
    performance.tables(tmp_path, page)
    filled = page.read_text()
    assert re.search(r"over its plain definition +\| +3.21 \|", filled)
    assert re.search(r"trained on per second +\| +12346 \|", filled)
    assert "commit `0123456789ab` with changes" in filled
    assert filled.count("| imp ") == 1
    for name in ("overview", "learners", "step-profile", "cost-growth", "meeting"):
        table = filled.split(f"<!-- {name}:begin -->")[1].split(f"<!-- {name}:end -->")[0]
        assert table.count("\n|") >= 4, name
    performance.tables(tmp_path, page)
    assert page.read_text() == filled
