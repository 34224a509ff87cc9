"""The raw answers of an evaluation in a file, so that two learners can be compared sequence by sequence."""

import json
import math
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from wanderlearn.errors import WanderError
from wanderlearn.files import writing
from wanderlearn.metrics import BINS, Record, ap, ap_joint, forgotten, paired_bootstrap, shot_accuracy

__all__ = ["LONG_AGO", "METRICS", "SavedAnswers", "compare", "read_answers", "write_answers"]

FORMAT: Final = 1
# What is stored, and how small; only answers are floating-point numbers.
COLUMNS: Final = {
    "novelty": np.float64,
    "predicted": np.int16,
    "confidence": np.float64,
    "target": np.int16,
    "truth": np.int16,
    "given": np.int16,
    "valid": np.bool_,
}


def _shots(n: int) -> Callable[[Record], float]:
    return lambda record: shot_accuracy(record)[n - 1].mean


def _long_ago(shots: int) -> Callable[[Record], float]:
    return lambda record: forgotten(record, *BINS[-1], shots).accuracy


LONG_AGO: Final = {f"{shots}-shot, {BINS[-1][0]}-{BINS[-1][1]}": _long_ago(shots) for shots in (1, 3)}
"""How well what was told so often is named, where it was last met as long ago as the last bin says."""
METRICS: Final[dict[str, Callable[[Record], float]]] = {
    "ap": ap,
    "ap_joint": ap_joint,
    "1-shot": _shots(1),
    "3-shot": _shots(3),
} | LONG_AGO


@dataclass(frozen=True, eq=False)
class SavedAnswers:
    """What a learner answered to the sequences of one manifest."""

    manifest_sha256: str
    name: str  # whose answers these are, for a reader
    record: Record


def write_answers(path: Path, answers: SavedAnswers) -> None:
    """Write answers as a zip of plain arrays (no pickle), atomically; AP can be counted from it again."""
    header = json.dumps(
        {"format": FORMAT, "manifest_sha256": answers.manifest_sha256, "name": answers.name}
    ).encode()
    columns = {name: getattr(answers.record, name).astype(kind) for name, kind in COLUMNS.items()}
    with writing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, header=np.frombuffer(header, dtype=np.uint8), **columns)


def read_answers(path: Path) -> SavedAnswers:
    """Read answers that `wander evaluate --answers` wrote."""
    try:
        with path.open("rb") as whole, np.load(whole, allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            columns = {name: file[name] for name in COLUMNS}
        if header["format"] != FORMAT:
            raise WanderError(f"{path} has answers format {header['format']}; this version reads {FORMAT}.")
        return SavedAnswers(header["manifest_sha256"], header["name"], Record(**columns))
    except FileNotFoundError as error:
        raise WanderError(f"There are no answers at {path}.") from error
    except (OSError, EOFError, ValueError, TypeError, KeyError, zipfile.BadZipFile) as error:
        raise WanderError(
            f"{path} does not hold whole answers ({error}). Write them with `wander evaluate --answers`."
        ) from error


def compare(
    first: SavedAnswers | Sequence[SavedAnswers],
    second: SavedAnswers | Sequence[SavedAnswers],
    metric: str = "ap",
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """By how many percentage points the first is better than the second, with the 95 % interval.

    A paired bootstrap over sequences, so both must have answered the same manifest. `metric` is one of
    METRICS. What cannot be measured is None, with the reason beside it. Several answers of each, of as many
    trainings, are compared by their means.
    """
    ours, theirs = ([x] if isinstance(x, SavedAnswers) else list(x) for x in (first, second))
    one = ours[0]
    for other in [*ours[1:], *theirs]:
        if one.manifest_sha256 != other.manifest_sha256:
            raise WanderError(
                f"These answers are to different sequences: {one.name} met manifest "
                f"{one.manifest_sha256[:12]}, {other.name} met {other.manifest_sha256[:12]}. Evaluate both "
                "on one manifest: same world, split, number of sequences and seed."
            )
    if metric not in METRICS:
        raise WanderError(f"There is no metric {metric!r} to compare by. Choose one of {', '.join(METRICS)}.")
    measure = METRICS[metric]
    first_records, second_records = ([each.record for each in side] for side in (ours, theirs))
    found = paired_bootstrap(first_records, second_records, measure, resamples, seed)
    sides = (first_records, second_records)
    means = [math.fsum(measure(record) for record in side) / len(side) for side in sides]
    return {
        "metric": metric,
        "first": _percent(means[0]),
        "second": _percent(means[1]),
        "difference": _percent(found.value),
        "low": _percent(found.low),
        "high": _percent(found.high),
        "reason": found.reason,
        "against": theirs[0].name,
        "sequences": len(one.record),
        "resamples": resamples,
        "manifest_sha256": one.manifest_sha256,
    }


def _percent(fraction: float) -> float | None:
    return None if math.isnan(fraction) else 100 * fraction
