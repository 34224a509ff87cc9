"""Does an exported graph say what the learner says? Both live through the same random meetings."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from wanderlearn.learners.answer import Answers
from wanderlearn.model import Model
from wanderlearn.worlds.sequence import UNLABELED

__all__ = ["TOLERANCE", "Life", "Runner", "difference", "largest_difference", "random_life"]

TOLERANCE: Final = 1e-4  # relative above 1, absolute below
MEETINGS: Final = 30
TOLD: Final = 0.6  # share of meetings that are told a label

Array = npt.NDArray[Any]


class Life(NamedTuple):
    """What is met, and what is told of it."""

    images: npt.NDArray[np.float32]  # [T, B, C, H, W] from -1 to 1
    given: npt.NDArray[np.int64]  # [T, B]


class Runner:
    """The two graphs in onnxruntime, on one thread."""

    def __init__(self, step: bytes, begin: bytes) -> None:
        import onnxruntime  # type: ignore[import-untyped]

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        providers = ["CPUExecutionProvider"]
        self._step = onnxruntime.InferenceSession(step, options, providers=providers)
        self._begin = onnxruntime.InferenceSession(begin, options, providers=providers)
        self._names = [each.name for each in self._step.get_inputs()][2:]

    def begin(self, rows: int) -> dict[str, Array]:
        """The state before the first meeting, by name."""
        found = self._begin.run(None, {"batch": np.array([rows], dtype=np.int64)})
        return dict(zip([each.name for each in self._begin.get_outputs()], found, strict=True))

    def step(
        self, image: npt.NDArray[np.float32], given: npt.NDArray[np.int64], state: Mapping[str, Array]
    ) -> tuple[Array, Array, dict[str, Array]]:
        """One meeting: scores, novelty, and the next state."""
        scores, novelty, *after = self._step.run(None, {"image": image, "given": given, **state})
        return scores, novelty, dict(zip(self._names, after, strict=True))


def random_life(
    model: Model, slots: int, rows: int, seed: int, meetings: int = MEETINGS, told: float = TOLD
) -> Life:
    """Blurred blobs, each class its own, with noise: enough for scores that differ."""
    random = np.random.default_rng(seed)
    config, classes = model.config.encoder, min(slots, max(2, meetings // 4))
    shape = (config.in_channels, config.image_size, config.image_size)
    centres = random.normal(size=(classes, *shape))
    for axis in (-1, -2):
        centres = centres + np.roll(centres, 1, axis) + np.roll(centres, 2, axis)
    truth = random.integers(classes, size=(meetings, rows))
    images = np.tanh(centres[truth] + 0.5 * random.normal(size=(meetings, rows, *shape)))
    named = random.random((meetings, rows)) < told
    given = np.where(named, truth, UNLABELED).astype(np.int64)
    return Life(images.astype(np.float32), given)


def largest_difference(model: Model, runner: Runner, slots: int, lives: Mapping[int, Life]) -> float:
    """Of all answers to all lives, by the number of rows, between the graph and the learner itself."""
    worst = 0.0
    for rows, life in lives.items():
        theirs: Any = model.learner.begin(rows, slots)  # type: ignore[operator]
        ours = runner.begin(rows)
        for image, given in zip(*life, strict=True):
            with torch.inference_mode():
                feature = model.encoder(torch.from_numpy(image))
                answer, theirs = model.learner.step(theirs, feature, torch.from_numpy(given))  # type: ignore[operator]
            scores, novelty, ours = runner.step(image, given, ours)
            worst = max(worst, difference(answer, scores, novelty))
    return worst


def difference(expected: Answers, scores: Array, novelty: Array) -> float:
    """The largest, relative above 1 and absolute below; infinite where something is not a number."""
    worst = 0.0
    for right, found in ((expected.scores.numpy(), scores), (expected.novelty.numpy(), novelty)):
        if right.shape != found.shape:
            return float("inf")
        gap = np.abs(right - found) / np.maximum(np.abs(right), 1)
        worst = max(worst, float(np.nan_to_num(gap, nan=np.inf).max(initial=0)))
    return worst
