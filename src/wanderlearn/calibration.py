"""Accept or ask: from which confidence on a label may be taken without asking a person.

`Calibration.fit` looks at a stream where the truth is known and finds, for an error such as 2 %, the lowest
confidence from which on at most 2 % of the labels are wrong. Not just on that stream, which would be luck in
half of the cases: with probability 1 - delta in the long run over streams of the same kind.

How: the meetings of one sequence depend on each other, so the sequence is the unit. Let N be how many labels
of a sequence are accepted from a confidence on, and E how many of them are wrong. The error in the long run
is mean(E) / mean(N), and it is above a limit exactly when E - limit N is above 0 on average. A gambler who
begins with 1 and in every sequence stakes part of what he has on the opposite,

    capital <- capital * (1 + stake (limit N - E) / T),    T the length of a sequence, 0 < stake <= 1,

can never go below 0, and if the error is above the limit his capital is expected to stay at 1 at most. So it
ends above 1 / d with probability d at most (Markov), whatever the sequences are like: if it does, the error
is below the limit. Confidences are tried one after another, the surest first, until the gambler fails once,
so many tries cost nothing (fixed-sequence testing, as in "Learn then test", Angelopoulos et al. 2021).
Because the surest confidence of all may have too few meetings to win with, there are several places to begin,
and delta is shared among them. Stakes are mixed, which is again such a capital.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.files import digest_of, read_json, writing
from wanderlearn.metrics.record import Bools, Floats, Ints
from wanderlearn.shipped import FOLDER, shipped_weights

if TYPE_CHECKING:
    from wanderlearn.model import Model

__all__ = ["DELTA", "GRID", "LEVELS", "Calibration", "shipped_calibration"]

FORMAT: Final = 1
SHIPPED: Final = FOLDER / "calibration"
DELTA: Final = 0.05

# Confidences that are tried, evenly spaced in log-odds: 1.8 % to 99.999 %. Fixed before any data is seen.
GRID: Final = tuple(1 / (1 + math.exp(-tenth / 10)) for tenth in range(-40, 121))
BEGIN: Final = tuple(range(20, 101, 20))  # places in the grid: log-odds -2, 0, 2, 4, 6
# Errors that can be asked for (others are rounded down to one of these).
LEVELS: Final = tuple(
    n / 10000 for n in (*range(10, 100, 10), *range(100, 1000, 25), *range(1000, 5001, 500))
)
# A whole stake is best for long sequences, smaller ones for short sequences. {stake: its part of the 1}
STAKES: Final = {1.0: 0.5, 0.5: 0.25, 0.25: 0.125, 0.125: 0.125}
ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Calibration:
    """From which confidence on labels may be accepted, fitted on a stream where the truth is known."""

    accepted: tuple[int, ...]
    """How many labels have at least the confidence, for each of the grid."""
    wrong: tuple[int, ...]
    """How many of these are wrong."""
    lowest: tuple[int | None, ...]
    """For every error of the levels the place in the grid from which on it is kept, or None."""
    meetings: int
    sequences: int
    delta: float = DELTA
    """The promise may fail for one fitting stream in so many: 0.05 is one in twenty."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Where it comes from: weights and their SHA-256, world, split, seed and the like."""

    @classmethod
    def fit(
        cls,
        confidence: npt.ArrayLike,
        right: npt.ArrayLike,
        sequence: npt.ArrayLike | None = None,
        *,
        delta: float = DELTA,
        longest: int | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> Self:
        """Of flat arrays over meetings: the confidence of the named label, and whether that label was right.

        Where no label was named the confidence is 0. `sequence` says which sequence each meeting belongs to
        (any numbers). Without it every meeting counts as independent of all others, which meetings of one
        stream seldom are: give days or sessions. `longest` is how many meetings a sequence may have; default:
        as many as the longest here.
        """
        sure, good, owner = _checked(confidence, right, sequence)
        if not 0 < delta < 1:
            raise WanderError(f"delta must lie between 0 and 1, not {delta}.")
        lengths = np.bincount(owner) if len(owner) else np.zeros(0, np.int64)
        most = int(lengths.max(initial=1))
        if longest is not None and longest < most:
            raise WanderError(f"A sequence has {most} meetings, so the longest cannot have {longest}.")
        accepted, wrong, capital = _counted(sure, good, owner, len(lengths), longest or most)
        certain = capital >= math.log(len(BEGIN) / delta)  # [G, L]
        return cls(
            accepted=tuple(accepted.tolist()),
            wrong=tuple(wrong.tolist()),
            lowest=tuple(_lowest(certain[:, level]) for level in range(len(LEVELS))),
            meetings=len(sure),
            sequences=len(lengths),
            delta=delta,
            about=dict(about or {}),
        )

    def threshold(self, error: float) -> float | None:
        """The lowest confidence from which on accepting labels errs at most so often; None if there is none.

        `error` is a fraction, 0.02 for 2 %. With probability 1 - delta over the fitting stream, of all
        labels with at least this confidence no more than this fraction is wrong in the long run. None also
        says that the stream was too short to promise so little.
        """
        if not 0 <= error <= 1:
            raise WanderError(f"An error is a fraction between 0 and 1 (0.02 is 2 %), not {error}.")
        place = None
        for level, lowest in zip(LEVELS, self.lowest, strict=True):
            if level <= error + ROUNDING:
                place = lowest
        return None if place is None else GRID[place]

    def error_at(self, threshold: float) -> float:
        """How often accepted labels were wrong on the fitting stream; NaN where none was accepted."""
        place = self._place(threshold)
        if place is None or not self.accepted[place]:
            return math.nan
        return self.wrong[place] / self.accepted[place]

    def coverage_at(self, threshold: float) -> float:
        """The share of all meetings of the fitting stream whose label would have been accepted."""
        place = self._place(threshold)
        return 0.0 if place is None or not self.meetings else self.accepted[place] / self.meetings

    def _place(self, threshold: float) -> int | None:
        """The first place of the grid that is not below a confidence. (Labels are counted on the grid.)"""
        if math.isnan(threshold):
            raise WanderError("A threshold is a number, not NaN.")
        place = int(np.searchsorted(GRID, threshold - ROUNDING))
        return place if place < len(GRID) else None

    # Keeping -------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        return {
            "format": FORMAT,
            "kind": "calibration",
            "about": dict(self.about),
            "delta": self.delta,
            "sequences": self.sequences,
            "meetings": self.meetings,
            "accepted": list(self.accepted),
            "wrong": list(self.wrong),
            "lowest": list(self.lowest),
        }

    @classmethod
    def from_json(cls, value: Any, where: str = "The calibration") -> Self:
        """What `to_json` gave. Refuses what is broken or of another version."""
        if not isinstance(value, dict) or value.get("kind") != "calibration":
            raise WanderError(f"{where} is no calibration. Fit one with `wanderlearn.calibrate.calibrate`.")
        if value.get("format") != FORMAT:
            raise WanderError(
                f"{where} has format {value.get('format')}; this version reads {FORMAT}. Fit it again."
            )
        try:
            read = cls(
                accepted=tuple(int(n) for n in value["accepted"]),
                wrong=tuple(int(n) for n in value["wrong"]),
                lowest=tuple(None if n is None else int(n) for n in value["lowest"]),
                meetings=int(value["meetings"]),
                sequences=int(value["sequences"]),
                delta=float(value["delta"]),
                about=dict(value["about"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise WanderError(f"{where} is broken ({error!r}). Fit it again.") from error
        if problem := read._problem():
            raise WanderError(f"{where} is broken: {problem}. Fit it again.")
        return read

    def _problem(self) -> str | None:
        if len(self.accepted) != len(GRID) or len(self.wrong) != len(GRID) or len(self.lowest) != len(LEVELS):
            return "it has another number of confidences or errors"
        counts = [self.meetings, *self.accepted, 0]
        if any(a < b for a, b in pairwise(counts)):
            return "a higher confidence accepts more"
        if any(not 0 <= w <= n for w, n in zip(self.wrong, self.accepted, strict=True)):
            return "more are wrong than accepted"
        places = [len(GRID) if place is None else place for place in self.lowest]
        if any(a < b for a, b in pairwise([len(GRID), *places, 0])):
            return "a larger error has a higher confidence"
        return None

    def save(self, path: Path | str) -> None:
        """Write it as JSON, whole or not at all."""
        lines = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(value, allow_nan=False)}"
            for name, value in self.to_json().items()
        )
        with writing(Path(path)) as part:
            part.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what `save` wrote."""
        return cls.from_json(read_json(Path(path)), f"The calibration {path}")

    @classmethod
    def load_for(cls, weights: str) -> Self | None:
        """The calibration that comes with shipped weights, by their name; None if there is none.

        One that was fitted with other weights is refused.
        """
        path, file = SHIPPED / f"{weights}.json", shipped_weights().get(weights)
        if file is None or not path.exists():
            return None
        found = cls.load(path)
        if found.about.get("weights_sha256") != digest_of(file):
            raise WanderError(
                f"The calibration of {weights} was fitted with other weights than those in this package. "
                "Install it again, or fit one with `wanderlearn.calibrate.calibrate`."
            )
        return found


def shipped_calibration(model: "Model", weights: str | None) -> Calibration | None:
    """The shipped calibration of weights of this name, if the model really has those weights."""
    import torch

    from wanderlearn.model import load_model

    found = None if weights is None else Calibration.load_for(weights)
    if found is None or weights is None:
        return None
    theirs, ours = load_model(shipped_weights()[weights]), model.state_dict()
    same = theirs.config == model.config and all(
        torch.equal(tensor, ours[name]) for name, tensor in theirs.state_dict().items()
    )
    return found if same else None


def _checked(
    confidence: npt.ArrayLike, right: npt.ArrayLike, sequence: npt.ArrayLike | None
) -> tuple[Floats, Bools, Ints]:
    sure, good = np.asarray(confidence, dtype=np.float64), np.asarray(right)
    owner = np.arange(len(sure)) if sequence is None and sure.ndim == 1 else np.asarray(sequence)
    if sure.ndim != 1 or sure.shape != good.shape or sure.shape != owner.shape:
        raise WanderError(
            "A calibration is fitted on flat arrays of one length; "
            f"got shapes {sure.shape}, {good.shape} and {owner.shape}."
        )
    if good.dtype != np.bool_ and not np.isin(good, (0, 1)).all():
        raise WanderError("`right` says of every meeting whether the label was right: True or False.")
    if not ((sure >= 0) & (sure <= 1)).all():
        raise WanderError("A confidence lies between 0 and 1; one of these does not.")
    return sure, good.astype(bool), np.unique(owner, return_inverse=True)[1].reshape(-1)


def _counted(
    sure: Floats, right: Bools, owner: Ints, sequences: int, longest: int
) -> tuple[Ints, Ints, Floats]:
    """Accepted and wrong labels at each confidence of the grid, and the log-capital at each error, [G, L]."""
    accepted, wrong = np.zeros((2, len(GRID)), dtype=np.int64)
    capital = np.zeros((len(GRID), len(LEVELS)))
    levels = np.array(LEVELS)[:, None]  # [L, 1]
    for place, threshold in enumerate(GRID):
        some = sure >= threshold
        n = np.bincount(owner[some], minlength=sequences)  # [S]
        e = np.bincount(owner[some & ~right], minlength=sequences)  # [S]
        accepted[place], wrong[place] = n.sum(), e.sum()
        if not accepted[place]:
            break  # surer than anything: nobody can win
        if place and accepted[place] == accepted[place - 1]:
            capital[place] = capital[place - 1]  # the same labels as before
            continue
        pairs, times = np.unique(n * (longest + 1) + e, return_counts=True)  # [U] many sequences are alike
        n, e = np.divmod(pairs, longest + 1)  # [U]
        gain = (levels * n - e) / longest  # [L, U]
        logs = [math.log(part) + np.log1p(stake * gain) @ times for stake, part in STAKES.items()]
        capital[place] = np.logaddexp.reduce(logs)
    return accepted, wrong, capital


def _lowest(certain: Bools) -> int | None:
    """The lowest place that one reaches going down from a beginning over places that are all certain."""
    reached = []
    for begin in BEGIN:
        place = begin
        while place >= 0 and certain[place]:
            place -= 1
        if place < begin:
            reached.append(place + 1)
    return min(reached, default=None)
