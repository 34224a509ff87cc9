"""OML: its step on the spot is gradient descent, gradients go through it, and it answers by the rules."""

from math import log

import pytest
import torch
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from tests.learner_data import few_classes, stepped
from wanderlearn.checks import check_learner
from wanderlearn.errors import WanderError
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.learners.oml import OML, OMLConfig, OMLState
from wanderlearn.worlds.sequence import UNLABELED

LINEAR = OMLConfig(features=6, slots=7, inner_lr=0.3, truncate=0)
COSINE = OMLConfig(features=6, slots=7, classifier="cosine", truncate=0)
CONFIGS = [LINEAR, COSINE, OMLConfig(6, "linear", 9, novelty="sum"), OMLConfig(6, "cosine", 5, novelty="sum")]


def learner(config: OMLConfig, seed: int = 0) -> OML:
    torch.manual_seed(seed)
    return OML(config).double().eval()


def scores_of(config: OMLConfig, weight: Tensor, bias: Tensor, feature: Tensor) -> Tensor:
    """The classifier of one sequence, as it is defined."""
    if config.classifier == "linear":
        return weight @ feature + bias
    return 10 * F.cosine_similarity(weight, feature[None], dim=1)


def slow(made: OML, features: Tensor, given: Tensor, slots: int) -> Answers:
    """One sequence after the other; every step by autograd, whose own gradient is kept."""
    config = made.config
    scores, novelty = [], []
    for row in range(len(given)):
        weight = made.start.clone().requires_grad_()
        bias = torch.zeros(config.slots, dtype=features.dtype, requires_grad=True)
        named: set[int] = set()
        for t in range(given.shape[1]):
            out = scores_of(config, weight, bias, features[row, t])
            p = out.softmax(0)
            used = sorted(named)
            scores.append(
                torch.stack([out[k] if k in named else out.new_tensor(UNUSED) for k in range(slots)])
            )
            if used:
                likely = p[used].max() if config.novelty == "max" else p[used].sum()
                new = (1 - likely).clamp(1e-5, 1 - 1e-3)
                novelty.append(torch.log(new / (1 - new)))
            else:
                novelty.append(out.new_tensor(CERTAINLY_NEW))
            y = int(given[row, t])
            if y == UNLABELED:
                continue
            loss = F.cross_entropy(out[None], torch.tensor([y]))
            down = torch.autograd.grad(loss, [weight, bias], create_graph=True, allow_unused=True)
            weight = weight - config.inner_lr * down[0]
            if down[1] is not None:
                bias = bias - config.inner_lr * down[1]
            named.add(y)
    shape = (*given.shape, slots)
    return Answers(torch.stack(scores).view(shape), torch.stack(novelty).view(given.shape))


@settings(deadline=None, max_examples=15)
@over(st.integers(0, 10**6), st.sampled_from([1.0, 0.4, 0.0]), st.sampled_from(CONFIGS))
def test_the_steps_are_gradient_descent_and_gradients_go_through_them(
    seed: int, labelled: float, config: OMLConfig
) -> None:
    made = learner(config, seed)
    features, given = few_classes(seed, labelled)
    features = features.double()
    weight = torch.randn(*given.shape, 5, dtype=torch.float64)
    found = []
    for run in (lambda x: made(x, given, 5), lambda x: stepped(made, x, given, 5)[0],
                lambda x: slow(made, x, given, 5)):  # fmt: skip
        leaf = features.clone().requires_grad_()
        scores, novelty = run(leaf)
        known = scores > UNUSED / 2
        loss = (weight * scores)[known].sum() + novelty.clamp_max(20).sum()
        gradient = torch.autograd.grad(loss, leaf)[0] if loss.requires_grad else torch.zeros_like(leaf)
        found.append((scores.detach(), novelty.detach(), gradient))
    if labelled:
        assert found[0][2].abs().max() > 0
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-7, rtol=1e-6)


def test_one_step_by_hand() -> None:
    made = OML(OMLConfig(features=2, slots=4, inner_lr=0.1)).double().eval()
    h, y = torch.tensor([[3.0, 1.0]], dtype=torch.float64), torch.tensor([2])
    answer, state = made.step(made.begin(1, 3), h, y)
    assert answer.scores.tolist() == [[UNUSED] * 3]
    assert answer.novelty.item() == CERTAINLY_NEW
    # All four outputs were at 1/4: W[2] moves by 0.1 (1 - 1/4) h, the others by -0.1 / 4 h.
    expected = torch.tensor([-0.025, -0.025, 0.075, -0.025], dtype=torch.float64)
    torch.testing.assert_close(state.bias[0], expected)
    torch.testing.assert_close(state.weight[0], expected[:, None] * h)
    answer, _ = made.step(state, h, torch.tensor([UNLABELED]))
    s = expected * 11  # 3 x 3 + 1 x 1 + 1
    p = s.softmax(0)[2].item()
    assert answer.scores[0].tolist() == pytest.approx([UNUSED, UNUSED, s[2].item()])
    assert answer.novelty.item() == pytest.approx(log((1 - p) / p), rel=1e-5)


