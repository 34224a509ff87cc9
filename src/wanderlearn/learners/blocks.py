"""An LSTM that begins by knowing how to keep and compare, so that training need not find out that it can.

Two layers of 256 cells have few numbers for up to 50 names, and from random weights they get nowhere for
thousands of steps. Here the same network, with nothing added, begins with weights under which the cells of
its first layer are B blocks, each shared by the names y = b, b + B, b + 2 B, ...: who was told last has it.
So it begins with a good memory of the last few, which are met most, instead of a bad one of all. All weights
are trained from there.

First layer, at meeting t, with the label y of the meeting before:

    relay      g = R x_t                                     a feature, kept for the next meeting
    told b     g = 1 for y = b, b + B, ...
    block b    i: opened by y = b, b + B, ...                f: lets go of much then, of a little always
      numbers  g = V x_{t-1},   o = sigmoid(Q x_t)           so their sum compares what is kept with now
      whose    g = bits of y div B, as 1 and -1

Second layer:

    name k     i = sigmoid(sum of numbers[b], and whether whose[b] is k's),   g = 1
    found b    i = sigmoid(sum of numbers[b]),                                g = 1
    relay, block b of more numbers: as in the first layer, of other numbers of a feature
    answer     score = name + sum of the other numbers[b],   novelty = bias - sum of found

The gates of a layer pass one LayerNorm together, so whatever moves one moves all. Therefore what comes in is
small before it, beside gates that are 1 or -1, as many of the one as of the other, and made large after it.
"""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import torch
from torch import Tensor

from wanderlearn.errors import WanderError
from wanderlearn.learners.recurrent import LayerNormLSTM

if TYPE_CHECKING:
    from wanderlearn.learners.lstm import LSTMLearner

__all__ = ["begin_with_blocks"]

SEED: Final = 0  # of the projections
BITS: Final = 2  # that tell the names of a block apart
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
NAMED: Final = 16.0  # what a name is multiplied with in its score
MORE: Final = 3.0  # ... and the other numbers
FORGET, PUT, OUT, NEW = range(4)  # the gates in their order


