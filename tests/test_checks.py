"""The contract test catches every deliberately broken learner in words, and lets right ones pass."""

import random
import re
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from tests import broken_learners as broken
from wanderlearn.checks import LearnerError, check_learner, load_learner
from wanderlearn.errors import WanderError
from wanderlearn.laws import LAWS

NAMES = [law.name for law in LAWS]

# Which laws each breaks (exactly these), which of them the sentence is about, and what it says.
CASES = [
    (
        broken.PeeksAhead,
        {"causal", "agreement", "padding"},
        "causal",
        r"Changing only what is met after meeting 6 \(supervised\), at meeting 6 .*off by .*Mask out later",
    ),
    (
        broken.ReadsTheLabelFirst,
        {"causal"},
        "causal",
        r"Changing only the label told after answer \d+ .* slot \d",
    ),
    (
        broken.KnowsSlotOrder,
        {"slots"},
        "slots",
        r"same names in other slots .* the score of slot \d+ is .* \(off by 0\.5\).*Treat all slots alike",
    ),
    (broken.CountsAllSlots, {"spare"}, "spare", r"room for 17 classes instead of 12 .* the novelty is"),
    (
        broken.WritesInPlace,
        {"pure"},
        "pure",
        r"At meeting 0 \(supervised\) `step` changed `state\.number` in place\. Build a new state",
    ),
    (broken.RemembersOnItself, {"pure", "saving"}, "pure", r"same step taken twice .*keep nothing on `self`"),
    (
        broken.RemembersOnItself,
        {"pure", "saving"},
        "saving",
        r"After saving and loading .* at meeting 10 .*novelty",
    ),
    (
        broken.NeverSaysNew,
        {"empty"},
        "empty",
        r"At meeting 0 of sequence 0 \(supervised\) no label had been told yet, but the novelty is -1",
    ),
    (
        broken.ScoresUnusedSlots,
        {"unused"},
        "unused",
        r"meeting 0 .* slot 0 scores -100, but no label had opened it",
    ),
    (
        broken.HidesAKnownSlot,
        {"unused"},
        "unused",
        r"slot \d+ scores -1e\+06, but its label had been told before",
    ),
    (
        broken.FastPathDiffers,
        {"agreement"},
        "agreement",
        r"disagree \(supervised\): at meeting \d+ of sequence \d, the novelty is .*looping over `step`",
    ),
    (broken.FastPathForgetsTheUnlabelled, {"agreement"}, "agreement", r"disagree \(semi-supervised\)"),
    (
        broken.MixesTheBatch,
        {"batch"},
        "batch",
        r"Together with other sequences instead of alone .*sequence \d",
    ),
    (
        broken.NanGradients,
        {"gradients"},
        "gradients",
        r"After 1 meeting with ordinary features on whole sequences .*the gradient of the features is not "
        r"finite.*softmax over nothing",
    ),
    (broken.RootsOfZero, {"gradients"}, "gradients", r"with all-zero features .*square root of 0"),
    (
        broken.PaddingMatters,
        {"padding"},
        "padding",
        r"With 5 meetings of padding .* the novelty is .*off by 0\.05",
    ),
    (broken.KeepsAList, {"saving"}, "saving", r"`state\.notes` is a list, which cannot be saved\."),
    (
        broken.LosesAWeight,
        {"saving"},
        "saving",
        r"After saving and loading weights and state .* the score of slot",
    ),
    (
        broken.WrongShape,
        {"shapes"},
        "shapes",
        r"whole sequences gives novelty of shape \[3, 20, 1\], not \[3, 20\]\..*laws have not been tried",
    ),
    (broken.WrongType, {"shapes"}, "shapes", r"gives scores as torch\.float64, not torch\.float32"),
    (
        broken.Raises,
        {"shapes"},
        "shapes",
        r"It raised RuntimeError: forgot to finish this \(broken_learners\.py, line \d+\)",
    ),
]


@pytest.mark.parametrize(
    ("learner", "laws", "law", "sentence"), CASES, ids=[f"{c[0].__name__}-{c[2]}" for c in CASES]
)
def test_a_broken_learner_is_caught_in_words(
    learner: type[broken.Means], laws: set[str], law: str, sentence: str
) -> None:
    report = check_learner(learner())
    failures = dict(report.failures)
    assert set(failures) == laws
    assert re.search(sentence, failures[law]), failures[law]
    assert not report.passed
    assert (
        f"✗ {next(one.title for one in LAWS if one.name == law)}: {failures[law]}" in str(report).splitlines()
    )
    with pytest.raises(LearnerError, match=learner.__name__) as raised:
        report.assert_ok()
    assert all(said in str(raised.value) for said in failures.values())


