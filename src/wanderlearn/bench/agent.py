"""What one meeting of a live agent costs: `look` and `tell`, as a user calls them."""

from collections.abc import Callable
from itertools import cycle
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from wanderlearn.agent import Agent
from wanderlearn.bench.measure import interleaved, median_ratio, repeated
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.encoders import Conv4
from wanderlearn.learners.wayfarer import WayfarerConfig
from wanderlearn.model import LearnerConfig, ModelConfig, build

__all__ = ["bench_agent", "knowing"]


def bench_agent(
    *, classes: int = 50, many: int = 100_000, meetings: int = 20, few: int = 3, rounds: int = 21
) -> dict[str, Any]:
    """A CPM agent that meets pictures of the size it was trained on, on one thread.

    `meeting_over_encoder`: look and tell, with a label, at `classes` classes, over the encoder alone on one
    picture, as every benchmark here runs it (`model.encoder(picture)`). `meeting_over_frozen_encoder`: over
    the same encoder with its BatchNorm folded into its weights beforehand, as the agent runs it.
    `ms_at_100000_classes`: look and tell with a label at `many` classes; `unlabelled_ms_...`: without one,
    which writes to every prototype. `copy_ms_...`: what every 32nd change takes in addition, for undoing.
    `wayfarer`: the same meetings of a Wayfarer whose window is full.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        figures = _at_few(CPMConfig(), classes, classes, meetings, rounds)
        figures |= _at_many(many, few, rounds)
        wayfarer = WayfarerConfig()
        figures["wayfarer"] = _at_few(wayfarer, classes, max(classes, wayfarer.window), meetings, rounds)
        return figures | {"classes": classes}
    finally:
        torch.set_num_threads(threads)


def _at_few(learner: LearnerConfig, classes: int, met: int, meetings: int, rounds: int) -> dict[str, Any]:
    """Meetings at `classes` classes, after `met` of them."""
    torch.manual_seed(0)
    model = build(ModelConfig(learner=learner)).eval()
    assert isinstance(model.encoder, Conv4)
    random = np.random.default_rng(0)
    picture = random.integers(0, 256, (28, 28), dtype=np.uint8)
    image = torch.from_numpy(picture)[None, None] / 127.5 - 1  # [1, 1, 28, 28]
    frozen, agent = model.encoder.frozen(), Agent(model)
    for n in range(met):
        agent.tell(agent.look(random.integers(0, 256, (28, 28), dtype=np.uint8)), n % classes)

    def encoder() -> None:
        with torch.inference_mode():
            model.encoder(image)

    def folded() -> None:
        with torch.inference_mode():
            frozen(image)

    work: dict[str, Callable[[], object]] = {
        "encoder": repeated(encoder, meetings),
        "frozen": repeated(folded, meetings),
        "look": repeated(lambda: agent.look(picture), meetings),
        "meeting": repeated(_meeting(agent, picture, classes), meetings),
    }
    seconds = interleaved(work, rounds)
    return {
        "meeting_over_encoder": median_ratio(seconds["meeting"], seconds["encoder"]),
        "meeting_over_frozen_encoder": median_ratio(seconds["meeting"], seconds["frozen"]),
        "meeting_seconds": median(seconds["meeting"]) / meetings,
        "look_seconds": median(seconds["look"]) / meetings,
        "encoder_seconds": median(seconds["encoder"]) / meetings,
        "frozen_encoder_seconds": median(seconds["frozen"]) / meetings,
    }


def _at_many(many: int, few: int, rounds: int) -> dict[str, Any]:
    """Meetings of a CPM agent at `many` classes."""
    torch.manual_seed(0)
    crowded = knowing(Agent(build(ModelConfig(learner=CPMConfig())).eval()), many)
    picture = np.random.default_rng(0).integers(0, 256, (28, 28), dtype=np.uint8)
    work: dict[str, Callable[[], object]] = {
        "told": repeated(_meeting(crowded, picture, many), few),
        "untold": repeated(_meeting(crowded, picture, many, told=False), few),
        "copy": repeated(lambda: (crowded._life.memory.copy(), crowded._life.names.copy()), 1),
    }
    seconds = interleaved(work, rounds)
    return {
        "ms_at_100000_classes": 1e3 * median(seconds["told"]) / few,
        "unlabelled_ms_at_100000_classes": 1e3 * median(seconds["untold"]) / few,
        "copy_ms_at_100000_classes": 1e3 * median(seconds["copy"]),
    }


def _meeting(
    agent: Agent, picture: npt.NDArray[np.uint8], classes: int, told: bool = True
) -> Callable[[], None]:
    """Look and tell, another label every time."""
    labels = cycle(range(classes))

    def run() -> None:
        agent.tell(agent.look(picture), next(labels) if told else None)

    return run


def knowing(agent: Agent, classes: int) -> Agent:
    """The agent after it has been told so many classes. Each is a random prototype, as told just now."""
    life = agent._life
    arrays = life.memory.arrays()
    random = np.random.default_rng(0)
    arrays["rows"] = random.standard_normal((classes, arrays["rows"].shape[1]), dtype=np.float32)
    arrays |= {"counts": np.ones(classes, np.float32), "factor": np.ones(classes, np.float32)}
    gate = agent.model.get_submodule("learner.memory.gate").get_parameter("weight").detach().numpy()[0]
    arrays["pull"] = arrays["rows"] @ gate[arrays["rows"].shape[1] :]
    life.memory.restore(arrays, classes)
    for label in range(classes):
        life.names.open(label)
    agent._life = type(life)(life.memory, life.names)
    return agent
