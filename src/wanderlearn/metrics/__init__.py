"""How well a learner did: average precision, N-shot accuracy, over time, forgetting, calibration, intervals.

All figures are fractions; `summary` alone speaks in percent. What cannot be measured is NaN, with a reason.
"""

from wanderlearn.metrics.accuracy import (
    BINS,
    SHOTS,
    Counting,
    Forgetting,
    OverTime,
    Shot,
    Since,
    Variant,
    accuracy_over_time,
    forgetting,
    forgotten,
    known_accuracy,
    novelty_accuracy,
    shot_accuracy,
)
from wanderlearn.metrics.bootstrap import Interval, ap_interval, bootstrap, paired_bootstrap
from wanderlearn.metrics.precision import ap, ap_joint, average_precision, average_precision_joint
from wanderlearn.metrics.record import Record
from wanderlearn.metrics.reliability import (
    Reliability,
    naming_confidence,
    naming_reliability,
    new_reliability,
    reliability,
)
from wanderlearn.metrics.risk import RISKS, RiskCoverage, naming_risk, risk_coverage
from wanderlearn.metrics.summary import summary

__all__ = [
    "BINS",
    "RISKS",
    "SHOTS",
    "Counting",
    "Forgetting",
    "Interval",
    "OverTime",
    "Record",
    "Reliability",
    "RiskCoverage",
    "Shot",
    "Since",
    "Variant",
    "accuracy_over_time",
    "ap",
    "ap_interval",
    "ap_joint",
    "average_precision",
    "average_precision_joint",
    "bootstrap",
    "forgetting",
    "forgotten",
    "known_accuracy",
    "naming_confidence",
    "naming_reliability",
    "naming_risk",
    "new_reliability",
    "novelty_accuracy",
    "paired_bootstrap",
    "reliability",
    "risk_coverage",
    "shot_accuracy",
    "summary",
]
