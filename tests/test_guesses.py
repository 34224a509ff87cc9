"""Guesses at who lives where: against a slow version and all ways there are, and what must always be so."""

from itertools import product
from math import log

import numpy as np
import pytest
import torch
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from tests.slow_guesses import CONCENTRATION, DISCOUNT, ENVIRONMENTS, STAY, SlowGuesses
from wanderlearn.agent.guesses import LiveGuesses
from wanderlearn.learners.guesses import Heard, begin_guessing, crowd, hear, no_guesses, tell, thinned
from wanderlearn.worlds.sequence import UNLABELED

CLASSES, MANY = 7, 512
labels = st.lists(st.integers(-1, CLASSES - 1), min_size=1, max_size=25)


def guessed(given: Tensor, slots: int, most: int) -> Heard:
    return begin_guessing(given, slots, most)()


def stepped(given: Tensor, slots: int, most: int) -> Heard:
    state, found = no_guesses(len(given), slots, most), []
    for label in given.unbind(1):
        heard, rates = hear(state)
        found.append(heard)
        state = tell(state, rates, label)
    return Heard(*(torch.cat(part, 1) for part in zip(*found, strict=True)))


def slow(life: list[int], most: int) -> tuple[np.ndarray, np.ndarray]:
    guesses, found = SlowGuesses(most), np.zeros((2, len(life), CLASSES))
    for t, label in enumerate(life):
        for part, heard in zip(found, guesses.heard(), strict=True):
            for k, number in heard.items():
                part[t, int(str(k))] = number
        guesses.tell(None if label < 0 else label)
    return found[0], found[1]


@settings(max_examples=40, deadline=None)
@over(life=labels, most=st.sampled_from([1, 2, 9, 256]))
def test_whole_sequences_steps_and_slow_version_agree(life: list[int], most: int) -> None:
    expected = slow(life, most)
    given = torch.tensor([life, life[::-1]])
    whole, steps = guessed(given, CLASSES, most), stepped(given, CLASSES, most)
    for fast, step, right in zip(whole, steps, expected, strict=True):
        np.testing.assert_allclose(fast[0], right, atol=1e-6)
        assert torch.equal(fast, step)  # to the bit


@settings(max_examples=30, deadline=None)
@over(life=labels)
def test_somebody_known_or_something_new_comes_next(life: list[int]) -> None:
    here, chance = (part[0, -1] for part in guessed(torch.tensor([[*life, UNLABELED]]), CLASSES, MANY))
    guesses = SlowGuesses(MANY)
    for label in life:
        guesses.tell(None if label < 0 else label)
    told = torch.tensor([k in life for k in range(CLASSES)])
    assert float(chance.sum()) + guesses.something_new() == pytest.approx(1, abs=1e-5)
    assert not chance[~told].any()
    assert not here[~told].any()
    assert (chance[told] > 0).all()
    assert (here <= 1 + 1e-6).all()


@settings(max_examples=20, deadline=None)
@over(life=labels, later=labels)
def test_what_comes_later_changes_nothing(life: list[int], later: list[int]) -> None:
    one, other = (guessed(torch.tensor([whole]), CLASSES, MANY) for whole in (life, life + later))
    for mine, its in zip(one, other, strict=True):
        assert torch.equal(mine, its[:, : len(life)])


def test_they_find_out_who_lives_together() -> None:
    homes = [[0, 1, 2], [3, 4, 5]]
    stays = [np.tile(home, 4) for home in homes * 3]  # twelve meetings in one home, then in the other
    here, chance = (
        part[0, -1] for part in guessed(torch.from_numpy(np.concatenate(stays))[None], CLASSES, MANY)
    )
    assert here[3:6].min() > 0.9  # in the second home
    assert here[:3].max() < 0.1
    assert chance[3:].sum() > 5 * chance[:3].sum()


