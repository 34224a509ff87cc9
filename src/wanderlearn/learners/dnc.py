"""The DNC baseline: a recurrent controller that writes to a memory of cells and reads it by content.

    z_t = LSTM([h_t, one-hot(y_{t-1})])                           the controller; it never sees what is read
    q_r, q_w, v, gates, tau = A z_t + b                           what to look for, what to write, and how
    q_w, v += C [h_{t-1}, one-hot(y_{t-1})]                       the label goes straight to the write heads
    r[n]  = softmax_n(tau_r cos(q_r, M[n]))                       read: by content
    w[n]  = g_w (g_i softmax_n(tau_w cos(q_w, M[n])) + (1 - g_i) a[n])     write: by content, or a free cell
    scores, novelty = W (sum over read heads and n of r[n] M[n]) + b
    u     = (u + max w - u max w) prod (1 - g_f r)                usage: written and not freed by a reader
    M     = M (1 - e max w) + sum over write heads of w v^T       max, prod: over heads

A label arrives one meeting late (see `lstm.py`), and reading comes before writing, as in the authors' code:
what was met at t - 1 is written at t and can be read from t + 1 on. With `writes_first` it can be read at t,
as in the first DNC (Graves et al., 2016). There are no temporal links (the paper removed them). Cells have
nothing to do with class slots: any cell may hold anything.

Which cell a write finds depends on what all earlier ones wrote, and a gradient through a chain of such
choices can grow without bounds. Without `trace_writes` those choices are taken as they are: only what was
written, and how it is read, learn from later answers.

The controller sees only what is known beforehand, so it and all it says run over whole sequences at once;
the loop in time has the memory alone.

All numbers are float64. Which cell is free is decided by sorting usages, and once the memory is full they
lie so close together that float32 rounding would choose among them, differently for whole sequences, steps
and other batches, and change answers in the second digit.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from wanderlearn.learners.answer import Answers
from wanderlearn.learners.look_up import begin_with_look_up
from wanderlearn.learners.lstm import NUMBERED, answers_of, check_room, linear, one_late, told_before
from wanderlearn.learners.matchingnet import one_hot
from wanderlearn.learners.recurrent import LayerNormLSTM, LSTMState
from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["DNC", "Cells", "DNCConfig", "DNCState", "FreeList", "Orders"]

BLANK: Final = 1e-5  # what cells hold before anything is written
TINY: Final = 1e-7  # keeps the direction of an all-zero query finite
NEVER: Final = -1e9  # the log of 0, as far as exp can tell
HARDLY_USED: Final = 1e-12  # keeps the log of an unused cell finite
TIE: Final = 1e-10  # a cell must be this much less used than the one numbered before it to be taken first


@dataclass(frozen=True)
class DNCConfig:
    """Defaults of RoamingOmniglot (Rooms and ImageNet: 256 numbers per cell)."""

    features: int = 64
    """Width of the encoder's features."""
    units: int = 256
    """Width of the controller."""
    cells: int = 64
    """How many cells the memory has."""
    width: int = 64
    """How many numbers a cell holds."""
    reads: int = 4
    """Read heads."""
    writes: int = 4
    """Write heads."""
    slots: int = 50
    """The most classes a sequence may have: every slot has weights of its own."""
    writes_first: bool = False
    """Write what was met before, then read: it can be found at once. Otherwise read first, as the authors."""
    trace_writes: bool = True
    """In training, trace how earlier writes led later ones to their cells; such gradients may explode."""
    look_up: float = 0.0
    """Begin as a table to look things up in, for features of this length (look_up.py); 0: at random."""


class Cells(NamedTuple):
    """The memory: N cells of W numbers, and how much each is in use (0 to 1)."""

    content: Float[Tensor, "B N W"]
    usage: Float[Tensor, "B N"]


class DNCState(NamedTuple):
    """The controller's context, the memory, what was met last (it is written next), and the open slots."""

    controller: LSTMState
    memory: Cells
    feature: Float[Tensor, "B D"]
    label: Int[Tensor, " B"]
    told: Bool[Tensor, "B K"]


class Orders(NamedTuple):
    """What the controller tells the memory at a meeting, for R read heads and H write heads."""

    query: Float[Tensor, "*B R+H W"]  # of length tau: first those to read, then those to write
    content: Float[Tensor, "*B H W"]  # v
    free: Float[Tensor, "*B R 1"]  # g_f
    to_found: Float[Tensor, "*B H 1"]  # g_w g_i
    to_free: Float[Tensor, "*B H 1"]  # g_w (1 - g_i)
    erase: Float[Tensor, "*B N 1"]  # e, one per cell


