"""A DNC that begins with a table: it names what it was told before it is trained at all."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from wanderlearn import check_learner
from wanderlearn.errors import WanderError
from wanderlearn.learners.dnc import DNC, DNCConfig
from wanderlearn.worlds.sequence import UNLABELED

LENGTH = 5.0


def sequences(labelled: float, rows: int = 8, meetings: int = 60) -> tuple[Tensor, Tensor, Tensor]:
    """Features, labels given, and the right answer where it can be known: told at least two meetings ago."""
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
            if kind in slots and t - since[kind] > 1:
                right[row, t] = slots[kind]
            if told[row, t]:
                given[row, t] = slots.setdefault(kind, len(slots))
                since.setdefault(kind, t)
    return LENGTH * F.normalize(seen + noise, dim=-1), given, right


@pytest.mark.parametrize("labelled", [1.0, 0.5])
def test_it_names_what_it_was_told_without_any_training(labelled: float) -> None:
    torch.manual_seed(0)
    features, given, right = sequences(labelled)
    known = right != UNLABELED
    correct = {}
    for length in (LENGTH, 0.0):
        dnc = DNC(DNCConfig(look_up=length)).eval()
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


def test_it_has_room_for_what_it_looks_up() -> None:
    with pytest.raises(WanderError, match="needs 165 units, not 100"):
        DNC(DNCConfig(units=100, look_up=LENGTH))
    with pytest.raises(WanderError, match="at least 8"):
        DNC(DNCConfig(width=6, look_up=LENGTH))
