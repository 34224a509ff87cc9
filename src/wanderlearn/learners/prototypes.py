"""A memory of one prototype per class: how it answers and how it is written (section 4 of the paper).

Reading and writing are written twice. `step` is the definition: one meeting, line by line as in the paper.
`live_through` gives the same numbers for whole sequences, fast: a closed form where only labels write
(here), and a loop over time where the memory also writes by itself (`self_writing.py`).
"""

from itertools import zip_longest
from typing import Any, Final, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from wanderlearn.errors import WanderError
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.learners.chance import drawn
from wanderlearn.learners.self_writing import LENGTH_EPS, SMALLEST_SQUARE, self_written_scores
from wanderlearn.worlds.sequence import UNLABELED

__all__ = [
    "Memory",
    "PrototypeMemory",
    "Similarity",
    "Thresholds",
    "Writing",
    "first_betas",
    "length",
    "may_self_write",
    "phased_in",
    "root",
    "square_length",
    "unit_length",
]

Similarity = Literal["euclidean", "cosine"]
Writing = Literal["average", "gau"]

PHASES: Final = 5  # in how many steps of equal height self-writing is phased in


class Memory(NamedTuple):
    """What is kept per class slot. A slot is empty (its prototype zero) until a label opens it."""

    prototypes: Float[Tensor, "B K D"]
    counts: Float[Tensor, "B K"]  # items averaged so far (GAU: labels told so far); 0 where empty


class Thresholds(NamedTuple):
    """Where "known" ends, for reading and for writing: u = (distance - beta) / gamma."""

    beta: Float[Tensor, "*B"]
    gamma: Float[Tensor, "*B"]
    beta_write: Float[Tensor, "*B"]
    gamma_write: Float[Tensor, "*B"]

    @classmethod
    def of(cls, beta: Float[Tensor, "*B n"], gamma: Float[Tensor, "*B n"]) -> "Thresholds":
        """From those of reading and those of writing (n = 2), or from one pair for both (n = 1)."""
        betas, gammas = beta.unbind(-1), gamma.unbind(-1)
        return cls(betas[0], gammas[0], betas[-1], gammas[-1])


