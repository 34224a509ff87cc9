"""Online ProtoNet: a worked example, its thresholds, and when it writes by itself."""

import math

import pytest
import torch

from tests.learner_data import SLOTS, build, sequences, stepped
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED
from wanderlearn.learners.protonet import OnlineProtoNet, ProtoNetConfig
from wanderlearn.learners.prototypes import phased_in
from wanderlearn.worlds.sequence import UNLABELED

FEATURES_WORKED = torch.tensor([[[2.0, 0.0], [0.0, 4.0], [4.0, 0.0], [3.0, 1.0], [3.0, 0.0]]])
GIVEN_WORKED = torch.tensor([[0, 1, 0, UNLABELED, 1]])


def test_averaging_by_hand() -> None:
    learner = OnlineProtoNet(ProtoNetConfig(features=2))  # beta 10, gamma 1
    told = 1 / (1 + math.exp(-17)) / (1 + math.exp(-9))  # softmax(-1, -18) (1 - sigmoid(1 - 10))
    drift = told / (2 + told)  # p[0] <- (3, 0) + drift ((3, 1) - (3, 0))
    for answers in (
        learner(FEATURES_WORKED, GIVEN_WORKED, 3),
        stepped(learner, FEATURES_WORKED, GIVEN_WORKED, 3)[0],
    ):
        scores, novelty = answers.scores[0], answers.novelty[0]
        assert scores[0].tolist() == [UNUSED, UNUSED, UNUSED]
        assert novelty[0].item() == CERTAINLY_NEW
        assert scores[1].tolist() == pytest.approx([-20, UNUSED, UNUSED])
        assert novelty[1].item() == pytest.approx(16 - 10)  # the empty prototype at zero is nearer: 16 < 20
        assert scores[2].tolist() == pytest.approx([-4, -32, UNUSED])
        assert novelty[2].item() == pytest.approx(4 - 10)
        assert scores[3].tolist() == pytest.approx([-1, -18, UNUSED], abs=1e-5)
        assert novelty[3].item() == pytest.approx(1 - 10, abs=1e-5)
        assert scores[4, :2].tolist() == pytest.approx([-(drift**2), -25], abs=1e-4)  # p[0] = (3, drift)


def test_cosine_counts_the_empty_prototype_as_distance_zero() -> None:
    learner = OnlineProtoNet(ProtoNetConfig(features=2, similarity="cosine"))  # beta -10, temperature 10
    features = torch.tensor([[[2.0, 0.0], [-3.0, 0.0], [3.0, 4.0]]])
    answers = learner(features, torch.tensor([[0, UNLABELED, 1]]), 2)
    assert answers.scores[0, 1].tolist() == pytest.approx([-10, UNUSED], rel=1e-4)
    assert answers.novelty[0, 1].item() == pytest.approx(10)  # not 20: cosine 0 is the farthest
    assert answers.scores[0, 2, 0].item() == pytest.approx(6, rel=1e-4)
    assert answers.novelty[0, 2].item() == pytest.approx(-6 + 10, rel=1e-4)


def test_first_thresholds_and_what_is_learned() -> None:
    names = {name: p.tolist() for name, p in OnlineProtoNet(ProtoNetConfig()).named_parameters()}
    assert names == {"beta": [10, 10], "gamma": [1, 1]}
    cosine = OnlineProtoNet(ProtoNetConfig(similarity="cosine", write_thresholds=False, beta_read=-9.0))
    names = {name: p.tolist() for name, p in cosine.named_parameters()}
    assert names == {"beta": [-9], "gamma": [1], "memory.temperature": 10}


def test_without_self_writing_unlabelled_items_teach_nothing() -> None:
    features, given, _ = sequences(0.5)
    learner = build(ProtoNetConfig(self_write=False))
    _, state = stepped(learner, features, given)
    for row in range(len(given)):
        for k in range(SLOTS):
            mine = features[row][given[row] == k]
            assert state.counts[row, k] == len(mine)
            if len(mine):
                torch.testing.assert_close(state.prototypes[row, k], mine.mean(0))
    self_writing = build(ProtoNetConfig())
    assert (stepped(self_writing, features, given)[1].prototypes - state.prototypes).abs().max() > 1e-3