class FreeList(nn.Module):
    """Which cells to write next: each write head has its own place in the list of the least used.

    With cells sorted by usage, u_1 <= u_2 <= ..., head s (from 0) skips the first s of them:

        a_s[j] = (1 - u_j) u_{s+1} ... u_{j-1}      for j > s, else 0
    """

    before: Tensor
    skipped: Tensor
    tie: Tensor
    hardly_used: Tensor

    def __init__(self, cells: int, heads: int) -> None:
        super().__init__()
        place, head = torch.arange(cells), torch.arange(heads)[:, None]  # [N], [H, 1]
        skipped = torch.where(place < head, NEVER, 0.0).double()  # [H, N]
        i = place[:, None, None]  # [N, 1, 1]
        before = ((i >= head) & (i < place)).flatten(1).double()  # [N, H N] whether u_i is a factor of a_s[j]
        self.register_buffer("before", before, persistent=False)
        self.register_buffer("skipped", skipped, persistent=False)
        self.register_buffer("tie", TIE * place.double(), persistent=False)  # [N]
        # [N] for the sake of exporting: as a plain number, ONNX's optimiser would take it for zero.
        self.register_buffer("hardly_used", torch.full_like(self.tie, HARDLY_USED), persistent=False)

    def forward(self, usage: Float[Tensor, "B N"]) -> Float[Tensor, "B H N"]:
        """a, for every write head. The order of the cells carries no gradient, their usage does."""
        # Cells that should be equally used differ by rounding: without `tie`, that would choose among them.
        order = torch.argsort(usage.detach() + self.tie, 1)  # [B, N]
        u = usage.gather(1, order)  # [B, N]
        # Products as sums of logs: one matrix product for all heads, and a gradient that minds no zeros.
        logs = (u + self.hardly_used).log() @ self.before  # [B, H N]
        a = (logs.view(u.shape[0], *self.skipped.shape) + self.skipped).exp() * (1 - u)[:, None]  # [B, H, N]
        return torch.zeros_like(a).scatter(2, order[:, None].expand_as(a), a)  # back from sorted to numbered


