"""Whole sequences through a prototype memory that also writes what it was not told, fast.

What such a memory writes depends on what it holds, so time cannot be folded into a product. The loop here
does the same as `PrototypeMemory.step`, but touches the big [B, K, D] memory only a handful of times per
step, and has its gradient written by hand: autograd through `step` takes several times longer.
"""

from typing import Any, Final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from wanderlearn.learners.answer import UNUSED

__all__ = ["self_written_scores"]

LENGTH_EPS: Final = 1e-5  # added to both lengths of a cosine, as the authors do
SMALLEST_SQUARE: Final = 1e-20  # below it a square root has no useful gradient; far below LENGTH_EPS squared


def self_written_scores(
    x: Float[Tensor, "B T D"],
    m2: Float[Tensor, "B T D"],
    level: Float[Tensor, "B T"],
    beta: Float[Tensor, "B T"],
    gamma: Float[Tensor, "B T"],
    told: Bool[Tensor, "B T K"],
    used: Bool[Tensor, "B T K"],
    may_write: Bool[Tensor, "B T"],
    gate: nn.Linear | None,
    cosine: bool,
) -> Float[Tensor, "B T K"]:
    """The class scores at every t (UNUSED where `used` is False).

    `m2` is the squared metric; `level` is |m x|^2, for cosine temperature / (|m x| + 1e-5); `beta` and
    `gamma` are those of writing; `gate` is the GAU's (None: averaging).
    """

    def over_time(sequence: Tensor) -> Tensor:
        return sequence.transpose(0, 1).to(x.dtype).contiguous()  # [T, B, ...]

    push = pull = bias = x.new_zeros(0)
    if gate is not None:
        of_input, of_prototype = gate.weight[0].chunk(2)  # [D] each
        push, pull = over_time(x @ of_input)[..., None], over_time(x @ of_prototype)[..., None]  # [T, B, 1]
        bias = gate.bias
    believes = over_time(used & may_write[..., None])  # [T, B, K]
    scores: Tensor = _Loop.apply(  # type: ignore[no-untyped-call]
        over_time(x),
        over_time(m2 * x),
        over_time(m2),
        over_time(level)[..., None],
        over_time(beta)[..., None],
        over_time(gamma)[..., None],
        push,
        pull,
        bias,
        over_time(told),
        over_time(used),
        believes,
        cosine,
        gate is not None,
    )  # [T, B, K]
    return scores.transpose(0, 1)


