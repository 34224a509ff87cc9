"""The backward pass of a group: gradients are added up over processes, in one message.

One flat all-reduce for everything, not DistributedDataParallel. These models have a quarter to three million
parameters, less than the 25 MB of one of its buckets, so there is nothing that could travel while the rest is
computed; losses here are sums over unequal shares divided by counts of the whole batch, where it would divide
by the number of processes; and a process without a share must be able to take part.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

import torch
from torch import Tensor, nn

from wanderlearn.distributed.compute import Compute
from wanderlearn.distributed.group import Group
from wanderlearn.distributed.scaling import LossScale

__all__ = ["Exchange", "GroupBackward"]


class Exchange:
    """Adds up gradients, and brings the model's running averages (BatchNorm's) to their common mean.

    Both in every step, so that all processes hold the same model at any time, to the bit. What is averaged is
    how a buffer changed, weighted by the share of the batch: what did not change stays exactly as it was.
    """

    def __init__(self, group: Group, buffers: Iterable[Tensor], weight: float) -> None:
        self.group, self.weight = group, weight
        self.buffers = [each for each in buffers if each.is_floating_point()]
        self._before = [each.clone() for each in self.buffers]

    def __call__(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace every gradient by the sum over processes; one that no process has stays None."""
        first = parameters[0]
        has = first.new_tensor([float(p.grad is not None) for p in parameters])
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        changes = [
            (now - before).mul_(self.weight).to(first.dtype)
            for now, before in zip(self.buffers, self._before, strict=True)
        ]
        pieces = [has, *gradients, *changes]
        flat = self.group.sum(torch.cat([piece.reshape(-1) for piece in pieces]))
        has, *summed = (
            part.view(piece.shape)
            for part, piece in zip(torch.split(flat, [p.numel() for p in pieces]), pieces, strict=True)
        )
        for parameter, held, gradient in zip(parameters, has.tolist(), summed, strict=False):
            if not held:
                continue
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
            parameter.grad.copy_(gradient)
        for buffer, before, change in zip(self.buffers, self._before, summed[len(parameters) :], strict=True):
            buffer.copy_(before + change.to(buffer.dtype))
            before.copy_(buffer)

    def bytes(self, parameters: Sequence[nn.Parameter]) -> int:
        """How long the message is."""
        numbers = len(parameters) + sum(t.numel() for t in (*parameters, *self.buffers))
        return numbers * parameters[0].element_size()


class GroupBackward:
    """What an `Optimiser` calls for the gradients of a loss: scaled where need be, summed over processes."""

    def __init__(self, compute: Compute, buffers: Iterable[Tensor], batch_size: int) -> None:
        group, self.scale = compute.group, LossScale() if compute.precision == "float16" else None
        weight = len(group.share(batch_size)) / batch_size
        self.exchange = Exchange(group, buffers, weight) if group.size > 1 else None

    def __call__(self, loss: Tensor, parameters: Sequence[nn.Parameter]) -> bool:
        """Gradients into the parameters; False if they do not fit into half precision."""
        scale = self.scale.value if self.scale else 1.0
        (loss * scale if self.scale else loss).backward()  # type: ignore[no-untyped-call]
        if self.exchange:
            self.exchange(parameters)
        if self.scale is None:
            return True
        gradients = [p.grad for p in parameters if p.grad is not None]
        torch._foreach_mul_(gradients, 1 / scale)
        if isfinite(float(nn.utils.get_total_norm(gradients))):
            self.scale.went_well()
            return True
        # After too many halvings the optimiser finds out itself that these are no numbers, and says so.
        return not self.scale.overflowed()

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint keeps."""
        return self.scale.state() if self.scale else {}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on as `state` says."""
        if self.scale:
            self.scale.restore(state)