class DNC(nn.Module):
    """A differentiable neural computer without temporal links, told labels through its write heads."""

    exempt: ClassVar = {"slots": NUMBERED}

    def __init__(self, config: DNCConfig | None = None) -> None:
        super().__init__()
        self.config = c = config or DNCConfig()
        self.feature_dim = c.features
        self.controller = LayerNormLSTM(c.features + c.slots, c.units)
        parts = {  # width and first bias of all the controller says
            "query": ((c.reads + c.writes) * c.width, 0.0),
            "content": (c.writes * c.width, 0.0),
            "free": (c.reads, -2.0),  # rarely
            "write": (c.writes, 2.0),  # nearly always
            "found": (c.writes, -2.0),  # prefer free cells to those found by content
            "sharpness": (c.reads + c.writes, 0.0),
            "erase": (c.cells, -2.0),  # hardly
        }
        self.widths = [width for width, _ in parts.values()]
        self.orders = linear(c.units, sum(self.widths))  # A
        with torch.no_grad():
            self.orders.bias.copy_(torch.cat([torch.full((width,), bias) for width, bias in parts.values()]))
        self.told_query = linear(c.features + c.slots, c.writes * c.width)  # C, its rows for q_w
        self.told_content = linear(c.features + c.slots, c.writes * c.width)  # C, its rows for v
        self.free_list = FreeList(c.cells, c.writes)
        self.readout = linear(c.width, c.slots + 1)
        self.double()
        if c.look_up:
            begin_with_look_up(self, c.look_up)

    def begin(self, batch_size: int, slots: int) -> DNCState:
        """Blank cells, and no slot open. More `slots` than the config has are an error."""
        check_room(slots, self.config.slots)
        weight = self.readout.weight
        return DNCState(
            controller=self.controller.begin(batch_size),
            memory=self._blank(batch_size),
            feature=weight.new_zeros(batch_size, self.config.features),
            label=torch.full((batch_size,), UNLABELED, device=weight.device),
            told=torch.zeros(batch_size, slots, dtype=torch.bool, device=weight.device),
        )

    def step(
        self, state: DNCState, feature: Float[Tensor, "B D"], given: Int[Tensor, " B"]
    ) -> tuple[Answers, DNCState]:
        """One meeting: read and answer, then write the meeting before. What was told waits for the next."""
        x = feature.double()  # [B, D]
        label = one_hot(state.label, self.config.slots).to(x)  # [B, slots]
        z, controller = self.controller.step(state.controller, torch.cat([x, label], -1))  # [B, n]
        read, memory = self.live(state.memory, self.say(z, torch.cat([state.feature, label], -1)))  # [B, W]
        told = state.told | one_hot(given, state.told.shape[1]).bool()  # [B, K]
        answer = answers_of(self.readout(read).to(feature), state.told)
        return answer, DNCState(controller, memory, x, given, told)

    def forward(self, features: Float[Tensor, "B T D"], given: Int[Tensor, "B T"], slots: int) -> Answers:
        """Whole sequences: the controller all at once, then the memory one meeting after the other."""
        check_room(slots, self.config.slots)
        x = features.double()  # [B, T, D]
        label = one_hot(one_late(given), self.config.slots).to(x)  # [B, T, slots]
        z = self.controller(torch.cat([x, label], -1))  # [B, T, n]
        met_before = torch.cat([F.pad(x[:, :-1], (0, 0, 1, 0)), label], -1)  # [B, T, D + slots]
        orders = self.say(z.transpose(0, 1), met_before.transpose(0, 1))  # [T, B, ...]
        memory, reads = self._blank(len(given)), []
        for order in zip(*(part.unbind() for part in orders), strict=True):
            read, memory = self.live(memory, Orders(*order))  # [B, W]
            reads.append(read)
        logits = self.readout(torch.stack(reads, 1)).to(features)  # [B, T, slots + 1]
        return answers_of(logits, told_before(given, slots))

    def say(self, z: Float[Tensor, "*B n"], met_before: Float[Tensor, "*B m"]) -> Orders:
        """Read the controller's output as orders; `met_before` is [h_{t-1}, one-hot(y_{t-1})]."""
        c = self.config
        query, content, free, write, found, sharpness, erase = self.orders(z).split(self.widths, -1)
        told_query = F.pad(self.told_query(met_before), (c.reads * c.width, 0))  # [*B, (R + H) W]
        query = (query + told_query).unflatten(-1, (c.reads + c.writes, c.width))  # [*B, R + H, W]
        content = (content + self.told_content(met_before)).unflatten(-1, (c.writes, c.width))  # [*B, H, W]
        tau = 1 + F.softplus(sharpness)[..., None]  # [*B, R + H, 1]
        # vector_norm has gradient 0 at the zero vector, where a square root would give NaN
        length: Tensor = torch.linalg.vector_norm(query, dim=-1, keepdim=True)  # [*B, R + H, 1]
        g_w, g_i = write.sigmoid()[..., None], found.sigmoid()[..., None]  # [*B, H, 1]
        return Orders(
            query=query * (tau / (length + TINY)),
            content=content,
            free=free.sigmoid()[..., None],
            to_found=g_w * g_i,
            to_free=g_w * (1 - g_i),
            erase=erase.sigmoid()[..., None],
        )

    def live(self, memory: Cells, order: Orders) -> tuple[Float[Tensor, "B W"], Cells]:
        """One meeting of the memory: what is read (all heads summed), and the memory written after it."""
        heads = [self.config.reads, self.config.writes]
        to_read, to_write = torch.split(order.query, heads, 1)  # [B, R, W], [B, H, W]
        before, after = memory, self._write(memory, order, to_write)
        read, r = _read((after if self.config.writes_first else before).content, to_read)
        return read, after._replace(usage=after.usage * (1 - order.free * r).prod(1))

    def _write(self, memory: Cells, order: Orders, query: Float[Tensor, "B H W"]) -> Cells:
        M, u = memory
        where = memory if self.config.trace_writes else Cells(M.detach(), u.detach())
        found, free = _found(where.content, query), self.free_list(where.usage)  # [B, H, N] each
        w = order.to_found * found + order.to_free * free  # [B, H, N]
        most = w.amax(1)  # [B, N]
        M = torch.baddbmm(M * (1 - order.erase * most[..., None]), w.mT, order.content)  # [B, N, W]
        return Cells(M, u + most - u * most)

    def _blank(self, batch_size: int) -> Cells:
        weight = self.readout.weight
        content = weight.new_full((batch_size, self.config.cells, self.config.width), BLANK)
        return Cells(content, usage=weight.new_zeros(batch_size, self.config.cells))


def _found(content: Float[Tensor, "B N W"], query: Float[Tensor, "B heads W"]) -> Float[Tensor, "B heads N"]:
    """Which cells each head finds."""
    length: Tensor = torch.linalg.vector_norm(content, dim=-1)  # [B, N]
    return (query @ content.mT / (length + TINY)[:, None]).softmax(-1)  # of tau cos(q, M[n])


def _read(
    content: Float[Tensor, "B N W"], query: Float[Tensor, "B R W"]
) -> tuple[Float[Tensor, "B W"], Float[Tensor, "B R N"]]:
    """What is read, all heads summed, and where each read."""
    r = _found(content, query)  # [B, R, N]
    return (r.sum(1, keepdim=True) @ content)[:, 0], r
