"""The DNC baseline: addressing by hand and in numpy, fast path against steps, and whether memory is used."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from tests.learner_data import assert_close, few_classes, stepped
from wanderlearn.checks import check_learner
from wanderlearn.errors import WanderError
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.learners.dnc import DNC, Cells, DNCConfig, DNCState, FreeList, Orders
from wanderlearn.learners.recurrent import LSTMState
from wanderlearn.worlds.sequence import UNLABELED

SMALL = DNCConfig(features=6, units=8, cells=9, width=5, reads=2, writes=3, slots=7)
CONFIGS = [
    SMALL,
    DNCConfig(features=6, units=8, cells=4, width=3, reads=1, writes=1, slots=5),
    replace(SMALL, writes_first=True, trace_writes=False),
]
U = UNLABELED
CLASSES = 3  # of the recall task


def learner(config: DNCConfig, seed: int = 0) -> DNC:
    """A learner none of whose weights is at a special value."""
    torch.manual_seed(seed)
    made = DNC(config)
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return made


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def slow_free_cells(usage: Any, heads: int) -> Any:
    """The free list of one sequence, cell by cell."""
    order = sorted(range(len(usage)), key=lambda cell: usage[cell] + 1e-10 * cell)
    a = np.zeros((heads, len(usage)))
    for head in range(heads):
        product = 1.0
        for cell in order[head:]:
            a[head, cell] = (1 - usage[cell]) * product
            product *= usage[cell]
    return a


def slow_found(query: Any, sharpness: float, M: Any) -> Any:
    """Content addressing of one head."""
    scores = np.array([sharpness * (query @ m) / (np.sqrt(query @ query) * np.sqrt(m @ m)) for m in M])
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def take(said: list[float], count: int) -> Any:
    """The next numbers of what was said."""
    return np.array([said.pop(0) for _ in range(count)])


def slow(learner: DNC, features: Tensor, given: Tensor, slots: int) -> Answers:
    """One sequence, one head, one cell after the other, in float64, from the equations."""
    (B, T), c = given.shape, learner.config
    W = {name: value.detach().double().numpy() for name, value in learner.named_parameters()}
    scores, novelty = np.full((B, T, slots), UNUSED), np.full((B, T), CERTAINLY_NEW)
    for b in range(B):
        h, cell = np.zeros((2, c.units))
        M, u = np.full((c.cells, c.width), 1e-5), np.zeros(c.cells)
        before, named = np.zeros(c.features), set()
        for t in range(T):
            feature, label = features[b, t].double().numpy(), np.zeros(c.slots)
            if t > 0 and given[b, t - 1] != UNLABELED:
                label[given[b, t - 1]] = 1
                named.add(int(given[b, t - 1]))
            x = np.concatenate([feature, label, h])
            gates = W["controller.gates.weight"] @ x + W["controller.gates.bias"]
            gates = (gates - gates.mean()) / np.sqrt(gates.var() + 1e-6)
            gates = gates * W["controller.norm.weight"] + W["controller.norm.bias"]
            f, i, o, g = np.split(gates, 4)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(cell)

            said = list(W["orders.weight"] @ h + W["orders.bias"])
            read_query = take(said, c.reads * c.width).reshape(c.reads, c.width)
            write_query = take(said, c.writes * c.width).reshape(c.writes, c.width)
            content = take(said, c.writes * c.width).reshape(c.writes, c.width)
            free, write, found = (
                sigmoid(take(said, c.reads)),
                sigmoid(take(said, c.writes)),
                sigmoid(take(said, c.writes)),
            )
            sharp = 1 + np.log1p(np.exp(take(said, c.reads + c.writes)))
            erase = sigmoid(take(said, c.cells))
            assert not said
            late = np.concatenate([before, label])
            write_query += (W["told_query.weight"] @ late + W["told_query.bias"]).reshape(write_query.shape)
            content += (W["told_content.weight"] @ late + W["told_content.bias"]).reshape(content.shape)

            for part in ("write", "read") if c.writes_first else ("read", "write"):
                if part == "read":
                    r = np.array([slow_found(read_query[k], sharp[k], M) for k in range(c.reads)])
                    logits = W["readout.weight"] @ sum(r[k] @ M for k in range(c.reads)) + W["readout.bias"]
                    continue
                a = slow_free_cells(u, c.writes)
                w = np.zeros((c.writes, c.cells))
                for k in range(c.writes):
                    by_content = slow_found(write_query[k], sharp[c.reads + k], M)
                    w[k] = write[k] * (found[k] * by_content + (1 - found[k]) * a[k])
                for n in range(c.cells):
                    most = max(w[:, n])
                    u[n] = u[n] + most - u[n] * most
                    M[n] = M[n] * (1 - erase[n] * most) + sum(w[k, n] * content[k] for k in range(c.writes))
            for n in range(c.cells):
                u[n] *= math.prod(1 - free[k] * r[k, n] for k in range(c.reads))
            for slot in named:
                scores[b, t, slot] = logits[slot]
            if named:
                novelty[b, t] = logits[c.slots]
            before = feature
    return Answers(torch.from_numpy(scores).float(), torch.from_numpy(novelty).float())


def test_free_cells_by_hand() -> None:
    usage = torch.tensor([[0.5, 0.25, 1.0, 0.0]]).double()  # from the least used: cells 3, 1, 0, 2
    a = FreeList(cells=4, heads=3)(usage)
    expected = [
        [0.0, 0.0, 0.0, 1.0],  # cell 3 is quite free, so nothing is left for the others
        [0.125, 0.75, 0.0, 0.0],  # skips cell 3: 1 - 1/4, then 1/4 of 1 - 1/2
        [0.5, 0.0, 0.0, 0.0],  # skips 3 and 1; cell 2 is in full use
    ]
    torch.testing.assert_close(a[0], torch.tensor(expected).double(), atol=1e-9, rtol=0)


@settings(deadline=None, max_examples=30)
@over(st.integers(0, 10**6), st.integers(1, 4), st.integers(4, 12), st.booleans())
def test_free_cells_as_in_the_slow_version(seed: int, heads: int, cells: int, some_unused: bool) -> None:
    random = np.random.default_rng(seed)
    usage = random.permuted(np.linspace(0.01, 1, cells) ** random.uniform(0.3, 3))
    if some_unused:
        usage[random.random(cells) < 0.3] = 0
    a = FreeList(cells, heads)(torch.from_numpy(usage)[None])
    np.testing.assert_allclose(a[0].numpy(), slow_free_cells(usage, heads), atol=1e-9)


def test_cells_that_differ_by_rounding_are_taken_in_order() -> None:
    usage = 0.3 + torch.tensor([[3e-15, 0.0, 2e-15, 1e-15]]).double()
    assert FreeList(cells=4, heads=2)(usage)[0].argmax(-1).tolist() == [0, 1]


@settings(deadline=None, max_examples=20)
@over(st.integers(0, 10**6), st.sampled_from([1.0, 0.4, 0.0]), st.sampled_from(CONFIGS))
def test_whole_sequences_steps_and_slow_version_agree(seed: int, labelled: float, config: DNCConfig) -> None:
    made = learner(config, seed)
    features, given = few_classes(seed, labelled)
    whole = made(features, given, 5)
    assert_close(stepped(made, features, given, 5)[0], whole)
    assert_close(whole, slow(made, features, given, slots=5))


def test_long_sequences_steps_and_other_batches_agree() -> None:
    """A full memory has usages so close that rounding, if it could, would choose the next cell to write."""
    made = learner(SMALL)
    features, given = few_classes(1, 0.8, rows=64, length=150)
    with torch.no_grad():
        whole, part = made(features, given, 5), made(features[1:2], given[1:2], 5)
        assert_close(stepped(made, features, given, 5)[0], whole)
    assert_close(part, Answers(whole.scores[1:2], whole.novelty[1:2]))


@pytest.mark.parametrize("labelled", [1.0, 0.4])
@pytest.mark.parametrize("config", CONFIGS)
def test_gradients_of_whole_sequences_and_steps_agree(config: DNCConfig, labelled: float) -> None:
    made = learner(config)
    features, given = few_classes(1, labelled)
    weight = torch.randn(3, 15, 5)

    def gradients(run: str) -> dict[str, Tensor]:
        leaf = features.clone().requires_grad_()
        scores, novelty = made(leaf, given, 5) if run == "whole" else stepped(made, leaf, given, 5)[0]
        loss = (weight * scores.clamp_min(-20)).sum() + (weight[..., 0] * novelty.clamp_max(20)).sum()
        parts = {"features": leaf, **dict(made.named_parameters())}
        return dict(zip(parts, torch.autograd.grad(loss, list(parts.values())), strict=True))

    whole, steps = gradients("whole"), gradients("steps")
    for name, step in steps.items():
        scale = float(step.abs().max())
        assert scale > 0, name
        torch.testing.assert_close(whole[name], step, atol=1e-4 * max(scale, 1), rtol=1e-3)


@pytest.mark.parametrize("writes_first", [False, True])
def test_gradients_through_the_memory_are_right(writes_first: bool) -> None:
    """Against finite differences, in float64, with the order of the cells far from changing."""
    torch.manual_seed(0)
    config = DNCConfig(
        features=3, units=4, cells=4, width=3, reads=2, writes=2, slots=3, writes_first=writes_first
    )
    made = DNC(config)
    order = made.say(torch.randn(2, 4, dtype=torch.float64), torch.randn(2, 6, dtype=torch.float64))
    usage = torch.tensor([[0.2, 0.9, 0.5, 0.7], [0.6, 0.1, 0.3, 0.95]], dtype=torch.float64)
    parts = [torch.randn(2, 4, 3, dtype=torch.float64), usage, *order]

    def live(content: Tensor, usage: Tensor, *order: Tensor) -> tuple[Tensor, ...]:
        read, after = made.live(Cells(content, usage), Orders(*order))
        return read, *after

    assert torch.autograd.gradcheck(live, [part.detach().requires_grad_() for part in parts])


def test_gradients_stay_finite_when_every_gate_is_shut_or_open() -> None:
    made = learner(SMALL)
    with torch.no_grad():
        made.orders.weight *= 300
    features, given = few_classes(4, 0.5, length=40)
    scores, novelty = made(features, given, 7)
    (scores.clamp_min(-20).sum() + novelty.clamp_max(20).sum()).backward()
    for name, weight in made.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name


def test_what_the_controller_says_at_first() -> None:
    made = DNC()
    order = made.say(torch.zeros(1, 256).double(), torch.zeros(1, 114).double())
    no, yes = 1 / (1 + math.exp(2)), 1 / (1 + math.exp(-2))
    parts = (
        (order.free, no),
        (order.to_found, yes * no),
        (order.to_free, yes * yes),
        (order.erase, no),
        (order.query, 0.0),
        (order.content, 0.0),
    )
    for part, expected in parts:
        torch.testing.assert_close(part, torch.full_like(part, expected))
    length = made.say(torch.zeros(1, 256).double(), torch.ones(1, 114).double()).query.norm(dim=-1)[0]
    assert length[4:].tolist() == pytest.approx([1 + math.log(2)] * 4, abs=1e-4)  # of the write heads only
    assert length[:4].tolist() == [0.0] * 4


def test_usage_stays_between_none_and_full() -> None:
    made = learner(SMALL)
    state = made.begin(3, 5)
    features, given = few_classes(5, 0.6, length=60)
    for t in range(60):
        with torch.no_grad():
            _, state = made.step(state, features[:, t], given[:, t])
        assert float(state.memory.usage.min()) >= 0
        assert float(state.memory.usage.max()) <= 1
    assert float(state.memory.usage.max()) > 0.5


@pytest.mark.parametrize("config", [DNCConfig(), DNCConfig(6, 8, 9, 5, 2, 3, 17)])
def test_the_contract_is_kept_but_for_the_order_of_slots(config: DNCConfig) -> None:
    torch.manual_seed(0)
    report = check_learner(DNC(config))
    report.assert_ok()
    assert {
        found.law: "one-hot" in found.sentence for found in report.findings if found.outcome == "exempt"
    } == {"slots": True}


def test_the_exemption_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DNC, "exempt", {})
    assert [law for law, _ in check_learner(learner(DNCConfig(6, 8, 9, 5, 2, 3, 17))).failures] == ["slots"]


def test_a_label_arrives_with_the_next_meeting() -> None:
    made = learner(SMALL)
    features, given = few_classes(2, 1.0)
    other = given.clone()
    other[:, 6] = (given[:, 6] + 1) % 5
    answers, changed = made(features, given, 7), made(features, other, 7)
    assert torch.equal(answers.scores[:, :7], changed.scores[:, :7])
    assert torch.equal(answers.novelty[:, :7], changed.novelty[:, :7])
    assert not torch.isclose(answers.novelty[:, 7], changed.novelty[:, 7], rtol=0, atol=1e-7).any()


def test_slots_take_part_once_named_also_after_unlabelled_meetings() -> None:
    scores, novelty = learner(SMALL)(torch.randn(1, 6, 6), torch.tensor([[U, 1, U, U, 0, U]]), 4)
    taking_part = [[slot for slot in range(4) if scores[0, t, slot] != UNUSED] for t in range(6)]
    assert taking_part == [[], [], [1], [1], [1], [0, 1]]
    assert [float(u) == CERTAINLY_NEW for u in novelty[0].detach()] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_more_slots_than_weights_are_refused() -> None:
    made = DNC(SMALL)
    with pytest.raises(WanderError, match="at most 7 classes, but is asked for 8"):
        made.begin(2, 8)
    with pytest.raises(WanderError, match="slots=8"):
        made(torch.zeros(1, 2, 6), torch.tensor([[0, 7]]), 8)


def test_the_default_is_the_papers() -> None:
    controller = (64 + 50 + 256) * 1024 + 1024 + 2 * 1024  # gates and their bias; LayerNorm
    says = 4 * 64 + 4 * 64 + 4 * 64 + 4 + 4 + 4 + 4 + 4 + 64  # queries, content; gates; sharpness; erase
    told = 2 * (64 + 50 + 1) * 4 * 64
    total = controller + 257 * says + told + 65 * 51
    assert sum(weight.numel() for weight in DNC().parameters()) == total


def recall(rows: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Three things get random names; then, after a pause, each is shown again. What was it called?"""
    things = torch.randn(rows, CLASSES, 6, generator=random)
    names = torch.rand(rows, CLASSES, generator=random).argsort(1)
    order = torch.rand(rows, CLASSES, generator=random).argsort(1)
    asked = things.gather(1, order[..., None].expand_as(things))
    features = torch.cat([things, torch.zeros(rows, 1, 6), asked], 1)
    given = F.pad(names, (0, CLASSES + 1), value=UNLABELED)
    return features, given, names.gather(1, order)