class _Loop(torch.autograd.Function):
    """The time loop. A gradient called d_a is that of the loss by a."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Float[Tensor, "T B D"],
        query: Float[Tensor, "T B D"],
        m2: Float[Tensor, "T B D"],
        level: Float[Tensor, "T B 1"],
        beta: Float[Tensor, "T B 1"],
        gamma: Float[Tensor, "T B 1"],
        push: Tensor,  # [T, B, 1] w_x . x
        pull: Tensor,  # [T, B, 1] w_p . x
        bias: Tensor,  # [1]
        told: Float[Tensor, "T B K"],
        used: Float[Tensor, "T B K"],
        believes: Float[Tensor, "T B K"],
        cosine: bool,
        gated: bool,  # if not: push, pull and bias are empty
    ) -> Float[Tensor, "T B K"]:
        (T, B, D), K = x.shape, told.shape[-1]
        p = x.new_empty(T + 1, B, K, D)  # before step t; the only big thing kept for the gradient
        p[0] = 0
        scores, norm2, softmax, delta, f, not_f = x.new_empty(6, T, B, K)
        g = x.new_zeros(T + 1, B, K)  # before step t: the count (averaging) or w_p . p (GAU)
        known = x.new_empty(T, B, 1)  # 1 - u^w
        squares = torch.empty_like(p[0])  # [B, K, D]
        empty = ~used.bool()  # [T, B, K]
        of_zero = torch.zeros_like(level) if cosine else -level  # [T, B, 1] the score of a zero prototype
        for t in range(T):
            p_t, g_t, soft, d = p[t], g[t], softmax[t], delta[t]  # [B, K, D], then [B, K]; d: Delta
            s = torch.bmm(p_t, query[t, :, :, None]).squeeze(-1)  # [B, K] <m x, m p>
            n2 = torch.bmm(torch.mul(p_t, p_t, out=squares), m2[t, :, :, None]).squeeze(-1)  # [B, K] |m p|^2
            if cosine:
                norm2[t] = n2.clamp_(min=SMALLEST_SQUARE)
                s = s.mul_(level[t]).div_(n2.sqrt_().add_(LENGTH_EPS))
            else:
                s = s.mul_(2).sub_(n2).sub_(level[t])
            scores[t] = s.masked_fill_(empty[t], UNUSED)
            nearest = torch.maximum(s.amax(-1, keepdim=True), of_zero[t])  # [B, 1] minus the distance
            sure = torch.sigmoid((nearest + beta[t]).div_(gamma[t]), out=known[t])  # [B, 1]
            torch.softmax(s, -1, out=soft)
            torch.addcmul(told[t], soft * sure, believes[t], out=d)
            if gated:
                z = torch.addcmul(g_t + bias, d, push[t])  # [B, K]
                keep, add = torch.sigmoid(-z, out=not_f[t]), torch.sigmoid(z, out=f[t]) * d  # [B, K]
                torch.mul(keep, g_t, out=g[t + 1]).addcmul_(add, pull[t])
            else:
                share = torch.add(g_t, d, out=g[t + 1]).clamp(min=1).reciprocal_()  # [B, K] 1 / (c + Delta)
                keep, add = g_t * share, d * share  # [B, K]
            torch.mul(p_t, keep[..., None], out=p[t + 1]).baddbmm_(add[..., None], x[t, :, None])
        ctx.cosine, ctx.gated = cosine, gated
        ctx.save_for_backward(
            x,
            query,
            m2,
            level,
            beta,
            gamma,
            push,
            pull,
            used,
            believes,
            p,
            g,
            f,
            not_f,
            scores,
            norm2,
            softmax,
            delta,
            known,
            of_zero,
        )
        return torch.clone(scores)  # the caller may change its copy; the backward pass needs ours

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_scores: Float[Tensor, "T B K"]) -> tuple[Tensor | None, ...]:
        x, query, m2, level, beta, gamma, push, pull, used, believes = ctx.saved_tensors[:10]
        p, g, f, not_f, scores, norm2, softmax, delta, known, of_zero = ctx.saved_tensors[10:]
        T = len(x)
        # Local derivatives of all steps at once; the loop then only multiplies them by what arrives.
        if ctx.cosine:
            length = norm2.sqrt()  # [T, B, K]
            dot_by_score = level / (length + LENGTH_EPS)  # [T, B, K]
            norm2_by_score = scores / (length + LENGTH_EPS) / length * -0.5 * (norm2 > SMALLEST_SQUARE)
        else:
            dot_by_score = torch.full_like(scores, 2.0)
            norm2_by_score = torch.full_like(scores, -1.0)
        dot_by_score, norm2_by_score = dot_by_score * used, norm2_by_score * used  # empty slots: none
        best, which = scores.max(-1, keepdim=True)  # [T, B, 1]
        is_best = torch.zeros_like(scores).scatter_(
            -1, which, (best >= of_zero).to(scores.dtype)
        )  # [T, B, K]
        nearest_by_known = known * (1 - known) / gamma  # [T, B, 1]
        if ctx.gated:
            keep, add = not_f, f * delta  # [T, B, K]
            slope = f * keep  # [T, B, K]
        else:
            share = g[1:].clamp(min=1).reciprocal()  # [T, B, K]
            keep, add = g[:-1] * share, delta * share  # [T, B, K]

        d_s = d_scores.contiguous().clone()  # [T, B, K] the loop adds to what came from outside
        d_z, d_g_after = torch.empty_like(d_s), torch.empty_like(d_s)  # [T, B, K]
        d_nearest = torch.empty_like(known)  # [T, B, 1]
        d_x, d_query, d_m2 = torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)  # [T, B, D]
        d_p, scratch = torch.zeros_like(p[0]), torch.empty_like(p[0])  # [B, K, D] after step t
        d_g = torch.zeros_like(g[0])  # [B, K] after step t
        for t in reversed(range(T)):
            p_t, keep_t, add_t, soft, d_s_t = p[t], keep[t], add[t], softmax[t], d_s[t]
            # p' = keep p + add x
            d_keep = torch.mul(d_p, p_t, out=scratch).sum(-1)  # [B, K]
            d_add = torch.bmm(d_p, x[t, :, :, None]).squeeze(-1)  # [B, K]
            torch.bmm(add_t[:, None], d_p, out=d_x[t, :, None])
            if (
                ctx.gated
            ):  # g' = keep g + add pull, keep = 1 - f, add = f Delta, f = sigmoid(g + Delta push + b)
                d_g_after[t] = d_g
                d_keep.addcmul_(d_g, g[t])
                d_add.addcmul_(d_g, pull[t])
                d_z_t = torch.mul(d_add, delta[t], out=d_z[t]).sub_(d_keep).mul_(slope[t])  # [B, K]
                d_delta = torch.mul(d_add, f[t]).addcmul_(d_z_t, push[t])  # [B, K]
                d_g = torch.addcmul(d_z_t, d_g, keep_t)  # [B, K]
            else:  # keep = c / c', add = Delta / c', c' = c + Delta
                share_t = share[t]  # [B, K]
                d_count = d_g - (d_keep * keep_t).addcmul_(d_add, add_t).mul_(share_t)  # [B, K]
                d_delta = torch.addcmul(d_count, d_add, share_t)  # [B, K]
                d_g = torch.addcmul(d_count, d_keep, share_t)  # [B, K]
            # Delta = told + believes softmax(s) known, known = sigmoid((nearest + beta) / gamma)
            d_delta.mul_(believes[t]).mul_(soft)  # [B, K]
            d_known = d_delta.sum(-1, keepdim=True)  # [B, 1]
            d_nearest_t = torch.mul(d_known, nearest_by_known[t], out=d_nearest[t])  # [B, 1]
            d_s_t.addcmul_(d_delta.addcmul_(soft, d_known, value=-1), known[t]).addcmul_(
                is_best[t], d_nearest_t
            )
            # s by <m x, m p> and |m p|^2
            d_dot, d_norm2 = d_s_t * dot_by_score[t], d_s_t * norm2_by_score[t]  # [B, K]
            torch.bmm(d_dot[:, None], p_t, out=d_query[t, :, None])
            if ctx.needs_input_grad[2]:
                torch.bmm(d_norm2[:, None], torch.mul(p_t, p_t, out=scratch), out=d_m2[t, :, None])
            torch.mul(p_t, d_norm2[..., None], out=scratch)  # [B, K, D]
            d_p.mul_(keep_t[..., None]).baddbmm_(d_dot[..., None], query[t, :, None])
            d_p.addcmul_(scratch, m2[t, :, None], value=2)

        d_s.mul_(used)
        d_beta = d_nearest  # [T, B, 1]
        d_gamma = -d_nearest * (torch.maximum(best, of_zero) + beta) / gamma  # [T, B, 1]
        if ctx.cosine:
            d_level = (d_s * scores).sum(-1, keepdim=True) / level  # [T, B, 1]
        else:
            d_level = -d_s.sum(-1, keepdim=True) - d_nearest * (best < of_zero)  # [T, B, 1]
        d_push = d_pull = d_bias = None
        if ctx.gated:
            d_push, d_pull = (d_z * delta).sum(-1, keepdim=True), (d_g_after * add).sum(-1, keepdim=True)
            d_bias = d_z.sum().view(1)
        return d_x, d_query, d_m2, d_level, d_beta, d_gamma, d_push, d_pull, d_bias, *[None] * 5
