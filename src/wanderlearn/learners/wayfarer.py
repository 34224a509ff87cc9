"""Wayfarer, our own: what a class is like, with whom it is met, how often and how long ago it was told.

A recurrent network sees every meeting. Its output r is the context, and gives each meeting two keys:

    r_t      = LSTM(h_t; r_{t-1})
    x1, x2   = unit(unit(h_t) + W r_t), unit(h_t)         contextual and context-free key

Of class k with the labelled meetings s in k, and for each of the two keys v:

    cos_v[k] = cos(x_v, sum_{s in k} x_v,s)               to the prototype
    near_v[k] = max_{s in k} cos(x_v, x_v,s)              to the nearest example
    age[k], count[k]                                      meetings since it was told, how often it was told
    company_h[k]                                          does it keep company with what was met just now?
    here[k], next[k]                                      does it live here, and how likely is it met next?

    score[k] = w . (cos, near, company, next)[k] + net(cos, near, company, next, log age, log count, here)[k]
    n        = c mean_v cos_v[best] + d + net(top 3 scores, their cos and here, log age, log count and company
               of the best, log sum_k exp score[k], log of the number of classes, log t, the crowd here,
               the signs of what was met but never named, W_r r_t)

Company comes from a walk over the past meetings, by name and by time: `company.py`. Who lives here, and so
who may be met next and how large the crowd here is, is guessed from names: `guesses.py`. Whether it looks
like something that was met before, but never named: `unnamed.py`.

n is trained to tell what is new. In use, novelty also counts doubt about the name: it is the chance that the
best name is wrong, because the thing is new or because it is another of those known. What n holds for known
stays so, however doubtful its name:

    novelty  = logit(1 - sigmoid(-n) softmax(score)[best]),     below 0 if n is

What was met without a label is credited to the classes as they are *now*, so that something met before its
class was named counts for it once it is. By the mean of its cosines to the labelled prototypes:

    z_u[k]   = b mean_v cos(x_v,u, sum_{s in k} x_v,s)
    credit[u, k] = softmax_k(z_u[k]) sigmoid(g max_k z_u[k] + e)
    prototype[k] = sum_{s in k} x_s + sum_u credit[u, k] x_u,     count[k] = |k| + sum_u credit[u, k]

(how the length of a prototype is reckoned: `late_credit.py`.)

Prototypes, counts and ages are of all that was ever told, and so is where a class is guessed to live.
Nearest examples, company and late credit need the meetings themselves: those are of the last `window`
meetings only. A class with no example among them has its prototype for its nearest example, and is not said
to be here. Time and age stop counting at `window`.
"""

from dataclasses import dataclass, field, fields
from typing import Final, NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from wanderlearn.errors import WanderError
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.learners.chance import drawn
from wanderlearn.learners.company import HOPS, Company, no_company, with_newest
from wanderlearn.learners.doubt import with_doubt
from wanderlearn.learners.guesses import (
    UNLIKELY,
    Guesses,
    Heard,
    begin_guessing,
    crowd,
    hear,
    no_guesses,
    tell,
)
from wanderlearn.learners.late_credit import (
    MASKED,
    Credit,
    order_of_naming,
    prototypes_along,
    prototypes_now,
)
from wanderlearn.learners.matchingnet import one_hot
from wanderlearn.learners.prototypes import unit_length
from wanderlearn.learners.recurrent import LayerNormLSTM, LSTMState
from wanderlearn.learners.unnamed import SIGNS, Unnamed
from wanderlearn.worlds.sequence import UNLABELED

__all__ = [
    "SWITCHES",
    "Classes",
    "Found",
    "Met",
    "Wayfarer",
    "WayfarerConfig",
    "WayfarerState",
    "Window",
]