class _Layout(NamedTuple):
    """Which units do what, in the first layer and in the second."""

    slots: int
    numbers: Tensor  # [B, n] of each block
    whose: Tensor  # [B, BITS]
    told: Tensor  # [B]
    relay: Tensor  # [n - 1]
    relay_more: Tensor  # [m - 1] for the second layer
    # The second layer:
    names: Tensor  # [slots]
    found: Tensor  # [B]
    more: Tensor  # [B, m] more numbers of each block
    relay_again: Tensor  # [m - 1]

    @property
    def block_of(self) -> Tensor:
        """The block of every name."""
        return self.names % len(self.numbers)

    @property
    def bits(self) -> Tensor:
        """[slots, BITS] which of a block's names each is, as 1 and -1."""
        turn = self.names[:, None] // len(self.numbers)
        return 2.0 * (turn // 2 ** torch.arange(BITS) % 2) - 1


def _layout(slots: int, units: int, features: int) -> _Layout:
    """Blocks as few as the bits allow, and of as many numbers as there are cells for."""
    blocks = -(-slots // 2**BITS)
    m = (units - slots - blocks) // (blocks + 1)
    n = (units - blocks * (BITS + 1) - m) // (blocks + 1)
    if min(n, m) < 2 or n + m - 2 > features:
        raise WanderError(
            f"An LSTM of {units} units cannot begin with blocks of numbers for {slots} names and features of "
            f"{features}: it needs more units, or fewer. Change that, or set `look_up` to 0."
        )
    first, second = iter(range(units)), iter(range(units))

    def taken(units: Iterator[int], count: int) -> Tensor:
        return torch.tensor(list(islice(units, count)))

    return _Layout(
        slots=slots,
        numbers=taken(first, blocks * n).view(blocks, n),
        whose=taken(first, blocks * BITS).view(blocks, BITS),
        told=taken(first, blocks),
        relay=taken(first, n - 1),
        relay_more=taken(first, m - 1),
        names=taken(second, slots),
        found=taken(second, blocks),
        more=taken(second, blocks * m).view(blocks, m),
        relay_again=taken(second, m - 1),
    )


@torch.no_grad()
def begin_with_blocks(learner: "LSTMLearner", length: float) -> None:
    """Set the weights of an LSTM whose features have this length."""
    c = learner.config
    if c.layers != 2:
        raise WanderError(
            f"Only an LSTM of 2 layers can begin with blocks, not of {c.layers}: see `look_up`."
        )
    here = _layout(c.slots, c.units, c.features)
    first, second = learner.layers
    assert isinstance(first, LayerNormLSTM)
    assert isinstance(second, LayerNormLSTM)
    drawn = torch.Generator().manual_seed(SEED)
    turned, _ = torch.linalg.qr(torch.randn(c.features, c.features, generator=drawn))  # [D, D]
    n, m = len(here.relay), len(here.relay_more)
    scale = c.features**0.5 / length  # of a number, so that it varies by 1
    _keep(first, here, turned[: n + m], _of_sum_0(n + 1, drawn) * scale)
    _compare(second, here, _of_sum_0(m + 1, drawn) * scale)
    readout = learner.readout
    readout.weight.zero_()
    readout.weight[here.names, here.names] = NAMED
    for units in here.more.T:
        readout.weight[here.names, units[here.block_of]] = MORE
    readout.weight[c.slots, here.found] = -3.3
    readout.bias[c.slots] = 1.5


def _of_sum_0(count: int, drawn: torch.Generator) -> Tensor:
    """[count, count - 1] to numbers that add up to 0, so that half of each says nothing."""
    ones, others = torch.ones(count, 1), torch.randn(count, count - 1, generator=drawn)
    around: Tensor = torch.linalg.qr(torch.cat([ones, others], 1))[0]
    return around[:, 1:] * float((count / (count - 1)) ** 0.5)


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

    def pass_on(self, units: Tensor) -> None:
        """These units say what comes in, and forget it."""
        self.level[FORGET, units] = SHUT
        self.level[PUT, units] = OPEN
        self.level[OUT, units] = OPEN

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


def _keep(layer: LayerNormLSTM, here: _Layout, relayed: Tensor, spread: Tensor) -> None:
    D = layer.inputs - here.slots
    feature, label, block_of = torch.arange(D), D + here.names, here.block_of
    gates = _Gates(layer, int(here.relay_more[-1]) + 1)
    for unit in (*here.numbers.T, *here.whose.T):  # one of every block
        gates.listen(FORGET, unit[block_of], label, LETS_GO - FORGETS, FORGETS)
        gates.listen(PUT, unit[block_of], label, OPEN - SHUT, SHUT)
    for block in here.numbers:
        gates.listen(OUT, block, feature, ASKED * spread @ relayed[: len(here.relay)], 0.0)
        gates.listen(NEW, block, layer.inputs + here.relay, KEPT / PASSED * spread, 0.0)
    for unit, bit in zip(here.whose.T, here.bits.T, strict=True):
        gates.listen(NEW, unit[block_of], label, 3 * bit, 0.0)
    gates.listen(NEW, here.told[block_of], label, 3.0, 0.0)
    passing = torch.cat([here.relay, here.relay_more])
    gates.listen(NEW, passing, feature, PASSED * relayed, 0.0)
    gates.level[OUT, here.whose] = OPEN
    gates.pass_on(torch.cat([passing, here.told]))
    gates.close()


def _compare(layer: LayerNormLSTM, here: _Layout, spread: Tensor) -> None:
    names, found, block_of = here.names, here.found, here.block_of
    likely = -NAMED_FROM - BITS * WHOSE
    gates = _Gates(layer, int(here.relay_again[-1]) + 1)
    for unit in here.numbers.T:  # one of every block
        gates.listen(PUT, names, unit[block_of], MATCH, likely)
        gates.listen(PUT, found, unit, 2 * MATCH, -2 * FOUND_FROM)
    for unit, bit in zip(here.whose.T, here.bits.T, strict=True):
        gates.listen(PUT, names, unit[block_of], WHOSE / TOLD * bit, likely)
    gates.level[FORGET, names], gates.level[FORGET, found] = LINGERS, SHUT
    for units in (names, found):
        gates.level[OUT, units], gates.level[NEW, units] = OPEN, 3.0
    for unit in here.more.T:
        gates.listen(FORGET, unit, here.told, (LETS_GO - FORGETS) / TOLD, FORGETS)
        gates.listen(PUT, unit, here.told, (OPEN - SHUT) / TOLD, SHUT)
    for block in here.more:
        gates.listen(OUT, block, here.relay_more, ASKED / PASSED * spread, 0.0)
        gates.listen(NEW, block, layer.inputs + here.relay_again, KEPT / PASSED * spread, 0.0)
    gates.listen(NEW, here.relay_again, here.relay_more, 1.0, 0.0)
    gates.pass_on(here.relay_again)
    gates.close()