def test_the_sum_over_unused_outputs_is_another_way_to_say_new() -> None:
    weight, told = torch.zeros(1, 4, 2), torch.tensor([[True, True, False]])
    for novelty, new in (("max", 0.75), ("sum", 0.5)):
        made = OML(OMLConfig(features=2, slots=4, novelty=novelty)).eval()  # type: ignore[arg-type]
        answer, _ = made.step(
            OMLState(weight, torch.zeros(1, 4), told), torch.ones(1, 2), torch.tensor([UNLABELED])
        )
        assert answer.novelty.sigmoid().item() == pytest.approx(new, rel=1e-5)


@pytest.mark.parametrize("config", [LINEAR, COSINE])
def test_nothing_is_learned_without_a_label(config: OMLConfig) -> None:
    made = learner(config)
    state = made.begin(2, 3)
    x = torch.randn(2, 6, dtype=torch.float64)
    _, told = made.step(state, x, torch.tensor([1, UNLABELED]))
    _, after = made.step(told, x, torch.tensor([UNLABELED, UNLABELED]))
    for before, later in zip(told, after, strict=True):
        assert torch.equal(before, later)
    assert torch.equal(told.weight[1], state.weight[1])
    assert not torch.equal(told.weight[0], state.weight[0])


@pytest.mark.parametrize("config", [LINEAR, COSINE])
def test_it_learns_what_it_is_told(config: OMLConfig) -> None:
    made, centres = learner(config), torch.eye(6, dtype=torch.float64)[:4] * 2
    given = torch.arange(4).repeat(12)[None]  # the classes in turn, twelve times
    answers = made(centres[given], given, 4)
    assert (answers.scores[0, -4:].argmax(-1) == torch.arange(4)).all()
    again = answers.novelty[0].view(12, 4)
    assert again[-1].mean() < again[1].mean() < again[0, 1:].mean()  # what was told often is less new


def seen_by(config: OMLConfig) -> Tensor:
    """Which earlier features the last answer's gradient reaches, in training."""
    torch.manual_seed(0)
    made = OML(config).double().train()
    x = torch.randn(1, 8, 6, dtype=torch.float64, requires_grad=True)
    scores, _ = made(x, torch.tensor([[0, 1, 2, 0, 1, 2, 0, 1]]), 3)
    scores[0, -1].sum().backward()
    assert x.grad is not None
    return x.grad[0].abs().amax(-1) > 0


@pytest.mark.parametrize("classifier", ["linear", "cosine"])
def test_how_far_back_a_gradient_goes(classifier: str) -> None:
    def config(**changes: int | bool) -> OMLConfig:
        return OMLConfig(features=6, slots=7, classifier=classifier, **changes)  # type: ignore[arg-type]

    assert seen_by(config(truncate=0)).all()
    assert seen_by(config(truncate=3)).tolist() == [False] * 6 + [True] * 2  # pieces 0-2, 3-5, 6-7
    assert seen_by(config(truncate=0, second_order=False)).tolist() == [False] * 7 + [True]


def test_truncation_and_order_change_gradients_only() -> None:
    features, given = few_classes(3, 0.7)
    usual = OML(OMLConfig(features=6, slots=7)).train()
    for change in (OMLConfig(6, "linear", 7, truncate=0), OMLConfig(6, "linear", 7, second_order=False)):
        for ours, theirs in zip(usual(features, given, 5), OML(change)(features, given, 5), strict=True):
            assert torch.equal(ours, theirs)


def test_first_directions_are_drawn_anew_in_training_and_kept_afterwards() -> None:
    made = OML(OMLConfig(features=6, slots=7, classifier="cosine")).train()
    first = made.begin(4, 5).weight
    assert first.std() == pytest.approx(0.0088, rel=0.3)
    assert first.abs().max() <= 0.02
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first, made.begin(4, 5).weight)
    made.eval()
    kept = made.begin(4, 5).weight
    assert torch.equal(kept, made.begin(4, 5).weight)
    assert torch.equal(kept[0], kept[3])
    other = OML(OMLConfig(features=6, slots=7, classifier="cosine")).eval()
    assert not torch.equal(other.begin(1, 5).weight[0], kept[0])
    other.load_state_dict(made.state_dict())
    assert torch.equal(other.begin(1, 5).weight[0], kept[0])


@pytest.mark.parametrize(
    ("config", "exempt"),
    [(OMLConfig(), []), (OMLConfig(classifier="cosine"), ["slots"]), (OMLConfig(6, "linear", 20), [])],
)
def test_the_contract_is_kept(config: OMLConfig, exempt: list[str]) -> None:
    report = check_learner(OML(config).eval())
    report.assert_ok()
    assert [found.law for found in report.findings if found.outcome == "exempt"] == exempt


def test_the_exemption_is_needed() -> None:
    made = OML(OMLConfig(classifier="cosine")).eval()
    made.exempt = {}
    assert [law for law, _ in check_learner(made).failures] == ["slots"]


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(WanderError, match="at most 7 classes, but is asked for 8"):
        OML(LINEAR).begin(1, 8)
    with pytest.raises(WanderError, match="truncate must not be below 0"):
        OML(OMLConfig(truncate=-1))