NOTHING: Final = -2  # the label of a place in the window where there is no meeting yet
LOWEST: Final = -20.0  # scores as the novelty network sees them
BEST: Final = 3  # so many classes are looked at for novelty
HIDDEN: Final = 32  # units of the network of the scores
NOVELTY_HIDDEN: Final = 64
CONTEXT_SEEN: Final = 16  # numbers of r that the novelty network sees
SHARPNESS: Final = 15.0  # of late credit, before it is learned
SCORE_GAIN, NOVELTY_GAIN = 4.0, 3.0  # what the networks' outputs are multiplied by: they learn quicker so


@dataclass(frozen=True)
class WayfarerConfig:
    """How a Wayfarer is built; every part can be switched off, to see what it is worth."""

    features: int = 64
    """Width of the encoder's features."""
    units: int = 256
    """Width of the recurrent network."""
    window: int = 256
    """So many past meetings are kept, for nearest examples, company and late credit."""
    context_keys: bool = True
    """Compare things in their context: x1."""
    plain_keys: bool = True
    """Compare things without their context: x2."""
    nearest: bool = True
    """Compare with the nearest example of a class, too."""
    company: bool = True
    """Ask which classes keep company with what was met just now."""
    guesses: int = field(default=512, metadata={"before": 0})
    """So many guesses at which classes live in one environment are kept; 0: nobody guesses."""
    age_and_count: bool = True
    """Know how long ago and how often a class was told."""
    late_credit: bool = True
    """Credit what was met without a label to the classes known now."""
    unnamed: bool = True
    """Know what looks like something that was met before, but never named."""
    doubt: bool = True
    """Count doubt about the name in novelty (not while training)."""
    credited_from: float = 1 / 3
    """From this mean cosine on a meeting without a label is credited rather than not, before it learns it."""
    dropout: float = 0.0
    """Share of a feature's numbers that are hidden from the recurrent network, in training on sequences."""


SWITCHES: Final = tuple(
    part.name
    for part in fields(WayfarerConfig)
    if (part.type is bool and part.name != "doubt") or part.name == "guesses"
)
"""The parts that can be switched off (False, or 0 guesses), but for doubt, which needs no training."""


class Window(NamedTuple):
    """The last meetings, oldest first."""

    keys: Float[Tensor, "B V N D"]  # of length 1: contextual, context-free
    label: Int[Tensor, "B N"]  # a slot, UNLABELED, or NOTHING where there is no meeting yet
    alike: Float[Tensor, "B M M"]  # mean cosines of their keys; none (M = 0), if nobody asks


class Classes(NamedTuple):
    """What is kept per class of all that was ever told."""

    sums: Float[Tensor, "B V K D"]  # of the keys
    told: Float[Tensor, "B K"]  # how often
    last: Int[Tensor, "B K"]  # the number of the meeting it was last told at, or -1


class WayfarerState(NamedTuple):
    """The context, the classes, the last meetings, the guesses, and how many meetings there were."""

    context: LSTMState
    classes: Classes
    window: Window
    guesses: Guesses  # of no classes (K = 0), if nobody asks
    time: Int[Tensor, " B"]


class Met(NamedTuple):
    """What the network makes of meetings, before memory is asked."""

    keys: Float[Tensor, "B V T D"]
    seen: Float[Tensor, "B T p"]  # what novelty sees of the context


class Found(NamedTuple):
    """What memory says of every class at Q meetings."""

    cosine: Float[Tensor, "B V Q K"]  # to the prototype; 0 where the slot is empty
    nearest: Float[Tensor, "B V Q K"]  # to the nearest example
    age: Float[Tensor, "B Q K"]  # log(1 + meetings since it was told)
    told: Float[Tensor, "B Q K"]  # log(1 + how often it was told, with late credit)
    company: Float[Tensor, "B Q K H"]  # log of the shares of a walk after each hop
    here: Float[Tensor, "B Q K"]  # how surely it lives in this environment
    next: Float[Tensor, "B Q K"]  # log of how likely it is met next, as a multiple of one in K
    guests: Float[Tensor, "B Q K"]  # how often it was told
    unnamed: Float[Tensor, "B Q S"]  # does it look like something that was never named?
    opened: Bool[Tensor, "B Q K"]
    time: Float[Tensor, "B Q"]  # log(1 + meetings before this)


