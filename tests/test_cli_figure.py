"""`wander figure`, and the files it writes."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.metric_records import made
from tests.tiny_figures import model, world
from tests.tiny_runs import CPM, PROTONET
from tests.tiny_world import tiny_pictures
from wanderlearn import WanderError, worlds
from wanderlearn.cli import main
from wanderlearn.evaluate import gather
from wanderlearn.figures.answers import Said, draw_answers
from wanderlearn.figures.calibration import draw_calibration, trust_of
from wanderlearn.figures.controls import draw_controls
from wanderlearn.figures.curve import Curve
from wanderlearn.figures.embedding import Embedded, draw_embedding, embed
from wanderlearn.figures.growth import draw_growth
from wanderlearn.figures.over_time import draw_over_time
from wanderlearn.figures.style import COLUMN, DPI, PAGE, _apart, canvas, lines_for, save
from wanderlearn.files import digest_of
from wanderlearn.model import save_model
from wanderlearn.pictures.collection import Pictures, Split
from wanderlearn.worlds import Roaming, named
from wanderlearn.worlds.sequence import NEW, Meetings


def drawings() -> dict[str, tuple[Callable[[Path], None], float]]:
    """Every figure with small numbers, and how wide it is in inches."""
    here = world(semi=True)
    m = here.meetings(0, 0)
    t = np.arange(1.0, 21)
    curve = Curve(t, 90 - t, 88 - t, 92 - t, np.full(20, 5))
    flat = Embedded("CPM", np.random.default_rng(0).normal(size=(len(m), 2)), 0.4, 0.3)
    panels = {"Supervised": {"CPM": curve, "Offline LR": curve}, "Semi-supervised": {"CPM": curve}}
    names = ("beta_read", "beta_write", "gamma_read", "gamma_write", "h_cnn", "h_rnn")
    controls = dict.fromkeys(names, curve)
    trust = trust_of(made(0, 6, 40, 8, 1.0, False, 0.6))
    answers = Said(np.where(np.arange(len(m)) % 3, m.target, NEW), np.zeros(len(m)), np.ones(len(m), bool))
    return {
        "over-time": (lambda path: draw_over_time(path, panels, "words"), PAGE),
        "growth": (lambda path: draw_growth(path, {"met": curve, "named": curve}, "words"), COLUMN),
        "controls": (lambda path: draw_controls(path, controls, "words"), PAGE),
        "embedding": (lambda path: draw_embedding(path, [flat, replace(flat, name="IMP")], m), PAGE),
        "answers": (lambda path: draw_answers(path, "CPM", here, m, answers), 6.89),
        "calibration": (lambda path: draw_calibration(path, {"CPM": trust, "IMP": trust}, "words"), PAGE),
    }


@pytest.mark.parametrize("name", ["over-time", "growth", "controls", "embedding", "answers", "calibration"])
def test_a_figure_is_a_whole_file_and_the_same_every_time(name: str, tmp_path: Path) -> None:
    draw, width = drawings()[name]
    for kind, start in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF-")):
        first, again = tmp_path / f"a{kind}", tmp_path / f"b{kind}"
        draw(first)
        draw(again)
        assert first.read_bytes().startswith(start)
        assert digest_of(first) == digest_of(again)
    with Image.open(tmp_path / "a.png") as picture:
        picture.load()
        assert picture.width == pytest.approx(width * DPI, abs=1)
        assert picture.info["dpi"][0] == pytest.approx(DPI, abs=0.1)
        ink = np.asarray(picture.convert("L")) < 200
    assert 0.005 < ink.mean() < 0.6  # something was drawn, and paper is left
    assert len(list(tmp_path.iterdir())) == 6  # and nothing half-written
    with pytest.raises(WanderError, match=r"\.png, \.svg or \.pdf"):
        draw(tmp_path / "a.gif")


def test_a_figure_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.png"
    path.write_text("old")
    with canvas(1, 1) as figure:

        def full(*_: Any, **__: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(figure, "savefig", full)
        with pytest.raises(WanderError, match="No space left"):
            save(path, figure)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_our_style_does_not_leak() -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    with canvas(1, 1):
        assert mpl.rcParams["font.size"] == 8
    assert dict(mpl.rcParams) == before


@given(st.lists(st.floats(0, 100), max_size=6))
def test_labels_are_moved_apart_in_their_order(wanted: list[float]) -> None:
    places = _apart(wanted, 10, 0, 100)
    assert all(b - a > 9.999 for a, b in pairwise(sorted(places)))
    for i, a in enumerate(wanted):
        assert all(places[i] < places[j] for j, b in enumerate(wanted) if a < b)
    assert all(-0.001 < place < 100.001 for place in places)
    if all(b - a >= 10 for a, b in pairwise(sorted(wanted))):
        assert places == pytest.approx(wanted)


def test_every_learner_has_a_line_of_its_own() -> None:
    names = ["CPM", "Online ProtoNet", "Online IMP", "DNC", "LSTM", "OML-U", "Offline LR"]
    lines = lines_for(names)
    assert len({(line.colour, str(line.dashes)) for line in lines.values()}) == len(names)
    assert lines_for(["Offline LR", *names[:2]])["CPM"] == lines["CPM"]


# The command


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """The glyphs are tiny here, and weights that fit them."""

    def open_pictures(name: str, split: Split, source: Path | None = None) -> Pictures:
        return replace(tiny_pictures(split, families=11), name=name)

    monkeypatch.setattr(named, "open_pictures", open_pictures)
    monkeypatch.setattr(worlds, "open_pictures", open_pictures)
    monkeypatch.chdir(tmp_path)
    paths = {}
    for name, learner in (("cpm", CPM), ("protonet", PROTONET)):
        paths[name] = str(tmp_path / f"my-{name}.safetensors")
        save_model(Path(paths[name]), model(learner), {"preset": "x", "world": "glyphs", "semi": True})
    return paths


def figure(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    main(["figure", *arguments, "--json", "-"])
    numbers: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert numbers["kind"] == "figure"
    assert numbers["figure"] == arguments[0]
    return numbers


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(["figure", *arguments])
    assert exit_.value.code == 2
    return capsys.readouterr().err


def test_over_time_of_two_learners_and_the_reference(
    tiny: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("over-time", tiny["cpm"], tiny["protonet"], "--sequences", "2", "--offline-sequences", "1")
    numbers = figure(capsys, *asked, "--window", "10", "--out", "f.svg")
    assert Path("f.svg").exists()
    assert set(numbers["curves"]) == {"Supervised", "Semi-supervised"}
    assert set(numbers["curves"]["Supervised"]) == {"CPM", "Online ProtoNet", "Offline LR"}
    assert numbers["offline_features_of"]["Semi-supervised"] == tiny["protonet"]
    assert numbers["learners"][0]["weights_sha256"] == digest_of(Path(tiny["cpm"]))
    counts = numbers["curves"]["Supervised"]["CPM"]["sequences"]
    assert max(counts) == 2
    assert max(numbers["curves"]["Supervised"]["Offline LR"]["sequences"]) == 1
    bare = figure(capsys, *asked[:-1], "0", "--semi-learners", tiny["protonet"])
    assert set(bare["curves"]["Supervised"]) == {"CPM", "Online ProtoNet"}
    assert set(bare["curves"]["Semi-supervised"]) == {"Online ProtoNet"}
    assert Path("figure-over-time.png").exists()


def test_embedding_controls_answers_and_growth(
    tiny: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    flat = figure(capsys, "embedding", tiny["protonet"], tiny["cpm"], "--sequence", "1", "--supervised")
    here = Roaming(replace(tiny_pictures("test", families=11), name="glyphs"))
    m: Meetings = here.meetings(0, 1)
    assert flat["environment"] == m.environment.tolist()
    expected = embed("CPM", model(), here, m)
    assert [one["name"] for one in flat["embeddings"]] == ["Online ProtoNet", "CPM"]
    assert flat["embeddings"][1]["same_environment"] == pytest.approx(expected.same_environment)
    np.testing.assert_allclose(flat["embeddings"][1]["points"], expected.points, atol=1e-4)

    controls = figure(capsys, "controls", tiny["cpm"], "--sequences", "3")
    assert controls["semi"] is True  # as it was trained
    assert set(controls["curves"]) >= {"beta_read", "beta_write", "gamma_read", "gamma_write"}

    answers = figure(capsys, "answers", tiny["cpm"])
    right = sum(one["answer"] == one["right_answer"] for one in answers["meetings"])
    assert answers["right"] == right

    growth = figure(capsys, "growth", "--sequences", "5")
    assert growth["curves"]["met"] == growth["curves"]["named_supervised"]
    semi, met = (growth["curves"][name]["mean"] for name in ("named_semi", "met"))
    assert all(a <= b for a, b in zip(semi, met, strict=True))
    for name in ("embedding", "controls", "answers", "growth"):
        with Image.open(f"figure-{name}.png") as picture:
            picture.verify()
    again = figure(capsys, "growth", "--sequences", "5")
    assert again == growth


def test_calibration_of_two_learners(tiny: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    numbers = figure(capsys, "calibration", tiny["cpm"], tiny["protonet"], "--sequences", "3", "--supervised")
    with Image.open("figure-calibration.png") as picture:
        picture.verify()
    here = Roaming(replace(tiny_pictures("test", families=11), name="glyphs"))
    expected = trust_of(gather(model(), here, [here.meetings(0, i) for i in range(3)]))
    found = numbers["trust"]["CPM"]
    assert set(numbers["trust"]) == {"CPM", "Online ProtoNet"}
    assert numbers["semi"] is False
    np.testing.assert_allclose(found["risk"], 100 * expected.risk, atol=1e-2)
    assert found["naming"]["error"] == pytest.approx(100 * expected.naming.error, abs=1e-2)
    assert sum(found["new"]["meetings"]) == sum(found["naming"]["meetings"])
    assert found["coverage"][-1] == 100
    assert all(a < b for a, b in pairwise(found["coverage"]))
    assert "--sequences must be at least 1" in refused(capsys, "calibration", "--sequences", "0")


def test_two_of_a_kind_are_told_apart(tiny: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    other = Path("other.safetensors")
    save_model(other, model(seed=1), {"world": "glyphs"})
    asked = ("over-time", tiny["cpm"], str(other), "--sequences", "1", "--offline-sequences", "0")
    assert set(figure(capsys, *asked)["curves"]["Supervised"]) == {"my-cpm", "other"}


def test_what_cannot_be_drawn_is_said(tiny: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "no figure 'weather'" in refused(capsys, "weather")
    assert "over-time, embedding, controls, growth, answers" in refused(capsys, "t-sne")
    assert "Only CPM" in refused(capsys, "controls", tiny["protonet"])
    assert "ends so" in refused(capsys, "growth", "--out", "f.jpg")
    assert "--sequences must be at least 1" in refused(capsys, "growth", "--sequences", "0")
    assert "--seed" in refused(capsys, "growth", "--seed=-1")
    assert "choose one" in refused(capsys, "answers", tiny["cpm"], "--semi", "--supervised")
    assert "no run folder or file" in refused(capsys, "answers", "nobody")
    elsewhere = Path("elsewhere.safetensors")
    save_model(elsewhere, model(), {"world": "omniglot"})
    told = refused(capsys, "embedding", tiny["cpm"], str(elsewhere))
    assert "glyphs and omniglot" in told
    assert "--world" in told
    assert not list(Path().glob("figure-*"))


def test_a_missing_extra_is_named(
    tiny: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    assert "wanderlearn[figures]" in refused(capsys, "embedding", tiny["cpm"])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "wanderlearn[figures]" in refused(capsys, "growth")


def test_the_command_lists_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    main(["figure"])
    told = capsys.readouterr().out
    for name in ("over-time", "embedding", "controls", "growth", "answers", "calibration"):
        assert f"wander figure {name}" in told
