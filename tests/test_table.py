"""`wander table` and the pages of methods: ours beside the paper's, and never a figure that is not there."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from wanderlearn.cli import main
from wanderlearn.errors import WanderError
from wanderlearn.learners.ablations import ARCHITECTURE_ABLATIONS, SEMI_ABLATIONS
from wanderlearn.metrics import BINS
from wanderlearn.paper import (
    ARCHITECTURE_ABLATION_AP,
    FORGETTING,
    LEARNERS,
    PAPER_AP,
    SEMI_ABLATION_AP,
    TABLES,
    Figures,
)
from wanderlearn.presets import GOES_ON_FROM, PRESETS
from wanderlearn.report.methods import read_method_table
from wanderlearn.results import write_result

ROOT = Path(__file__).parent.parent
NAMES = ["cpm", "protonet", "matchingnet", "imp", "dnc", "lstm", "oml-u", "oml-u-plus"]
ROWS = [*NAMES, "wayfarer"]
FIGURES = {"ap", "ap_joint", "one_shot", "three_shot", "seconds"}
EXTRA = {"one_shot_se", "three_shot_se", "parameters", "sequences", "manifest_sha256", "command"}
EXTRA |= {"ap_interval", "weights_sha256", "commit", "recipe", "seeds", "world"}


def shots(one: float | None, three: float | None, error: float | None = 0.25) -> list[dict[str, Any]]:
    means = {1: one, 2: 50.0, 3: three, 4: 51.0, 5: 52.0}
    return [{"shots": n, "mean": mean, "standard_error": error} for n, mean in means.items()]


def put(folder: Path, name: str, ap: float | None = 90.0, **changes: Any) -> Path:
    """A result as `wander evaluate` writes it, as far as the table reads it."""
    result = {
        "kind": "evaluation",
        "preset": None,
        "learner": None,
        "world": "omniglot",
        "split": "test",
        "semi": name.endswith("-semi"),
        "shuffle": False,
        "sequences": 2000,
        "manifest_sha256": "abcdef0123456789",
        "parameters": 477,
        "train": {"seconds": 5400.0},
        "metrics": {
            "ap": ap,
            "ap_joint": 91.5,
            "shots": {"labelled": shots(80.125, 95.5), "appearances": shots(1.0, 3.0)},
        },
    }
    write_result(folder / f"{name}.json", result | changes)
    return folder / f"{name}.json"


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    main(["table", *arguments, "--json", "-"])
    return json.loads(capsys.readouterr().out)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(["table", *arguments])
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(["table", *arguments])
    assert exit_.value.code == 2
    return " ".join(capsys.readouterr().err.split())


# The paper's figures ------------------------------------------------------------------------------------


def test_figures_are_the_papers() -> None:
    omniglot = TABLES["omniglot"]
    assert omniglot["cpm"].supervised == Figures(94.17, 91.99, 0.11, 97.74, 0.08)
    assert omniglot["oml-u-plus"].semi == Figures(81.39, 71.64, 0.19, 93.72, 0.27)
    assert TABLES["rooms"]["matchingnet"].semi.three_shot == 92.43
    assert TABLES["imagenet"]["imp"].semi.ap == 4.55
    assert [name for name, row in TABLES["imagenet"].items() if row.pretrained] == ["protonet", "dnc", "lstm"]
    assert FORGETTING["omniglot"]["cpm"][3].semi[-1] == 92.9
    assert PAPER_AP["dnc-omniglot-semi"] == 81.37


def test_every_method_has_figures_that_can_be_true() -> None:
    assert list(LEARNERS) == list(TABLES["omniglot"]) == list(TABLES["rooms"]) == NAMES
    assert list(TABLES["imagenet"]) == NAMES[:-1]
    for rows in TABLES.values():
        for row in rows.values():
            for figures in (row.supervised, row.semi):
                assert all(0 < error < 1 for error in (figures.one_shot_se, figures.three_shot_se))
                assert figures.one_shot < figures.three_shot < 100
                assert 0 < figures.ap < 100
    for world in FORGETTING.values():
        assert all(
            len(half) == len(BINS) for one in world.values() for cells in one.values() for half in cells
        )


def test_ablations_have_the_names_of_their_configs() -> None:
    assert list(ARCHITECTURE_ABLATION_AP) == list(ARCHITECTURE_ABLATIONS)
    assert list(SEMI_ABLATION_AP) == list(SEMI_ABLATIONS)
    assert ARCHITECTURE_ABLATION_AP["CPM GAU Cos"] == max(ARCHITECTURE_ABLATION_AP.values()) == 94.65


def test_presets_state_the_papers_figure() -> None:
    assert "(paper: AP 94.17)" in PRESETS["cpm-omniglot"].about
    assert "(paper: AP 54.34)" in PRESETS["lstm-omniglot-semi"].about
    assert "(not in the paper)" in PRESETS["cpm-glyphs"].about


# The table ----------------------------------------------------------------------------------------------


def test_ours_is_shown_as_ours_without_a_figure_of_the_paper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, "wayfarer-omniglot", 96.5, preset="wayfarer-omniglot", learner="wayfarer")
    lines = [
        " ".join(line.split()) for line in shown(capsys, "omniglot", "--results", str(tmp_path)).splitlines()
    ]
    at = lines.index("Wayfarer (ours) 96.50 80.12 ± 0.25 95.50 ± 0.25 - - -")
    assert not lines[at + 1].startswith("paper")
    assert "not in the paper" in PRESETS["wayfarer-omniglot"].about


def test_json_has_ours_and_the_papers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "cpm-omniglot", 93.25, preset="cpm-omniglot", learner="cpm")
    put(tmp_path, "imp-omniglot-semi", train=None)
    table = told(capsys, "omniglot", "--results", str(tmp_path))
    assert set(table) == {"format", "kind", "world", "rows", "missing", "warnings"}
    assert [row["learner"] for row in table["rows"]] == ROWS
    assert all(set(row) == {"learner", "supervised", "semi", "paper"} for row in table["rows"])
    rows = {row["learner"]: row for row in table["rows"]}
    cpm = rows["cpm"]["supervised"]
    assert set(cpm) == FIGURES | EXTRA
    assert cpm["ap"] == 93.25
    assert cpm["ap_joint"] == 91.5
    assert (cpm["one_shot"], cpm["three_shot"]) == (80.125, 95.5)  # counted in labels, not in appearances
    assert (cpm["one_shot_se"], cpm["seconds"], cpm["sequences"]) == (0.25, 5400.0, 2000)
    unknown = ("ap_interval", "weights_sha256", "commit", "recipe", "seeds")
    assert [cpm[name] for name in unknown] == [None] * 5
    assert rows["cpm"]["semi"] is None
    assert rows["imp"]["semi"]["seconds"] is None
    assert rows["oml-u"]["supervised"] is None
    assert rows["cpm"]["paper"]["semi"] == {
        "ap": 90.42, "one_shot": 93.18, "one_shot_se": 0.16, "three_shot": 97.89, "three_shot_se": 0.15,
    }  # fmt: skip
    assert rows["oml-u-plus"]["paper"]["supervised"]["ap"] == 86.85
    assert rows["wayfarer"]["paper"] is None
    assert table["warnings"] == []


def test_missing_cells_say_the_command_that_fills_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my results"
    put(folder, "lstm-omniglot")
    table = told(capsys, "omniglot", "--results", str(folder))
    assert len(table["missing"]) == 17
    assert (
        "wander train lstm-omniglot-semi && wander evaluate runs/lstm-omniglot-semi "
        f"--json '{folder}/lstm-omniglot-semi.json'" in table["missing"]
    )
    assert not any("lstm-omniglot " in command for command in table["missing"])
    assert all(command in shown(capsys, "omniglot", "--results", str(folder)) for command in table["missing"])


@pytest.mark.parametrize("world", ["omniglot", "glyphs"])
def test_commands_name_presets_that_exist(world: str, tmp_path: Path) -> None:
    named = {command.split()[2] for command in read_method_table(tmp_path, world).missing}
    assert len(named) == 18
    assert named == {name for name in PRESETS if world in name.split("-")}


def test_an_empty_folder_gives_the_papers_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = shown(capsys, "omniglot", "--results", str(tmp_path))
    assert "97.74 ± 0.08" in table
    assert table.count("none of ours yet") == 2
    assert max(map(len, table.split("What is missing")[0].splitlines())) <= 100
    assert re.search(r"CPM( +-){6}", table)
    assert told(capsys, "omniglot", "--results", str(tmp_path))["rows"][0]["supervised"] is None


def test_ours_stand_above_the_papers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "cpm-omniglot", 93.256)
    put(tmp_path, "dnc-omniglot", None, sequences=500, train={"seconds": 600.0})
    table = shown(capsys, "omniglot", "--results", str(tmp_path))
    lines = [" ".join(line.split()) for line in table.splitlines()]
    at = lines.index("CPM 93.26 80.12 ± 0.25 95.50 ± 0.25 - - -")
    assert lines[at + 1].startswith("paper 94.17 91.99 ± 0.11 97.74 ± 0.08 90.42 93.18")
    assert "DNC - 80.12 ± 0.25 95.50 ± 0.25 - - -" in lines
    assert "supervised: ours on 500 to 2,000 test sequences, trained for 10 to 90 minutes" in lines


def test_the_best_of_ours_is_bold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    put(tmp_path, "cpm-omniglot", 93.25)
    put(tmp_path, "imp-omniglot", 93.5)
    table = shown(capsys, "omniglot", "--results", str(tmp_path))
    assert "\x1b[1m93.50\x1b[0m" in table
    assert "\x1b[1m93.25" not in table
    assert "\x1b[1m94.17" not in table


def test_variants_seeds_and_subfolders_are_no_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("cpm-omniglot-shuffle", "cpm-omniglot-seed1", "cpm-omniglot-semi-seed2", "old/cpm-omniglot"):
        put(tmp_path, name)
    table = told(capsys, "omniglot", "--results", str(tmp_path))
    assert table["warnings"] == []
    assert len(table["missing"]) == 18


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"world": "glyphs"}, "its world is 'glyphs', not 'omniglot'"),
        ({"split": "val"}, "its split is 'val', not 'test'"),
        ({"shuffle": True}, "its shuffle is True, not False"),
        ({"semi": True}, "its semi is True, not False"),
        ({"preset": "imp-omniglot"}, "it was trained by the preset imp-omniglot, not cpm-omniglot"),
        ({"preset": "cpm-omniglot-semi"}, "it was trained by the preset cpm-omniglot-semi, not cpm-omniglot"),
        ({"learner": "lstm"}, "its learner is lstm, not cpm"),
    ],
)
def test_a_result_that_is_not_what_its_name_says_is_passed_over(
    changes: dict[str, Any], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(tmp_path, "cpm-omniglot", **changes)
    main(["table", "omniglot", "--results", str(tmp_path), "--json", "-"])
    out, err = capsys.readouterr()
    table = json.loads(out)
    assert table["rows"][0]["supervised"] is None
    assert len(table["missing"]) == 18
    assert table["warnings"] == [f"{path} is passed over: {reason}."]
    assert table["warnings"][0] in err


def test_rows_of_different_sequences_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, "cpm-omniglot")
    put(tmp_path, "imp-omniglot")
    put(tmp_path, "dnc-omniglot", manifest_sha256="0123456789abcdef")
    put(tmp_path, "cpm-omniglot-semi", manifest_sha256="5555555555555555")  # another setting: other sequences
    (warning,) = told(capsys, "omniglot", "--results", str(tmp_path))["warnings"]
    assert "supervised rows" in warning
    assert "semi" not in warning
    assert (
        "cpm-omniglot.json, imp-omniglot.json on abcdef012345; dnc-omniglot.json on 0123456789ab" in warning
    )
    assert f"warning: {warning}" in shown(capsys, "omniglot", "--results", str(tmp_path))
    assert f"**Warning.** {warning}" in shown(capsys, "omniglot", "--results", str(tmp_path), "--markdown")


def test_glyphs_have_no_column_of_the_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "protonet-glyphs", 79.125, world="glyphs")
    table = told(capsys, "glyphs", "--results", str(tmp_path))
    assert all(row["paper"] is None for row in table["rows"])
    assert table["rows"][1]["supervised"]["ap"] == 79.125
    assert "paper" not in shown(capsys, "glyphs", "--results", str(tmp_path))
    assert "paper" not in shown(capsys, "glyphs", "--results", str(tmp_path), "--markdown")


def test_markdown_has_a_part_per_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "cpm-omniglot", 93.256)
    table = shown(capsys, "omniglot", "--results", str(tmp_path), "--markdown")
    supervised, semi = table.split("**Semi-supervised**")
    assert supervised.startswith("**Supervised**\n\n| method ")
    cells = [cell.strip() for cell in supervised.split("| CPM")[1].splitlines()[0].split("|")]
    assert cells[1:5] == ["93.26", "94.17", "80.12 ± 0.25", "91.99 ± 0.11"]
    assert cells[7:9] == ["91.50", "90"]
    assert "Ours on 2,000 test sequences, trained for 90 minutes." in supervised
    assert "None of ours yet." in semi
    assert semi.count("\n| ") == 11


def test_json_goes_to_a_file_beside_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "cpm-omniglot")
    out = tmp_path / "table.json"
    table = shown(capsys, "omniglot", "--results", str(tmp_path), "--json", str(out))
    assert "Online IMP" in table
    first = json.loads(out.read_text())
    assert first["rows"][0]["supervised"]["ap"] == 90.0
    assert told(capsys, "omniglot", "--results", str(tmp_path)) == first  # the table itself is no row


def test_bad_input_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "There is no table of 'narnia'. Choose one of omniglot, glyphs, imagenet, rooms." in refused(
        capsys, "narnia", "--results", str(tmp_path)
    )
    sentence = refused(capsys, "omniglot", "--results", str(tmp_path / "nowhere"))
    assert "nowhere" in sentence
    assert "--results" in sentence
    assert "choose one" in refused(
        capsys, "omniglot", "--results", str(tmp_path), "--markdown", "--json", "-"
    )
    put(tmp_path, "cpm-omniglot", metrics={"ap": 1.0})
    sentence = refused(capsys, "omniglot", "--results", str(tmp_path))
    assert "cpm-omniglot.json" in sentence
    assert "wander evaluate runs/cpm-omniglot" in sentence


def test_results_are_looked_for_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "There is no folder results here" in refused(capsys, "omniglot")
    put(tmp_path / "results", "cpm-omniglot", 93.25)
    table = told(capsys, "omniglot")
    assert table["rows"][0]["supervised"]["ap"] == 93.25
    assert table["rows"][0]["supervised"]["command"] == (
        "wander train cpm-omniglot && wander evaluate runs/cpm-omniglot --json results/cpm-omniglot.json"
    )


# The pages ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("method_pages", ROOT / "benchmarks" / "method_pages.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inside(page: Path, marker: str) -> str:
    return page.read_text().split(f"<!-- {marker}:begin -->")[1].split(f"<!-- {marker}:end -->")[0]


def test_pages_are_filled_from_results_and_presets(pages: ModuleType, tmp_path: Path) -> None:
    results, docs = tmp_path / "results", tmp_path / "docs"
    docs.mkdir()
    for page in pages.PAGES.glob("*.md"):
        (docs / page.name).write_text(page.read_text())
    put(results, "cpm-omniglot", 93.256, sequences=700)
    put(results, "oml-u-omniglot-semi", 66.5)
    both = "<!-- results:begin -->\n<!-- results:end -->"
    (docs / "oml.md").write_text(f"# OML\n\n{both}\n")
    (docs / "other.md").write_text(f"# No learner\n\n{both}\n")
    pages.tables(results, docs)
    cpm = inside(docs / "cpm.md", "results")
    assert re.search(r"\| omniglot \| supervised +\| 93\.26 \| +94\.17 \|", cpm)
    assert re.search(r"\| omniglot \| semi-supervised \| +- \| +90\.42 \|", cpm)
    assert "Ours on 700 test sequences." in cpm
    assert "None of ours yet." in inside(docs / "imp.md", "results")
    assert "93.26" in inside(docs / "README.md", "omniglot-table")
    assert re.search(
        r"\| OML-U +\| omniglot \| semi-supervised \| 66\.50 \|", inside(docs / "oml.md", "results")
    )
    assert inside(docs / "other.md", "results").strip() == ""
    text = (docs / "cpm.md").read_text()
    pages.tables(results, docs)
    assert (docs / "cpm.md").read_text() == text


@pytest.mark.parametrize("learner", [*NAMES[:6], "wayfarer"])
def test_every_page_speaks_of_its_presets_as_they_are(learner: str, pages: ModuleType) -> None:
    page = ROOT / "docs" / "methods" / f"{learner}.md"
    wanted = pages.presets([learner])
    assert inside(page, "presets").strip() == wanted, "run `python benchmarks/method_pages.py`"
    for name in (f"{learner}-omniglot", f"{learner}-omniglot-semi"):
        begins = ""
        if name in GOES_ON_FROM:
            before, *changes = GOES_ON_FROM[name]
            begins = " ".join([f" --start runs/{before}", *changes])
        assert (
            f"wander train {name}{begins} && wander evaluate runs/{name} --json results/{name}.json"
            in page.read_text()
        )
        assert f"| `{name}` " in wanted


def test_read_method_table_refuses_an_unknown_world(tmp_path: Path) -> None:
    with pytest.raises(WanderError, match="no table of 'streets'"):
        read_method_table(tmp_path, "streets")
