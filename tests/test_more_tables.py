"""Seeds in `wander table`, and its --forgetting and --ablations: ours beside the paper's."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.test_table import put, refused, shown, told
from tests.tiny_runs import tiny_preset
from wanderlearn.cli import main
from wanderlearn.configs import to_json
from wanderlearn.feature_training import FeaturesConfig
from wanderlearn.learners.ablations import ABLATIONS, ARCHITECTURE_ABLATIONS, SEMI_ABLATIONS, slug_of
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.metrics import BINS
from wanderlearn.paper import ARCHITECTURE_ABLATION_AP, SEMI_ABLATION_AP
from wanderlearn.presets import ABLATION_PRESETS
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.report.recipe import recipe

# Seeds --------------------------------------------------------------------------------------------------


def test_further_seeds_stand_beside_their_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "cpm-omniglot-semi", 90.0)
    put(tmp_path, "cpm-omniglot-semi-seed10", 94.0, semi=True, train={"seconds": 1.0, "seed": 10})
    put(tmp_path, "cpm-omniglot-semi-seed2", 92.0, semi=True, train={"seconds": 1.0, "seed": 2})
    put(tmp_path, "imp-omniglot-semi", 80.0)
    table = told(capsys, "omniglot", "--results", str(tmp_path))
    cpm = table["rows"][0]["semi"]
    assert cpm["seeds"] == {"ap": [90.0, 92.0, 94.0], "mean": 92.0, "spread": 2.0, "count": 3}
    assert (cpm["ap"], cpm["seconds"]) == (90.0, 5400.0)  # the row itself stays the first seed's
    assert table["rows"][3]["semi"]["seeds"] is None
    assert table["warnings"] == []
    lines = [
        " ".join(line.split()) for line in shown(capsys, "omniglot", "--results", str(tmp_path)).splitlines()
    ]
    assert any(line.startswith("CPM - - - 90.00 92.00 ± 2.00 80.12") for line in lines)
    assert any(line.startswith("Online IMP - - - 80.00 - 80.12") for line in lines)
    assert "seeds: mean ± standard deviation of AP over 3 seeds" in lines
    supervised, semi = shown(capsys, "omniglot", "--results", str(tmp_path), "--markdown").split("**Semi-")
    assert "seeds" not in supervised
    assert "| AP, mean ± sd of seeds |" in semi
    assert "92.00 ± 2.00 (3) |" in semi


def test_the_column_of_further_runs_fits_and_is_only_there_when_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for suffix in ("", "-semi"):
        put(tmp_path, f"cpm-omniglot{suffix}", 90.0)
    assert "seeds" not in shown(capsys, "omniglot", "--results", str(tmp_path))
    for suffix in ("", "-semi"):
        put(tmp_path, f"cpm-omniglot{suffix}-seed1", 91.0, semi=bool(suffix))
    table = shown(capsys, "omniglot", "--results", str(tmp_path)).split("supervised:")[0]
    assert max(map(len, table.splitlines())) <= 100
    assert "…" not in table
    assert table.count("90.50 ± 0.71") == 2


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"shuffle": True}, "its shuffle is True, not False"),
        ({"preset": "imp-omniglot"}, "it was trained by the preset imp-omniglot, not cpm-omniglot"),
        ({"manifest_sha256": "00"}, "it was not tested on the sequences of cpm-omniglot.json"),
        ({"train": {"seed": 0}}, "it was trained from seed 0, not 3"),
        ({"metrics": {"ap": None}}, "it has no AP"),
    ],
)
def test_what_only_looks_like_a_seed_is_passed_over(
    changes: dict[str, Any], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, "cpm-omniglot")
    path = put(tmp_path, "cpm-omniglot-seed3", **changes)
    table = told(capsys, "omniglot", "--results", str(tmp_path))
    assert table["rows"][0]["supervised"]["seeds"] is None
    assert table["warnings"] == [f"{path} is passed over: {reason}."]


@pytest.mark.parametrize(
    ("config", "clause"),
    [
        (None, None),
        ({"kind": "preset"}, None),
        ({"train": {"minutes": 10.0}, "pretrain": None}, "10 minutes on sequences"),
        (
            {
                "pretrain": {"epochs": 45.0, "minutes": None},
                "features": {"steps": 1500},
                "train": {"steps": 2000},
            },
            "45 epochs of pretraining, 1,500 steps on features, 2,000 steps on sequences",
        ),
        (
            {"encoder": "0123456789abcdef", "pretrain": None, "train": {"steps": 80000, "minutes": 60.0}},
            "encoder of the weights 0123456789ab, 80,000 steps or 60 minutes on sequences",
        ),
    ],
)
def test_a_recipe_is_one_clause(config: dict[str, Any] | None, clause: str | None) -> None:
    assert recipe(config) == clause


def test_the_recipe_of_a_preset_is_read_from_its_config() -> None:
    preset = replace(tiny_preset(), pretrain=PretrainConfig(epochs=2.5), features=FeaturesConfig(steps=4))
    assert recipe(to_json(preset)) == "2.5 epochs of pretraining, 4 steps on features, 6 steps on sequences"


# Forgetting ---------------------------------------------------------------------------------------------


def cells(start: float) -> list[dict[str, Any]]:
    """30 cells as in a result, all different: bin b after n labels is start + 10 b + n."""
    return [
        {"first": first, "last": last, "shots": n, "accuracy": start + 10 * b + n, "queries": 100 * b + n}
        for b, (first, last) in enumerate(BINS)
        for n in range(1, 6)
    ]


def forgot(folder: Path, name: str, **changes: Any) -> Path:
    metrics = {"ap": 90.0, "forgetting": {"appearance": cells(30.0), "label": cells(0.0)}}
    return put(folder, name, **({"metrics": metrics} | changes))


def test_forgetting_counts_from_the_last_appearance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forgot(tmp_path, "cpm-omniglot-semi")
    table = told(capsys, "omniglot", "--forgetting", "--results", str(tmp_path))
    assert set(table) == {"format", "kind", "world", "since", "rows", "missing", "warnings"}
    assert (table["kind"], table["world"], table["since"]) == ("forgetting-table", "omniglot", "appearance")
    assert [(row["setting"], row["learner"], row["shots"]) for row in table["rows"]] == [
        (setting, learner, n)
        for setting in ("supervised", "semi")
        for learner in ("protonet", "cpm", "wayfarer")
        for n in (1, 3)
    ]
    row = table["rows"][-3]  # CPM, semi, after 3 labels
    assert set(row) == {"learner", "setting", "shots", "cells"}
    assert row["cells"][0] == {"first": 1, "last": 2, "ours": 33.0, "queries": 3, "paper": 98.7}
    assert row["cells"][5] == {"first": 51, "last": 100, "ours": 83.0, "queries": 503, "paper": 92.9}
    assert all(cell["ours"] is None for row in table["rows"][:8] for cell in row["cells"])
    assert table["rows"][2]["cells"][0]["paper"] == 96.1
    assert all(cell["paper"] is None for cell in table["rows"][-1]["cells"])  # ours is not in the paper
    assert len(table["missing"]) == 5
    assert not any(command.startswith("wander train cpm-omniglot-semi ") for command in table["missing"])


def test_forgetting_is_shown_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forgot(tmp_path, "cpm-omniglot", sequences=1500)
    table = shown(capsys, "omniglot", "--forgetting", "--results", str(tmp_path))
    lines = [" ".join(line.split()) for line in table.splitlines()]
    at = lines.index("CPM 1 ours 31.0 41.0 51.0 61.0 71.0 81.0")
    assert lines[at + 1] == "CPM 1 paper 96.1 94.0 93.0 91.6 88.2 84.6"
    assert "CPM 3 paper 98.7 97.5 97.5 96.5 96.3 92.9" in lines
    assert "queries 1 each seed 1 101 201 301 401 501" in lines
    assert sum(line.startswith("queries") for line in lines) == 2  # nothing of ours with few labels
    assert "wander train protonet-omniglot-semi && " in table
    assert table.count("None of ours yet") == 1
    assert "Ours on 1,500 test sequences." in table
    text = shown(capsys, "omniglot", "--forgetting", "--results", str(tmp_path), "--markdown")
    assert text.startswith("**Forgetting, supervised**\n\n| method ")
    assert re.search(r"\| CPM +\| +1 \| ours +\| 31\.0 \| 41\.0 ", text)


def test_forgetting_is_the_mean_of_the_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forgot(tmp_path, "cpm-omniglot")
    others = {"ap": 90.0, "forgetting": {"appearance": cells(36.0), "label": cells(0.0)}}
    forgot(tmp_path, "cpm-omniglot-seed1", metrics=others)
    strange = forgot(tmp_path, "cpm-omniglot-seed2", metrics=others, manifest_sha256="00")
    forgot(tmp_path, "protonet-omniglot")
    table = told(capsys, "omniglot", "--forgetting", "--results", str(tmp_path))
    of_one, of_two = table["rows"][0]["cells"][5], table["rows"][2]["cells"][5]  # 51-100 after 1 label
    assert (of_one["ours"], of_two["ours"]) == (81.0, 84.0)
    assert of_one["queries"] == of_two["queries"] == 501
    sequences = "it was not tested on the sequences of cpm-omniglot.json"
    assert table["warnings"] == [f"{strange} is passed over: {sequences}."]
    text = shown(capsys, "omniglot", "--forgetting", "--results", str(tmp_path))
    assert "the mean of 1 to 2 seeds." in " ".join(text.split())


def test_forgetting_of_glyphs_has_no_lines_of_the_paper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forgot(tmp_path, "cpm-glyphs", world="glyphs")
    assert "paper" not in shown(capsys, "glyphs", "--forgetting", "--results", str(tmp_path))
    table = told(capsys, "glyphs", "--forgetting", "--results", str(tmp_path))
    assert table["rows"][2]["cells"][0] == {"first": 1, "last": 2, "ours": 31.0, "queries": 1, "paper": None}


def test_forgetting_passes_over_what_is_no_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = forgot(tmp_path, "cpm-omniglot", split="val")
    table = told(capsys, "omniglot", "--forgetting", "--results", str(tmp_path))
    assert table["warnings"] == [f"{path} is passed over: its split is 'val', not 'test'."]
    assert len(table["missing"]) == 6
    forgot(tmp_path, "cpm-omniglot")
    forgot(tmp_path, "protonet-omniglot", manifest_sha256="55")
    (warning,) = told(capsys, "omniglot", "--forgetting", "--results", str(tmp_path))["warnings"]
    assert "supervised rows" in warning
    put(tmp_path, "protonet-omniglot")
    assert "lacks figures of one" in refused(capsys, "omniglot", "--forgetting", "--results", str(tmp_path))


# Ablations ----------------------------------------------------------------------------------------------


def ablated(folder: Path, slug: str, ap: float | None = 90.0, **changes: Any) -> Path:
    config = {"kind": "model", "learner": to_json(ABLATIONS[slug])}
    return put(
        folder, f"ablations/{slug}-omniglot-semi", ap, **({"split": "val", "config": config} | changes)
    )


def test_every_row_of_the_ablations_has_a_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = told(capsys, "omniglot", "--ablations", "--results", str(tmp_path))
    assert set(table) == {
        "format", "kind", "world", "split", "semi", "architecture", "semi_supervised", "missing", "warnings",
    }  # fmt: skip
    assert {row["name"]: row["paper_ap"] for row in table["architecture"]} == ARCHITECTURE_ABLATION_AP
    assert {row["name"]: row["paper_ap"] for row in table["semi_supervised"]} == SEMI_ABLATION_AP
    assert all(row["ap"] is None for row in table["architecture"] + table["semi_supervised"])
    assert len(table["missing"]) == len(set(table["missing"])) == 15
    trained = {command.split()[2] for command in table["missing"]}
    assert trained == ABLATION_PRESETS.keys()
    assert (
        "wander train no-metric-omniglot-semi && wander evaluate runs/no-metric-omniglot-semi --split val "
        f"--json {tmp_path}/ablations/no-metric-omniglot-semi.json" in table["missing"]
    )
    shown_ = shown(capsys, "omniglot", "--ablations", "--results", str(tmp_path))
    assert all(command in shown_ for command in table["missing"])


def test_slugs_name_each_different_row_once() -> None:
    every = [*ARCHITECTURE_ABLATIONS.values(), *SEMI_ABLATIONS.values()]
    assert {slug_of(config) for config in every} == set(ABLATIONS)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug) for slug in ABLATIONS)
    assert slug_of(ARCHITECTURE_ABLATIONS["h = h_RNN"]) == "h-is-h-rnn"
    assert slug_of(SEMI_ABLATIONS["CPM"]) == "semi-cpm"
    assert slug_of(SEMI_ABLATIONS["Online ProtoNet"]) == "semi-online-protonet"
    assert slug_of(CPMConfig()) == "cpm-gau-cos"


def test_ablations_stand_beside_the_papers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ablated(tmp_path, "no-metric", 93.0)
    ablated(
        tmp_path,
        "cpm-avg-euc",
        94.5,
        metrics={"ap": 94.5, "ap_interval": {"low": 94.0, "high": 95.0, "level": 0.95}},
    )
    table = told(capsys, "omniglot", "--ablations", "--results", str(tmp_path))
    rows = {row["name"]: row for row in table["architecture"]}
    assert rows["No metric"] == {
        "name": "No metric", "slug": "no-metric", "ap": 93.0, "ap_interval": None, "paper_ap": 93.61,
        "sequences": 2000, "seconds": 5400.0, "manifest_sha256": "abcdef0123456789",
        "command": "wander train no-metric-omniglot-semi && wander evaluate runs/no-metric-omniglot-semi "
        f"--split val --json {tmp_path}/ablations/no-metric-omniglot-semi.json",
    }  # fmt: skip
    shared = table["semi_supervised"][6]  # one result fills the row of both tables
    assert (shared["slug"], shared["ap"], rows["CPM Avg. Euc"]["ap"]) == ("cpm-avg-euc", 94.5, 94.5)
    assert table["warnings"] == []
    lines = [
        " ".join(line.split())
        for line in shown(capsys, "omniglot", "--ablations", "--results", str(tmp_path)).splitlines()
    ]
    assert "No metric 93.00 - 93.61 -0.61 90" in lines
    assert "CPM Avg. Euc 94.50 94.00 to 95.00 94.08 +0.42 90" in lines
    assert "Ours on 2,000 validation sequences." in lines
    text = shown(capsys, "omniglot", "--ablations", "--results", str(tmp_path), "--markdown")
    assert re.search(r"\| No metric +\| 93\.00 \| +- \| +93\.61 \| +-0\.61 \| +90 \|", text)


def test_where_temperature_and_thresholds_started_makes_no_other_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learner = ABLATION_PRESETS["cpm-avg-cos-omniglot-semi"].model.learner
    assert learner != ABLATIONS["cpm-avg-cos"]
    ablated(tmp_path, "cpm-avg-cos", 91.0, config={"kind": "model", "learner": to_json(learner)})
    table = told(capsys, "omniglot", "--ablations", "--results", str(tmp_path))
    assert table["warnings"] == []
    assert {row["name"]: row["ap"] for row in table["architecture"]}["CPM Avg. Cos"] == 91.0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"split": "test"}, "its split is 'test', not 'val'"),
        ({"semi": False}, "its semi is False, not True"),
        (
            {"config": {"kind": "model", "learner": to_json(CPMConfig())}},
            "its learner differs from the row's in metric, memory, similarity",
        ),
        ({"config": None}, "its learner is another one"),
    ],
)
def test_a_result_of_another_model_is_no_ablation(
    changes: dict[str, Any], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ablated(tmp_path, "no-metric", **changes)
    main(["table", "omniglot", "--ablations", "--results", str(tmp_path), "--json", "-"])
    out, err = capsys.readouterr()
    assert json.loads(out)["warnings"] == [f"{path} is passed over: {reason}."]
    assert reason in err
    assert len(json.loads(out)["missing"]) == 15


def test_ablations_on_different_sequences_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ablated(tmp_path, "no-metric")
    ablated(tmp_path, "semi-cpm", manifest_sha256="0123456789abcdef")
    (warning,) = told(capsys, "omniglot", "--ablations", "--results", str(tmp_path))["warnings"]
    assert (
        "no-metric-omniglot-semi.json on abcdef012345; semi-cpm-omniglot-semi.json on 0123456789ab" in warning
    )


def test_bad_choices_are_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = ("--results", str(tmp_path))
    assert "choose one" in refused(capsys, "omniglot", "--forgetting", "--ablations", *here)
    assert "none of 'glyphs'" in refused(capsys, "glyphs", "--ablations", *here)
    assert "no table of 'narnia'" in refused(capsys, "narnia", "--forgetting", *here)
    ablated(tmp_path, "no-metric", metrics={})
    assert "lacks figures of one" in refused(capsys, "omniglot", "--ablations", *here)
