"""A DNC that begins with a table: it names what it was told before it is trained at all."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.learner_data import assert_close
from wanderlearn import check_learner
from wanderlearn.errors import WanderError
from wanderlearn.learners.dnc import DNC, DNCConfig
from wanderlearn.worlds.sequence import UNLABELED

LENGTH = 5.0


def sequences(
    labelled: float, rows: int = 8, meetings: int = 60, ago: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Features, labels given, and the right answer where it can be known: told so many meetings ago."""
    random = torch.Generator().manual_seed(1)
    kinds = F.normalize(torch.randn(rows, 15, 64, generator=random), dim=-1)
    which = torch.randint(15, (rows, meetings), generator=random)
    noise = 0.6 * F.normalize(torch.randn(rows, meetings, 64, generator=random), dim=-1)
    seen = torch.stack([kind[some] for kind, some in zip(kinds, which, strict=True)])
    told = torch.rand(rows, meetings, generator=random) < labelled
    given, right = torch.full_like(which, UNLABELED), torch.full_like(which, UNLABELED)
    for row in range(rows):
        slots: dict[int, int] = {}
        since: dict[int, int] = {}
        for t, kind in enumerate(which[row].tolist()):
            if kind in slots and t - since[kind] >= ago:
                right[row, t] = slots[kind]
            if told[row, t]:
                given[row, t] = slots.setdefault(kind, len(slots))
                since.setdefault(kind, t)
    return LENGTH * F.normalize(seen + noise, dim=-1), given, right


@pytest.mark.parametrize("writes_first", [False, True])
@pytest.mark.parametrize("labelled", [1.0, 0.5])
def test_it_names_what_it_was_told_without_any_training(labelled: float, writes_first: bool) -> None:
    torch.manual_seed(0)
    features, given, right = sequences(labelled, ago=1 if writes_first else 2)
    known = right != UNLABELED
    correct = {}
    for length in (LENGTH, 0.0):
        dnc = DNC(DNCConfig(look_up=length, writes_first=writes_first)).eval()
        with torch.no_grad():
            answers = dnc(features, given, 50)
        correct[length] = float((answers.scores.argmax(-1) == right)[known].float().mean())
        if length:  # and it is surer of what it knows
            assert answers.novelty[known].mean() < answers.novelty[:, 1:][~known[:, 1:]].mean()
    assert correct[LENGTH] > 0.8
    assert correct[0.0] < 0.3


def test_what_has_no_label_is_not_written() -> None:
    torch.manual_seed(0)
    dnc = DNC(DNCConfig(look_up=LENGTH)).eval()
    features, _, _ = sequences(1.0, rows=1, meetings=6)
    contents = {}
    with torch.no_grad():
        for label in (UNLABELED, 0):
            state = dnc.begin(1, 50)
            for feature in features.unbind(1):
                _, state = dnc.step(state, feature, torch.tensor([label]))
            contents[label] = float(state.memory.content.norm())
    assert contents[UNLABELED] < 0.05 * contents[0]


def test_it_keeps_the_laws_of_every_learner() -> None:
    torch.manual_seed(0)
    config = DNCConfig(features=16, units=64, cells=24, width=24, slots=20, look_up=2.5)
    check_learner(DNC(config)).assert_ok()


def test_writes_that_are_not_traced_change_no_answer_and_choices_get_no_gradient() -> None:
    """When a reader frees a cell, that shows only in where later writes go."""
    features, given, right = sequences(1.0, ago=1)
    known, answers, freeing = right != UNLABELED, [], []
    for trace_writes in (True, False):
        torch.manual_seed(0)
        dnc = DNC(DNCConfig(look_up=LENGTH, writes_first=True, trace_writes=trace_writes))
        answers.append(dnc(features, given, 50))
        loss = F.cross_entropy(answers[-1].scores[known], right[known])
        (gradient,) = torch.autograd.grad(loss, [dnc.orders.bias])
        freeing.append(float(gradient.split(dnc.widths)[2].abs().sum()))  # type: ignore[no-untyped-call]
    assert_close(*answers)
    assert freeing[0] > 0
    assert freeing[1] == 0


def test_training_improves_it_from_where_it_begins() -> None:
    """As the presets have it: from the first steps on the loss falls, and names are not unlearned."""
    torch.manual_seed(0)
    features, given, right = sequences(1.0, rows=16, ago=1)
    dnc = DNC(DNCConfig(look_up=LENGTH, writes_first=True, trace_writes=False))
    adam = torch.optim.Adam(dnc.parameters(), lr=3e-4)
    known, named, losses = right != UNLABELED, [], []
    for _ in range(12):
        answers = dnc(features, given, 50)
        named.append(float((answers.scores.argmax(-1) == right)[known].float().mean()))
        loss = F.cross_entropy(answers.scores[known], right[known])
        losses.append(float(loss.detach()))
        adam.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(dnc.parameters(), 5.0)
        adam.step()
    assert losses[-1] < 0.8 * losses[0]
    assert named[-1] >= named[0] - 0.01


def test_it_has_room_for_what_it_looks_up() -> None:
    with pytest.raises(WanderError, match="needs 165 units, not 100"):
        DNC(DNCConfig(units=100, look_up=LENGTH))
    with pytest.raises(WanderError, match="at least 8"):
        DNC(DNCConfig(width=6, look_up=LENGTH))
