"""What one meeting of a live agent costs: `look` and `tell`, as a user calls them."""

from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import torch

from wanderlearn.agent import Agent
from wanderlearn.bench.measure import interleaved, median_ratio, repeated
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.encoders import Conv4
from wanderlearn.model import ModelConfig, build

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
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _measured(classes, many, meetings, few, rounds)
    finally:
        torch.set_num_threads(threads)


def _measured(classes: int, many: int, meetings: int, few: int, rounds: int) -> dict[str, Any]:
    torch.manual_seed(0)
    model = build(ModelConfig(learner=CPMConfig())).eval()
    assert isinstance(model.encoder, Conv4)
    random = np.random.default_rng(0)
    picture = random.integers(0, 256, (28, 28), dtype=np.uint8)
    image = torch.from_numpy(picture)[None, None] / 127.5 - 1  # [1, 1, 28, 28]
    frozen = model.encoder.frozen()
    agent, crowded = Agent(model), knowing(Agent(model), many)
    for k in range(classes):
        agent.tell(agent.look(random.integers(0, 256, (28, 28), dtype=np.uint8)), k)

    def encoder() -> None:
        with torch.inference_mode():
            model.encoder(image)

    def folded() -> None:
        with torch.inference_mode():
            frozen(image)

    met = 0

    def meeting(who: Agent, among: int, told: bool = True) -> Callable[[], None]:
        def run() -> None:
            nonlocal met
            met += 1
            who.tell(who.look(picture), met % among if told else None)

        return run

    small: dict[str, Callable[[], object]] = {
        "encoder": repeated(encoder, meetings),
        "frozen": repeated(folded, meetings),
        "look": repeated(lambda: agent.look(picture), meetings),
        "meeting": repeated(meeting(agent, classes), meetings),
    }
    seconds = interleaved(small, rounds)
    large: dict[str, Callable[[], object]] = {
        "told": repeated(meeting(crowded, many), few),
        "untold": repeated(meeting(crowded, many, told=False), few),
        "copy": repeated(lambda: (crowded._life.memory.copy(), crowded._life.names.copy()), 1),
    }
    slow = interleaved(large, rounds)
    return {
        "meeting_over_encoder": median_ratio(seconds["meeting"], seconds["encoder"]),
        "meeting_over_frozen_encoder": median_ratio(seconds["meeting"], seconds["frozen"]),
        "ms_at_100000_classes": 1e3 * median(slow["told"]) / few,
        "unlabelled_ms_at_100000_classes": 1e3 * median(slow["untold"]) / few,
        "copy_ms_at_100000_classes": 1e3 * median(slow["copy"]),
        "meeting_seconds": median(seconds["meeting"]) / meetings,
        "look_seconds": median(seconds["look"]) / meetings,
        "encoder_seconds": median(seconds["encoder"]) / meetings,
        "frozen_encoder_seconds": median(seconds["frozen"]) / meetings,
        "classes": classes,
    }


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
