"""A DNC that begins by knowing how to look things up, so that training need not find out that it can.

From random weights a DNC gets nowhere for hundreds of steps: content it cannot find again teaches nothing
about how to write, and a query that finds nothing nothing about how to read. Here the same network, with
nothing added, begins with weights under which it is a table of features and names, and all of them are
trained from there.

Of the n units of the controller, the first are given something to do:

    h     D units   the feature of now, passed through
    any   1 unit    whether the meeting before came with a label
    told  K units   whether slot k was ever told: what goes in stays
    again K units   whether slot k is told now, and was told before: opened by both together

and what is left begins at random, to remember for as long as a sequence lasts. From these the orders are

    read     q_r   = P h + blank                                P: D numbers to most of a cell's width
    write    q_w   = code[y],   v = [P h, code[y], not again]   of the meeting before; by the first head alone
             g_w   = sigmoid(-5 + 12 any)                       what has no label is not written
             g_i   = sigmoid(-9 + 20 sum_k again[k])            to the cell of that name, if it has one
    answer   score = codes . read,   novelty = 1.5 - 6 read[last]

so a query that resembles nothing finds the blank cells, and the last number of what is read is about 1 where
something was found, however often it was told.

The gates pass one LayerNorm together, so whatever moves one moves all. Therefore what a gate is most of the
time is a 1 or a -1 *before* the LayerNorm, as many of the one as of the other: beside them, what comes in
changes neither the mean nor the deviation.
"""

from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor

from wanderlearn.errors import WanderError

if TYPE_CHECKING:
    from wanderlearn.learners.dnc import DNC

__all__ = ["begin_with_look_up"]

SEED: Final = 0  # of the codes and the projection
CODE_SHARE: Final = 0.2  # of a cell's width are for the code of a slot
CODE_LENGTH: Final = 0.4  # beside features of length 1
WRITTEN: Final = 0.3  # what the last number of a cell is after one writing
READ_SHARPNESS: Final = 28.0
WRITE_SHARPNESS: Final = 100.0
TO_BLANK: Final = 0.7  # what a reader's query has in the direction of blank cells, beside a feature of 2.5
AGAIN: Final = 0.7  # what a unit `again` says when it does
DEVIATION: Final = 0.75  # of the gates before the LayerNorm
STEEP: Final = 3.0  # what gates at work are multiplied with after it
SIGHT: Final = 0.083  # deviation of what the feature adds to a gate
FAINT: Final = 0.02  # how much of the random weights stays where something begins to work
LONGEST: Final = 150  # meetings to remember


@torch.no_grad()
def begin_with_look_up(dnc: "DNC", length: float) -> None:
    """Set the weights of a DNC whose features have this length."""
    drawn, config = torch.Generator().manual_seed(SEED), dnc.config
    if (needed := config.features + 1 + 2 * config.slots) > config.units:
        raise WanderError(
            f"To look up {config.slots} names by {config.features} numbers a DNC needs {needed} units, not "
            f"{config.units}: raise `units`, or set `look_up` to 0."
        )
    if config.width < 8:
        raise WanderError(f"Cells of {config.width} numbers are too small to look things up in: at least 8.")
    coded = max(2, round(CODE_SHARE * config.width))
    projected = min(config.width - coded - 1, config.features)
    turned, _ = torch.linalg.qr(_normal(drawn, config.features, config.features))  # [D, D]
    # Blank cells hold the same in all their numbers: what is written has no part in their direction.
    projection = turned[:projected] - turned[:projected].mean(0)  # [P, D]
    codes = _normal(drawn, config.slots, coded)  # [K, c]
    codes = codes - codes.mean(1, keepdim=True)
    codes /= codes.norm(dim=1, keepdim=True)
    _controller(dnc, length)
    _orders(dnc, projection)
    _telling(dnc, projection, codes, length)


def _normal(drawn: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=drawn, dtype=torch.double)


def _units(dnc: "DNC") -> tuple[slice, slice, slice, slice]:
    """Which units of the controller hold h, any, told and again."""
    D, K = dnc.config.features, dnc.config.slots
    return slice(0, D), slice(D, D + 1), slice(D + 1, D + 1 + K), slice(D + 1 + K, D + 1 + 2 * K)