def test_write_thresholds_change_writing_but_not_reading() -> None:
    features, given, _ = sequences(0.5)
    learner = build(ProtoNetConfig())
    before, memory = stepped(learner, features, given)
    with torch.no_grad():
        learner.beta[1] -= 100  # so that everything unlabelled counts as new for writing
    after, untouched = stepped(learner, features, given)
    told_only = stepped(build(ProtoNetConfig(self_write=False)), features, given)[1]
    torch.testing.assert_close(untouched.prototypes, told_only.prototypes)
    assert (memory.prototypes - told_only.prototypes).abs().max() > 1e-3
    first = (given == UNLABELED).int().argmax(1)  # up to the first unlabelled item, nothing differs
    for row, t in enumerate(first.tolist()):
        assert torch.equal(before.scores[row, : t + 1], after.scores[row, : t + 1])
        assert torch.equal(before.novelty[row, : t + 1], after.novelty[row, : t + 1])


def test_shared_thresholds_are_the_reading_ones() -> None:
    features, given, _ = sequences(0.5)
    shared = build(ProtoNetConfig(write_thresholds=False))
    own = build(ProtoNetConfig())
    with torch.no_grad():
        own.beta.fill_(shared.beta.item())
    torch.testing.assert_close(shared(features, given, SLOTS), own(features, given, SLOTS))


def test_unit_features_ignore_the_length_of_a_feature() -> None:
    features, given, _ = sequences(0.5, padding=0)
    learner = build(ProtoNetConfig(unit_features=True))
    longer = features * torch.rand(*given.shape, 1, dtype=torch.float64).add(0.5)
    torch.testing.assert_close(learner(features, given, SLOTS), learner(longer, given, SLOTS))


def test_self_writing_is_phased_in_by_fifths() -> None:
    assert [phased_in(step, 10_000) for step in (0, 1_999, 2_000, 5_000, 9_999, 10_000, 50_000)] == [
        *(0, 0, 0.2, 0.4, 0.8, 1, 1)
    ]
    assert phased_in(0, 0) == 1


def test_the_schedule_acts_in_training_only() -> None:
    features, given, _ = sequences(0.4)
    learner = build(ProtoNetConfig(write_schedule=10))
    silent = build(ProtoNetConfig(self_write=False))(features, given, SLOTS)
    full = learner.eval()(features, given, SLOTS)
    learner.schedule_writing(0)
    torch.testing.assert_close(learner.eval()(features, given, SLOTS), full)
    torch.testing.assert_close(learner.train()(features, given, SLOTS), silent)
    learner.schedule_writing(10)
    torch.testing.assert_close(learner.train()(features, given, SLOTS), full)


def test_stepping_draws_the_same_chances_as_whole_sequences() -> None:
    features, given, _ = sequences(0.4)
    learner = build(ProtoNetConfig(write_schedule=10)).train()
    learner.schedule_writing(5)
    torch.manual_seed(3)
    whole = learner(features, given, SLOTS)
    torch.manual_seed(3)
    by_step, _ = stepped(learner, features, given)
    torch.testing.assert_close(whole, by_step)
    torch.manual_seed(4)
    assert (learner(features, given, SLOTS).novelty - whole.novelty).abs().max() > 1e-6


def test_padding_writes_nothing() -> None:
    features, given, valid = sequences(0.6, padding=7)
    learner = build(ProtoNetConfig())
    rows = slice(1, 2)
    until = int(valid[1].sum())
    _, padded = stepped(learner, features[rows], given[rows])
    _, ended = stepped(learner, features[rows, :until], given[rows, :until])
    torch.testing.assert_close(padded, ended)
