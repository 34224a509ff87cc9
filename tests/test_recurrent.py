"""The LSTM: its equations, whole sequences against single steps, gradients, the mask that holds it back."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from wanderlearn.learners.recurrent import LayerNormLSTM, LSTMState


def make(inputs: int = 5, units: int = 6, seed: int = 0) -> LayerNormLSTM:
    """A network in float64 whose LayerNorm and biases are not at their starting values."""
    torch.manual_seed(seed)
    network = LayerNormLSTM(inputs, units).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return network


def stepped(network: LayerNormLSTM, x: Tensor, advance: Tensor | None = None) -> Tensor:
    state, outputs = network.begin(len(x)), []
    for t in range(x.shape[1]):
        output, state = network.step(state, x[:, t], None if advance is None else advance[:, t])
        outputs.append(output)
    return torch.stack(outputs, 1)


def test_step_is_the_written_equations() -> None:
    network = make(inputs=2, units=3)
    x, state = torch.randn(1, 2).double(), LSTMState(torch.randn(1, 3).double(), torch.randn(1, 3).double())
    inputs = [*x[0].tolist(), *state.hidden[0].tolist()]
    weight, bias = network.gates.weight.tolist(), network.gates.bias.tolist()
    a = [
        sum(w * v for w, v in zip(row, inputs, strict=True)) + b for row, b in zip(weight, bias, strict=True)
    ]
    mean = sum(a) / 12
    deviation = math.sqrt(sum((v - mean) ** 2 for v in a) / 12 + 1e-6)
    z = [
        (v - mean) / deviation * s + b
        for v, s, b in zip(a, network.norm.weight.tolist(), network.norm.bias.tolist(), strict=True)
    ]
    output, after = network.step(state, x)
    for unit in range(3):
        f, i, o = (1 / (1 + math.exp(-z[gate * 3 + unit])) for gate in range(3))
        cell = f * state.cell[0, unit].item() + i * math.tanh(z[9 + unit])
        assert after.cell[0, unit].item() == pytest.approx(cell, abs=1e-12)
        assert output[0, unit].item() == pytest.approx(o * math.tanh(cell), abs=1e-12)
    assert torch.equal(after.hidden, output)


def test_starting_values_are_the_papers() -> None:
    network = LayerNormLSTM(64, 256)
    assert sum(p.numel() for p in network.gates.parameters()) == 328_704
    assert sum(p.numel() for p in network.norm.parameters()) == 2_048
    assert network.gates.bias.tolist() == [1.0] * 256 + [0.0] * 768
    bound = 1 / math.sqrt(1024)
    assert 0.99 * bound < network.gates.weight.abs().max().item() <= bound
    assert network.gates.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.01)
    assert not any(part.any() for part in network.begin(3))


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 4), st.integers(1, 7), st.booleans(), st.integers(0, 1000))
def test_whole_sequences_equal_steps(batch: int, length: int, masked: bool, seed: int) -> None:
    network = make(seed=seed)
    x = torch.randn(batch, length, 5).double()
    advance = torch.rand(batch, length) < 0.5 if masked else None
    weights = torch.randn(batch, length, 6).double()
    results = []
    for run in (network, lambda *given: stepped(network, *given)):
        leaf = x.clone().requires_grad_()
        output = run(leaf, advance)
        gradients = torch.autograd.grad((output * weights).sum(), [leaf, *network.parameters()])
        results.append([output, *gradients])
    for fast, slow in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-11)


def test_whole_sequences_equal_steps_at_the_papers_size() -> None:
    torch.manual_seed(0)
    network, x = LayerNormLSTM(64, 256), torch.randn(3, 150, 64)
    torch.testing.assert_close(network(x), stepped(network, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [1, 4])
def test_gradient_is_the_numerical_one(masked: bool, length: int) -> None:
    network = make(inputs=2, units=3)
    x = torch.randn(2, length, 2).double().requires_grad_()
    advance = torch.tensor([[True, False, True, False], [False, True, True, True]])[:, :length]
    names = [name for name, _ in network.named_parameters()]

    def run(x: Tensor, *parameters: Tensor) -> Tensor:
        values = dict(zip(names, parameters, strict=True))
        outputs: Tensor = torch.func.functional_call(network, values, (x, advance if masked else None))
        return outputs

    assert torch.autograd.gradcheck(run, (x, *network.parameters()))


def test_held_back_rows_answer_but_do_not_move() -> None:
    network = make()
    x = torch.randn(2, 5).double()
    _, state = network.step(network.begin(2), torch.randn(2, 5).double())
    freely, moved = network.step(state, x)
    output, kept = network.step(state, x, torch.tensor([True, False]))
    assert torch.equal(output, freely)
    assert torch.equal(kept.hidden[0], moved.hidden[0])
    assert torch.equal(kept.cell[0], moved.cell[0])
    assert torch.equal(kept.hidden[1], state.hidden[1])
    assert torch.equal(kept.cell[1], state.cell[1])
    assert not torch.equal(moved.cell[1], state.cell[1])


def test_held_back_meetings_leave_no_trace() -> None:
    network = make()
    x = torch.randn(1, 6, 5).double()
    advance = torch.tensor([[True, False, True, False, False, True]])
    without = network(x[:, advance[0]])
    torch.testing.assert_close(network(x, advance)[:, advance[0]], without, rtol=1e-12, atol=1e-12)


def test_step_changes_nothing_it_was_given() -> None:
    network = make()
    _, state = network.step(network.begin(2), torch.randn(2, 5).double())
    x, advance = torch.randn(2, 5).double(), torch.tensor([True, False])
    copies = [state.hidden.clone(), state.cell.clone(), x.clone()]
    first, _ = network.step(state, x, advance)
    again, _ = network.step(state, x, advance)
    assert torch.equal(first, again)
    assert all(torch.equal(*pair) for pair in zip([*state, x], copies, strict=True))


def test_whole_sequences_change_nothing_and_can_be_changed() -> None:
    network = make()
    x = torch.randn(2, 4, 5).double()
    before = x.clone()
    output = network(x)
    expected = torch.autograd.grad(network(x).sum(), [*network.parameters()])
    total = output.sum()
    output.data.zero_()  # what the caller does to the answer must not reach the backward pass
    for got, wanted in zip(torch.autograd.grad(total, [*network.parameters()]), expected, strict=True):
        assert torch.equal(got, wanted)
    assert torch.equal(x, before)


def test_backward_twice_gives_the_same() -> None:
    network = make()
    total = network(torch.randn(2, 4, 5).double()).sum()
    first = torch.autograd.grad(total, [*network.parameters()], retain_graph=True)
    again = torch.autograd.grad(total, [*network.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_without_gradients_the_numbers_are_the_same() -> None:
    network, x = make(), torch.randn(2, 4, 5).double()
    with torch.no_grad():
        quiet = network(x)
    assert not quiet.requires_grad
    assert torch.equal(quiet, network(x))


def test_answers_do_not_depend_on_the_future() -> None:
    network, x = make(), torch.randn(2, 6, 5).double()
    changed = x.clone()
    changed[:, 4:] += 1
    torch.testing.assert_close(network(x)[:, :4], network(changed)[:, :4], rtol=1e-12, atol=1e-12)
    assert not torch.allclose(network(x)[:, 4:], network(changed)[:, 4:])
