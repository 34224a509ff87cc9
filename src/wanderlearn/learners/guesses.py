"""Guesses at which classes live in one environment, and so at who may be met next.

A class lives in one of E environments. After every meeting one stays where one is with chance s, or else goes
anywhere; and in an environment classes are met as in a Chinese restaurant of discount a and concentration c.
A guess i says of every class where it lives, e_i(k). By it, g meetings after class j was told as the last,

    move_i[e]   = s^g [e = e_i(j)] + (1 - s^g) / E
    rate_i[e]   = move_i[e] / (n_i[e] + c)                 n_i[e] meetings of m_i[e] classes were told there
    chance_i[k] = rate_i[e_i(k)] (n[k] - a)                of class k, told n[k] times, being met next
    opens_i[e]  = rate_i[e] (c + a m_i[e])                 of a new class being met that lives in e

What is told weighs the guesses: w_i *= chance_i[k]. A new class divides every guess in E, one for each place
it may live (where nobody lives yet is one place). Of more than N guesses a part is let go by `thinned`. And
every class hears

    here[k]     = sum_i w_i [e_i(k) = e_i(j)]              does it live where the last one told does?
    chance[k]   = sum_i w_i chance_i[k]

each divided by sum_i w_i. To mean the same among few and among many, the second is used as

    next[k]     = log(K chance[k] + 0.01)                  of K classes

The crowd here are M = sum_k here[k] n[k] meetings of C = sum_k here[k] classes: log(1 + M), log(1 + C) and
log((c + a C) / (c + M)), which is how often another class comes to live here.

Nothing is learned here and nothing is drawn: the same names in the same order give the same guesses. They
hear names alone, so what was not told tells them nothing but that time goes by.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wanderlearn.learners.guessing import (
    CONCENTRATION,
    DISCOUNT,
    ENVIRONMENTS,
    FIRST,
    NOBODY,
    STAY,
    guess_along,
    no_guessing,
)
from wanderlearn.learners.matchingnet import one_hot
from wanderlearn.worlds.sequence import UNLABELED

__all__ = [
    "UNLIKELY",
    "Guesses",
    "Heard",
    "begin_guessing",
    "crowd",
    "hear",
    "no_guesses",
    "tell",
    "thinned",
]

UNLIKELY: Final = 0.01  # what a chance, as a multiple of one in K, is at least taken to be


class Guesses(NamedTuple):
    """N guesses, some of which may have no weight, and what was told so far."""

    lives: Int[Tensor, "B K N"]  # the environment of each class, in 8 bits
    weight: Float[Tensor, "B N"]  # the likeliest has 1
    guests: Float[Tensor, "B E N"]  # meetings told of each environment
    tables: Float[Tensor, "B E N"]  # classes told of each environment
    told: Float[Tensor, "B K"]  # how often each class was told
    last: Int[Tensor, " B"]  # the class told as the last, or NOBODY
    silent: Int[Tensor, " B"]  # meetings since that


class Heard(NamedTuple):
    """What the guesses say of every class."""

    here: Float[Tensor, "B Q K"]  # does it live where the last one told does?
    chance: Float[Tensor, "B Q K"]  # how likely is it met next?


def no_guesses(batch_size: int, slots: int, most: int, device: torch.device | None = None) -> Guesses:
    """Before anything was told there is one guess, of nothing; later there are so many at most."""
    B, K, N, E = batch_size, slots, most, ENVIRONMENTS
    weight = torch.zeros(B, N, dtype=torch.float64, device=device)
    weight[:, :1] = 1
    numbers = torch.zeros(B, dtype=torch.long, device=device)  # [B]
    return Guesses(
        torch.zeros(B, K, N, dtype=torch.int8, device=device),
        weight,
        weight.new_zeros(B, E, N),
        weight.new_zeros(B, E, N),
        weight.new_zeros(B, K),
        numbers + NOBODY,
        numbers,
    )


def hear(guesses: Guesses) -> tuple[Heard, Float[Tensor, "B E N"]]:
    """What they say of the next meeting (Q = 1), and the weighted rates that it will be written with."""
    g, E = guesses, ENVIRONMENTS
    now = _of_class(g.lives, g.last)  # [B, N] where the last one told lives
    stay = STAY ** (g.silent + 1).to(g.weight)[:, None, None]  # [B, 1, 1]
    environment = torch.arange(E, device=now.device)[:, None]  # [E, 1]
    move = (1 - stay) / E + stay * (environment == now[:, None])  # [B, E, N]
    rates = g.weight[:, None] / (g.guests + CONCENTRATION) * move  # [B, E, N]
    total = g.weight.sum(-1, keepdim=True)  # [B, 1]
    here = ((g.lives == now[:, None]).to(g.weight) @ g.weight[..., None])[..., 0]  # [B, K]
    chance = rates.gather(1, g.lives.long()).sum(-1) * (g.told - DISCOUNT)  # [B, K]
    known = g.told > 0  # [B, K]
    here, chance = (torch.where(known, part / total, 0)[:, None].float() for part in (here, chance))
    return Heard(here, chance), rates


def tell(guesses: Guesses, rates: Float[Tensor, "B E N"], given: Int[Tensor, " B"]) -> Guesses:
    """The guesses after a meeting that was told (a slot) or not (UNLABELED)."""
    g, slot = guesses, given.clamp(min=0)
    named = given != UNLABELED  # [B]
    new = named & (g.told.gather(1, slot[:, None])[:, 0] == 0)  # [B]
    # Of a class that is known: the guesses weigh by how likely it was.
    at = _of_class(g.lives, slot)[:, None].long()  # [B, 1, N]
    weight = rates.gather(1, at)[:, 0]  # [B, N]
    one_more = torch.zeros_like(g.guests).scatter(1, at, 1)  # [B, E, N]
    known = g._replace(weight=weight / weight.amax(-1, keepdim=True), guests=g.guests + one_more)
    # Of a new one: every guess is divided.
    parent, where, weight = thinned(_opened(g, rates), g.weight.shape[1])  # [B, N] each
    lives = g.lives.gather(2, parent[:, None].expand_as(g.lives))  # [B, K, N]
    moved_in = slot[:, None, None].expand(-1, 1, lives.shape[2])  # [B, 1, N]
    lives = lives.scatter(1, moved_in, where[:, None].to(torch.int8))
    one_more = torch.zeros_like(g.guests).scatter(1, where[:, None], 1)
    of_parent = parent[:, None].expand_as(g.guests)  # [B, E, N]
    guests, tables = (part.gather(2, of_parent) + one_more for part in (g.guests, g.tables))
    divided = g._replace(lives=lives, weight=weight, guests=guests, tables=tables)
    lives, weight, guests, tables = (
        torch.where(_wide(new, before), after, torch.where(_wide(named, before), same, before))
        for before, same, after in zip(g[:4], known[:4], divided[:4], strict=True)
    )
    return Guesses(
        lives,
        weight,
        guests,
        tables,
        g.told + one_hot(given, g.told.shape[1]),
        torch.where(named, given, g.last),
        torch.where(named, 0, g.silent + 1),
    )


def thinned(
    part: Float[Tensor, "B N E"], most: int
) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B N"], Float[Tensor, "B N"]]:
    """At most so many of the parts of guesses: whose, of which environment, and how much they weigh.

    There is a weight c with sum of min(weight / c, 1) = N. What weighs more is kept as it is. Of the others
    every c-th by weight is kept, and weighs c: so what many unlikely guesses agree on is not lost.
    """
    (B, _, E), N = part.shape, most
    weight = part.flatten(1)  # [B, N E]
    weight = weight / weight.amax(-1, keepdim=True)
    ordered = weight.sort(-1, descending=True).values  # [B, N E]
    rest = ordered.flip(-1).cumsum(-1).flip(-1)[:, :N]  # [B, N] what is left before each
    left = torch.arange(N, 0, -1, device=part.device)  # [N] places that are left then
    enough = (weight > 0).sum(-1, keepdim=True) <= N  # [B, 1]
    safe = (ordered[:, :N] * left >= rest).sum(-1, keepdim=True).clamp(max=N - 1)  # [B, 1] so many are kept
    step = torch.where(enough, 0, rest.gather(1, safe) / (N - safe))  # [B, 1] c
    as_it_is = (weight > 0) & (weight >= step)  # [B, N E]
    passed = torch.where(as_it_is, 0, weight).cumsum(-1) / torch.where(enough, 1, step)  # [B, N E]
    count = (passed - FIRST).ceil().clamp(min=0)  # [B, N E] so many of the others are kept until here
    before = torch.cat([torch.zeros_like(count[:, :1]), count[:, :-1]], 1)  # [B, N E]
    kept = as_it_is | ((count > before) & ~enough & ~as_it_is)  # [B, N E]
    rank = kept.cumsum(-1) - 1  # [B, N E]
    rank = torch.where(kept & (rank < N), rank, N)  # [B, N E] N: nowhere
    source = torch.zeros(B, N + 1, dtype=torch.long, device=part.device)
    source = source.scatter(1, rank, torch.arange(weight.shape[1], device=part.device).expand_as(rank))[:, :N]
    weighs = torch.where(as_it_is, weight, step).gather(1, source)  # [B, N]
    used = torch.arange(N, device=part.device) < kept.sum(-1, keepdim=True)  # [B, N]
    return source // E, source % E, weighs * used


def begin_guessing(given: Int[Tensor, "B T"], slots: int, most: int) -> Callable[[], Heard]:
    """What is heard before every meeting of whole sequences, by so many guesses at most.

    They are made beside whatever else there is to do: what is returned waits for the end of it.
    """
    here, chance = np.zeros((2, *given.shape, slots), np.float32)
    rows = zip(given.cpu().numpy(), here, chance, strict=True)
    pool = ThreadPoolExecutor(torch.get_num_threads())  # each sequence for itself
    lives = [pool.submit(guess_along, no_guessing(slots, most), *row) for row in rows]
    pool.shutdown(wait=False)

    def heard() -> Heard:
        for life in lives:
            life.result()
        return Heard(*(torch.from_numpy(part).to(given.device) for part in (here, chance)))

    return heard


def crowd(here: Float[Tensor, "B Q K"], told: Float[Tensor, "B Q K"]) -> list[Float[Tensor, "B Q"]]:
    """How many meetings and classes are of this environment, and how often it would open a new class."""
    guests, tables = (here * told).sum(-1), here.sum(-1)  # [B, Q] each
    opens = (CONCENTRATION + DISCOUNT * tables) / (CONCENTRATION + guests)  # [B, Q]
    return [guests.log1p(), tables.log1p(), opens.log()]


def _opened(g: Guesses, rates: Float[Tensor, "B E N"]) -> Float[Tensor, "B N E"]:
    """How likely each guess with each home for a new class is; where nobody lives yet is one home."""
    empty = g.tables == 0  # [B, E, N]
    first = empty & (empty.cumsum(1) == 1)  # [B, E, N]
    homes = torch.where(empty, first * empty.sum(1, keepdim=True), 1)  # [B, E, N]
    return (rates * (CONCENTRATION + DISCOUNT * g.tables) * homes).transpose(1, 2)


def _of_class(lives: Int[Tensor, "B K N"], slot: Int[Tensor, " B"]) -> Int[Tensor, "B N"]:
    index = slot.clamp(min=0)[:, None, None].expand(-1, 1, lives.shape[2])  # [B, 1, N]
    return lives.gather(1, index)[:, 0]


def _wide(rows: Bool[Tensor, " B"], like: Tensor) -> Bool[Tensor, "B ..."]:
    return rows.view(-1, *[1] * (like.ndim - 1))
