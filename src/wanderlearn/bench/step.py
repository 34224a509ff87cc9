"""What one live meeting costs beside the encoder, and how that grows with the number of classes."""

from collections.abc import Callable, Sequence
from math import log
from statistics import median
from typing import Any

import torch

from wanderlearn.bench.measure import interleaved, median_ratio, repeated
from wanderlearn.learners.cpm import CPM, CPMConfig, CPMState
from wanderlearn.learners.encoders import Conv4, Conv4Config
from wanderlearn.learners.prototypes import Memory

__all__ = ["bench_step"]


def bench_step(
    *, classes: int = 50, growth: Sequence[int] = (50, 1000, 10000), meetings: int = 20, rounds: int = 21
) -> dict[str, Any]:
    """One meeting of a live CPM: encode one picture, answer, write what was told.

    `meeting_over_encoder`: its time with `classes` classes over that of the encoder alone on one picture.
    `growth`: seconds per meeting at so many classes. `growth_exponent`: how the learner's own part (without
    the encoder) grows between the two largest numbers of classes; 1 is linear.
    """
    torch.manual_seed(0)
    encoder, learner = Conv4(Conv4Config()).eval(), CPM(CPMConfig()).eval()
    picture, told = torch.rand(1, 1, 28, 28) * 2 - 1, torch.tensor([3])

    def meeting(state: CPMState) -> Callable[[], None]:
        def run() -> None:
            learner.step(state, encoder(picture), told)

        return repeated(run, meetings)

    def learning(state: CPMState) -> Callable[[], None]:
        feature = encoder(picture)
        return repeated(lambda: learner.step(state, feature, told), meetings)

    with torch.inference_mode():
        state_of = {k: _lived(learner, k) for k in sorted({classes, *growth})}
        work: dict[str, Callable[[], object]] = {"encoder": repeated(lambda: encoder(picture), meetings)}
        work |= {f"meeting {k}": meeting(state) for k, state in state_of.items()}
        work |= {f"learner {k}": learning(state) for k, state in state_of.items()}
        seconds = interleaved(work, rounds)
    each = {name: median(s) / meetings for name, s in seconds.items()}
    fewer, more = sorted(growth)[-2:]
    return {
        "meeting_over_encoder": median_ratio(seconds[f"meeting {classes}"], seconds["encoder"]),
        "meeting_seconds": each[f"meeting {classes}"],
        "encoder_seconds": each["encoder"],
        "classes": classes,
        "growth": {str(k): each[f"meeting {k}"] for k in growth},
        "growth_learner": {str(k): each[f"learner {k}"] for k in growth},
        "growth_exponent": log(each[f"learner {more}"] / each[f"learner {fewer}"]) / log(more / fewer),
    }


def _lived(learner: CPM, classes: int) -> CPMState:
    """A state in which every one of so many classes has been met and told."""
    state = learner.begin(1, classes)
    memory = state.memory
    return state._replace(memory=Memory(torch.randn_like(memory.prototypes), torch.ones_like(memory.counts)))
