"""One sequence with what a learner said at every meeting (the paper's Figure 2A, with answers)."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image
from torch import nn

from wanderlearn.evaluate import gather
from wanderlearn.figures.style import check_name, save_sheet
from wanderlearn.metrics.record import Bools, Floats, Ints
from wanderlearn.report.sequences import sequence_sheet
from wanderlearn.worlds.roaming import Roaming
from wanderlearn.worlds.sequence import Meetings
from wanderlearn.worlds.world import World

__all__ = ["Said", "draw_answers", "said"]

ACROSS = 14  # meetings in a row: with their numbers still readable on a page


class Said(NamedTuple):
    """What a learner said to one sequence, [T] each."""

    answer: Ints  # slot, or NEW
    novelty: Floats  # logit; above 0 the answer is NEW
    right: Bools


def said(model: nn.Module, world: World, m: Meetings) -> Said:
    """The answers of a model to one sequence."""
    record = gather(model, world, [m])
    return Said(record.answer[0], record.novelty[0], record.right[0])


def draw_answers(path: Path, name: str, world: Roaming, m: Meetings, found: Said) -> None:
    """Every meeting as the learner saw it, its mistakes marked. In an SVG or PDF the pixels are embedded."""
    check_name(path)
    title = (
        f"{name} on {world.pictures.name}, sequence {m.index}: {int(found.right.sum())} of {len(m)} answers "
        f"right, {m.truth.max() + 1} classes, {m.environment.max() + 1} environments"
    )
    answer = np.asarray(found.answer, dtype=np.int64)
    sheet = sequence_sheet(world, [m], [answer], across=ACROSS, titles=[title])
    save_sheet(path, sheet, 128, Image.Dither.NONE)  # a few colours and the greys of the pictures