class PrototypeMemory(nn.Module):
    """The memory's rules, and the few numbers in them that are learned.

    `similarity`: "euclidean" scores a class by minus the squared distance to its prototype, "cosine" by the
    cosine times a learned number that starts at `temperature`. `writing`: "average" keeps the mean of what
    was written, "gau" is the gated averaging unit, whose gate also lets every untouched prototype fade.
    """

    def __init__(
        self, features: int, writing: Writing, similarity: Similarity, temperature: float = 10.0
    ) -> None:
        super().__init__()
        if temperature <= 0:
            raise WanderError(f"The temperature of a cosine is above 0, not {temperature:g}.")
        self.features, self.writing, self.similarity = features, writing, similarity
        if similarity == "cosine":
            self.temperature = nn.Parameter(torch.tensor(temperature))
        if writing == "gau":
            self.gate = nn.Linear(2 * features, 1)  # W_f [x, p] + b_f
            nn.init.uniform_(self.gate.weight, -1.0, 1.0)
            nn.init.constant_(self.gate.bias, -2.0)

    def begin(self, batch_size: int, slots: int, like: Tensor) -> Memory:
        """An empty memory, of the type and on the device of `like`."""
        return Memory(
            like.new_zeros(batch_size, slots, self.features), like.new_zeros(batch_size, slots)
        )  # [B, K, D], [B, K]

    # The definition: one meeting -----------------------------------------------------------------------

    def step(
        self,
        memory: Memory,
        x: Float[Tensor, "B D"],
        metric: Float[Tensor, "B D"] | None,
        thresholds: Thresholds,
        given: Int[Tensor, " B"],
        may_write: Bool[Tensor, " B"] | None,
    ) -> tuple[Answers, Memory]:
        """Answer x, then write it: where `given` says, or where the memory itself believes it belongs.

        `may_write` says which unlabelled items may write at all; None, if nothing may.
        """
        empty = memory.counts == 0  # [B, K]
        scores = self.scores(memory, x, metric, empty)  # [B, K] -d_m(x, p[k])
        distance = self.distance_to_nearest(scores, x, metric)  # [B] min_k d_m(x, p[k])
        beta, gamma, beta_write, gamma_write = thresholds
        novelty = self.novelty(distance, empty, beta, gamma)  # [B] logit of u^r

        told = given[:, None] == torch.arange(empty.shape[1], device=given.device)  # [B, K] 1[y = k]
        delta = told  # [B, K] Delta[k]
        if may_write is not None:
            novelty_write = (distance - beta_write) / gamma_write  # [B] logit of u^w
            belief = scores.softmax(-1) * torch.sigmoid(-novelty_write)[:, None]  # [B, K] y_hat[k] (1 - u^w)
            delta = told + belief * (may_write[:, None] & ~empty)  # [B, K]
        return Answers(scores, novelty), self.write(memory, x, delta, told)

    def scores(
        self,
        memory: Memory,
        x: Float[Tensor, "B D"],
        metric: Float[Tensor, "B D"] | None,
        empty: Bool[Tensor, "B K"],
    ) -> Float[Tensor, "B K"]:
        """How alike x and each prototype are, both scaled by the metric; UNUSED for an empty slot."""
        query, prototypes = x, memory.prototypes  # [B, D], [B, K, D]
        if metric is not None:
            query, prototypes = query * metric, prototypes * metric[:, None]
        if self.similarity == "euclidean":
            scores = -(query[:, None] - prototypes).square().sum(-1)  # [B, K]
        else:
            scale = self.temperature / length(query, keepdim=True)  # [B, 1]
            dot = torch.bmm(prototypes, query[..., None])[..., 0]  # [B, K]
            scores = dot * scale / length(prototypes)  # [B, K]
        return scores.masked_fill(empty, UNUSED)

    def distance_to_nearest(
        self, scores: Float[Tensor, "*B K"], x: Float[Tensor, "*B D"], metric: Float[Tensor, "*B D"] | None
    ) -> Float[Tensor, "*B"]:
        """The distance to the nearest prototype, counting one that is always empty: the zero vector."""
        best = scores.amax(-1)  # [*B]
        if self.similarity == "cosine":
            return -best.clamp(min=0)
        return -torch.maximum(best, -square_length(x, metric))

    def novelty(
        self,
        distance: Float[Tensor, "*B"],
        empty: Bool[Tensor, "*B K"],
        beta: Float[Tensor, "*B"],
        gamma: Float[Tensor, "*B"],
    ) -> Float[Tensor, "*B"]:
        """The logit of "this is new". While no class has been told, everything is."""
        return ((distance - beta) / gamma).masked_fill(empty.all(-1), CERTAINLY_NEW)

    def write(
        self, memory: Memory, x: Float[Tensor, "B D"], delta: Shaped[Tensor, "B K"], told: Bool[Tensor, "B K"]
    ) -> Memory:
        """A(Delta x; p) for every slot, touched or not."""
        p, part, x = memory.prototypes, delta[..., None], x[:, None]  # [B, K, D], [B, K, 1], [B, 1, D]
        if self.writing == "average":
            counts = memory.counts + delta  # [B, K] c[k] + Delta[k]; 0 where empty, else at least 1
            share = part / counts.clamp(min=1)[..., None]  # [B, K, 1]
            return Memory(torch.lerp(p, x.expand_as(p), share), counts)
        of_input, of_prototype = self.gate.weight.chunk(2, 1)  # [1, D] each
        # f = sigmoid(gate), and 1 - f = sigmoid(-gate), exact also near 0
        gate = torch.addcmul(F.linear(p, of_prototype, self.gate.bias), part, F.linear(x, of_input))
        written = torch.addcmul(p * (-gate).sigmoid(), gate.sigmoid() * part, x)  # [B, K, D]
        return Memory(written, memory.counts + told)

    # The same numbers for whole sequences --------------------------------------------------------------

    def live_through(
        self,
        x: Float[Tensor, "B T D"],
        metric: Float[Tensor, "B T D"] | None,
        thresholds: Thresholds,
        given: Int[Tensor, "B T"],
        may_write: Bool[Tensor, "B T"] | None,
        slots: int,
    ) -> Answers:
        """What `step` would answer along whole sequences, from an empty memory."""
        told = given[..., None] == torch.arange(slots, device=given.device)  # [B, T, K]
        time = torch.arange(x.shape[1], device=x.device)[:, None]  # [T, 1]
        written = torch.where(told, time, -1).cummax(1).values  # [B, T, K] when k was last told, or -1
        version = F.pad(written[:, :-1], (0, 0, 1, 0), value=-1)  # [B, T, K] ... before t
        used = version >= 0  # [B, T, K]
        square = square_length(x, metric)  # [B, T]
        m2 = torch.ones_like(x) if metric is None else metric.square()  # [B, T, D]
        if may_write is not None:
            level = square if self.similarity == "euclidean" else self.temperature / root(square)  # [B, T]
            gate = self.gate if self.writing == "gau" else None
            scores = self_written_scores(
                x,
                m2,
                level,
                thresholds.beta_write,
                thresholds.gamma_write,
                told,
                used,
                may_write,
                gate,
                cosine=self.similarity == "cosine",
            )  # [B, T, K]
        else:
            dot, norm2 = self._against_versions(x, m2, given, told, version)  # [B, T, K] each
            if self.similarity == "euclidean":
                scores = 2 * dot - square[..., None] - norm2  # [B, T, K]
            else:
                scores = self.temperature * dot / (root(square)[..., None] * root(norm2))  # [B, T, K]
        scores = scores.masked_fill(~used, UNUSED)  # [B, T, K]
        distance = self.distance_to_nearest(scores, x, metric)  # [B, T]
        return Answers(scores, self.novelty(distance, ~used, thresholds.beta, thresholds.gamma))

    def _against_versions(
        self,
        x: Float[Tensor, "B T D"],
        m2: Float[Tensor, "B T D"],
        given: Int[Tensor, "B T"],
        told: Bool[Tensor, "B T K"],
        version: Int[Tensor, "B T K"],
    ) -> tuple[Float[Tensor, "B T K"], Float[Tensor, "B T K"]]:
        """<m x, m p[k]> and |m p[k]|^2 at every t, where only labels write.

        One label changes one class, so every prototype there ever is is a version: "the class of item s after
        item s was written". All queries meet all versions in one product; `version` picks those of each time.
        """
        labelled = given != UNLABELED  # [B, T]
        same = (given[:, :, None] == given[:, None, :]) & labelled[:, :, None]  # [B, T, T]
        share = same.tril()  # [B, T, T] item s' is in version s
        current = version.clamp(min=0)  # [B, T, K]
        if self.writing == "average":
            weight = share.to(x.dtype) / share.sum(-1, keepdim=True).clamp(min=1)  # [B, T, T]
            fade = None
        else:
            f, log_keep = self._gates(x, told)  # [B, T, K] each
            faded = log_keep.cumsum(1)  # [B, T, K] log of what is left after t of a prototype from the start
            own = given.clamp(min=0)[..., None]  # [B, T, 1]
            f_own, faded_own = f.gather(2, own), faded.gather(2, own)  # [B, T, 1] of the slot told at t
            since = faded_own - faded_own.mT  # [B, T, T]
            weight = since.masked_fill(~share, -torch.inf).exp() * f_own.mT  # [B, T, T]
            before = F.pad(faded[:, :-1], (0, 0, 1, 0))  # [B, T, K]
            fade = (before - faded.gather(1, current)).clamp(max=0).exp()  # [B, T, K] since it was written
        versions = weight @ x  # [B, T, D]
        dot = ((m2 * x) @ versions.mT).gather(2, current)  # [B, T, K]
        norm2 = (m2 @ versions.square().mT).gather(2, current)  # [B, T, K]
        return (dot, norm2) if fade is None else (dot * fade, norm2 * fade.square())

    def _gates(
        self, x: Float[Tensor, "B T D"], told: Bool[Tensor, "B T K"]
    ) -> tuple[Float[Tensor, "B T K"], Float[Tensor, "B T K"]]:
        """Every gate f of every slot, and log(1 - f).

        A gate sees its prototype only as the number g = w_p . p, and p <- (1 - f) p + f x makes g follow
        g <- (1 - f) g + f (w_p . x): so the time loop needs one number per slot, not a vector.
        """
        of_input, of_prototype = self.gate.weight[0].chunk(2)  # [D] each
        touch = told.transpose(0, 1).to(x.dtype)  # [T, B, K]
        push = touch * (x @ of_input).mT[..., None] + self.gate.bias  # [T, B, K]
        pull = touch * (x @ of_prototype).mT[..., None]  # [T, B, K]
        gate: Tensor = _GateLoop.apply(push, pull).transpose(0, 1)  # type: ignore[no-untyped-call] # [B, T, K]
        return gate.sigmoid(), F.logsigmoid(-gate)