def _controller(dnc: "DNC", length: float) -> None:
    lstm, n, slots = dnc.controller, dnc.config.units, dnc.config.slots
    feature, any_label, told, again = _units(dnc)
    used, D = again.stop, dnc.config.features
    weight = lstm.gates.weight.view(4, n, -1)  # [4, n, D + K + n] f, i, o, g
    before, gain, after = (x.view(4, n) for x in (lstm.gates.bias, lstm.norm.weight, lstm.norm.bias))
    label, memory = weight[:, :, D : D + slots], weight[:, :, D + slots :]  # what comes from where
    forget, put, out, new = range(4)
    # Those that begin at random remember for as long as a sequence lasts, each for its own time.
    times = torch.log(1 + torch.rand(n, generator=torch.Generator().manual_seed(SEED)) * (LONGEST - 2))
    weight[:, :used], before[:], gain[:], after[:] = 0, 0, STEEP, 0
    after[forget], after[put] = times, -times
    gain[:, used:] = 8 * SIGHT / (0.018 * length)
    # What gates are most of the time.
    after[:, :used], before[put, :used] = 0, 1
    before[forget, :used], before[forget, told] = -1, 1
    before[out, :used], before[out, again] = 1, -1
    rest = before.sum() / before[:, used:].numel()
    before[:, used:] = -rest
    after[:, used:] += gain[:, used:] * rest / DEVIATION
    # What comes in.
    weight[new, feature, :D] = torch.eye(D, dtype=torch.double) * SIGHT * D**0.5 / length
    gain[new, feature] = 4
    label[new, any_label] = 1
    label[new, told] = torch.eye(slots, dtype=torch.double)
    label[out, again] = 1.35 * torch.eye(slots, dtype=torch.double)
    memory[out, again, told] = 1.55 * torch.eye(slots, dtype=torch.double)
    memory[new, again, told] = -1.55 * torch.eye(slots, dtype=torch.double)  # so that the mean stays
    after[out, again], after[new, again] = -4.6, 10


def _orders(dnc: "DNC", projection: Tensor) -> None:
    c = dnc.config
    feature, any_label, _, again = _units(dnc)
    weights, biases = (torch.split(x, dnc.widths) for x in (dnc.orders.weight, dnc.orders.bias))
    query, content, free, write, found, sharpness, erase = range(7)
    dnc.orders.weight *= FAINT
    dnc.orders.weight[:, : again.stop] = 0
    reads = weights[query][: c.reads * c.width].view(c.reads, c.width, -1)
    weights[query].mul_(0.2)
    reads[:, : len(projection), feature] = projection
    blank = biases[query][: c.reads * c.width].view(c.reads, c.width)
    blank[:, : len(projection)] = TO_BLANK / len(projection) ** 0.5
    weights[content].zero_()
    weights[content][c.width - 1, again] = -WRITTEN / AGAIN
    biases[free].fill_(-6)
    biases[write].fill_(-16)
    biases[write][0] = -5
    weights[write][0, any_label] = 12
    weights[found][0, again] = 20
    biases[found][0] = -9
    biases[sharpness].fill_(WRITE_SHARPNESS)
    biases[sharpness][: c.reads] = READ_SHARPNESS
    biases[erase].fill_(-5)


def _telling(dnc: "DNC", projection: Tensor, codes: Tensor, length: float) -> None:
    c, (P, D) = dnc.config, projection.shape
    named = slice(P, P + codes.shape[1])
    dnc.told_query.weight *= FAINT
    dnc.told_query.weight[named, D:] = 2 * codes.T  # the first write head's
    for told in (dnc.told_content.weight, dnc.told_content.bias):
        told.zero_()
    dnc.told_content.weight[:P, :D] = projection / length
    dnc.told_content.weight[named, D:] = CODE_LENGTH * codes.T
    dnc.told_content.bias[c.width - 1] = WRITTEN
    dnc.readout.weight *= FAINT
    dnc.readout.weight[: c.slots, named] = 5 / CODE_LENGTH / c.reads * codes
    dnc.readout.weight[c.slots] = 0
    dnc.readout.weight[c.slots, c.width - 1] = -6 / WRITTEN / c.reads
    dnc.readout.bias[c.slots] = 1.5
