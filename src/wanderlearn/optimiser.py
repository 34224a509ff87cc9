"""One training step, the same for every stage: gradient, cap, Adam or Muon, a stop when numbers go wrong."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite, nan
from typing import Final, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from wanderlearn.muon import Muon

__all__ = ["Backward", "DivergedError", "Optimiser", "Trained", "trained"]


# Fewer directions than this are all steep: the first layer sees colours, not features.
FEW: Final = 8


# Puts the gradients of a loss into these parameters. False: they are no numbers, the step is to be left out.
Backward = Callable[[Tensor, Sequence[nn.Parameter]], bool]


class DivergedError(Exception):
    """The loss or the gradient is no longer a number. Nothing was changed by this step."""


class Trained(NamedTuple):
    """One tensor to train."""

    name: str
    tensor: nn.Parameter
    rate: float  # multiplies the learning rate
    muon: float = 0.0  # the size of Muon's steps; 0: it is Adam's


class _Config(Protocol):
    """What an optimiser needs to know of a stage's config."""

    @property
    def lr(self) -> float: ...
    @property
    def weight_decay(self) -> float: ...
    @property
    def clip(self) -> float: ...
    @property
    def adam_eps(self) -> float: ...


def trained(module: nn.Module, prefix: str, rate: float = 1.0, muon: float = 0.0) -> list[Trained]:
    """All parameters of a module, with names that are unique across modules of different prefixes.

    With `muon`, the size of its steps, matrices and kernels of many directions are Muon's.
    """
    return [
        Trained(f"{prefix}.{name}", tensor, rate, muon * rate * _has_many_directions(tensor))
        for name, tensor in module.named_parameters()
    ]


def _has_many_directions(tensor: Tensor) -> bool:
    return tensor.ndim in (2, 4) and min(tensor.shape[:2]) >= FEW


class Optimiser:
    """Adam, with L2 decay on weights only: matrices and kernels, never biases, norms, thresholds or scales.

    The decay is a part of the gradient, d(wd/2 |w|^2)/dw = wd w, added after the gradient's norm was capped.
    What is Muon's has no decay.
    """

    def __init__(self, tensors: Iterable[Trained], config: _Config, backward: Backward | None = None) -> None:
        self._backward = backward or _backward
        self._named = {each.name: each.tensor for each in tensors if each.tensor.requires_grad}
        self._parameters = list(self._named.values())
        self._config = config
        other = {each.name: each for each in tensors if each.muon and each.tensor.requires_grad}
        self._muon = Muon(
            {name: each.tensor for name, each in other.items()},
            {name: each.muon for name, each in other.items()},
        )
        groups: dict[tuple[float, bool], list[nn.Parameter]] = {}
        for each in tensors:
            if each.tensor.requires_grad and not each.muon:
                groups.setdefault((each.rate, each.tensor.ndim > 1), []).append(each.tensor)
        self._rates = [rate for rate, _ in groups]
        self._adam = torch.optim.Adam(
            [
                {"params": parameters, "weight_decay": config.weight_decay if is_weight else 0.0}
                for (_, is_weight), parameters in groups.items()
            ],
            lr=config.lr,
            eps=config.adam_eps,
            fused=True,
        )

    def step(self, loss: Tensor, factor: float) -> float:
        """One step down the loss at `factor` times the learning rate; gives the gradient's norm, uncapped.

        Not a number, if the step was left out because half precision could not hold the gradient.
        """
        if not isfinite(float(loss.detach())):
            raise DivergedError(f"the loss is {float(loss.detach())}")
        for parameter in self._parameters:
            parameter.grad = None
        if not self._backward(loss, self._parameters):
            return nan
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        total = nn.utils.get_total_norm(gradients)
        norm = float(total)
        if not isfinite(norm):
            raise DivergedError(f"the norm of the gradient is {norm}")
        if self._config.clip:
            nn.utils.clip_grads_with_norm_(self._parameters, self._config.clip, total)
        for group, rate in zip(self._adam.param_groups, self._rates, strict=True):
            group["lr"] = self._config.lr * rate * factor
        self._adam.step()
        self._muon.step(factor)
        return norm

    def state(self) -> dict[str, Tensor]:
        """All that Adam and Muon remember, as named tensors."""
        adam = {
            f"adam.{entry}.{name}": self._adam.state[tensor][entry]
            for name, tensor in self._named.items()
            if name not in self._muon.momentum
            for entry in self._adam.state[tensor]
        }
        return adam | {f"muon.momentum.{name}": tensor for name, tensor in self._muon.momentum.items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Remember what `state` gave."""
        for key, value in state.items():
            of, entry, name = key.split(".", 2) if key.count(".") > 1 else ("", "", "")
            if of == "muon":
                self._muon.momentum[name].copy_(value)
            if of != "adam":
                continue
            parameter = self._named[name]
            # In the parameter's own memory layout, which the fused kernel takes for granted.
            kept = value.clone() if entry == "step" else torch.empty_like(parameter).copy_(value)
            self._adam.state[parameter][entry] = kept.detach().to(parameter.device)


def _backward(loss: Tensor, parameters: Sequence[nn.Parameter]) -> bool:
    loss.backward()  # type: ignore[no-untyped-call]
    return True
