"""Running a learner on small random sequences, and saying in words where two answers differ."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from wanderlearn.learners.answer import Answers, Learner
from wanderlearn.worlds.sequence import NEW, UNLABELED

__all__ = ["LENGTH", "ROWS", "SETTINGS", "TOLERANCE", "Sequences", "Trial", "difference", "stack", "until"]

TOLERANCE: Final = 1e-4  # relative above 1, absolute below
ROWS: Final = 3
LENGTH: Final = 20
SETTINGS: Final = {"supervised": 1.0, "semi-supervised": 0.4}  # the share of meetings that are told a label


class Sequences(NamedTuple):
    """What a learner is tried on."""

    features: Tensor  # [B, T, D]
    given: Tensor  # [B, T]
    target: Tensor  # [B, T]


@dataclass(frozen=True)
class Trial:
    """A learner under test, and the ways to run it: always from the same random state."""

    learner: Learner[Any]
    pristine: Learner[Any] | None  # a copy from before the first meeting; None if it cannot be copied
    feature_dim: int
    slots: int
    seed: int

    def sequences(self, labelled: float) -> Sequences:
        """Classes are clouds around random centres; slots are numbered by first labelled appearance."""
        random = torch.Generator().manual_seed(self.seed)
        classes = max(2, self.slots * 2 // 3)  # so that some slots are never opened
        truth = torch.randint(classes, (ROWS, LENGTH), generator=random)
        told = torch.rand(ROWS, LENGTH, generator=random) < labelled
        if labelled < 1:
            told[:, 0], told[:, 1] = False, True  # meet something unnamed before the first name
        # Squared distances of about 3 within a class and 15 between: neither softmax nor sigmoid saturates.
        centres = 2.5 * self.feature_dim**-0.5 * torch.randn(classes, self.feature_dim, generator=random)
        noise = 1.2 * self.feature_dim**-0.5 * torch.randn(ROWS, LENGTH, self.feature_dim, generator=random)
        given, target = torch.full_like(truth, UNLABELED), torch.full_like(truth, NEW)
        for row in range(ROWS):
            slot_of: dict[int, int] = {}
            for t in range(LENGTH):
                name = int(truth[row, t])
                target[row, t] = slot_of.get(name, NEW)
                if told[row, t]:
                    given[row, t] = slot_of.setdefault(name, len(slot_of))
        device = next((parameter.device for parameter in self.learner.parameters()), torch.device("cpu"))
        return Sequences((centres[truth] + noise).to(device), given.to(device), target.to(device))

    def settings(self) -> Iterator[tuple[str, Tensor, Tensor]]:
        """Features and given labels, supervised and semi-supervised."""
        for setting, labelled in SETTINGS.items():
            features, given, _ = self.sequences(labelled)
            yield setting, features, given

    def whole(self, features: Tensor, given: Tensor, slots: int | None = None) -> Answers:
        """The fast path."""
        torch.manual_seed(self.seed)
        return self.learner(features.clone(), given.clone(), slots or self.slots)

    def begin(self, batch_size: int) -> Any:
        """An empty memory."""
        torch.manual_seed(self.seed)
        return self.learner.begin(batch_size, self.slots)

    def stepped(self, features: Tensor, given: Tensor) -> Answers:
        """The same by repeated steps."""
        state, answers = self.begin(len(given)), []
        for feature, told in zip(features.unbind(1), given.unbind(1), strict=True):
            answer, state = self.learner.step(state, feature, told)
            answers.append(answer)
        return stack(answers)


def stack(answers: list[Answers]) -> Answers:
    """The answers of one meeting after the other as those of whole sequences."""
    return Answers(
        torch.stack([answer.scores for answer in answers], 1),
        torch.stack([answer.novelty for answer in answers], 1),
    )


def until(answers: Answers, end: int) -> Answers:
    """The answers before meeting `end`."""
    return Answers(answers.scores[:, :end], answers.novelty[:, :end])


def difference(
    found: Answers, expected: Answers, *, row: int = 0, meeting: int = 0, tolerance: float = TOLERANCE
) -> str:
    """Where two answers differ most and by how much, in words; empty if they agree.

    `row` and `meeting` say which sequence and meeting the first ones compared are.
    """
    if found.scores.shape != expected.scores.shape or found.novelty.shape != expected.novelty.shape:
        return f"the shapes differ ({_shapes(found)} instead of {_shapes(expected)})"
    worst, words = tolerance, ""
    for name, a, b in zip(Answers._fields, found, expected, strict=True):
        if a.numel() == 0:
            continue
        gap = (a - b).abs()
        relative = (gap / b.abs().clamp_min(1)).nan_to_num(nan=float("inf"))
        at = [int(i) for i in torch.unravel_index(relative.argmax(), relative.shape)]
        if float(relative[tuple(at)]) > worst:
            worst = float(relative[tuple(at)])
            what = f"the score of slot {at[2]}" if name == "scores" else "the novelty"
            words = (
                f"at meeting {meeting + at[1]} of sequence {row + at[0]}, "
                f"{what} is {float(a[tuple(at)]):.6g} instead of {float(b[tuple(at)]):.6g} "
                f"(off by {float(gap[tuple(at)]):.2g})"
            )
    return words


def _shapes(answers: Answers) -> str:
    return f"scores {list(answers.scores.shape)}, novelty {list(answers.novelty.shape)}"
