"""A look inside a learner: the features its memory works with, and what CPM's RNN makes of a meeting."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from wanderlearn.learners.cpm import CPM
from wanderlearn.metrics.record import Bools, Floats
from wanderlearn.model import Model
from wanderlearn.progress import bar
from wanderlearn.worlds.sequence import UNLABELED, Meetings
from wanderlearn.worlds.world import World

__all__ = ["Inside", "by_cosine", "look_inside"]


class Inside(NamedTuple):
    """What was going on at every meeting of B sequences padded to T."""

    h: Floats  # [B, T, D] the encoder's feature
    f: Floats  # [B, T, D] what is compared with the memory: h, for CPM the feature in its context
    h_rnn: Floats | None  # [B, T, D] what the context adds (CPM with a context)
    beta: Floats | None  # [B, T, 2] thresholds of reading and of writing (CPM)
    gamma: Floats | None  # [B, T, 2] their slopes (CPM)
    valid: Bools  # [B, T]


def look_inside(model: Model, world: World, meetings: Sequence[Meetings], batch_size: int = 16) -> Inside:
    """Run a model that is in evaluation mode over sequences, and keep what it had in mind."""
    longest = max(map(len, meetings))
    parts: list[Any] = []
    with bar("looking inside", len(meetings), shown=len(meetings) > batch_size) as shown:
        for start in range(0, len(meetings), batch_size):
            some = meetings[start : start + batch_size]
            parts.append(_look(model, world, some, longest))
            shown.advance(len(some))
    joined: list[Any] = [None if c[0] is None else np.concatenate(c) for c in zip(*parts, strict=True)]
    return Inside(*joined)


@torch.inference_mode()
def _look(model: Model, world: World, meetings: Sequence[Meetings], longest: int) -> Inside:
    batch = world.batch(meetings)
    found: Tensor = model.encoder(batch.pictures)  # [N, D]
    h = found.new_zeros(*batch.valid.shape, found.shape[-1]).index_put((batch.valid,), found)  # [B, T, D]

    def array(tensor: Tensor) -> Any:  # padded to the longest of all sequences
        padding = [(0, 0), (0, longest - tensor.shape[1]), (0, 0)][: tensor.dim()]
        return np.pad(tensor.cpu().numpy(), padding)

    learner = model.learner
    if not isinstance(learner, CPM):
        return Inside(array(h), array(h), None, None, None, array(batch.valid))
    advances = None if learner.config.recurrent_on_unlabelled else batch.given != UNLABELED
    output = learner.lstm(h, advances)  # [B, T, n]
    f, _, thresholds = learner.controls(h, output)
    width = learner.widths[0]  # 0 without a context
    h_rnn = learner.readout(output)[..., :width]  # [B, T, D]
    return Inside(
        h=array(h),
        f=array(f),
        h_rnn=array(h_rnn) if width else None,
        beta=array(torch.stack((thresholds.beta, thresholds.beta_write), -1)),
        gamma=array(torch.stack((thresholds.gamma, thresholds.gamma_write), -1)),
        valid=array(batch.valid),
    )


def by_cosine(model: Model) -> bool:
    """Whether the learner compares features by their direction alone."""
    return getattr(model.config.learner, "similarity", None) == "cosine"