def test_a_law_for_every_way_to_be_wrong() -> None:
    assert {case[2] for case in CASES} == set(NAMES)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("slots", [2, 3, 12])
def test_a_right_learner_passes(slots: int, seed: int) -> None:
    report = check_learner(broken.Means(), slots=slots, seed=seed)
    assert report.passed, str(report)
    assert [found.law for found in report.findings] == NAMES
    assert str(report).count("✓") == len(NAMES)
    report.assert_ok()


def test_the_learner_is_left_as_it_was() -> None:
    learner = broken.Means()
    learner.dropout = nn.Dropout()
    learner.train()
    weights = {name: weight.clone() for name, weight in learner.state_dict().items()}
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    check_learner(learner)
    assert torch.equal(torch.rand(3), expected), "the user's random numbers changed"
    assert learner.training
    assert learner.dropout.training
    assert learner.beta.grad is None
    assert all(torch.equal(weight, weights[name]) for name, weight in learner.state_dict().items())


def test_an_exempt_learner_says_why_and_passes() -> None:
    report = check_learner(broken.OneHotReader())
    assert report.passed
    assert "- answer t depends on nothing after t (exempt: an offline reference)" in str(report)


def test_a_learner_may_be_let_see_the_future() -> None:
    failures = dict(check_learner(broken.PeeksAhead(), causal=False).failures)
    assert set(failures) == {"agreement", "padding"}


def test_an_exemption_from_no_law_is_an_error() -> None:
    learner = broken.Means()
    learner.exempt = {"gravity": "floats"}  # type: ignore[assignment]
    with pytest.raises(WanderError, match=r"laws that do not exist: gravity\. The laws are shapes, "):
        check_learner(learner)


def test_features_are_as_wide_as_asked() -> None:
    class Wide(broken.Means):
        feature_dim = 5

    assert check_learner(Wide()).passed
    said = check_learner(Wide(), feature_dim=6).failures
    assert [law for law, _ in said] == ["shapes"]


def test_too_few_slots() -> None:
    with pytest.raises(WanderError, match="at least 2 slots"):
        check_learner(broken.Means(), slots=1)


# MODULE:LEARNER ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Means", "made"])
def test_a_learner_is_found_by_module_and_by_file(name: str) -> None:
    found = load_learner(f"tests.broken_learners:{name}")
    assert isinstance(found, broken.Means)
    here = Path(broken.__file__)
    assert type(load_learner(f"{here}:{name}")).__name__ == "Means"


def test_a_factory_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_own_learners.py").write_text(
        "from wanderlearn.learners.matchingnet import MatchingNetConfig, OnlineMatchingNet\n"
        "def make(features=16): return OnlineMatchingNet(MatchingNetConfig(features=features))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert check_learner(load_learner("my_own_learners:make")).passed
    assert check_learner(load_learner("my_own_learners.py:make")).passed


def test_a_file_named_like_a_module_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("from tests.broken_learners import Means\n")
    load_learner(f"{tmp_path / 'random.py'}:Means")
    assert hasattr(random, "shuffle")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Means", "'Means' does not name a learner. Write MODULE:NAME"),
        ("tests.broken_learners:", "does not name a learner"),
        ("no_such_module:Means", "Cannot import no_such_module: there is no module no_such_module"),
        ("no/such/file.py:Means", "There is no file no/such/file.py"),
        ("tests.broken_learners:Meens", "tests.broken_learners has no Meens. Did you mean Means?"),
        ("tests.broken_learners:needs_arguments", r"needs arguments \(width, depth\)"),
        ("tests.broken_learners:fails_to_build", "failed: ValueError: no such file"),
        ("tests.broken_learners:not_a_learner", "is a int, not a learner"),
        ("collections:Counter", "is a Counter without begin, step"),
    ],
)
def test_a_learner_that_cannot_be_had(name: str, sentence: str) -> None:
    with pytest.raises(WanderError, match=sentence):
        load_learner(name)


def test_a_module_that_does_not_import(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text("def make(:\n")
    with pytest.raises(WanderError, match=r"Importing .*half\.py failed: SyntaxError"):
        load_learner(f"{tmp_path / 'half.py'}:make")
