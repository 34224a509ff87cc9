"""The sketch of guesses at who lives where: against all ways there are, and what must always be so."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wanderlearn.learners.company import CONCENTRATION, DISCOUNT

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
pytest.importorskip("numba")
from who_lives_where import ENVIRONMENTS, STAY, guessed

CLASSES = 6
lives = st.lists(st.integers(-1, CLASSES - 1), min_size=1, max_size=25)


@settings(max_examples=30, deadline=None)
@given(lives)
def test_somebody_known_or_something_new_comes_next(life: list[int]) -> None:
    here, chance, new = guessed(np.array([life]), CLASSES)
    np.testing.assert_allclose(chance.sum(-1) + new, 1, atol=1e-5)
    told = np.array([[k in life[:t] for k in range(CLASSES)] for t in range(len(life))])
    assert not chance[0][~told].any()
    assert not here[0][~told].any()
    assert (chance[0][told] > 0).all()
    assert (here <= 1 + 1e-6).all()


@settings(max_examples=20, deadline=None)
@given(lives, lives)
def test_what_comes_later_changes_nothing(life: list[int], later: list[int]) -> None:
    one, other = (guessed(np.array([whole]), CLASSES) for whole in (life, life + later))
    for mine, its in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, its[:, : len(life)])


def test_it_finds_out_who_lives_together() -> None:
    homes = [[0, 1, 2], [3, 4, 5]]
    stays = [np.tile(home, 4) for home in homes * 3]  # twelve meetings in one home, then in the other
    label = np.concatenate(stays)[None]
    here, chance, _ = guessed(label, CLASSES)
    last = label.shape[1] - 1  # in the second home
    assert here[0, last, 3:].min() > 0.9
    assert here[0, last, :3].max() < 0.1
    assert chance[0, last, 3:].sum() > 5 * chance[0, last, :3].sum()


def test_the_same_seed_is_the_same_and_guesses_agree_whatever_the_seed() -> None:
    label = np.random.default_rng(0).integers(0, CLASSES, (2, 40))
    first, again, other = (guessed(label, CLASSES, guesses=256, seed=seed)[1] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() < 0.15


def all_ways(label: list[int], classes: int) -> list[float]:
    """How likely each class is met next: the mean over all ways they can live, by how likely each is."""
    chances, total = np.zeros(classes), 0.0
    for lives in product(range(ENVIRONMENTS), repeat=classes):
        likely, told = 1.0, [0] * classes
        for n, k in enumerate([*label, None]):
            move = [(1 - STAY) / ENVIRONMENTS] * ENVIRONMENTS
            if n:
                move[lives[label[n - 1]]] += STAY
            guests = [sum(told[c] for c in range(classes) if lives[c] == e) for e in range(ENVIRONMENTS)]
            tables = [sum(told[c] > 0 and lives[c] == e for c in range(classes)) for e in range(ENVIRONMENTS)]
            if k is None:
                for c in range(classes):
                    e = lives[c]
                    chances[c] += likely * move[e] * (told[c] - DISCOUNT) / (guests[e] + CONCENTRATION)
                total += likely
            else:
                e = lives[k]
                share = told[k] - DISCOUNT if told[k] else CONCENTRATION + DISCOUNT * tables[e]
                likely *= move[e] * share / (guests[e] + CONCENTRATION)
                told[k] += 1
    return [float(chance) for chance in chances / total]


@pytest.mark.parametrize("life", [[0, 1, 0, 2, 3, 2], [0, 1, 2, 1, 3, 0, 0, 3, 2, 1, 0, 1]])
def test_many_guesses_are_the_mean_of_all_ways(life: list[int]) -> None:
    _, chance, _ = guessed(np.array([[*life, -1]]), 4, guesses=4096)
    np.testing.assert_allclose(chance[0, -1], all_ways(life, 4), atol=0.01)
