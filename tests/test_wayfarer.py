"""Wayfarer: a slow version, the fast path against steps, every part switched off, the window, late credit."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest
import torch
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from tests.learner_data import assert_close, few_classes, stepped
from tests.slow_wayfarer import SlowWayfarer
from wanderlearn import WanderError
from wanderlearn.checks import check_learner
from wanderlearn.configs import from_json, to_json
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.learners.company import Company
from wanderlearn.learners.doubt import SURELY
from wanderlearn.learners.late_credit import CHUNK, MASKED, Credit, lengthened, shared
from wanderlearn.learners.unnamed import best_before
from wanderlearn.learners.wayfarer import NOTHING, SWITCHES, Wayfarer, WayfarerConfig
from wanderlearn.worlds.sequence import UNLABELED

SMALL = WayfarerConfig(features=6, units=7, guesses=12)
CONFIGS = {
    "whole": SMALL,
    "short window": replace(SMALL, window=4),
    "shortest window": replace(SMALL, window=1),
    **{f"no {switch}": replace(SMALL, **{switch: False}) for switch in SWITCHES},
    "bare": replace(SMALL, **dict.fromkeys(SWITCHES[1:], False)),
    "plain": replace(SMALL, **{s: s == "plain_keys" for s in SWITCHES}),
}


def made(config: WayfarerConfig, seed: int = 0) -> Wayfarer:
    """A learner in which every part matters: at the start some are nearly silent."""
    torch.manual_seed(seed)
    learner = Wayfarer(config)
    with torch.no_grad():
        learner.lstm.gates.weight.mul_(4)
        learner.scorer.get_parameter("2.weight").normal_(0, 0.3)
        if config.context_keys:
            learner.readout.weight.mul_(4)
    return learner


def slow(learner: Wayfarer, features: Tensor, given: Tensor, slots: int) -> Answers:
    B, T = given.shape
    scores, novelty = np.full((B, T, slots), UNUSED), np.full((B, T), CERTAINLY_NEW)
    for b in range(B):
        memory = SlowWayfarer(learner)
        for t in range(T):
            met = memory.meeting(features[b, t].double().numpy())
            novelty[b, t], found = memory.read(met)
            for k, score in found.items():
                scores[b, t, int(str(k))] = score
            label = int(given[b, t])
            memory.write(met, None if label == UNLABELED else label)
    return Answers(torch.from_numpy(scores).float(), torch.from_numpy(novelty).float())


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@settings(deadline=None, max_examples=4)
@over(seed=st.integers(0, 10**6), labelled=st.sampled_from([1.0, 0.5, 0.2, 0.0]))
def test_whole_sequences_steps_and_slow_version_agree(
    config: WayfarerConfig, seed: int, labelled: float
) -> None:
    learner = made(config)
    features, given = few_classes(seed, labelled, rows=2)
    expected = slow(learner, features, given, slots=6)
    with torch.no_grad():
        assert_close(learner(features, given, 6), expected)
        assert_close(stepped(learner, features, given, 6)[0], expected)


@settings(deadline=None, max_examples=20)
@over(seed=st.integers(0, 10**6), slots=st.sampled_from([6, 1]))
def test_in_use_novelty_is_the_chance_that_the_best_name_is_wrong(seed: int, slots: int) -> None:
    learner = made(SMALL)
    features, given = few_classes(seed, 0.7, rows=2)
    given = given.clamp(max=slots - 1)
    scores, alone = slow(learner, features, given, slots)
    known = alone < 0
    chance = scores.double().softmax(-1).amax(-1) * (-alone.double()).sigmoid()
    with torch.no_grad():
        found = learner.eval()(features, given, slots)
        assert_close(stepped(learner, features, given, slots)[0], found)
    assert ((found.novelty < 0) == known).all()
    surely = 1 / (1 + exp(-SURELY))  # what is known is held below 0, by so much
    expected = torch.where(known, chance.clamp(min=surely), chance)
    asked = alone < CERTAINLY_NEW
    torch.testing.assert_close((-found.novelty.double()).sigmoid()[asked], expected[asked], atol=1e-4, rtol=0)
    assert (found.novelty[known] >= alone[known] - 1e-3).all()
    learner.doubt = False
    with torch.no_grad():
        assert_close(learner(features, given, slots), Answers(scores, alone))


def test_pictures_that_show_nothing_agree_with_steps() -> None:
    """A feature of nothing but zeros has no direction, not even its own."""
    learner = made(SMALL)
    features, given = few_classes(6, 0.4)
    features[:, 3:7] = 0
    with torch.no_grad():
        expected = slow(learner, features, given, slots=6)
        assert_close(learner(features, given, 6), expected)
        assert_close(stepped(learner, features, given, 6)[0], expected)


@pytest.mark.parametrize("window", [256, 20])
@pytest.mark.parametrize("labelled", [1.0, 0.4, 0.1])
def test_long_sequences_agree_with_steps(labelled: float, window: int) -> None:
    learner = made(replace(SMALL, window=window))
    features, given = few_classes(3, labelled, length=2 * CHUNK + 7)  # more than one chunk of late credit
    with torch.no_grad():
        assert_close(learner(features, given, 6), stepped(learner, features, given, 6)[0])


@pytest.mark.parametrize(
    "name", [name for name in CONFIGS if name != "shortest window"]
)  # one meeting keeps no company
@pytest.mark.parametrize("labelled", [1.0, 0.4])
def test_gradients_of_whole_sequences_and_steps_agree(name: str, labelled: float) -> None:
    learner = made(CONFIGS[name]).double()
    features, given = few_classes(1, labelled)
    features, weight = features.double(), torch.randn(3, 15, 6, dtype=torch.float64)
    parts = ["the features", *(part for part, _ in learner.named_parameters())]

    def gradients(run: str) -> tuple[Tensor | None, ...]:
        leaf = features.clone().requires_grad_()
        scores, novelty = learner(leaf, given, 6) if run == "whole" else stepped(learner, leaf, given, 6)[0]
        loss = (weight * scores.clamp_min(-50)).sum() + (weight[..., 0] * torch.tanh(novelty / 5)).sum()
        return torch.autograd.grad(loss, [leaf, *learner.parameters()], allow_unused=True)

    for part, fast, step in zip(parts, gradients("whole"), gradients("steps"), strict=True):
        if part in ("credit", "company.likeness", "unnamed.likeness") and labelled == 1:
            continue  # whole sequences do not even ask
        assert fast is not None, part
        assert step is not None, part
        assert step.abs().max() > 0, f"{part} has no gradient"
        torch.testing.assert_close(fast, step, atol=1e-8, rtol=1e-6, msg=part)


@pytest.mark.parametrize("name", ["short window", "no context_keys", "no company", "bare"])
def test_the_contract_is_kept(name: str) -> None:
    check_learner(made(CONFIGS[name])).assert_ok()


def test_the_contract_is_kept_as_it_comes() -> None:
    check_learner(Wayfarer()).assert_ok()


@pytest.mark.parametrize("slots", [2, 3])
def test_few_slots_are_enough(slots: int) -> None:
    check_learner(made(SMALL), slots=slots).assert_ok()


def test_one_class_is_enough() -> None:
    learner = made(SMALL)
    answers = learner(torch.randn(1, 3, 6), torch.tensor([[UNLABELED, 0, UNLABELED]]), 1)
    assert answers.novelty[0, :2].tolist() == [CERTAINLY_NEW] * 2
    assert answers.scores[0, :2, 0].tolist() == [UNUSED] * 2
    assert answers.novelty[0, 2] < CERTAINLY_NEW
    assert answers.scores[0, 2, 0] > UNUSED / 2


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_takes_something_away(switch: str) -> None:
    features, given = few_classes(5, 0.5)
    full, less = made(SMALL), made(replace(SMALL, **{switch: False}))
    count = [sum(part.numel() for part in one.parameters()) for one in (full, less)]
    assert count[1] < count[0]
    assert not torch.allclose(full(features, given, 6).novelty, less(features, given, 6).novelty)


def test_what_cannot_be_built_is_said() -> None:
    with pytest.raises(WanderError, match="switch context_keys or plain_keys on"):
        Wayfarer(replace(SMALL, context_keys=False, plain_keys=False))
    with pytest.raises(WanderError, match="at least 0 guesses, not -1"):
        Wayfarer(replace(SMALL, guesses=-1))
    with pytest.raises(WanderError, match="at least 1 meeting, not 0"):
        Wayfarer(replace(SMALL, window=0))


def test_a_config_written_before_there_were_guesses_has_none() -> None:
    written = to_json(SMALL)
    assert from_json(WayfarerConfig, written) == SMALL
    del written["guesses"]
    assert from_json(WayfarerConfig, written) == replace(SMALL, guesses=0)


# The window --------------------------------------------------------------------------------------------


def test_the_state_keeps_the_last_meetings_and_no_more() -> None:
    learner = made(replace(SMALL, window=5))
    features, given = few_classes(2, 0.5, rows=1)
    state = learner.begin(1, 6)
    sizes = {part.shape for part in (state.window.keys, state.window.label)}
    assert state.window.label.tolist() == [[NOTHING] * 5]
    for t in range(15):
        _, state = learner.step(state, features[:, t], given[:, t])
        wanted = given[0, max(0, t - 4) : t + 1].tolist()
        assert state.window.label[0].tolist() == [NOTHING] * (5 - len(wanted)) + wanted
    assert {part.shape for part in (state.window.keys, state.window.label)} == sizes
    told = given[0][given[0] != UNLABELED]
    assert state.classes.told[0].tolist() == torch.bincount(told, minlength=6).tolist()
    assert state.time.tolist() == [15]


def test_a_class_whose_examples_left_the_window_is_still_known() -> None:
    """Its prototype, count and age stay; its prototype stands for its nearest example."""
    learner = made(replace(SMALL, window=3))
    torch.manual_seed(1)
    thing, others = F.normalize(torch.randn(6), dim=0), torch.randn(8, 6)
    features = torch.stack([thing, *others, thing])[None]
    given = torch.tensor([[0, *[1] * 8, UNLABELED]])
    state = learner.begin(1, 4)
    for t in range(9):
        _, state = learner.step(state, features[:, t], given[:, t])
    assert 0 not in state.window.label
    far = learner.step(state, -features[:, 9], given[:, 9])[0].scores[0, 0]
    near = learner.step(state, features[:, 9], given[:, 9])[0].scores[0, 0]
    assert near > far + 5
    with torch.no_grad():
        met = learner.meeting(features[:, 9:], torch.zeros(1, 1, 7))
        cosine = met.keys @ F.normalize(state.classes.sums, dim=-1).mT
        found = learner.nearest(
            met.keys @ state.window.keys.mT, torch.ones(1, 1, 3, dtype=torch.bool), state.window.label, cosine
        )
    assert torch.equal(found[..., 0], cosine[..., 0])
    assert (found[..., 1] != cosine[..., 1]).all()


def test_beyond_the_window_the_oldest_meetings_do_not_matter() -> None:
    """But for prototypes and counts, which are of everything: here there are none of the oldest."""
    learner = made(replace(SMALL, window=4, context_keys=False))
    with torch.no_grad():
        learner.seen.weight.zero_()  # the recurrent network remembers longer
    features, given = few_classes(4, 1.0, rows=1, length=12)
    given[:, :4] = UNLABELED
    changed = features.clone()
    changed[:, :4] = torch.randn(1, 4, 6)
    one, other = learner(features, given, 6), learner(changed, given, 6)
    assert not torch.allclose(one.scores[:, 5:7], other.scores[:, 5:7])
    assert_close(
        Answers(one.scores[:, 8:], one.novelty[:, 8:]), Answers(other.scores[:, 8:], other.novelty[:, 8:])
    )


# Late credit -------------------------------------------------------------------------------------------


def test_what_was_met_before_its_class_was_named_is_credited_to_it_later() -> None:
    """Unlabelled views of two things, then one label each: what was met before makes both better known."""
    random = torch.Generator().manual_seed(0)
    centres = F.normalize(torch.randn(2, 32, generator=random), dim=-1)
    noise = 0.15 * torch.randn(60, 32, generator=random)
    truth = torch.arange(60) % 2
    features = (centres[truth] + noise)[None]  # [1, 60, 32]
    given = torch.full((1, 60), UNLABELED)
    given[0, 40], given[0, 41] = 0, 1  # 40 meetings without a label come first
    config = WayfarerConfig(features=32, units=8)
    torch.manual_seed(0)
    learner = Wayfarer(config)
    without = Wayfarer(replace(config, late_credit=False))
    without.load_state_dict(learner.state_dict(), strict=False)
    margins, novelty = [], []
    for one in (learner, without):
        with torch.no_grad():
            answers = one(features, given, 2)
        scores = answers.scores[0, 42:]
        own, other = scores.gather(1, truth[42:, None]), scores.gather(1, 1 - truth[42:, None])
        margins.append(float((own - other).mean()))
        novelty.append(float(answers.novelty[0, 42:].mean()))
    assert margins[0] > margins[1] + 0.5
    assert novelty[0] < novelty[1] - 0.5


def test_credit_goes_to_the_likeliest_class_and_never_exceeds_one_meeting() -> None:
    learner = made(SMALL)
    cosines = torch.tensor([[0.9, 0.1, -0.5], [0.0, 0.2, -0.5], [0.3, 0.3, 0.9]])[None, None]  # [1, 1, K, U]
    likeness = 15 * cosines
    likeness[0, 0, 2] = MASKED  # of the third class nobody has been told yet
    free = torch.tensor([[[True, True, True]]])
    credit = Credit(*learner.credit.detach())
    share = shared(likeness, free, credit)[0, 0]  # [K, U]
    assert share[0, 0] > 0.99
    assert share[1, 1] > share[0, 1] > 0
    assert share[2].tolist() == [0, 0, 0]
    assert (share.sum(0) <= 1).all()
    assert share[:, 2].sum() < 1e-3  # like nothing known: credited to nobody
    assert shared(likeness, ~free, credit).abs().max() == 0
    assert shared(torch.full_like(likeness, MASKED), free, credit).abs().max() == 0


@pytest.mark.parametrize("start", [0.0, 1 / 3, 0.7])
def test_half_is_credited_where_the_settings_say(start: float) -> None:
    learner = Wayfarer(replace(SMALL, credited_from=start)).requires_grad_(False)
    cosines = torch.tensor([[start - 0.2, start, start + 0.2]])[None, None]  # [1, 1, K, U], one class
    free = torch.ones(1, 1, 3, dtype=torch.bool)
    credit = Credit(*learner.credit)
    less, half, more = shared(credit.sharpness * cosines, free, credit).flatten().tolist()
    assert half == pytest.approx(0.5, abs=1e-5)
    assert less < 0.05
    assert more > 0.95


@pytest.mark.parametrize("sharpness", [0.0, 5.0, 40.0, 80.0, -20.0])
def test_credit_as_sharp_as_can_be_agrees_with_steps(sharpness: float) -> None:
    """The exponentials of whole sequences then are as small as numbers get."""
    learner = made(SMALL)
    features, given = few_classes(3, 0.4)
    features.requires_grad_()
    learner.credit.data[0] = sharpness
    found = learner(features, given, 6)
    assert_close(found, stepped(learner, features, given, 6)[0])
    if sharpness <= 40:
        (gradient,) = torch.autograd.grad(found.novelty[:, 5:].sum(), features)
        assert gradient.isfinite().all()


@settings(deadline=None)
@over(seed=st.integers(0, 10**6), credited=st.lists(st.floats(0, 1), max_size=8))
def test_what_is_credited_never_shortens_a_prototype(seed: int, credited: list[float]) -> None:
    """Whatever is credited, cosines stay bounded; meetings alike as one class are reckoned exactly."""
    share = torch.tensor(credited, dtype=torch.float64)  # [U]
    torch.manual_seed(seed)
    told, met = F.normalize(torch.randn(1, 8), dim=-1)[0].double(), F.normalize(torch.randn(len(share), 8))
    added = share @ met.double()
    sums = share.sum(), share.square().sum()
    length = lengthened(told.norm(), told @ added, *sums)
    assert length >= told.norm() * (1 - 1e-6)
    basis = torch.eye(len(share) + 1, dtype=torch.float64)  # directions with a cosine of 1/2 to each other
    alike = (basis[:-1] + basis[-1]) / 2**0.5
    assert lengthened(torch.zeros(()), torch.zeros(()), *sums) == pytest.approx(
        float((share @ alike).norm()), abs=2e-5
    )


@pytest.mark.parametrize("start", [-1.5, 2.0, float("nan")])
def test_only_a_cosine_can_be_where_credit_starts(start: float) -> None:
    with pytest.raises(WanderError, match="credited_from"):
        Wayfarer(replace(SMALL, credited_from=start))


# Company -----------------------------------------------------------------------------------------------


def company_of(company: Company, given: list[int], slots: int, alike: Tensor | None = None) -> Tensor:
    """Shares [T + 1, K, H] before each meeting and after the last."""
    label = torch.tensor([[*given, UNLABELED]])
    time = torch.arange(label.shape[1])
    apart = time[:, None] - time
    alike = torch.eye(len(time)) if alike is None else F.pad(alike, (0, 1, 0, 1))
    with torch.no_grad():
        logs = company(apart, alike[None], apart[None] > 0, label, slots)
    shares: Tensor = logs[0].exp() - 1e-4
    return shares


def test_classes_that_are_met_together_keep_company() -> None:
    """Cup and pot together, hammer and saw together, then walls; then a cup is met again."""
    cup, pot, hammer, saw, wall = range(5)
    given = [*[cup, pot] * 3, *[hammer, saw] * 3, *[wall] * 6, *[cup] * 3]
    shares = company_of(Company(), given, 5)[-1]
    assert shares[cup, 0] > 0.9  # the walk begins at the cup, and goes to all cups by name
    assert shares[pot, 0] < 1e-4  # but not yet to what was beside them
    assert shares[pot, 1] > 0.1
    assert (shares[[hammer, saw], 1] < 0.02).all()
    apart = [
        *[saw, pot] * 3,
        *[hammer, cup] * 3,
        *[wall] * 6,
        *[cup] * 3,
    ]  # the pot is beside the saw instead
    shares = company_of(Company(), apart, 5)[-1]
    assert shares[pot, 1] < 0.02


def test_one_walk_worked_by_hand() -> None:
    """Met a, b, a: u_0 of p0 = 0.4, then by name, then by time with p1 = 0.3, then by name again."""
    shares = company_of(Company(), [0, 1, 0], 2)[-1]
    u = torch.tensor([0.4**3, 0.4**2, 0.4])
    u = u / u.sum()
    a, b = float(u[0] + u[2]), float(u[1])
    assert shares[:, 0].tolist() == pytest.approx([a, b], abs=1e-4)
    v = torch.tensor([a / 2, b, a / 2])
    u = v @ torch.tensor([[1, 0.3, 0.09], [0.3, 1, 0.3], [0.09, 0.3, 1]])
    u = u / u.sum()
    assert shares[:, 1].tolist() == pytest.approx([float(u[0] + u[2]), float(u[1])], abs=1e-4)


def test_unnamed_things_pass_company_on_by_their_likeness() -> None:
    """A cup was met beside a pot, unnamed; what is met now is like that cup, and unnamed too."""
    pot, saw = 0, 1
    given = [UNLABELED, pot, saw, saw, saw, saw, saw, UNLABELED]
    alike = torch.eye(8)
    stranger = company_of(Company(), given, 2, alike)[-1]
    alike[0, 7] = alike[7, 0] = 1
    again = company_of(Company(), given, 2, alike)[-1]
    assert again[pot, 1] > 3 * stranger[pot, 1]


@settings(deadline=None, max_examples=25)
@over(given=st.lists(st.integers(-1, 4), min_size=1, max_size=20), seed=st.integers(0, 10**6))
def test_walks_stay_among_what_was_met_before(given: list[int], seed: int) -> None:
    keys = F.normalize(torch.randn(len(given), 4, generator=torch.Generator().manual_seed(seed)), dim=-1)
    shares = company_of(Company(), given, 5, keys @ keys.mT)
    assert (shares > -1e-6).all()
    assert (shares.sum(1) < 1 + 1e-4).all()
    for t in range(len(given) + 1):
        unmet = sorted(set(range(5)) - set(given[:t]))
        assert shares[t, unmet].abs().sum() < 1e-6
    half = len(given) // 2
    less = company_of(Company(), given[:half], 5, keys[:half] @ keys[:half].mT)
    torch.testing.assert_close(shares[: half + 1], less, atol=1e-5, rtol=1e-4)  # the future is not seen


def test_where_every_class_was_told_likeness_does_not_matter() -> None:
    learner = made(SMALL)
    assert learner.company is not None
    for labelled, matters in ((1.0, False), (0.5, True)):
        features, given = few_classes(6, labelled)
        before = learner(features, given, 6), stepped(learner, features, given, 6)[0]
        with torch.no_grad():
            learner.company.likeness.copy_(torch.tensor([3.0, -0.2]))
        after = learner(features, given, 6), stepped(learner, features, given, 6)[0]
        with torch.no_grad():
            learner.company.likeness.copy_(torch.tensor([12.0, 0.65]))
        for one, other in zip(before, after, strict=True):
            assert torch.equal(one.novelty, other.novelty) != matters


def test_a_walk_over_the_window_is_one_over_whole_sequences() -> None:
    """The cosines a state keeps are those of its meetings, oldest first."""
    learner = made(replace(SMALL, window=5))
    features, given = few_classes(8, 0.5, rows=2)
    state = stepped(learner, features, given, 6)[1]
    keys = state.window.keys
    torch.testing.assert_close(state.window.alike, (keys @ keys.mT).mean(1), atol=1e-5, rtol=0)


# What was never named ----------------------------------------------------------------------------------


def test_something_met_but_never_named_is_recognised_until_its_class_is_named() -> None:
    learner = made(replace(SMALL, context_keys=False))
    assert learner.unnamed is not None
    cup, dog = F.normalize(torch.tensor([[1.0, 0.2, 0, 0, 0, 0], [0, 0, 0, 1.0, 0, 0.3]]), dim=-1)
    past = torch.stack([cup, dog])[None]  # [1, 2, D]
    alike, seen = past @ past.mT, torch.ones(1, 1, 2, dtype=torch.bool)

    def signs(thing: Tensor, *label: int) -> Tensor:
        now = thing[None, None] @ past.mT
        found: Tensor = learner.unnamed(now, alike, seen, torch.tensor([label]), 256)[0, 0]  # type: ignore[misc]
        return found

    with torch.no_grad():
        assert signs(cup, UNLABELED, 0)[1] > 0.9  # it looks like the cup, which nobody has named
        assert signs(dog, UNLABELED, 0)[1] < 0.1
        assert signs(cup, 0, UNLABELED)[1] < 0.1  # the cup has a name
        assert signs(cup, 0, 1).abs().max() == 0  # nothing is without a label
        past[0, 1] = cup
        alike = past @ past.mT
        before, after = signs(cup, UNLABELED, UNLABELED), signs(cup, UNLABELED, 0)
        assert before[1] > 0.9
        assert after[1] < 0.1  # the first was the same thing, and that has a name now
        assert after[2] > 0.5  # though it is still alike


@pytest.mark.parametrize("window", [1, 3, 8, 20])
def test_the_best_before_is_of_the_window(window: int) -> None:
    x = torch.rand(2, 3, 8, generator=torch.Generator().manual_seed(0))
    found = best_before(x, window)
    for t in range(8):
        before = x[..., max(0, t - window) : t]
        expected = before.amax(-1) if t else torch.zeros(2, 3)
        assert torch.equal(found[..., t], expected)


# Dropout -----------------------------------------------------------------------------------------------


def test_dropout_hides_features_from_the_network_in_training_alone() -> None:
    learner, without = made(replace(SMALL, dropout=0.5)), made(SMALL)
    features, given = few_classes(2, 0.7)
    answers = []
    for _ in range(2):
        torch.manual_seed(3)
        answers.append(learner(features, given, 6).novelty)
    assert torch.equal(*answers)  # by torch's generator, so that a run can be repeated
    assert not torch.allclose(answers[0], without(features, given, 6).novelty)
    assert_close(learner.eval()(features, given, 6), without.eval()(features, given, 6))