class _GateLoop(torch.autograd.Function):
    """z_t = push_t + g_t, where g_{t+1} = g_t + sigmoid(z_t) (pull_t - g_t) and g_0 = 0.

    The gradient is written by hand: what arrives at g takes one call per step, all else is done at once.
    """

    @staticmethod
    def forward(ctx: Any, push: Float[Tensor, "T B K"], pull: Float[Tensor, "T B K"]) -> Tensor:
        z, f = torch.empty_like(push), torch.empty_like(push)  # [T, B, K]
        g = torch.zeros_like(push)  # [T, B, K] before each step
        parts = (push, pull, z, f, g, g[1:])
        for push_t, pull_t, z_t, f_t, g_t, after in zip_longest(*(part.unbind() for part in parts)):
            torch.sigmoid(torch.add(push_t, g_t, out=z_t), out=f_t)
            if after is not None:
                torch.lerp(g_t, pull_t, f_t, out=after)
        ctx.save_for_backward(pull, f, g)
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_z: Float[Tensor, "T B K"]) -> tuple[Tensor, Tensor]:
        pull, f, g = ctx.saved_tensors
        keep = 1 - f  # [T, B, K]
        through = (pull - g) * f * keep  # [T, B, K] of g after the step by its z
        both = through + keep  # [T, B, K] of g after the step by g before it
        d_after = torch.zeros_like(d_z)  # [T, B, K] what arrives at g after each step: nothing after the last
        views = (part.unbind() for part in (d_z[1:], both[1:], d_after[1:], d_after[:-1]))
        for d_z_t, both_t, arrives, passes_on in reversed(list(zip(*views, strict=True))):
            torch.addcmul(d_z_t, arrives, both_t, out=passes_on)
        return torch.addcmul(d_z, d_after, through), d_after * f