def test_where_nothing_is_told_for_long_one_may_be_anywhere() -> None:
    life = [0, 1, 0, 1, 2, 3, 2, 3]
    _, soon = guessed(torch.tensor([[*life, UNLABELED]]), 4, MANY)
    _, late = guessed(torch.tensor([[*life, *[UNLABELED] * 40]]), 4, MANY)
    assert soon[0, -1, 2] > 1.5 * soon[0, -1, 0]
    assert late[0, -1, 2] == pytest.approx(float(late[0, -1, 0]), rel=0.05)


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
def test_while_there_are_few_ways_the_guesses_are_all_of_them(life: list[int]) -> None:
    _, chance = guessed(torch.tensor([[*life, UNLABELED]]), 4, MANY)
    np.testing.assert_allclose(chance[0, -1], all_ways(life, 4), rtol=1e-5)


@settings(max_examples=50, deadline=None)
@over(seed=st.integers(0, 10**6), most=st.sampled_from([1, 3, 8]), spread=st.sampled_from([0.0, 1.0, 8.0]))
def test_thinning_keeps_the_heavy_as_they_are_and_the_sum_of_all(seed: int, most: int, spread: float) -> None:
    random = torch.Generator().manual_seed(seed)
    part = (spread * torch.randn(2, most, 5, generator=random, dtype=torch.float64)).exp()
    part[0, 0, 1:3] = 0
    parent, where, weight = thinned(part, most)
    assert parent.shape == where.shape == weight.shape == (2, most)
    for row in range(2):
        scaled = part[row] / part[row].max()
        assert float(weight[row].sum()) == pytest.approx(float(scaled.sum()))
        pairs = list(zip(parent[row].tolist(), where[row].tolist(), strict=True))
        assert len(set(pairs)) == most  # none twice
        own = torch.tensor([float(scaled[pair]) for pair in pairs], dtype=torch.float64)
        assert (own > 0).all()
        step = weight[row].min()
        assert (weight[row] >= own - 1e-12).all()
        light = own < step
        assert torch.allclose(weight[row][~light], own[~light])
        assert int((scaled > step * (1 + 1e-9)).sum()) == int((own > step * (1 + 1e-9)).sum())


def test_few_guesses_are_not_thinned() -> None:
    part = torch.zeros(1, 4, 5, dtype=torch.float64)
    part[0, 2, 3], part[0, 1, 1] = 0.5, 2.0
    parent, where, weight = thinned(part, 4)
    assert weight.tolist() == [[1.0, 0.25, 0.0, 0.0]]
    assert (parent[0, :2].tolist(), where[0, :2].tolist()) == ([1, 2], [1, 3])


def test_the_crowd_is_a_restaurant() -> None:
    here, told = torch.tensor([[[1.0, 0.5, 0.0]]]), torch.tensor([[[3.0, 2.0, 9.0]]])
    found = [float(part) for part in crowd(here, told)]
    assert found == pytest.approx([log(1 + 4), log(1 + 1.5), log((1 + 0.2 * 1.5) / (1 + 4))])


def test_a_live_memory_keeps_its_guesses_in_a_file_and_refuses_what_does_not_fit() -> None:
    live, again = LiveGuesses(9), LiveGuesses(9)
    for slot in (0, 1, 0, UNLABELED, 2, 1):
        live.met(slot)
    kept = {name: part.copy() for name, part in live.arrays(3).items()}
    again.restore({name: part.copy() for name, part in kept.items()})
    told, recent = np.array([2, 2, 1], np.float32), np.array([True, False, True])
    one, other = (memory.heard(object(), told, recent) for memory in (live, again))
    np.testing.assert_array_equal(one.here, other.here)
    np.testing.assert_array_equal(one.next, other.next)
    assert one.here[1] == 0
    assert one.here[[0, 2]].min() > 0
    for name, place, wrong in (
        ("guess_lives", (1, 0), ENVIRONMENTS),
        ("guess_lives", (0, 0), -1),
        ("guess_numbers", (0,), 10),
        ("guess_numbers", (1,), 3),
    ):
        damaged = {key: part.copy() for key, part in kept.items()}
        damaged[name][place] = wrong
        with pytest.raises(ValueError, match=r"guesses|environments"):
            LiveGuesses(9).restore(damaged)
