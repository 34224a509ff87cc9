"""REPRODUCIBILITY.md says what results/ says, and admits what is below the paper or missing."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.test_more_tables import ablated, cells
from tests.test_table import put, shots
from wanderlearn.configs import to_json
from wanderlearn.presets import PRESETS
from wanderlearn.pretrain import PretrainConfig

ROOT = Path(__file__).parent.parent
COLUMNS = [
    "method", "labels", "AP, paper", "AP", "difference, 95 % interval", "recipe", "training command",
    "seconds", "commit", "manifest", "weights", "note",
]  # fmt: skip


@pytest.fixture(scope="module")
def page() -> ModuleType:
    path = ROOT / "benchmarks" / "reproducibility.py"
    spec = importlib.util.spec_from_file_location("reproducibility", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def figures(ap: float | None, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    interval = None if low is None else {"low": low, "high": high, "level": 0.95}
    return {
        "ap": ap,
        "ap_joint": 91.5,
        "ap_interval": interval,
        "shots": {"labelled": shots(80.125, 95.5)},
        "forgetting": {"appearance": cells(30.0)},
    }


def table_of(text: str, heading: str) -> tuple[list[str], dict[tuple[str, str], dict[str, str]]]:
    """The columns of the table under a heading, and its rows by method and labels."""
    lines = text.partition(f"## {heading}\n")[2].partition("\n## ")[0].splitlines()
    split = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    columns = split[0]
    return columns, {(row[0], row[1]): dict(zip(columns, row, strict=True)) for row in split[2:]}


def test_the_page_is_up_to_date(page: ModuleType) -> None:
    written = (ROOT / "REPRODUCIBILITY.md").read_text()
    assert written == page.document(), "run `python benchmarks/reproducibility.py`"
    assert str(ROOT) not in written


def test_a_row_says_what_its_result_says(page: ModuleType, tmp_path: Path) -> None:
    preset = PRESETS["cpm-omniglot"]
    train = {"seconds": 7231.4, "seed": 0, "config": to_json(preset) | {"pictures": {"train": "ab"}}}
    put(
        tmp_path / "results", "cpm-omniglot", metrics=figures(93.25, 92.9, 93.6), train=train,
        commit="0123456789abcdef0123", weights_sha256="fedcba9876543210", python="3.11.9", torch="2.5.0",
    )  # fmt: skip
    text = page.document(tmp_path / "results")
    columns, rows = table_of(text, "RoamingOmniglot")
    assert columns == COLUMNS
    assert len(rows) == 16
    row = rows["CPM", "supervised"]
    recipe = row.pop("recipe")
    assert row == {
        "method": "CPM",
        "labels": "supervised",
        "AP, paper": "94.17",
        "AP": "93.25",
        "difference, 95 % interval": "-0.92 (-1.27 to -0.57)",
        "training command": "`wander train cpm-omniglot`",
        "seconds": "7,231",
        "commit": "`0123456789ab`",
        "manifest": "`abcdef012345`",
        "weights": "`fedcba987654`",
        "note": "below by 0.92",
    }
    assert recipe.endswith("on sequences")
    assert "1 of 16 rows have been run: 0 at or above the paper's AP, 1 below." in text
    assert "- Python 3.11.9 (1 results)\n- torch 2.5.0 (1 results)" in text
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    assert ["CPM", "1", "ours", "31.0", "41.0", "51.0", "61.0", "71.0", "81.0"] in cells


def test_what_was_not_run_says_its_command(page: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    text = page.document(tmp_path / "results")
    _, rows = table_of(text, "RoamingOmniglot")
    assert rows["DNC", "semi-supervised"]["note"] == (
        "not run: `wander train dnc-omniglot-semi && wander evaluate runs/dnc-omniglot-semi "
        "--json results/dnc-omniglot-semi.json`"
    )
    assert rows["OML-U", "supervised"]["note"].startswith("not run: `wander train oml-u-omniglot &&")
    assert "None of the 16 rows has been run yet." in text
    assert "--split val --json results/ablations/no-metric-omniglot-semi.json" in text
    assert str(tmp_path) not in text
    assert "## Environment" not in text
    columns, embedded = table_of(text, "The embedded world")
    assert "AP, paper" not in columns
    assert embedded["CPM", "supervised"]["note"].startswith("not run: `wander train cpm-glyphs &&")


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"metrics": figures(94.17)}, "above by 0.00"),
        ({"metrics": figures(95.0, 94.5, 95.5)}, "above by 0.83"),
        ({"metrics": figures(94.0, 93.5, 94.5)}, "below by 0.17, within the interval"),
        ({"metrics": figures(None)}, "AP could not be measured"),
        ({"metrics": figures(94.0), "sequences": 500}, "below by 0.17; on 500 test sequences, not 2,000"),
        (
            {"metrics": figures(94.0), "commit": "ab" * 20 + "+dirty"},
            "below by 0.17; made from a working copy that differed from its commit",
        ),
    ],
)
def test_notes_are_honest(changes: dict[str, Any], note: str, page: ModuleType, tmp_path: Path) -> None:
    put(tmp_path / "results", "cpm-omniglot", **changes)
    _, rows = table_of(page.document(tmp_path / "results"), "RoamingOmniglot")
    assert rows["CPM", "supervised"]["note"] == note


def test_a_preset_that_has_changed_since_is_named(page: ModuleType, tmp_path: Path) -> None:
    preset = PRESETS["cpm-omniglot"]
    same = replace(preset, train=replace(preset.train, workers=7, threads=3))
    other = replace(same, train=replace(same.train, lr=0.5), pretrain=PretrainConfig(epochs=77.0))
    assert list(page.changed(to_json(same) | {"pictures": {}}, preset)) == []
    assert set(page.changed(to_json(other), preset)) >= {"train.lr", "pretrain.epochs"}
    given = to_json(replace(same, pretrain=None)) | {"encoder": "ab" * 32}
    assert list(page.changed(given, preset)) == []
    assert list(page.changed({"kind": "preset", "novel": 1}, preset)) == [
        "settings this version does not know"
    ]
    then = to_json(same)  # as it was written when these held for features alone
    then["features"] |= {name: then["train"].pop(name) for name in ("returning", "balance")}
    assert list(page.changed(then, preset)) == []
    then["features"]["balance"] = 0.5
    assert list(page.changed(then, preset)) == ["train.balance"]
    train = {"seconds": 1.0, "config": to_json(other)}
    put(tmp_path / "results", "cpm-omniglot", metrics=figures(93.0), train=train)
    _, rows = table_of(page.document(tmp_path / "results"), "RoamingOmniglot")
    assert "; the preset's settings are others now: train.lr" in rows["CPM", "supervised"]["note"]


def test_a_row_that_goes_on_from_another_run_says_how(page: ModuleType, tmp_path: Path) -> None:
    preset = PRESETS["lstm-omniglot"]
    assert preset.features
    changed = replace(preset.features, steps=14000), replace(preset.train, seed=1)  # as its command says
    same = replace(preset, pretrain=None, features=changed[0], train=changed[1])
    config = to_json(same) | {"start": "ab" * 32}
    train = {"seconds": 1.0, "config": config}
    put(tmp_path / "results", "lstm-omniglot", learner="lstm", metrics=figures(65.0, 64.5, 65.5), train=train)
    _, rows = table_of(page.document(tmp_path / "results"), "RoamingOmniglot")
    row = rows["LSTM", "supervised"]
    assert row["training command"] == (
        "`wander train lstm-omniglot --start runs/lstm-omniglot-third --features.steps 14000 --train.seed 1`"
    )
    assert row["recipe"].startswith("went on from the weights abababababab, 14,000 steps on features")
    assert row["note"] == "above by 0.66"


def test_the_order_of_ablations_is_compared_with_the_papers(page: ModuleType, tmp_path: Path) -> None:
    for slug, ap in (("no-metric", 93.0), ("no-thresholds", 92.0), ("cpm-gau-cos", 94.0)):
        ablated(tmp_path / "results", slug, ap)
    text = page.document(tmp_path / "results")
    said = "of 3 pairs of rows 2 are in the paper's order; not so: No thresholds is below No metric."
    assert f"- Architecture: {said}" in text


def test_seeds_and_ablations_are_on_the_page(page: ModuleType, tmp_path: Path) -> None:
    results = tmp_path / "results"
    for name, ap in (("cpm-omniglot", 93.0), ("cpm-omniglot-seed1", 95.0)):
        put(results, name, metrics=figures(ap))
    ablated(results, "no-metric", 93.0)
    put(results, "imp-omniglot", metrics=figures(80.0), manifest_sha256="00")
    text = page.document(results)
    columns, rows = table_of(text, "RoamingOmniglot")
    assert columns == [*COLUMNS[:5], "seeds", *COLUMNS[5:]]
    assert rows["CPM", "supervised"]["seeds"] == "94.00 ± 1.41 (2)"
    assert "| No metric       | 93.00 |" in text
    assert "**Warning.** The supervised rows in results were not tested on the same sequences" in text


def test_the_page_is_written_whole(page: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    page.write(tmp_path / "results", tmp_path / "PAGE.md")
    assert (tmp_path / "PAGE.md").read_text() == page.document(tmp_path / "results")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["PAGE.md"]


def test_the_rows_of_another_encoder_stand_beside_those_of_conv4(page: ModuleType, tmp_path: Path) -> None:
    put(tmp_path / "results", "cpm-omniglot", metrics=figures(93.25), parameters=476357)
    put(tmp_path / "results", "cpm-omniglot-resnet", metrics=figures(95.125), parameters=1234567)
    put(tmp_path / "results", "cpm-omniglot-resnet-seed1", metrics=figures(95.375))
    put(tmp_path / "results", "cpm-omniglot-resnet-semi", metrics=figures(91.5), semi=True)
    text = page.document(tmp_path / "results")
    _, rows = table_of(text, "A stronger encoder")
    assert len(rows) == 6
    row = rows["CPM", "supervised"]
    assert (row["AP, Conv4-64"], row["AP, ResNet-12"]) == ("93.25", "95.12")
    assert row["parameters, ResNet-12"] == "1,234,567"
    assert row["seeds, ResNet-12"] == "95.25 ± 0.18 (2)"
    semi = rows["CPM", "semi-supervised"]
    assert (semi["AP, Conv4-64"], semi["AP, ResNet-12"]) == ("-", "91.50")
    assert semi["seeds, ResNet-12"] == "-"
    _, main = table_of(text, "RoamingOmniglot")
    assert main["CPM", "supervised"]["AP"] == "93.25"  # the other encoder is no row of the paper's table


def test_what_the_recipe_is_worth_is_told(page: ModuleType, tmp_path: Path) -> None:
    put(tmp_path / "results", "cpm-omniglot", metrics=figures(93.25), train={"seconds": 5366.8})
    alone = {"seconds": 3600.2, "steps": 712}
    put(tmp_path / "results", "cpm-omniglot-scratch", metrics=figures(61.5), train=alone)
    lines = page.document(tmp_path / "results").partition("## What the recipe is worth\n")[2].splitlines()
    [line] = [line for line in lines if line.startswith("| CPM")][:1]
    cells_of = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells_of == [
        "CPM",
        "93.25",
        "5,367",
        "61.50",
        "3,600",
        "712",
        "`wander train cpm-omniglot-scratch`",
    ]
