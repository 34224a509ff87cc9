"""What all benchmarks share: pictures that need no download, interleaved timing, and what was measured on."""

import gc
import os
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import numpy as np
import torch

from wanderlearn._version import __version__
from wanderlearn.pictures.collection import Pictures, Split
from wanderlearn.results import commit

__all__ = ["interleaved", "measured_on", "median_ratio", "noise_pictures", "repeated"]


def noise_pictures(
    split: Split = "train", *, families: int = 31, classes: int = 3948, per_class: int = 20, size: int = 28
) -> Pictures:
    """Random pixels in as many families, classes and pictures as Omniglot's training split has.

    For speed it does not matter what the pictures show.
    """
    shape = (classes * per_class, 1, size, size)
    images = np.frombuffer(np.random.default_rng(0).bytes(int(np.prod(shape))), dtype=np.uint8).reshape(shape)
    return Pictures(
        name="noise",
        split=split,
        images=images,
        first=np.arange(0, classes * per_class + 1, per_class),
        family=np.sort(np.arange(classes) % families),
        class_names=[f"class{c}" for c in range(classes)],
        family_names=[f"family{f}" for f in range(families)],
    )


def interleaved(work: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every piece of work, once per round, the pieces taking turns.

    A machine that slows down for a while slows all pieces alike, so ratios within a round hold. One round
    of warming up is not counted.
    """
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for n in range(rounds + 1):
        gc.collect()
        gc.disable()  # so that nobody pays for another's garbage
        try:
            for name, function in work.items():
                start = time.perf_counter()
                function()
                if n > 0:
                    seconds[name].append(time.perf_counter() - start)
        finally:
            gc.enable()
    return seconds


def median_ratio(above: list[float], below: list[float]) -> float:
    """The median over rounds of the ratio within a round."""
    return median(a / b for a, b in zip(above, below, strict=True))


def repeated(function: Callable[[], object], times: int) -> Callable[[], None]:
    """The function `times` over, for work too short to be timed alone."""

    def run() -> None:
        for _ in range(times):
            function()

    return run


def measured_on() -> dict[str, Any]:
    """What a figure depends on beside the code: threads, cores, instruction set, torch."""
    return {
        "threads": torch.get_num_threads(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "version": __version__,
        "commit": commit(),
    }
