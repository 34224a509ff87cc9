"""Tensors that pretend to be on another device, and let nobody mix them with those on the processor.

There is no GPU here. These tensors say that they are on the device `meta`, but hold real numbers, and refuse
what a GPU would refuse: an operation on tensors of two devices.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils import _pytree as tree
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE: Final = torch.device("meta")
CPU: Final = torch.device("cpu")
aten: Final = torch.ops.aten
# What may bring two devices together: copies, and indexing by what lies on the processor.
MAY_MIX: Final = (aten._to_copy, aten.to, aten.copy_, aten.index, aten.index_put_, aten.index_put)


class MixedDevicesError(Exception):
    """What torch says on a GPU: expected all tensors to be on the same device."""


class Elsewhere(Tensor):
    """A tensor of the processor that says it is elsewhere."""

    held: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Elsewhere":
        made = Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=DEVICE,
            requires_grad=inner.requires_grad,
        )
        made.held = inner
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return _run(func, args, kwargs or {})


class _Pretending(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


def pretending() -> AbstractContextManager[object]:
    """While this is on, what is made on the device `meta` has real numbers."""
    mode: AbstractContextManager[object] = _Pretending()  # type: ignore[no-untyped-call]
    return mode


def _run(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    given = [t for t in tree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
    away = [t for t in given if isinstance(t, Elsewhere)]
    here = [t for t in given if not isinstance(t, Elsewhere) and t.ndim > 0]
    if away and here and func.overloadpacket not in MAY_MIX:
        raise MixedDevicesError(f"{func}: {[(t.device, tuple(t.shape)) for t in given]}")
    wanted = kwargs.get("device")
    goes = bool(away) if wanted is None else torch.device(wanted) == DEVICE
    inner_args, inner_kwargs = tree.tree_map(_unwrapped, (tuple(args), dict(kwargs)))
    if goes and wanted is not None:
        inner_kwargs["device"] = CPU
    out = func(*inner_args, **inner_kwargs)
    if not goes:
        return out
    same = {id(t.held): t for t in away}  # what was changed in place is what was given
    return tree.tree_map(lambda t: _wrapped(t, same), out)


def _unwrapped(value: Any) -> Any:
    return value.held if isinstance(value, Elsewhere) else value


def _wrapped(value: Any, same: Mapping[int, Elsewhere]) -> Any:
    if not isinstance(value, Tensor):
        return value
    return same[id(value)] if id(value) in same else Elsewhere(value)
