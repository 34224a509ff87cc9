"""Muon: what it does to a kernel, against a singular value decomposition, and its way through a stop."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from wanderlearn.muon import orthogonal
from wanderlearn.optimiser import Optimiser, Trained, trained
from wanderlearn.sequence_training import TrainConfig


def random_matrix(rows: int, columns: int, seed: int) -> Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=40)
@given(st.integers(1, 24), st.integers(1, 24), st.integers(0, 99), st.floats(1e-4, 1e4))
def test_singular_values_come_near_one_and_their_directions_stay(
    rows: int, columns: int, seed: int, size: float
) -> None:
    matrix = random_matrix(rows, columns, seed)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    got = left.T @ orthogonal(size * matrix) @ right.T
    strong = values > 0.1 * values.norm()  # weaker ones are only on their way
    diagonal = got.diagonal()
    assert ((diagonal > 0.6) & (diagonal < 1.25))[strong].all()
    assert (got - torch.diag(diagonal)).abs().max() < 1e-3


def test_no_gradient_gives_no_step() -> None:
    assert torch.equal(orthogonal(torch.zeros(3, 5)), torch.zeros(3, 5))


def kernel(seed: int = 0) -> nn.Parameter:
    return nn.Parameter(random_matrix(16, 72, seed).view(16, 8, 3, 3))


def test_a_step_turns_a_kernel_by_its_share_and_keeps_its_length() -> None:
    weight = kernel()
    before = weight.detach() * (4 / weight.detach().norm())  # sqrt of 16 rows
    beside = Trained("b", nn.Parameter(torch.ones(3)), 1.0)
    optimiser = Optimiser([Trained("w", weight, 1.0, muon=0.1), beside], TrainConfig())
    optimiser.step((weight * kernel(1).detach()).sum(), 0.5)
    after = weight.detach()
    assert float(after.norm()) == pytest.approx(4, rel=1e-5)
    moved = float((after - before).norm()) / 4
    assert 0.6 * 0.05 < moved < 1.25 * 0.05
    slope = kernel(1).detach()
    assert (after * slope).sum() < (before * slope).sum()  # downhill


def test_a_matrix_moves_about_as_far_as_adam_would_move_it() -> None:
    weight = nn.Parameter(random_matrix(24, 16, 0))
    before = weight.detach().clone()
    beside = Trained("b", nn.Parameter(torch.ones(3)), 1.0)
    optimiser = Optimiser([Trained("w", weight, 1.0, muon=0.01), beside], TrainConfig())
    optimiser.step((weight * random_matrix(24, 16, 1)).sum(), 0.5)
    moved = (weight.detach() - before).square().mean().sqrt()
    assert 0.6 * 0.2 < float(moved) / (0.01 * 0.5) < 1.25 * 0.2
    assert float(weight.detach().norm()) != pytest.approx(float(before.norm()), rel=1e-5)


def test_only_what_has_many_directions_is_muons() -> None:
    module = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 8), nn.Linear(8, 7)
    )
    found = {each.name: each.muon for each in trained(module, "m", rate=0.5, muon=0.1) if each.muon}
    assert found == {"m.1.weight": pytest.approx(0.05), "m.3.weight": pytest.approx(0.05)}
    assert not any(each.muon for each in trained(module, "m"))


def test_what_muon_remembers_comes_back() -> None:
    def fresh() -> tuple[nn.Parameter, nn.Parameter, Optimiser]:
        weight, bias = kernel(), nn.Parameter(torch.ones(3))
        return (
            weight,
            bias,
            Optimiser([Trained("w", weight, 1.0, muon=0.1), Trained("b", bias, 1.0)], TrainConfig(lr=0.1)),
        )

    def advance(weight: nn.Parameter, bias: nn.Parameter, optimiser: Optimiser, steps: range) -> None:
        for step in steps:
            optimiser.step((weight * kernel(step).detach()).sum() + step * bias.square().sum(), 1.0)

    whole, whole_bias, optimiser = fresh()
    advance(whole, whole_bias, optimiser, range(1, 5))
    first, first_bias, before = fresh()
    advance(first, first_bias, before, range(1, 3))
    kept = {name: tensor.clone() for name, tensor in before.state().items()}
    second, second_bias, after = fresh()
    second.data.copy_(first.data)
    second_bias.data.copy_(first_bias.data)
    after.restore(kept)
    advance(second, second_bias, after, range(3, 5))
    assert torch.equal(second, whole)
    assert torch.equal(second_bias, whole_bias)
