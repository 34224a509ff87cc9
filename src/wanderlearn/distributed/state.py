"""Where a run stands, brought from the first process to all others: they need not see its files."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from wanderlearn.distributed.group import Group

__all__ = ["spread_state"]


def spread_state(
    group: Group, about: Any, own: Iterable[Tensor], beside: Mapping[str, Tensor]
) -> tuple[Any, dict[str, Tensor]]:
    """What the first process says in `about`, and its `beside`; the tensors of `own` are filled in place."""
    shapes = {name: [str(t.dtype).removeprefix("torch."), *t.shape] for name, t in beside.items()}
    about, shapes = group.from_first([about, shapes])
    if not group.first:
        beside = {
            name: torch.empty(shape, dtype=getattr(torch, kind)) for name, (kind, *shape) in shapes.items()
        }
    for tensor in (*own, *beside.values()):
        group.spread(tensor)
    return about, dict(beside)
