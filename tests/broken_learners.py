"""A small right learner, and one for every way to be wrong. Each wrong one differs by a line or two."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.worlds.sequence import UNLABELED


class Sums(NamedTuple):
    total: Tensor  # [B, K, D]
    number: Tensor  # [B, K]


class Means(nn.Module):
    """Right: a mean per class, and whole sequences by stepping."""

    feature_dim = 8

    def __init__(self) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.tensor(6.0))

    def begin(self, batch_size: int, slots: int) -> Any:
        return Sums(torch.zeros(batch_size, slots, self.feature_dim), torch.zeros(batch_size, slots))

    def read(self, state: Any, feature: Tensor) -> Answers:
        used = state.number > 0
        means = state.total / state.number.clamp_min(1)[..., None]
        distance = (means - feature[:, None]).square().sum(-1)  # [B, K]
        nearest = torch.where(used, distance, 1e5).amin(-1)
        novelty = torch.where(used.any(-1), nearest - self.beta, CERTAINLY_NEW)
        return Answers(torch.where(used, -distance, UNUSED), novelty)

    def write(self, state: Any, feature: Tensor, given: Tensor) -> Any:
        told = (given[:, None] == torch.arange(state.number.shape[1])).float()  # [B, K]
        return Sums(state.total + told[..., None] * feature[:, None], state.number + told)

    def step(self, state: Any, feature: Tensor, given: Tensor) -> tuple[Answers, Any]:
        return self.read(state, feature), self.write(state, feature, given)

    def forward(self, features: Tensor, given: Tensor, slots: int) -> Answers:
        state, answers = self.begin(len(given), slots), []
        for t in range(given.shape[1]):
            answer, state = self.step(state, features[:, t], given[:, t])
            answers.append(answer)
        return Answers(
            torch.stack([a.scores for a in answers], 1), torch.stack([a.novelty for a in answers], 1)
        )


class PeeksAhead(Means):
    def forward(self, features: Tensor, given: Tensor, slots: int) -> Answers:
        return super().forward(features + 0.1 * features.roll(-1, 1), given, slots)


class ReadsTheLabelFirst(Means):
    def step(self, state: Any, feature: Tensor, given: Tensor) -> tuple[Answers, Any]:
        after = self.write(state, feature, given)
        told = self.read(after, feature)
        before = self.read(state, feature)
        return Answers(torch.where(before.scores > UNUSED, told.scores, UNUSED), before.novelty), after


class KnowsSlotOrder(Means):
    def read(self, state: Any, feature: Tensor) -> Answers:
        scores, novelty = super().read(state, feature)
        first = torch.zeros_like(scores)
        first[:, 0] = 0.5
        return Answers(scores + first, novelty)


class CountsAllSlots(Means):
    def read(self, state: Any, feature: Tensor) -> Answers:
        scores, novelty = super().read(state, feature)
        return Answers(scores, novelty + state.number.mean(-1))


class WritesInPlace(Means):
    def write(self, state: Any, feature: Tensor, given: Tensor) -> Any:
        told = (given[:, None] == torch.arange(state.number.shape[1])).float()
        total = state.total + told[..., None] * feature[:, None]
        state.number.add_(told)
        return Sums(total, state.number)


class RemembersOnItself(Means):
    """Counts the meetings in an attribute instead of in the state."""

    met = 0

    def begin(self, batch_size: int, slots: int) -> Any:
        self.met = 0
        return super().begin(batch_size, slots)

    def step(self, state: Any, feature: Tensor, given: Tensor) -> tuple[Answers, Any]:
        self.met += 1
        scores, novelty = self.read(state, feature)
        return Answers(scores, novelty - 0.01 * self.met), self.write(state, feature, given)


class NeverSaysNew(Means):
    def read(self, state: Any, feature: Tensor) -> Answers:
        scores, novelty = super().read(state, feature)
        return Answers(scores, torch.where((state.number > 0).any(-1), novelty, -1.0))


class ScoresUnusedSlots(Means):
    def read(self, state: Any, feature: Tensor) -> Answers:
        scores, novelty = super().read(state, feature)
        return Answers(scores.clamp_min(-100.0), novelty)


class HidesAKnownSlot(Means):
    def read(self, state: Any, feature: Tensor) -> Answers:
        scores, novelty = super().read(state, feature)
        return Answers(torch.where(state.number > 1, scores, UNUSED), novelty)


class FastPathDiffers(Means):
    def forward(self, features: Tensor, given: Tensor, slots: int) -> Answers:
        scores, novelty = super().forward(features, given, slots)
        return Answers(scores, novelty + 0.001 * features.square().sum(-1))


class FastPathForgetsTheUnlabelled(Means):
    """Agrees with its steps whenever everything is labelled."""

    def write(self, state: Any, feature: Tensor, given: Tensor) -> Any:
        shrunk = torch.where(given == UNLABELED, 0.9, 1.0)[:, None, None]
        sums = super().write(state, feature, given)
        return sums._replace(total=sums.total * shrunk)

    def forward(self, features: Tensor, given: Tensor, slots: int) -> Answers:
        plain = Means()
        plain.beta = self.beta
        answers: Answers = plain(features, given, slots)
        return answers


class MixesTheBatch(Means):
    def read(self, state: Any, feature: Tensor) -> Answers:
        return super().read(state, feature - 0.1 * feature.mean(0))


class NanGradients(Means):
    """Right answers; but the softmax over nothing, hidden by `where`, poisons the first gradient."""

    def read(self, state: Any, feature: Tensor) -> Answers:
        scores, novelty = super().read(state, feature)
        used = state.number > 0
        means = state.total / state.number.clamp_min(1)[..., None]
        distance = (means - feature[:, None]).square().sum(-1)
        softmax = torch.where(used, -distance, -torch.inf).softmax(-1)
        surprise = (softmax * distance).sum(-1)  # NaN while nothing is used
        return Answers(scores, torch.where(used.any(-1), surprise - self.beta, novelty))


class RootsOfZero(Means):
    """Finite gradients until something is met twice: the square root has none at zero."""

    def read(self, state: Any, feature: Tensor) -> Answers:
        scores, novelty = super().read(state, feature)
        used = state.number > 0
        root = torch.where(used, -scores, 1.0).sqrt()
        return Answers(torch.where(used, -root, UNUSED), novelty)


class PaddingMatters(Means):
    def forward(self, features: Tensor, given: Tensor, slots: int) -> Answers:
        scores, novelty = super().forward(features, given, slots)
        return Answers(
            scores, novelty + 0.01 * (given.shape[1] - 20)
        )  # right at the length it was tried with


class Diary(NamedTuple):
    total: Tensor
    number: Tensor
    notes: list[Tensor]


class KeepsAList(Means):
    """Part of its memory is a list, which no file of tensors can hold."""

    def begin(self, batch_size: int, slots: int) -> Any:
        sums = super().begin(batch_size, slots)
        return Diary(sums.total, sums.number, [])

    def read(self, state: Any, feature: Tensor) -> Answers:
        scores, novelty = super().read(state, feature)
        return Answers(scores, novelty + 0.01 * len(state.notes))

    def write(self, state: Any, feature: Tensor, given: Tensor) -> Any:
        sums = super().write(state, feature, given)
        return Diary(sums.total, sums.number, [*state.notes, feature])


class LosesAWeight(Means):
    """Its state_dict leaves a weight out, and loading does not mind."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def read(self, state: Any, feature: Tensor) -> Answers:
        scores, novelty = super().read(state, feature)
        return Answers(torch.where(scores > UNUSED, self.scale * scores, UNUSED), novelty)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        kept = super().state_dict(*args, **kwargs)
        del kept["scale"]
        return kept

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        return super().load_state_dict(state_dict, strict=False, assign=assign)


class WrongShape(Means):
    def forward(self, features: Tensor, given: Tensor, slots: int) -> Answers:
        scores, novelty = super().forward(features, given, slots)
        return Answers(scores, novelty[..., None])


class WrongType(Means):
    def read(self, state: Any, feature: Tensor) -> Answers:
        scores, novelty = super().read(state, feature)
        return Answers(scores.double(), novelty)


class Raises(Means):
    def forward(self, features: Tensor, given: Tensor, slots: int) -> Answers:
        raise RuntimeError("forgot to finish this")


class OneHotReader(PeeksAhead):
    """Says itself which laws it cannot keep."""

    exempt = {  # noqa: RUF012
        "causal": "an offline reference",
        "agreement": "an offline reference",
        "padding": "an offline reference",
    }


def needs_arguments(width: int, *, depth: int) -> Means:
    raise AssertionError(f"never called: {width}, {depth}")


def fails_to_build() -> Means:
    raise ValueError("no such file")


made = Means()
not_a_learner = 3
