"""CPM and every row of the paper's ablations: fast paths, an independent slow version, worked examples."""

import dataclasses
import math
from typing import Any

import pytest
import torch
from hypothesis import given as always
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from tests.learner_data import ABLATIONS, SLOTS, build, sequences, stepped
from tests.slow_memory import slow_answers, weights_of
from wanderlearn.checks import check_learner
from wanderlearn.errors import WanderError
from wanderlearn.learners.ablations import ARCHITECTURE_ABLATIONS, SEMI_ABLATIONS
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED
from wanderlearn.learners.cpm import CPM, CPMConfig
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.prototypes import PrototypeMemory, Thresholds
from wanderlearn.worlds.sequence import UNLABELED

Config = CPMConfig | ProtoNetConfig
# The rows of both tables, and what neither has: silent GAU, cosine without metric, unit features.
CASES = ABLATIONS | {
    CPMConfig(self_write=False): "silent GAU cosine",
    CPMConfig(self_write=False, similarity="euclidean"): "silent GAU Euclidean",
    CPMConfig(metric=False, context="none"): "thresholds only",
    CPMConfig(unit_features=True): "unit features",
    ProtoNetConfig(similarity="cosine"): "cosine ProtoNet",
}
every_model = pytest.mark.parametrize("config", CASES, ids=CASES.values())
every_setting = pytest.mark.parametrize("labelled", [1.0, 0.5], ids=["supervised", "semi-supervised"])


def loss_of(answers: Any, valid: Tensor) -> Tensor:
    """A number every used score and every novelty has its own say in; padding has none, as in training."""
    random = torch.Generator().manual_seed(1)
    dtype = answers.scores.dtype
    by_score = torch.randn(answers.scores.shape, generator=random, dtype=dtype) * valid[..., None]
    by_novelty = torch.randn(answers.novelty.shape, generator=random, dtype=dtype) * valid
    used = answers.scores > UNUSED
    loss: Tensor = (answers.scores * by_score)[used].sum() + (answers.novelty * by_novelty).sum()
    return loss


def gradients(learner: Any, features: Tensor, answers: Any, valid: Tensor) -> dict[str, Tensor]:
    wanted = {"features": features} | dict(learner.named_parameters())
    found = torch.autograd.grad(loss_of(answers, valid), list(wanted.values()), materialize_grads=True)
    return dict(zip(wanted, found, strict=True))


@every_model
@every_setting
def test_whole_sequences_equal_steps_with_all_gradients(config: Config, labelled: float) -> None:
    learner = build(config)
    features, told, valid = sequences(labelled)
    features.requires_grad_()
    whole, (by_step, _) = learner(features, told, SLOTS), stepped(learner, features, told)
    torch.testing.assert_close(whole, by_step, rtol=1e-9, atol=1e-9)
    fast, slow = (gradients(learner, features, answers, valid) for answers in (whole, by_step))
    size = max(float(g.abs().max()) for g in slow.values())
    assert size > 0.1
    assert fast.keys() == slow.keys()
    for name, gradient in slow.items():
        torch.testing.assert_close(fast[name], gradient, rtol=1e-7, atol=1e-9 * size)


@pytest.mark.parametrize("name", ["CPM Avg. Euc", "CPM Avg. Cos", "CPM GAU Euc", "CPM GAU Cos"])
@every_setting
def test_they_agree_in_single_precision_over_long_sequences(name: str, labelled: float) -> None:
    learner = build(ARCHITECTURE_ABLATIONS[name], small=False)
    features, told, valid = sequences(
        labelled, batch=2, steps=120, slots=30, features=64, padding=20, dtype=torch.float32
    )
    features.requires_grad_()
    whole, (by_step, _) = learner(features, told, 30), stepped(learner, features, told, 30)
    torch.testing.assert_close(whole, by_step, rtol=1e-4, atol=1e-4)
    fast, slow = (gradients(learner, features, answers, valid) for answers in (whole, by_step))
    for parameter, gradient in slow.items():
        scale = float(gradient.abs().max())
        torch.testing.assert_close(fast[parameter], gradient, rtol=1e-3, atol=1e-3 * scale)


