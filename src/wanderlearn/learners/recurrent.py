"""The recurrent network behind the context: an LSTM with one LayerNorm over all its gates."""

from typing import Any, Final, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

__all__ = ["LSTMState", "LayerNormLSTM"]

NORM_EPS: Final = 1e-6
layer_norm_backward = torch.ops.aten.native_layer_norm_backward


class LSTMState(NamedTuple):
    """What the network carries from one meeting to the next."""

    hidden: Float[Tensor, "B n"]
    cell: Float[Tensor, "B n"]


class LayerNormLSTM(nn.Module):
    """LSTM whose four gates pass together through one LayerNorm, as in the authors' code.

        f, i, o, g = LayerNorm(W [x, h] + b)
        c = sigmoid(f) c + sigmoid(i) tanh(g)
        h = sigmoid(o) tanh(c)

    `step` is one meeting and pure; calling the module runs whole sequences with the same numbers, faster.
    The fast path can be differentiated once; for gradients of gradients, use `step` in a loop.
    """

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.inputs, self.units = inputs, units
        self.gates = nn.Linear(inputs + units, 4 * units)
        self.norm = nn.LayerNorm(4 * units, eps=NORM_EPS)
        bound = (4 * units) ** -0.5  # by the outputs, not by the inputs: the authors' initialisation
        nn.init.uniform_(self.gates.weight, -bound, bound)
        with torch.no_grad():
            self.gates.bias.zero_()
            self.gates.bias[:units] = 1.0  # remember by default

    def begin(self, batch_size: int) -> LSTMState:
        """The state before the first meeting: zeros."""
        zeros = self.gates.weight.new_zeros(batch_size, self.units)
        return LSTMState(hidden=zeros, cell=zeros)

    def step(
        self, state: LSTMState, x: Float[Tensor, "B D"], advance: Bool[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B n"], LSTMState]:
        """One meeting: the output and the next state.

        Where `advance` is False the output is computed as always, but the state stays as it was.
        """
        linear, norm = self.gates, self.norm
        # The functions instead of the modules: a live meeting feels every call.
        gates = F.linear(torch.cat([x, state.hidden], -1), linear.weight, linear.bias)  # [B, 4n] f, i, o, g
        gates = F.layer_norm(gates, norm.normalized_shape, norm.weight, norm.bias, NORM_EPS)  # [B, 4n]
        fio, g = torch.split_with_sizes(gates, [3 * self.units, self.units], -1)  # [B, 3n], [B, n]
        f, i, o = fio.sigmoid().chunk(3, -1)  # each [B, n]
        cell = torch.addcmul(f * state.cell, i, g.tanh())  # [B, n]
        hidden = o * cell.tanh()  # [B, n]
        if advance is None:
            return hidden, LSTMState(hidden, cell)
        goes_on = advance[:, None]  # [B, 1]
        kept = LSTMState(
            torch.where(goes_on, hidden, state.hidden), torch.where(goes_on, cell, state.cell)
        )  # [B, n] each
        return hidden, kept

    def forward(
        self, x: Float[Tensor, "B T D"], advance: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T n"]:
        """The outputs for whole sequences, from the zero state."""
        goes_on = None if advance is None else advance.t()[..., None].to(x.dtype)  # [T, B, 1]
        outputs: Tensor = _Unroll.apply(  # type: ignore[no-untyped-call]
            x.transpose(0, 1), self.gates.weight, self.gates.bias, self.norm.weight, self.norm.bias, goes_on
        )  # [T, B, n]
        return outputs.transpose(0, 1)


class _Unroll(torch.autograd.Function):
    """The time loop, with its gradient written by hand: autograd's own costs several times more.

    At these sizes (a few sequences, a few hundred units) the cost is the number of calls into torch, fresh
    memory, and one small product per step. So what the inputs add to the gates is one product for all T, each
    step writes into buffers of the whole sequence, and what the backward loop does not need one step after
    another (local derivatives, gradients of the weights) is done for all T at once.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Float[Tensor, "T B D"],
        weight: Float[Tensor, "gates inputs"],  # [4n, D + n]
        bias: Float[Tensor, " gates"],
        scale: Float[Tensor, " gates"],
        shift: Float[Tensor, " gates"],
        goes_on: Float[Tensor, "T B 1"] | None,
    ) -> Float[Tensor, "T B n"]:
        (T, B, D), n = x.shape, len(bias) // 4
        before = F.linear(x, weight[:, :D], bias)  # [T, B, 4n] the loop adds what h adds
        of_hidden = weight[:, D:].t().contiguous()  # [n, 4n] this layout halves the time of the small product
        gates = torch.empty_like(before)  # [T, B, 4n] f, i, o, g after their sigmoid or tanh
        means, inverses = [], []  # of the LayerNorm, [B, 1] per step; inverse: 1 / deviation
        hidden, cell = before.new_zeros(2, T + 1, B, n)  # at t the state before step t, at t + 1 after it
        output, new_cell = (hidden[1:], cell[1:]) if goes_on is None else before.new_empty(2, T, B, n)
        squashed = torch.empty_like(output)  # [T, B, n] tanh(c)
        # Views of every step, made at once: one by one in the loop they would cost as much as its arithmetic.
        states = hidden[:-1], cell[:-1], new_cell, squashed, output
        views = (gates[..., : 3 * n], *gates.chunk(4, -1), before, *states)
        steps = zip(*(view.unbind() for view in views), strict=True)
        for t, (sigmoid, f, i, o, g, a, h, c, c_new, squash, out) in enumerate(steps):
            a.addmm_(h, of_hidden)  # [B, 4n]
            z, mean, inverse = torch.native_layer_norm(a, [4 * n], scale, shift, NORM_EPS)  # [B, 4n]
            means.append(mean)
            inverses.append(inverse)
            torch.sigmoid(z[:, : 3 * n], out=sigmoid)
            torch.tanh(z[:, 3 * n :], out=g)
            torch.mul(f, c, out=c_new).addcmul_(i, g)  # c = f c + i g
            torch.mul(o, torch.tanh(c_new, out=squash), out=out)  # h = o tanh(c)
            if goes_on is not None:
                torch.lerp(h, out, goes_on[t], out=hidden[t + 1])  # of weight 0 or 1: exact
                torch.lerp(c, c_new, goes_on[t], out=cell[t + 1])
        mean, inverse = torch.stack(means), torch.stack(inverses)  # [T, B, 1]
        ctx.save_for_backward(
            x, weight, scale, shift, goes_on, before, gates, mean, inverse, hidden, cell, squashed
        )
        return torch.clone(output)  # the caller may change its copy; the backward pass needs ours

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: Float[Tensor, "T B n"]) -> tuple[Tensor | None, ...]:
        x, weight, scale, shift, goes_on, before, gates, mean, inverse, hidden, cell, squashed = (
            ctx.saved_tensors
        )
        (T, B, D), n = x.shape, squashed.shape[-1]
        of_hidden = weight[:, D:].contiguous()  # [4n, n]
        f, i, o, g = gates.chunk(4, -1)  # [T, B, n]
        # Local derivatives for all steps: dc/df, dc/di, dh/do, dc/dg before their sigmoid or tanh, and dh/dc.
        # The loop then only multiplies them by what arrives, which turns this buffer into d_z.
        d_z = torch.empty_like(gates).view(T, B, 4, n)
        torch.addcmul(f, f, f, value=-1, out=d_z[:, :, 0]).mul_(cell[:-1])
        torch.addcmul(i, i, i, value=-1, out=d_z[:, :, 1]).mul_(g)
        torch.addcmul(o, o, o, value=-1, out=d_z[:, :, 2]).mul_(squashed)
        torch.mul(g, g, out=d_z[:, :, 3]).neg_().add_(1).mul_(i)
        through = torch.mul(squashed, squashed).neg_().add_(1).mul_(o)  # [T, B, n] dh/dc

        d_before = torch.empty_like(gates)  # [T, B, 4n]
        d_hidden, d_cell = hidden.new_zeros(2, B, n)  # [B, n] of the state after the step
        into = d_z.view(T, B, 4 * n), d_z[:, :, :2], d_z[:, :, 2], d_z[:, :, 3]  # all, f and i, o, g
        views = (d_output, *into, f, through, before, mean, inverse, d_before)
        steps = enumerate(zip(*(view.unbind() for view in views), strict=True))
        for t, (d_out, by_all, by_fi, by_o, by_g, forget, squash, a, mu, inv, d_a_t) in reversed(list(steps)):
            # d_h and d_c: of what step t computed, [B, n]
            if goes_on is None:
                d_h, d_c = d_out + d_hidden, d_cell
            else:
                d_h, d_c = torch.addcmul(d_out, d_hidden, goes_on[t]), d_cell * goes_on[t]
            d_c = torch.addcmul(d_c, d_h, squash)
            by_fi.mul_(d_c[:, None])
            by_g.mul_(d_c)
            by_o.mul_(d_h)
            wanted = [True, False, False]
            d_a, _, _ = layer_norm_backward(by_all, a, [4 * n], mu, inv, scale, shift, wanted)  # [B, 4n]
            d_a_t.copy_(d_a)
            if goes_on is None:
                d_hidden, d_cell = d_a @ of_hidden, d_c * forget
            else:  # a state that was kept also passes its gradient on
                d_hidden = torch.addmm(d_hidden.addcmul(d_hidden, goes_on[t], value=-1), d_a, of_hidden)
                d_cell = torch.addcmul(d_cell.addcmul(d_cell, goes_on[t], value=-1), d_c, forget)
        _, d_scale, d_shift = layer_norm_backward(
            d_z.view(T, B, 4 * n), before, [4 * n], mean, inverse, scale, shift, [False, True, True]
        )
        flat = d_before.view(T * B, 4 * n)
        d_weight = flat.t() @ torch.cat([x, hidden[:-1]], -1).view(T * B, D + n)  # [4n, D + n]
        d_x = (flat @ weight[:, :D]).view(T, B, D) if ctx.needs_input_grad[0] else None
        return d_x, d_weight, flat.sum(0), d_scale, d_shift, None
