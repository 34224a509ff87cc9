"""Many multinomial logistic regressions on subsets of the same items, fitted together.

The objective is exactly that of scikit-learn's LogisticRegression with an L2 penalty: for one subset

    min over W, b   C sum_i -log softmax(W x_i + b)[y_i]  +  1/2 ||W||^2        (b is not penalised)

and with two classes, where scikit-learn has one weight vector instead of two, C is halved, which gives the
same probabilities. All subsets share the items, so W x of all of them is one matrix product. The method is
Newton's: a step solves  H v = -g  by conjugate gradients (H is never formed) and is halved until the
objective falls. Gradients and objective are in float64 and decide when a fit is done; the directions are
only a means, and float32 halves their time.
"""

from typing import Final, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wanderlearn.errors import WanderError

__all__ = ["Regressions", "fit", "principal_axes"]

TOLERANCE: Final = 1e-6  # a fit is done when no part of its gradient is larger
NEWTON_STEPS: Final = 100  # about 8 are enough from a cold start
DIRECTION_STEPS: Final = 60  # of conjugate gradients in one Newton step; about 10 are enough
HALVINGS: Final = 30
EXACTNESS: Final = 0.1  # a direction is solved to this share of its first residual, or better near the end
DAMPING: Final = 1e-3
ABSENT: Final = -1e30  # the logit of a class that is not part of a fit: its probability is exactly 0


class Regressions(NamedTuple):
    """P fitted regressions over K classes."""

    weights: Float[Tensor, "D1 P K"]  # D of the features and, last, the intercept
    present: Bool[Tensor, "P K"]  # the classes with an item in this fit; no other has a probability

    def of(self, which: Int[Tensor, " Q"]) -> "Regressions":
        """Some of them, in this order."""
        return Regressions(self.weights[:, which], self.present[which])

    def log_probabilities(self, queries: Float[Tensor, "P D"]) -> Float[Tensor, "P K"]:
        """Of one query for each regression; ABSENT or less where the class is not present."""
        logits = torch.einsum("dpk,pd->pk", self.weights, _with_one(queries))  # [P, K]
        return logits.masked_fill(~self.present, ABSENT).log_softmax(-1)


class _Problems(NamedTuple):
    """The fits that are not done yet, and where they stand."""

    which: Int[Tensor, " P"]  # their place among all
    weight: Float[Tensor, "N P"]  # C where the item is part of the fit, else 0
    present: Bool[Tensor, "P K"]
    w: Float[Tensor, "D1 P K"]
    logits: Float[Tensor, "N P K"]
    log_p: Float[Tensor, "N P K"]
    value: Float[Tensor, " P"]

    def only(self, some: Bool[Tensor, " P"]) -> "_Problems":
        return _Problems(
            self.which[some], self.weight[:, some], self.present[some], self.w[:, some],
            self.logits[:, some], self.log_p[:, some], self.value[some],
        )  # fmt: skip


def principal_axes(x: Float[Tensor, "N D"]) -> tuple[Float[Tensor, " D"], Float[Tensor, "D D"]]:
    """Mean and principal axes of the items: (x - mean) @ axes is what `fit` converges fastest on.

    A shift moves only the intercept and a rotation leaves the penalty as it is, so the fits are the same.
    """
    mean = x.mean(0)
    return mean, torch.linalg.eigh((x - mean).mT @ (x - mean)).eigenvectors


def fit(
    x: Float[Tensor, "N D"],
    labels: Int[Tensor, " N"],
    chosen: Bool[Tensor, "P N"],
    classes: int,
    *,
    strength: float = 1.0,
    start: Float[Tensor, "D1 P K"] | None = None,
    tolerance: float = TOLERANCE,
) -> Regressions:
    """Fit P regressions, the p-th on the items `chosen[p]` (at least one), from the weights of `start`.

    `strength` is scikit-learn's C. `x` is float64, `labels` are 0..classes-1.
    """
    x = _with_one(x)  # [N, D+1]
    D1, P = x.shape[1], len(chosen)
    member = F.one_hot(labels, classes).to(x)  # [N, K]
    present = chosen.to(x) @ member > 0  # [P, K]
    c = torch.where(present.sum(1) == 2, strength / 2, strength)  # [P]
    penalised = x.new_ones(D1, 1, 1)
    penalised[-1] = 0
    found = x.new_zeros(D1, P, classes) if start is None else start * present
    left = _at(
        _Problems(
            which=torch.arange(P, device=x.device),
            weight=(chosen.to(x) * c[:, None]).mT.contiguous(),
            present=present,
            w=found,
            logits=_product(x, found),
            log_p=x.new_empty(0, P, classes),
            value=x.new_empty(P),
        ),
        labels,
        penalised,
    )
    found = found.clone()
    for _ in range(NEWTON_STEPS):
        # g = C sum_i (p_i - y_i) x_i + W
        p = left.log_p.exp()  # [N, P, K]
        off = (p - member[:, None]) * left.weight[..., None]  # [N, P, K]
        g = _product(x.mT, off) + penalised * left.w  # [D+1, P, K]
        going = ~(g.abs().amax((0, 2)) <= tolerance)  # [P] also where it is not a number
        found[:, left.which[~going]] = left.w[:, ~going]
        if not going.any():
            return Regressions(found, present)
        if not going.all():
            left, p, g = left.only(going), p[:, going], g[:, going]
        left = _descend(left, x, labels, penalised, _direction(x, p, left.weight, penalised, g), g)
    raise WanderError(
        f"{len(left.which)} logistic regressions did not converge in {NEWTON_STEPS} steps. "
        "Very large features are the usual reason: scale them down."
    )