@cache
def trained_to_recall() -> DNC:
    """A small DNC, trained for seconds."""
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(0)
    made = DNC(DNCConfig(features=6, units=32, cells=10, width=16, reads=2, writes=2, slots=CLASSES))
    optimiser = torch.optim.Adam(made.parameters(), lr=0.01)
    for _ in range(250):
        features, given, names = recall(64, random)
        scores = made(features, given, CLASSES).scores[:, -CLASSES:]
        optimiser.zero_grad()
        F.cross_entropy(scores.flatten(0, 1), names.flatten()).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(made.parameters(), 5.0)
        optimiser.step()
    return made


@pytest.mark.parametrize(
    ("what", "least", "most"),
    [
        ("nothing", 0.95, 1.0),
        ("another's controller", 0.9, 1.0),  # the names are not kept there
        ("another's memory", 0.25, 0.42),  # but here; chance is a third
        ("blank memory", 0.25, 0.42),
        ("no reading", 0.25, 0.42),
    ],
)
def test_names_are_recalled_from_the_memory(what: str, least: float, most: float) -> None:
    made = trained_to_recall()
    features, given, names = recall(500, torch.Generator().manual_seed(1))
    blank = made.begin(500, CLASSES)

    def swap(state: DNCState) -> DNCState:
        if what == "another's controller":
            return state._replace(controller=LSTMState(*(part.roll(1, 0) for part in state.controller)))
        if what == "another's memory":
            return state._replace(memory=Cells(*(part.roll(1, 0) for part in state.memory)))
        return state._replace(memory=blank.memory) if what == "blank memory" else state

    hook = made.readout.register_forward_pre_hook(
        lambda _, inputs: (torch.zeros_like(inputs[0]),) if what == "no reading" else None
    )
    state, right = blank, []
    with torch.no_grad():
        for t in range(2 * CLASSES + 1):
            asked = t - CLASSES - 1
            answer, state = made.step(swap(state) if asked >= 0 else state, features[:, t], given[:, t])
            if asked >= 0:
                right.append(answer.scores.argmax(-1) == names[:, asked])
    hook.remove()
    assert least <= float(torch.stack(right).float().mean()) <= most