@every_model
@every_setting
def test_equals_the_plain_slow_version(config: Config, labelled: float) -> None:
    learner = build(config)
    with torch.no_grad():
        for parameter in learner.parameters():  # so that no bias is zero and no two thresholds are alike
            parameter.add_(0.1 * torch.randn_like(parameter))
        features, told, _ = sequences(labelled)
        answers = learner(features, told, SLOTS)
    for row in range(len(told)):
        scores, novelty = slow_answers(
            learner.config, weights_of(learner), features[row].numpy(), told[row].numpy(), SLOTS
        )
        torch.testing.assert_close(answers.scores[row], torch.from_numpy(scores), rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(answers.novelty[row], torch.from_numpy(novelty), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "config",
    [
        CPMConfig(),
        CPMConfig(memory="average", similarity="euclidean", recurrent_on_unlabelled=False),
        ProtoNetConfig(),
    ],
    ids=["GAU cosine", "average Euclidean", "ProtoNet"],
)
def test_keeps_the_laws_of_learners(config: Config) -> None:
    check_learner(build(config).float()).assert_ok()


@every_model
@pytest.mark.parametrize("kind", ["one step", "never told", "all zero", "always the same"])
def test_gradients_are_finite_from_the_first_step(config: Config, kind: str) -> None:
    learner = build(config).float()
    features, told, valid = sequences(0.5, dtype=torch.float32)
    if kind == "one step":
        features, told, valid = features[:, :1], told[:, :1], valid[:, :1]
    elif kind == "never told":
        told = torch.full_like(told, UNLABELED)
    else:
        features = torch.zeros_like(features) if kind == "all zero" else features[:1, :1].expand_as(features)
    features = features.clone().requires_grad_()
    for answers in (learner(features, told, SLOTS), stepped(learner, features, told)[0]):
        assert all(part.isfinite().all() for part in answers)
        for gradient in gradients(learner, features, answers, torch.ones_like(valid)).values():
            assert gradient.isfinite().all()


MODELS = [
    build(config)
    for config in (CPMConfig(), CPMConfig(memory="average", similarity="euclidean"), ProtoNetConfig())
]


@settings(deadline=None, max_examples=30)
@always(
    told=st.lists(st.integers(-1, SLOTS - 1), min_size=1, max_size=12),
    model=st.integers(0, len(MODELS) - 1),
    seed=st.integers(0, 5),
)
def test_only_labels_open_classes(told: list[int], model: int, seed: int) -> None:
    """Slots in any order, also those an agent may choose."""
    learner = MODELS[model]
    features = sequences(1.0, batch=1, steps=len(told), seed=seed, padding=0).features
    label = torch.tensor([told])
    with torch.no_grad():
        whole, (by_step, state) = learner(features, label, SLOTS), stepped(learner, features, label)
    torch.testing.assert_close(whole, by_step)
    memory = state if isinstance(learner.config, ProtoNetConfig) else state.memory
    opened: set[int] = set()
    for t, name in enumerate(told):
        assert {k for k in range(SLOTS) if whole.scores[0, t, k] > UNUSED} == opened
        assert (whole.novelty[0, t] == CERTAINLY_NEW) == (not opened)
        opened |= {name} - {UNLABELED}
    assert {k for k in range(SLOTS) if memory.counts[0, k] > 0} == opened
    assert all(not memory.prototypes[0, k].any() for k in range(SLOTS) if k not in opened)


def test_gau_by_hand() -> None:
    """One number per feature, gate = sigmoid(ln3/4 x + ln3/2 p - ln3)."""
    memory = PrototypeMemory(1, "gau", "euclidean").double()
    with torch.no_grad():
        memory.gate.weight[:] = math.log(3) * torch.tensor([[0.25, 0.5]])
        memory.gate.bias[:] = -math.log(3)
    x = torch.tensor([[[4.0], [0.5], [8.0], [0.0]]], dtype=torch.float64)
    told = torch.tensor([[0, UNLABELED, 0, UNLABELED]])
    no = torch.zeros_like(told, dtype=torch.bool)
    ones = torch.ones_like(x[..., 0])
    prototypes = [
        0.5 * 4,  # touched: gate 1 + 0 - 1 = 0, f = 1/2; the first write is no exception
        0.5 * 2,  # untouched: gate 0 + 1 - 1 = 0, f = 1/2: it fades
        (1 * 1 + 3**1.5 * 8) / (1 + 3**1.5),  # touched: gate (2 + 1/2 - 1) ln3, f = 3^1.5 / (1 + 3^1.5)
    ]
    state = memory.begin(1, 2, like=x)
    for t, expected in enumerate(prototypes):
        thresholds = Thresholds(*[ones[:, t]] * 4)
        _, state = memory.step(state, x[:, t], None, thresholds, told[:, t], no[:, t])
        assert state.prototypes[0, 0].item() == pytest.approx(expected)
    assert state.counts.tolist() == [[2, 0]]
    assert not state.prototypes[0, 1].any()
    answers = memory.live_through(x, None, Thresholds(*[ones] * 4), told, no, 2)
    expected_scores = [-((float(x[0, t]) - prototypes[t - 1]) ** 2) for t in (1, 2, 3)]
    assert answers.scores[0, 1:, 0].tolist() == pytest.approx(expected_scores)


def test_the_parts_have_the_published_sizes() -> None:
    learner = CPM()
    assert sum(p.numel() for p in learner.lstm.gates.parameters()) == 328_704
    assert sum(p.numel() for p in learner.lstm.norm.parameters()) == 2_048
    assert sum(p.numel() for p in learner.readout.parameters()) == (256 + 1) * (2 * 64 + 4)
    assert sum(p.numel() for p in learner.memory.gate.parameters()) == 129
    assert sum(p.numel() for p in learner.memory.parameters()) == 129 + 1  # and the temperature
    assert {name.split(".")[0] for name, _ in learner.named_parameters()} == {"lstm", "readout", "memory"}


def test_the_first_controls() -> None:
    """With a silent RNN: m = softplus(0), gamma = softplus(1), beta -10 for cosine and 10 for Euclidean."""
    for config, beta in ((CPMConfig(), -10.0), (CPMConfig(similarity="euclidean"), 10.0)):
        learner = CPM(config)
        feature = torch.randn(2, 64)
        f, metric, thresholds = learner.controls(feature, torch.zeros(2, 256))
        torch.testing.assert_close(f, feature)
        assert metric is not None
        torch.testing.assert_close(metric, torch.full((2, 64), math.log(2)))
        for got, expected in zip(thresholds, [beta, math.log1p(math.e)] * 2, strict=True):
            torch.testing.assert_close(got, torch.full((2,), expected))


@pytest.mark.parametrize(
    ("field", "value", "supervised_too"),
    [
        ("context", "none", True),
        ("context", "replace", True),
        ("metric", False, True),
        ("predicted_thresholds", False, True),
        ("memory", "average", True),
        ("similarity", "euclidean", True),
        ("recurrent_on_unlabelled", False, False),
        ("self_write", False, False),
        ("write_thresholds", False, False),
    ],
)
def test_every_switch_matters(field: str, value: object, supervised_too: bool) -> None:
    """Each changes the answers; those about unlabelled items only where there are some."""
    weights = build(CPMConfig()).state_dict()
    for labelled in (1.0, 0.4):
        features, told, _ = sequences(labelled, padding=0)
        usual, other = build(CPMConfig()), build(dataclasses.replace(CPMConfig(), **{field: value}))  # type: ignore[arg-type]
        if not supervised_too:
            kept = {k: v for k, v in weights.items() if other.state_dict()[k].shape == v.shape}
            other.load_state_dict(kept, strict=False)
            if field == "write_thresholds":  # two outputs fewer: copy the reading ones
                rows = [*range(12), 12, 14]
                other.load_state_dict(
                    {k: weights[k][rows] for k in ("readout.weight", "readout.bias")}, strict=False
                )
        with torch.no_grad():
            off = (usual(features, told, SLOTS).novelty - other(features, told, SLOTS).novelty).abs().max()
        assert (off > 1e-4) == (supervised_too or labelled < 1)


def test_the_tables_have_the_rows_of_the_paper() -> None:
    assert len(ARCHITECTURE_ABLATIONS) == 10
    assert len(SEMI_ABLATIONS) == 8
    assert ARCHITECTURE_ABLATIONS["CPM GAU Cos"] == CPMConfig()  # the best is the default
    shared = set(ARCHITECTURE_ABLATIONS.values()) & set(SEMI_ABLATIONS.values())
    assert shared == {ProtoNetConfig(), CPMConfig(), CPMConfig(memory="average", similarity="euclidean")}


def test_a_cpm_without_use_for_its_rnn_is_refused() -> None:
    with pytest.raises(WanderError, match="use OnlineProtoNet"):
        CPM(CPMConfig(context="none", metric=False, predicted_thresholds=False))


def test_the_temperature_starts_where_the_config_says() -> None:
    warm = CPM(CPMConfig(features=4, units=5, similarity="cosine", temperature=20.0))
    assert warm.memory.temperature.item() == 20.0
    with pytest.raises(WanderError, match="above 0"):
        CPM(CPMConfig(similarity="cosine", temperature=0.0))
