"""How much faster two processes of one thread train than one, on the same batch; and why not twice."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from statistics import median
from typing import Any, Final

import torch

from wanderlearn.bench.measure import median_ratio, noise_pictures
from wanderlearn.distributed import ALONE, Group, joined
from wanderlearn.distributed.compute import Compute
from wanderlearn.distributed.exchange import GroupBackward
from wanderlearn.errors import WanderError
from wanderlearn.model import build
from wanderlearn.optimiser import Optimiser
from wanderlearn.pictures.collection import Pictures
from wanderlearn.presets import PRESETS
from wanderlearn.sequence_training import SequenceTraining
from wanderlearn.workers import worker
from wanderlearn.worlds import Roaming, RoamingConfig

__all__ = ["bench_distributed", "serve"]

PROCESSES: Final = 2
EXCHANGES: Final = 5  # of gradients, timed together: one is short
WORK: Final = ("alone", "part", "exchange", "together")
Task = dict[str, Any]


def bench_distributed(
    *, batch_size: int = 16, rounds: int = 7, small: bool = False, work: tuple[str, ...] = WORK
) -> dict[str, Any]:
    """Training steps of a CPM of the paper's size, all labels, from sampling to optimiser.

    `speedup`: the time of one process of one thread over that of two together, for the same batch, taken in
    turns. `part_seconds` is one process alone with the first one's share of the batch, `exchange_seconds`
    the sum of gradients over both; `predicted_speedup` is what these two would allow if the cores did not get
    into each other's way. `small` is for trying it out: few pictures, short sequences.
    """
    task = {"batch_size": batch_size, "small": small}
    seconds: dict[str, list[float]] = {name: [] for name in work}
    with _group(task) as ask:
        about = ask({"do": "about"})[0]
        for n in range(rounds + 1):  # the first is for warming up
            for name in work:
                took = max(said["seconds"] for said in ask({"do": name, "step": n}))
                if n > 0:
                    seconds[name].append(took)
    each = {name: median(taken) for name, taken in seconds.items()}
    return {
        "speedup": median_ratio(seconds["alone"], seconds["together"]),
        "efficiency": median_ratio(seconds["alone"], seconds["together"]) / PROCESSES,
        "predicted_speedup": each["alone"] / (each["part"] + each["exchange"]),
        "processes": PROCESSES,
        "seconds": each["alone"],
        "seconds_together": each["together"],
        "part_seconds": each["part"],
        "exchange_seconds": each["exchange"],
        "exchange_bytes": about["bytes"],
        "parameters": about["parameters"],
        "sequences_per_second": batch_size / each["together"],
        "batch_size": batch_size,
        "rounds": rounds,
    }


@contextmanager
def _group(task: Task) -> Iterator[Callable[[Task], list[Task]]]:
    """Two processes that wait for something to do; what is yielded gives all the same and hears them all."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ExitStack() as stack:
        processes = [stack.enter_context(worker("wanderlearn.bench.distributed")) for _ in range(PROCESSES)]
        for rank, process in enumerate(processes):
            _write(process, task | {"rank": rank, "port": port})

        def ask(what: Task) -> list[Task]:
            for process in processes:
                _write(process, what)
            return [_read(process) for process in processes]

        yield ask


def _write(process: "subprocess.Popen[str]", line: Task) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(line) + "\n")
    process.stdin.flush()


def _read(process: "subprocess.Popen[str]") -> Task:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise WanderError(
            f"A process of the benchmark has ended (code {process.wait()}): see what it said above."
        )
    said: Task = json.loads(line)
    return said


def serve() -> None:
    """One of the two processes: does what it is asked, line by line, and tells how long it took."""
    torch.set_num_threads(1)
    task = json.loads(sys.stdin.readline())
    os.environ |= {
        "RANK": str(task["rank"]),
        "LOCAL_RANK": str(task["rank"]),
        "WORLD_SIZE": str(PROCESSES),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(task["port"]),
    }
    with joined() as group:
        work = _Work(group, task)
        for line in sys.stdin:
            asked = json.loads(line)
            print(json.dumps(work.done(asked["do"], asked.get("step", 0))), flush=True)
        os._exit(0)  # whoever asked is gone, and so is the other


class _Work:
    """The same training three times over: together, alone on the whole batch, alone on a share of it."""

    def __init__(self, group: Group, task: Task) -> None:
        self.group, size = group, task["batch_size"]
        pictures, roaming = _world(task["small"])
        world = Roaming(pictures, roaming)
        self.together = _Steps(world, size, group)
        if group.first:
            self.alone = _Steps(world, size, ALONE)
            self.part = _Steps(world, len(group.share(size)), ALONE)

    def done(self, what: str, step: int) -> Task:
        if what == "about":
            return {"bytes": self.together.bytes, "parameters": self.together.parameters}
        if what in ("alone", "part"):  # the other one sits still
            return {"seconds": _timed(lambda: getattr(self, what).take(step)) if self.group.first else 0.0}
        self.group.barrier()
        if what == "exchange":
            return {"seconds": _timed(lambda: self.together.exchange(EXCHANGES)) / EXCHANGES}
        return {"seconds": _timed(lambda: self.together.take(step))}


class _Steps:
    """Steps of `wander train`, by one group."""

    def __init__(self, world: Roaming, batch_size: int, group: Group) -> None:
        torch.manual_seed(0)
        preset = PRESETS["cpm-omniglot"]
        model, compute = build(preset.model).train(), Compute(group)
        config = replace(preset.train, batch_size=batch_size, steps=1, workers=0)
        self.stage = SequenceTraining(model, world, config, compute)
        tensors = self.stage.tensors()
        self.all = [each.tensor for each in tensors if each.tensor.requires_grad]
        self.backward = GroupBackward(compute, model.encoder.buffers(), batch_size)
        self.optimiser = Optimiser(tensors, config, self.backward)
        self.parameters = sum(tensor.numel() for tensor in self.all)
        self.bytes = self.backward.exchange.bytes(self.all) if self.backward.exchange else 0

    def take(self, step: int) -> None:
        self.optimiser.step(self.stage.losses(step)["loss"], 1.0)

    def exchange(self, times: int) -> None:
        assert self.backward.exchange is not None
        for _ in range(times):
            self.backward.exchange(self.all)


def _world(small: bool) -> tuple[Pictures, RoamingConfig]:
    if not small:
        return noise_pictures(), RoamingConfig()
    few = noise_pictures(families=6, classes=60, per_class=8)
    return few, RoamingConfig(environments=2, classes=8, length=16, per_class=4)


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