def first_betas(similarity: Similarity, read: float | None, write: float | None) -> tuple[float, float]:
    """Where the betas of reading and writing start: 10, or -10 where the "distance" is -10 cos."""
    usual = 10.0 if similarity == "euclidean" else -10.0
    return (usual if read is None else read), (usual if write is None else write)


def square_length(x: Float[Tensor, "*B D"], metric: Float[Tensor, "*B D"] | None) -> Float[Tensor, "*B"]:
    """|m x|^2."""
    return (x if metric is None else x * metric).square().sum(-1)


def length(x: Float[Tensor, "*B D"], *, keepdim: bool = False) -> Float[Tensor, "..."]:
    """|x| + 1e-5; the gradient at zero is zero. `keepdim`: [*B, 1] instead."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=keepdim)  # [*B]
    return norm + LENGTH_EPS


def root(square: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """|x| + 1e-5 from |x|^2, with a finite gradient at zero."""
    return square.clamp(min=SMALLEST_SQUARE).sqrt() + LENGTH_EPS


def unit_length(x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
    """x scaled to length 1 (the zero vector stays zero)."""
    return F.normalize(x, dim=-1, eps=LENGTH_EPS)


def may_self_write(
    features: Float[Tensor, "*B D"], given: Int[Tensor, "*B"], probability: float
) -> Bool[Tensor, "*B"] | None:
    """Which items may be written without a label: the unlabelled ones, each with this probability.

    Padding (no label and an all-zero feature) is nobody, and writes nothing. None, if nothing may write:
    then there are shorter ways to go. A graph that is being traced cannot ask, and goes the long way.
    """
    may = given == UNLABELED  # [*B]
    if probability < 1:  # drawn in the order of time, so that stepping draws the same
        draws = drawn(features[..., 0].t(), torch.Tensor.uniform_, dim=given.ndim - 1)
        may = may & (draws.t() < probability)
    if not torch.compiler.is_compiling() and not may.any():
        return None
    may = may & features.ne(0).any(-1)  # [*B]
    return may if torch.compiler.is_compiling() or may.any() else None


def phased_in(step: int, over: int) -> float:
    """The probability of self-writing at a training step: 0, then up by 0.2 five times, 1 from `over` on."""
    return 1.0 if over == 0 else min(1.0, step * PHASES // over / PHASES)
