"""What is rarely asked about counts more in naming: against plain loops, and the laws of its weights."""

from collections import Counter

import numpy as np
import pytest
import torch

from tests.tiny_runs import pictures
from wanderlearn.learners.answer import Answers
from wanderlearn.loss import sequence_loss
from wanderlearn.rarity import LEAST, LONG, MOST_TOLD, Rarity
from wanderlearn.worlds import Meetings, Roaming, RoamingConfig
from wanderlearn.worlds.sequence import UNLABELED

SLOTS = 8


def sample(semi: bool, count: int = 30) -> list[Meetings]:
    config = RoamingConfig(environments=2, classes=SLOTS, length=40, per_class=4, semi=semi)
    world = Roaming(pictures("train"), config)
    return [world.meetings(3, i) for i in range(count)]


def kinds(meetings: Meetings) -> list[tuple[int, int] | None]:
    """How often told and how long ago met, of every step, by a loop; None where it is not known."""
    told: Counter[int] = Counter()
    last: dict[int, int] = {}
    found: list[tuple[int, int] | None] = []
    for t, (given, target) in enumerate(zip(meetings.given, meetings.target, strict=True)):
        if target >= 0:
            ago = t - last[target]
            found.append((min(told[target], MOST_TOLD), sum(ago > end for end in LONG)))
            last[target] = t
        else:
            found.append(None)
        if given != UNLABELED:
            told[given] += 1
            last[given] = t
    return found


@pytest.mark.parametrize("semi", [False, True])
@pytest.mark.parametrize("balance", [0.0, 0.5, 1.0])
def test_weights_are_those_of_plain_loops(semi: bool, balance: float) -> None:
    drawn = sample(semi)
    asked = Counter(kind for each in drawn for kind in kinds(each) if kind)
    total = sum(asked.values())
    mean = sum(n / max(n, LEAST) for n in asked.values()) / total
    plain = {kind: 1 - balance + balance / max(n, LEAST) / mean for kind, n in asked.items()}
    rarity = Rarity(drawn, SLOTS, balance)
    for each in drawn:
        given, target = (torch.from_numpy(x)[None] for x in (each.given, each.target))
        expected = [plain[kind] if kind else 0.0 for kind in kinds(each)]
        np.testing.assert_allclose(rarity(given, target)[0].numpy(), expected, rtol=1e-4)


def test_the_rare_counts_more_and_the_mean_is_one() -> None:
    drawn = sample(semi=True)
    found = [
        Rarity(drawn, SLOTS, 0.5)(*(torch.from_numpy(x)[None] for x in (each.given, each.target)))[0]
        for each in drawn
    ]
    weights, known = torch.cat(found), torch.cat([torch.from_numpy(each.target >= 0) for each in drawn])
    assert weights[known].mean().item() == pytest.approx(1.0, rel=1e-4)
    asked = [kind for each in drawn for kind in kinds(each) if kind]
    often = Counter(asked)
    common, rare = often.most_common()[0][0], often.most_common()[-1][0]
    by_kind = dict(zip(asked, weights[known].tolist(), strict=True))
    assert by_kind[rare] > 1 > by_kind[common]


def test_the_loss_counts_each_step_by_its_weight() -> None:
    torch.manual_seed(0)
    answers = Answers(torch.randn(2, 5, 3), torch.randn(2, 5))
    target = torch.tensor([[-2, 0, 1, 0, -2], [-2, 0, 0, 2, 1]])
    valid = torch.ones(2, 5, dtype=torch.bool)
    plain = sequence_loss(answers, target, valid)
    same = sequence_loss(answers, target, valid, naming_weight=torch.ones(2, 5))
    torch.testing.assert_close(same, plain)
    weight = torch.rand(2, 5)
    weighted = sequence_loss(answers, target, valid, naming_weight=weight)
    each = torch.nn.functional.cross_entropy(
        answers.scores[target >= 0], target[target >= 0], reduction="none"
    )
    torch.testing.assert_close(weighted.naming, (each * weight[target >= 0]).mean())
    torch.testing.assert_close(weighted.novelty, plain.novelty)