def _direction(
    x: Float[Tensor, "N D1"],
    p: Float[Tensor, "N P K"],
    weight: Float[Tensor, "N P"],
    penalised: Float[Tensor, "D1 1 1"],
    g: Float[Tensor, "D1 P K"],
) -> Float[Tensor, "D1 P K"]:
    """Newton's direction of every problem: conjugate gradients, preconditioned by the diagonal of H."""
    # Where every p is nearly 0 or 1 the intercept has no curvature: without some, v would be without bounds.
    damping = DAMPING * g.abs().amax((0, 2)).clamp_max(1)[:, None]  # [P, 1] vanishes with the gradient
    ridge = torch.where(penalised > 0, penalised, damping)  # [D+1, P, 1]
    x, p, weight, ridge, g = (part.float() for part in (x, p, weight, ridge, g))
    wp = p * weight[..., None]  # [N, P, K]
    diagonal = _product(x.square().mT, wp * (1 - p)) + ridge  # [D+1, P, K]
    v, r = torch.zeros_like(g), -g
    d = z = r / diagonal
    rz = first = (r * z).sum((0, 2))  # [P]
    enough = first * first.sqrt().clamp(max=EXACTNESS**2)
    for _ in range(DIRECTION_STEPS):
        # H d = C sum_i (diag(p_i) - p_i p_i^T) (d x_i) x_i^T + d
        dx = _product(x, d)  # [N, P, K]
        hd = _product(x.mT, wp * (dx - (p * dx).sum(-1, keepdim=True))) + ridge * d
        step = _ratio(rz, (d * hd).sum((0, 2)))[:, None]
        v, r = v + step * d, r - step * hd
        z = r / diagonal
        rz, before = (r * z).sum((0, 2)), rz
        if bool((rz <= enough).all()):
            break
        d = z + _ratio(rz, before)[:, None] * d
    return v.double()


def _descend(
    at: _Problems,
    x: Float[Tensor, "N D1"],
    labels: Int[Tensor, " N"],
    penalised: Float[Tensor, "D1 1 1"],
    v: Float[Tensor, "D1 P K"],
    g: Float[Tensor, "D1 P K"],
) -> _Problems:
    """Go along v: the whole way, or half of it, or a quarter, until the objective falls (Armijo)."""
    slope, vx = (g * v).sum((0, 2)), _product(x, v)  # [P], [N, P, K]
    length = torch.ones_like(slope)
    for _ in range(HALVINGS):
        there = _at(
            at._replace(w=at.w + length[:, None] * v, logits=at.logits + length[:, None] * vx),
            labels,
            penalised,
        )
        rounding = 1e-12 * (1 + at.value.abs())
        fell = there.value <= at.value + 1e-4 * length * slope + rounding
        if fell.all():
            break
        length = torch.where(fell, length, length / 2)
    return there


def _at(problems: _Problems, labels: Int[Tensor, " N"], penalised: Float[Tensor, "D1 1 1"]) -> _Problems:
    """Log-probabilities and objective at the weights `w`."""
    log_p = problems.logits.masked_fill(~problems.present, ABSENT).log_softmax(-1)  # [N, P, K]
    of_label = labels[:, None, None].expand(-1, log_p.shape[1], 1)  # [N, P, 1]
    loss = -(problems.weight * log_p.gather(-1, of_label)[..., 0]).sum(0)  # [P]
    return problems._replace(log_p=log_p, value=loss + (penalised * problems.w.square()).sum((0, 2)) / 2)


def _product(a: Float[Tensor, "R C"], b: Float[Tensor, "C P K"]) -> Float[Tensor, "R P K"]:
    return (a @ b.reshape(len(b), -1)).reshape(len(a), *b.shape[1:])


def _ratio(a: Float[Tensor, " P"], b: Float[Tensor, " P"]) -> Float[Tensor, " P"]:
    """a / b, and 0 where a problem is solved already and both have vanished."""
    return torch.where(b > 0, a / b.clamp_min(1e-38), 0)


def _with_one(x: Float[Tensor, "N D"]) -> Float[Tensor, "N D1"]:
    return F.pad(x, (0, 1), value=1.0)