class Wayfarer(nn.Module):
    """Our learner: two keys per class, nearest examples, company, age and count, and late credit."""

    def __init__(self, config: WayfarerConfig | None = None) -> None:
        super().__init__()
        config = config or WayfarerConfig()
        if not (config.context_keys or config.plain_keys):
            raise WanderError("A Wayfarer needs something to compare: switch context_keys or plain_keys on.")
        if config.guesses < 0:
            raise WanderError(f"A Wayfarer keeps at least 0 guesses, not {config.guesses}.")
        if config.window < 1:
            raise WanderError(f"A Wayfarer keeps at least 1 meeting, not {config.window}: set its window.")
        if not -1 <= config.credited_from <= 1:
            raise WanderError(f"credited_from is a cosine, from -1 to 1, not {config.credited_from:g}.")
        self.config, self.feature_dim, self.doubt = config, config.features, config.doubt
        views = self.views = config.context_keys + config.plain_keys
        self.lstm = LayerNormLSTM(config.features, config.units)
        if config.context_keys:
            self.readout = nn.Linear(config.units, config.features)
            nn.init.zeros_(self.readout.bias)
            with torch.no_grad():
                self.readout.weight.mul_(0.1)  # begin with things as they are
        # First the parts that are weighted, then what only the network sees; and how the network sees them.
        weights = [12.0 / views] * views
        weights += [6.0 / views] * views if config.nearest else []
        scales = [1.0] * len(weights)
        walks = (HOPS + 1) * config.company
        weights += [0.2] * walks
        scales += [0.25] * walks
        guesses = config.guesses > 0
        weights += [0.2] * guesses
        scales += [0.25] * guesses
        scales += [1 / 3, 1.0] if config.age_and_count else []
        scales += [1.0] * guesses
        self.weights = nn.Parameter(torch.tensor(weights))
        self.register_buffer("scales", torch.tensor(scales), persistent=False)
        self.scales: Tensor
        self.scorer = nn.Sequential(nn.Linear(len(scales), HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
        nn.init.zeros_(self.scorer.get_parameter("2.weight"))  # begin with the weights alone
        self.seen = nn.Linear(config.units, CONTEXT_SEEN)
        width = BEST + BEST * views + 2 * config.age_and_count + 3 + CONTEXT_SEEN
        width += walks + (BEST + 3) * guesses + SIGNS * config.unnamed
        self.judge = nn.Sequential(nn.Linear(width, NOVELTY_HIDDEN), nn.ReLU(), nn.Linear(NOVELTY_HIDDEN, 1))
        self.closeness = nn.Parameter(torch.tensor([-16.0, 6.0]))  # c, d
        self.company = Company() if config.company else None
        self.unnamed = Unnamed() if config.unnamed else None
        if config.late_credit:
            offset = -SHARPNESS * config.credited_from
            self.credit = nn.Parameter(torch.tensor([SHARPNESS, 1.0, offset]))  # b, g, e

    def begin(self, batch_size: int, slots: int) -> WayfarerState:
        """An empty memory for `batch_size` sequences with room for `slots` classes."""
        B, V, N, D = batch_size, self.views, self.config.window, self.feature_dim
        zeros = self.weights.new_zeros
        numbers = torch.zeros(B, dtype=torch.long, device=self.weights.device)  # [B]
        return WayfarerState(
            self.lstm.begin(B),
            Classes(zeros(B, V, slots, D), zeros(B, slots), numbers.new_full((B, slots), -1)),
            Window(
                zeros(B, V, N, D),
                numbers.new_full((B, N), NOTHING),
                zeros(B, N, N) if self.company or self.unnamed else zeros(B, 0, 0),
            ),
            no_guesses(B, slots if self.config.guesses else 0, self.config.guesses, numbers.device),
            numbers,
        )

    def step(
        self, state: WayfarerState, feature: Float[Tensor, "B D"], given: Int[Tensor, " B"]
    ) -> tuple[Answers, WayfarerState]:
        """One meeting: answer first, then write what was told (a slot, or UNLABELED)."""
        classes, window, time = state.classes, state.window, state.time
        output, context = self.lstm.step(state.context, self.sight(feature))  # [B, n]
        met = self.meeting(feature[:, None], output[:, None])
        opened = classes.told > 0  # [B, K]
        unlabelled = window.label == UNLABELED  # [B, N]
        prototypes, credited = prototypes_now(classes.sums, opened, window.keys, unlabelled, self.sharing())
        seen = (window.label != NOTHING)[:, None]  # [B, 1, N]
        age = (time[:, None] - classes.last).clamp(max=self.config.window)  # [B, K]
        alike = met.keys @ window.keys.mT  # [B, V, 1, N]
        apart = torch.arange(self.config.window, 0, -1, device=given.device)[None]  # [1, N]
        company = (self.company or no_company)(apart, window.alike, seen, window.label, opened.shape[1])
        guesses, heard = state.guesses, _nothing_heard(opened[:, None])
        if self.config.guesses:
            heard, rates = hear(guesses)
            guesses = tell(guesses, rates, given)
        found = Found(
            cosine := met.keys @ prototypes.mT,  # [B, V, 1, K]
            self.nearest(alike, seen, window.label, cosine),
            age[:, None].to(feature.dtype).log1p() * opened[:, None],
            (classes.told + credited)[:, None].log1p(),
            company,
            *self.of_window(heard, (time[:, None] - classes.last)[:, None]),
            classes.told[:, None],
            self._unnamed(alike.mean(1), window.alike, seen, window.label),
            opened[:, None],
            time.clamp(max=self.config.window)[:, None].to(feature.dtype).log1p(),
        )
        answers = self.answer(found, met)
        told = one_hot(given, opened.shape[1])  # [B, K]
        written = Classes(
            classes.sums + told[:, None, :, None] * met.keys,
            classes.told + told,
            torch.where(told > 0, time[:, None], classes.last),
        )
        pairs = window.alike
        if self.company or self.unnamed:
            itself = met.keys.square().sum(-1).mean((1, 2))  # [B]
            pairs = with_newest(pairs, alike.mean(1)[:, 0], itself)
        kept = Window(
            torch.cat([window.keys[:, :, 1:], met.keys], 2),
            torch.cat([window.label[:, 1:], given[:, None]], 1),
            pairs,
        )
        answer = Answers(answers.scores[:, 0], answers.novelty[:, 0])
        return answer, WayfarerState(context, written, kept, guesses, time + 1)

    def forward(self, features: Float[Tensor, "B T D"], given: Int[Tensor, "B T"], slots: int) -> Answers:
        """Whole sequences at once. The network sees only features, so it runs before memory is asked."""
        order = order_of_naming(given, slots)  # [K] late credit is cheaper with the slots in this order
        place = order.argsort()  # [K]
        given = torch.where(given == UNLABELED, UNLABELED, place[given.clamp(min=0)])  # [B, T]
        guesses = self.config.guesses  # of names alone, so they are made beside all that comes before memory
        heard = begin_guessing(given, slots, guesses) if guesses else None
        sight = self.sight(features)  # [B, T, D]
        if self.training and self.config.dropout:
            hidden = drawn(sight, Tensor.uniform_) < self.config.dropout  # [B, T, D]
            sight = sight.masked_fill(hidden, 0) / (1 - self.config.dropout)
        output = self.lstm(sight)  # [B, T, n]
        met = self.meeting(features, output)
        told = one_hot(given, slots)  # [B, T, K]
        time = torch.arange(given.shape[1], device=given.device)  # [T]
        last = torch.where(told > 0, time[:, None], -1).cummax(1).values  # [B, T, K]
        last = F.pad(last[:, :-1], (0, 0, 1, 0), value=-1)  # [B, T, K] when it was told before t, or -1
        guests = (told.cumsum(1) - told).to(features.dtype)  # [B, T, K]
        cosine, count = prototypes_along(  # [B, V, T, K], [B, T, K]
            met.keys, given, last, guests, self.sharing(), self.config.window
        )
        apart = time[:, None] - time  # [T, T]
        seen = ((apart > 0) & (apart <= self.config.window)).expand(len(given), -1, -1)  # [B, T, T]
        age = (time[:, None] - last).clamp(max=self.config.window).to(features.dtype)  # [B, T, K]
        alike = met.keys @ met.keys.mT  # [B, V, T, T]
        company = (self.company or no_company)(apart, alike.mean(1), seen, given, slots)
        found = Found(
            cosine,
            self.nearest(alike, seen, given, cosine),
            age.log1p() * (last >= 0),
            count.log1p(),
            company,
            *self.of_window(heard() if heard else _nothing_heard(last), time[:, None] - last),
            guests,
            self._unnamed(alike.mean(1), alike.mean(1), seen, given),
            last >= 0,
            time.clamp(max=self.config.window).to(features.dtype).log1p().expand(given.shape),
        )
        answers = self.answer(found, met)
        return Answers(answers.scores[..., place], answers.novelty)

    # The meeting ---------------------------------------------------------------------------------------

    def sight(self, feature: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """What the recurrent network is shown: the feature, whatever its size."""
        return F.layer_norm(feature, (self.feature_dim,))

    def meeting(self, feature: Float[Tensor, "B T D"], output: Float[Tensor, "B T n"]) -> Met:
        """Keys of meetings, and what novelty sees of their context, from the network's output at each."""
        plain = unit_length(feature)  # [B, T, D]
        keys = [unit_length(plain + self.readout(output))] if self.config.context_keys else []
        keys += [plain] if self.config.plain_keys else []
        return Met(torch.stack(keys, 1), self.seen(output))

    # What memory says of it ----------------------------------------------------------------------------

    def nearest(
        self,
        alike: Float[Tensor, "B V Q N"],
        seen: Bool[Tensor, "B Q N"],
        label: Int[Tensor, "B N"],
        cosine: Float[Tensor, "B V Q K"],
    ) -> Float[Tensor, "B V Q K"]:
        """The largest cosine to an example of each class; to its prototype, if there is no example left."""
        example = (seen & (label >= 0)[:, None])[:, None]  # [B, 1, Q, N]
        slot = label.clamp(min=0)[:, None, None].expand_as(alike)  # [B, V, Q, N]
        none = torch.full_like(cosine, MASKED)  # [B, V, Q, K]
        best = none.scatter_reduce(3, slot, alike.masked_fill(~example, MASKED), "amax")  # [B, V, Q, K]
        return torch.where(best > MASKED, best, cosine)

    def of_window(
        self, heard: Heard, age: Int[Tensor, "B Q K"]
    ) -> tuple[Float[Tensor, "B Q K"], Float[Tensor, "B Q K"]]:
        """Does it live here, if it was told in the window; and how likely it is next for one of so many."""
        here, chance = (part.to(self.weights) for part in heard)  # [B, Q, K] each
        classes = (chance > 0).sum(-1, keepdim=True)  # [B, Q, 1]
        return here * (age <= self.config.window), (chance * classes + UNLIKELY).log()

    def _unnamed(
        self,
        now: Float[Tensor, "B Q N"],
        alike: Float[Tensor, "B M M"],
        seen: Bool[Tensor, "B Q N"],
        label: Int[Tensor, "B N"],
    ) -> Float[Tensor, "B Q S"]:
        if self.unnamed is None:
            return now.new_zeros(*now.shape[:2], 0)
        return cast(Tensor, self.unnamed(now, alike, seen, label, self.config.window))

    def sharing(self) -> Credit | None:
        """How what has no name is shared out among the classes, if it is."""
        return Credit(*self.credit.unbind()) if self.config.late_credit else None

    # What to say of that -------------------------------------------------------------------------------

    def evidence(self, found: Found) -> list[Float[Tensor, "B Q K"]]:
        """What speaks for every class: first what is weighted, then what only the network sees."""
        parts = [*found.cosine.unbind(1)]
        parts += found.nearest.unbind(1) if self.config.nearest else []
        parts += found.company.unbind(-1)
        parts += [found.next] if self.config.guesses else []
        parts += [found.age, found.told] if self.config.age_and_count else []
        parts += [found.here] if self.config.guesses else []
        return parts

    def scores(
        self, evidence: Float[Tensor, "B Q K P"], opened: Bool[Tensor, "B Q K"]
    ) -> Float[Tensor, "B Q K"]:
        """What all that speaks for a class comes to. Only those that are open are looked at."""
        if torch.compiler.is_compiling():  # where sizes must not depend on data
            return self._weighed(evidence).masked_fill(~opened, UNUSED)
        (open_ones,) = opened.flatten().nonzero(as_tuple=True)  # [M]
        weighed = self._weighed(evidence.flatten(0, 2).index_select(0, open_ones))  # [M]
        unused = torch.full_like(opened, UNUSED, dtype=weighed.dtype).flatten()  # [B Q K]
        return unused.index_copy(0, open_ones, weighed).view(opened.shape)

    def _weighed(self, evidence: Float[Tensor, "*B P"]) -> Float[Tensor, "*B"]:
        weighted: Tensor = evidence[..., : len(self.weights)] @ self.weights  # [*B]
        return weighted + SCORE_GAIN * cast(Tensor, self.scorer(evidence * self.scales))[..., 0]

    def answer(self, found: Found, met: Met) -> Answers:
        """Scores and novelty of Q meetings from all the evidence."""
        config, views = self.config, self.views
        scores = self.scores(torch.stack(self.evidence(found), -1), found.opened)  # [B, Q, K]
        spare = max(0, BEST - scores.shape[-1])  # with one or two slots there are no best three
        top, best = F.pad(scores, (0, spare), value=UNUSED).topk(BEST, -1)  # [B, Q, 3]
        absent = top <= UNUSED / 2  # [B, Q, 3]
        at_best = best[:, None].expand(-1, views, -1, -1)  # [B, V, Q, 3]
        near = F.pad(found.cosine, (0, spare)).gather(3, at_best).masked_fill(absent[:, None], -1)
        first = best[..., :1].clamp(max=scores.shape[-1] - 1)  # [B, Q, 1]
        signs = [top.clamp(min=LOWEST) / 5, *near.unbind(1)]  # [B, Q, 3] each
        if config.age_and_count:
            signs += [found.age.gather(2, first), found.told.gather(2, first)]  # [B, Q, 1] each
        signs += [walk.gather(2, first) / 4 for walk in found.company.unbind(-1)]  # [B, Q, 1] each
        if config.guesses:
            signs += [F.pad(found.here, (0, spare)).gather(2, best).masked_fill(absent, 0)]  # [B, Q, 3]
        several = [scores.logsumexp(-1).clamp(min=LOWEST) / 5, found.opened.sum(-1).to(top).log1p()]
        several += [found.time / 3]  # [B, Q]
        if config.guesses:
            several += crowd(found.here, found.guests)  # [B, Q] each
        several += found.unnamed.unbind(-1)
        judged = self.judge(torch.cat([*signs, torch.stack(several, -1), met.seen], -1))[..., 0]  # [B, Q]
        slope, offset = self.closeness.unbind()
        novelty = NOVELTY_GAIN * judged + slope * near[..., 0].mean(1) + offset  # [B, Q]
        if self.doubt and not self.training:
            novelty = with_doubt(novelty, scores, first)
        return Answers(scores, torch.where(found.opened.any(-1), novelty, CERTAINLY_NEW))


def _nothing_heard(like: Tensor) -> Heard:
    nothing = torch.zeros(like.shape, device=like.device)
    return Heard(nothing, nothing)
