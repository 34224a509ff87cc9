"""An LSTM that begins by knowing how to keep and compare, so that training need not find out that it can.

Two layers of 256 cells have few numbers for up to 50 names, and from random weights they get nowhere for
many hundreds of steps. Here the same network, with nothing added, begins with weights under which the cells
of its first layer are B blocks, each shared by the names y = b, b + B, b + 2 B, ...: who was told last has
it. So it begins with a good memory of the last few, which are met most, instead of a bad one of all. All
weights are trained from there.

First layer, at meeting t, with the label y of the meeting before:

    relay      g = R x_t                                     a feature, kept for the next meeting
    block b    i: opened by y = b, b + B, ...                f: lets go of much then, of a little always
      numbers  g = V x_{t-1},   o = sigmoid(Q x_t)           so their sum compares what is kept with now
      whose    g = bits of y div B, as 1 and -1

Second layer:

    name k     i = sigmoid(sum of numbers[b], and whether whose[b] is k's),   g = 1
    found b    i = sigmoid(sum of numbers[b]),                                g = 1
    answer     score = name,   novelty = bias - sum of found

The gates of a layer pass one LayerNorm together, so whatever moves one moves all. Therefore what comes in is
small before it, beside gates that are 1 or -1, as many of the one as of the other, and made large after it.

R is drawn at random, for want of better. Who has features to show turns it to those directions in which they
differ most (`turn_to`): of these few numbers say almost as much as all.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

import torch
from torch import Tensor

from wanderlearn.errors import WanderError
from wanderlearn.learners.recurrent import LayerNormLSTM

if TYPE_CHECKING:
    from wanderlearn.learners.lstm import LSTMLearner

__all__ = ["begin_with_blocks", "turn_to"]

SEED: Final = 0  # of the projections
SHARED: Final = 5  # so many names share a block
BITS: Final = (SHARED - 1).bit_length()  # that tell them apart
SMALL: Final = 0.05  # what comes in is multiplied with this before the LayerNorm
FAINT: Final = 0.2  # how much of the random weights stays in units without a task
SHUT: Final = -6.0  # gates
OPEN: Final = 4.0
FORGETS: Final = 4.4  # a block's forget gate: always
LETS_GO: Final = -0.9  # ... and when it is told something
PASSED: Final = 0.3  # of a feature, in the relay: where tanh is straight
KEPT: Final = 0.47
ASKED: Final = 1.76
MATCH: Final = 1.95  # what the sum of numbers is multiplied with
NAMED_FROM: Final = 2.15  # how much of it makes a name likely
FOUND_FROM: Final = 1.65
WHOSE: Final = 1.4  # what a bit adds, or takes away
TOLD: Final = 0.74  # what a unit of a bit says
LINGERS: Final = -1.35  # a name's forget gate
FORGET, PUT, OUT, NEW = range(4)  # the gates in their order


class _Layout(NamedTuple):
    """Where things are in the first layer, for so many slots."""

    slots: int
    numbers: Tensor  # [B, n] of each block
    whose: Tensor  # [B, BITS]
    relay: Tensor  # [n]

    @property
    def block_of(self) -> Tensor:
        """The block of every name."""
        return torch.arange(self.slots) % len(self.numbers)

    @property
    def bits(self) -> Tensor:
        """[slots, BITS] which of a block's names each is, as 1 and -1."""
        turn = torch.arange(self.slots)[:, None] // len(self.numbers)
        return 2.0 * (turn // 2 ** torch.arange(BITS) % 2) - 1


def _layout(slots: int, units: int) -> _Layout:
    """As many blocks as the names need, and of as many numbers as there are cells for."""
    blocks = -(-slots // SHARED)
    count = (units - blocks * BITS) // (blocks + 1)
    cells = torch.arange(blocks * (count + BITS)).view(blocks, -1)
    return _Layout(slots, cells[:, :count], cells[:, count:], cells.numel() + torch.arange(count))


@torch.no_grad()
def begin_with_blocks(learner: "LSTMLearner", length: float) -> None:
    """Set the weights of an LSTM whose features have this length."""
    c = learner.config
    layout = _layout(c.slots, c.units)
    blocks, count = layout.numbers.shape
    if c.layers != 2 or count < 2 or count > c.features or c.slots + blocks > c.units:
        raise WanderError(
            f"An LSTM of {c.layers} layers of {c.units} units cannot begin with {blocks} blocks of 2 to "
            f"{c.features} numbers, for {c.slots} names: it needs 2 layers, and fewer or more units. Change "
            "that, or set `look_up` to 0."
        )
    first, second = learner.layers
    assert isinstance(first, LayerNormLSTM)
    assert isinstance(second, LayerNormLSTM)
    _keep(first, layout, length)
    _compare(second, layout)
    readout = learner.readout
    readout.weight.zero_()
    readout.weight[: c.slots, : c.slots] = 16 * torch.eye(c.slots)
    readout.weight[c.slots, c.slots : c.slots + blocks] = -3.3
    readout.bias[c.slots] = 1.5


@torch.no_grad()
def turn_to(learner: "LSTMLearner", features: Tensor) -> None:
    """Let an LSTM that was given blocks, and not trained yet, keep what tells these features [N, D] apart."""
    c = learner.config
    numbers = _layout(c.slots, c.units).numbers.shape[1]
    moments = features.double().T @ features.double() / len(features)  # [D, D]
    found, directions = torch.linalg.eigh(moments)  # in rising order
    kept, all_kept = found[-(numbers - 1) :].mean(), found.mean()
    turn = _turned(c.features).T.double() @ directions.flip(1).T  # [D, D] from the drawn to the found
    first = learner.layers[0]
    assert isinstance(first, LayerNormLSTM)
    sight = first.gates.weight[:, : c.features]
    sight.copy_(sight.double() @ turn * (all_kept / kept).sqrt())  # numbers stay as large as they were


class _Gates:
    """The gates of a layer while they are set: each either listens, or is the same at all times."""

    def __init__(self, layer: LayerNormLSTM, tasks: int) -> None:
        n, used = layer.units, slice(0, tasks)
        self.weight = layer.gates.weight.view(4, n, -1)  # [4, n, inputs + n] f, i, o, g
        shapes = layer.gates.bias, layer.norm.weight, layer.norm.bias
        self._before, self._gain, self.level = (x.view(4, n) for x in shapes)  # [4, n] each
        self._steady = torch.ones(4, n, dtype=torch.bool)
        self.weight *= FAINT
        self.weight[:, used] = 0
        self._before.zero_()
        self.level.zero_()

    def listen(self, gate: int, units: Tensor, inputs: Tensor, weight: Tensor | float, level: float) -> None:
        """These units' gate is `level` and what comes from these inputs, one of each or all with all."""
        if units.shape != inputs.shape:
            units = units[:, None]
        self.weight[gate, units, inputs] += weight
        self._steady[gate, units] = False
        self.level[gate, units] = level

    def close(self) -> None:
        """Bring all to the scale at which the LayerNorm leaves what comes in as it was meant."""
        steady, listening = self._steady, ~self._steady
        signs = torch.ones(int(steady.sum()))
        signs[::2] = -1
        deviation = float(steady.float().mean()) ** 0.5
        self._before[steady], self._gain[steady] = signs, 1.0
        self.level[steady] -= signs / deviation
        self.weight[listening] *= SMALL
        self._gain[listening] = deviation / SMALL


def _turned(features: int) -> Tensor:
    """Directions at right angles, drawn at random: [D, D], of which the first are relayed."""
    drawn = torch.Generator().manual_seed(SEED)
    turned: Tensor = torch.linalg.qr(torch.randn(features, features, generator=drawn))[0]
    return turned


def _projections(features: int, numbers: int, length: float) -> tuple[Tensor, Tensor]:
    """R: to what is relayed; V = V' R: to numbers that add up to 0, so that half of each says nothing."""
    drawn = torch.Generator().manual_seed(SEED + 1)
    of_sum_0 = torch.cat([torch.ones(numbers, 1), torch.randn(numbers, numbers - 1, generator=drawn)], 1)
    around, _ = torch.linalg.qr(of_sum_0)
    one_each = features**0.5 / length * (numbers / (numbers - 1)) ** 0.5  # their deviation
    return _turned(features)[: numbers - 1], around[:, 1:] * one_each  # [n - 1, D], [n, n - 1]


def _keep(layer: LayerNormLSTM, layout: _Layout, length: float) -> None:
    slots, numbers, whose, relay = layout
    D = layer.inputs - slots
    feature, label = torch.arange(D), D + torch.arange(slots)
    relayed, spread = _projections(D, numbers.shape[1], length)
    relay = relay[: len(relayed)]
    gates = _Gates(layer, int(relay[-1]) + 1)
    for unit in (*numbers.T, *whose.T):  # one of every block
        gates.listen(FORGET, unit[layout.block_of], label, LETS_GO - FORGETS, FORGETS)
        gates.listen(PUT, unit[layout.block_of], label, OPEN - SHUT, SHUT)
    for block in numbers:
        gates.listen(OUT, block, feature, ASKED * spread @ relayed, 0.0)
        gates.listen(NEW, block, layer.inputs + relay, KEPT / PASSED * spread, 0.0)
    for unit, bit in zip(whose.T, layout.bits.T, strict=True):
        gates.listen(NEW, unit[layout.block_of], label, 3 * bit, 0.0)
    gates.listen(NEW, relay, feature, PASSED * relayed, 0.0)
    gates.level[OUT, whose] = OPEN
    gates.level[FORGET, relay] = SHUT
    gates.level[PUT, relay] = gates.level[OUT, relay] = OPEN
    gates.close()


def _compare(layer: LayerNormLSTM, layout: _Layout) -> None:
    slots, numbers, whose, _ = layout
    names, found = torch.arange(slots), slots + torch.arange(len(numbers))
    likely = -NAMED_FROM - BITS * WHOSE
    gates = _Gates(layer, slots + len(numbers))
    for unit in numbers.T:  # one of every block
        gates.listen(PUT, names, unit[layout.block_of], MATCH, likely)
        gates.listen(PUT, found, unit, 2 * MATCH, -2 * FOUND_FROM)
    for unit, bit in zip(whose.T, layout.bits.T, strict=True):
        gates.listen(PUT, names, unit[layout.block_of], WHOSE / TOLD * bit, likely)
    gates.level[FORGET, names], gates.level[FORGET, found] = LINGERS, SHUT
    gates.level[OUT, : slots + len(numbers)], gates.level[NEW, : slots + len(numbers)] = OPEN, 3.0
    gates.close()
