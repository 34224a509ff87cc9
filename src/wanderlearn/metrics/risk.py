"""What accepting the surest answers costs: risk (errors among the accepted) over coverage (their share)."""

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.metrics.record import Floats, Ints, Record
from wanderlearn.metrics.reliability import naming_confidence

__all__ = ["RISKS", "RiskCoverage", "naming_risk", "risk_coverage"]

RISKS: Final = (0.01, 0.02, 0.05)


class RiskCoverage(NamedTuple):
    """One point for every different confidence, the surest first: accept all from it on."""

    confidence: Floats  # [P] falling
    accepted: Ints  # [P]
    wrong: Ints  # [P] among the accepted

    @property
    def coverage(self) -> Floats:
        """The share of all meetings that is accepted, [P]; the last is 1."""
        coverage: Floats = self.accepted / (self.accepted[-1] if len(self.accepted) else 1)
        return coverage

    @property
    def risk(self) -> Floats:
        """The share of errors among the accepted, [P]; the last is the error of accepting everything."""
        risk: Floats = self.wrong / self.accepted
        return risk

    @property
    def area(self) -> float:
        """Area under the curve (AURC): the risk averaged over all coverages; NaN without a meeting."""
        if not len(self.accepted):
            return math.nan
        return float(np.average(self.risk, weights=np.diff(self.accepted, prepend=0)))

    @property
    def best_area(self) -> float:
        """The area if every right answer were surer than every wrong one: what no ranking can beat."""
        if not len(self.accepted):
            return math.nan
        meetings, wrong = int(self.accepted[-1]), int(self.wrong[-1])
        late = np.arange(1, wrong + 1)  # errors come last: after n of them, n of (right + n) are wrong
        return float((late / (meetings - wrong + late)).sum() / meetings)

    @property
    def excess_area(self) -> float:
        """The area beyond the best possible: what better confidences could gain with the same answers."""
        return self.area - self.best_area

    def coverage_at(self, risk: float) -> float:
        """The greatest coverage with at most this risk; 0 if there is none, NaN without a meeting."""
        if not len(self.accepted):
            return math.nan
        return float(self.coverage[self.risk <= risk].max(initial=0.0))


def risk_coverage(confidence: npt.ArrayLike, right: npt.ArrayLike) -> RiskCoverage:
    """The curve of flat arrays over meetings. Equal confidences are accepted together: one point.

    >>> curve = risk_coverage([0.9, 0.8, 0.7, 0.6], [True, True, False, True])
    >>> curve.coverage_at(0.0), float(curve.risk[-1])
    (0.5, 0.25)
    """
    sure, good = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=bool)
    if sure.ndim != 1 or sure.shape != good.shape:
        raise WanderError(f"Give flat arrays of one length; got shapes {sure.shape} and {good.shape}.")
    if np.isnan(sure).any():
        raise WanderError("A confidence is NaN: it cannot be ranked.")
    values, place, count = np.unique(-sure, return_inverse=True, return_counts=True)
    wrong = np.bincount(place.reshape(-1), weights=~good, minlength=len(values))
    return RiskCoverage(-values, np.cumsum(count), np.cumsum(wrong).astype(np.int64))


def naming_risk(record: Record) -> RiskCoverage:
    """Accept the most probable label from some confidence on: risk over coverage, of all meetings."""
    return risk_coverage(naming_confidence(record)[record.valid], record.correct[record.valid])
