"""The public contract test: the laws every learner obeys, and what is broken, in words.

    report = check_learner(MyLearner())
    print(report)           # one line per law
    report.assert_ok()      # or raise a LearnerError that says what to do

A learner that by its nature cannot keep a law says so in a class attribute: `exempt = {"slots": "reads
one-hot labels"}`. The report then prints the reason instead of trying.
"""

import copy
import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from wanderlearn.errors import WanderError
from wanderlearn.laws import LAWS, BrokenError, Law
from wanderlearn.learners.answer import Learner
from wanderlearn.loading import build_object, load_object
from wanderlearn.trials import Trial

__all__ = ["Finding", "LearnerError", "Report", "check_learner", "load_learner"]


class LearnerError(WanderError):
    """A learner breaks its contract; the message holds a sentence for every broken law."""


@dataclass(frozen=True)
class Finding:
    """What came of one law."""

    law: str  # its short name, as used in `exempt`
    title: str  # the law in words
    outcome: Literal["kept", "broken", "exempt"]
    sentence: str = ""  # what is broken, where, and what to do; or why the learner is exempt

    def __str__(self) -> str:
        if self.outcome == "kept":
            return f"✓ {self.title}"
        if self.outcome == "broken":
            return f"✗ {self.title}: {self.sentence}"
        return f"- {self.title} ({self.outcome}: {self.sentence})"


@dataclass(frozen=True)
class Report:
    """What came of every law; `str(report)` is one line each."""

    learner: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether no law is broken."""
        return not self.failures

    @property
    def failures(self) -> list[tuple[str, str]]:
        """The broken laws: short name and sentence."""
        return [(found.law, found.sentence) for found in self.findings if found.outcome == "broken"]

    def assert_ok(self) -> None:
        """Raise a LearnerError with every broken law, if any is."""
        if self.failures:
            broken = "\n".join(str(found) for found in self.findings if found.outcome == "broken")
            raise LearnerError(f"{self.learner} breaks {len(self.failures)} of the learners' laws.\n{broken}")

    def __str__(self) -> str:
        return "\n".join(str(found) for found in self.findings)


def check_learner(
    learner: Learner[Any],
    *,
    feature_dim: int | None = None,
    slots: int = 12,
    seed: int = 0,
    causal: bool = True,
) -> Report:
    """Try every law on small random sequences, with the learner's weights as they are, in eval mode.

    The features have `feature_dim` numbers: if None, as many as `learner.feature_dim` says, else 64.
    `causal=False` exempts a learner that is meant to see the whole sequence (an offline reference).
    """
    if slots < 2:
        raise WanderError(f"check_learner needs at least 2 slots to tell classes apart, got {slots}.")
    exempt = dict(getattr(learner, "exempt", {}))
    if not causal:
        exempt.setdefault("causal", "asked to let it see the future")
    if unknown := exempt.keys() - {law.name for law in LAWS}:
        raise WanderError(
            f"{type(learner).__name__}.exempt names laws that do not exist: {', '.join(sorted(unknown))}. "
            f"The laws are {', '.join(law.name for law in LAWS)}."
        )
    width = getattr(learner, "feature_dim", 64) if feature_dim is None else feature_dim
    findings: list[Finding] = []
    with _eval_mode(learner), torch.random.fork_rng(devices=[]):
        trial = Trial(learner, _pristine(learner), width, slots, seed)
        for law in LAWS:
            if law.name in exempt:
                findings.append(Finding(law.name, law.title, "exempt", exempt[law.name]))
                continue
            sentence = _try(law, trial)
            if sentence and law is LAWS[0]:  # without right shapes, all else would only repeat the complaint
                sentence += " The other laws have not been tried."
            findings.append(Finding(law.name, law.title, "broken" if sentence else "kept", sentence))
            if sentence and law is LAWS[0]:
                break
    return Report(type(learner).__name__, tuple(findings))


def load_learner(name: str) -> Learner[Any]:
    """The learner that `MODULE:NAME` or `path/to/file.py:NAME` points to.

    NAME is a class or a function that needs no arguments, or a learner itself. Modules are also looked for
    in the current folder.
    """
    found = load_object(name, "a learner", "wanderlearn.learners.matchingnet:OnlineMatchingNet")
    if inspect.isclass(found) or not hasattr(found, "begin"):
        found = _build(found, name)
    if missing := [part for part in ("begin", "step", "__call__", "parameters") if not hasattr(found, part)]:
        raise WanderError(
            f"{name} is a {type(found).__name__} without {', '.join(missing)}, so it is not a learner. "
            "wanderlearn.learners.answer.Learner says what a learner needs."
        )
    learner: Learner[Any] = found
    return learner


def _build(maker: Any, name: str) -> Any:
    """Call a class or function that should need no arguments."""
    if not callable(maker):
        raise WanderError(
            f"{name} is a {type(maker).__name__}, not a learner, a class, or a function that makes one."
        )
    return build_object(maker, name, "learner")


def _try(law: Law, trial: Trial) -> str:
    """The sentence of a broken law, or nothing."""
    try:
        with torch.set_grad_enabled(law.name == "gradients"):
            law.test(trial)
    except (BrokenError, WanderError) as broken:
        return f"{broken} {law.advice}"
    except Exception as error:  # whatever a user's code may raise is a finding, not our failure
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename]
        place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "unknown place"
        return f"It raised {type(error).__name__}: {error} ({place}). {law.advice}"
    return ""


@contextmanager
def _eval_mode(learner: Any) -> Iterator[None]:
    training = getattr(learner, "training", False)
    if training:
        learner.eval()
    try:
        yield
    finally:
        if training:
            learner.train()


def _pristine(learner: Learner[Any]) -> Learner[Any] | None:
    try:
        return copy.deepcopy(learner)
    except Exception:  # reported by the law about saving, the only one that needs the copy
        return None
