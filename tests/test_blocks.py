"""An LSTM that begins with blocks of cells: it names what it was told before it is trained at all."""

import pytest
import torch
import torch.nn.functional as F

from tests.test_look_up import LENGTH, sequences
from wanderlearn import check_learner
from wanderlearn.errors import WanderError
from wanderlearn.learners.lstm import LSTMConfig, LSTMLearner
from wanderlearn.worlds.sequence import UNLABELED


@pytest.mark.parametrize("labelled", [1.0, 0.5])
def test_it_names_what_it_was_told_without_any_training(labelled: float) -> None:
    torch.manual_seed(0)
    features, given, right = sequences(labelled, ago=1)
    known = right != UNLABELED
    correct = {}
    for length in (LENGTH, 0.0):
        lstm = LSTMLearner(LSTMConfig(look_up=length)).eval()
        with torch.no_grad():
            answers = lstm(features, given, 50)
        correct[length] = float((answers.scores.argmax(-1) == right)[known].float().mean())
        if length:  # and it is surer of what it knows
            assert answers.novelty[known].mean() < answers.novelty[:, 1:][~known[:, 1:]].mean() - 0.3
    assert correct[LENGTH] > 0.5
    assert correct[0.0] < 0.3


def test_a_block_is_of_whom_it_was_told_last() -> None:
    """Names 0 and 10 share a block: the second takes it over, and others keep theirs."""
    torch.manual_seed(0)
    lstm = LSTMLearner(LSTMConfig(look_up=LENGTH)).eval()
    things = LENGTH * F.normalize(torch.randn(3, 64), dim=-1)
    told = [(0, 0), (1, 1), (2, 10), (0, UNLABELED), (1, UNLABELED), (2, UNLABELED)]
    features = torch.stack([things[thing] for thing, _ in told])[None]
    with torch.no_grad():
        scores = lstm(features, torch.tensor([[label for _, label in told]]), 50).scores[0]
    assert int(scores[4].argmax()) == 1
    assert int(scores[5].argmax()) == 10
    assert scores[5, 10] > 3 > scores[3, 0]


def test_what_it_keeps_is_what_tells_features_apart() -> None:
    """Things differ in 12 directions, noise is in all: told once and met again, a look names more of them."""
    torch.manual_seed(7)  # not that of the directions it draws itself
    directions = torch.linalg.qr(torch.randn(64, 64))[0][:12]
    things = F.normalize(torch.randn(200, 8, 12) @ directions, dim=-1)
    met = torch.cat([things, things], 1)
    features = LENGTH * F.normalize(met + 0.2 * torch.randn_like(met), dim=-1)
    names = torch.arange(8).expand(200, -1)
    given = torch.cat([names, torch.full_like(names, UNLABELED)], 1)
    correct = []
    for looked in (False, True):
        lstm = LSTMLearner(LSTMConfig(look_up=LENGTH)).eval()
        if looked:
            lstm.look_at(features.flatten(0, 1))
        with torch.no_grad():
            answers = lstm(features, given, 50)
        correct.append(float((answers.scores[:, 8:].argmax(-1) == names).float().mean()))
    assert correct[1] > correct[0] + 0.1, correct


def test_one_that_begins_at_random_takes_no_look() -> None:
    lstm = LSTMLearner(LSTMConfig(units=16))
    before = {name: value.clone() for name, value in lstm.state_dict().items()}
    lstm.look_at(torch.randn(50, 64))
    assert all(torch.equal(value, before[name]) for name, value in lstm.state_dict().items())


def test_it_keeps_the_laws_of_every_learner() -> None:
    torch.manual_seed(0)
    config = LSTMConfig(features=20, units=80, slots=20, look_up=2.5)
    check_learner(LSTMLearner(config)).assert_ok()


@pytest.mark.parametrize(
    "config",
    [
        LSTMConfig(units=59, look_up=LENGTH),
        LSTMConfig(layers=1, look_up=LENGTH),
        LSTMConfig(features=8, look_up=LENGTH),
        LSTMConfig(units=256, slots=230, look_up=LENGTH),
    ],
)
def test_it_says_when_blocks_do_not_fit(config: LSTMConfig) -> None:
    with pytest.raises(WanderError, match="cannot begin with"):
        LSTMLearner(config)
