"""When no person is asked: from which confidence on a guess may be accepted under a chosen error.

Either the weights come with a calibration, made on held-out streams, or the record of this very session is
used: guesses that a person judged. Of the guesses from some confidence on, the share of wrong ones is bounded
from above with 95 % certainty (Clopper and Pearson); confidences are tried from the highest down, and the
first that fails ends it, so that trying many does not weaken the promise. With no error at all it takes 59
judged guesses to accept under 5 %, 149 under 2 %, 299 under 1 %.

One in twenty that could be accepted is shown to the person all the same: otherwise nothing would be known of
confident guesses any more.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

__all__ = ["CERTAINTY", "CHECKED", "Calibrated", "Rule", "fewest", "from_record", "is_check", "upper_bound"]

CERTAINTY: Final = 0.95
CHECKED: Final = 20  # one in so many is asked all the same
STEP: Final = 10  # guesses more at every confidence that is tried


class Calibrated(Protocol):
    """What is asked of a calibration (`wanderlearn.calibration.Calibration` is one)."""

    def threshold(self, error: float, /) -> float | None:
        """The lowest confidence from which accepting errs at most so often; None: there is none."""


class Rule(NamedTuple):
    """What is accepted without asking, and why."""

    source: str  # "calibration" or "record"
    threshold: float | None  # None: nothing yet
    judged: int = 0  # of the record: how many guesses a person judged
    needed: int = 0  # and how many it takes at least


def from_record(record: Sequence[tuple[float, bool]], error: float) -> Rule:
    """The rule that follows from guesses a person judged: their confidence, and whether they were right."""
    ranked = sorted(record, key=lambda one: -one[0])
    needed, passed = fewest(error), None
    n = needed
    while n <= len(ranked):
        while n < len(ranked) and ranked[n][0] == ranked[n - 1][0]:
            n += 1  # equal confidences are accepted together
        wrong = sum(not right for _, right in ranked[:n])
        if upper_bound(wrong, n) > error:
            break
        passed = ranked[n - 1][0]
        n += STEP
    return Rule("record", passed, len(ranked), needed)


def fewest(error: float) -> int:
    """How many guesses, all right, it takes to promise an error."""
    return math.ceil(math.log(1 - CERTAINTY) / math.log(1 - error))


def upper_bound(wrong: int, of: int) -> float:
    """The largest share of wrong ones under which so few or fewer would still come in 1 of 20 cases."""
    if of == 0 or wrong >= of:
        return 1.0
    low, high = wrong / of, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _at_most(wrong, of, middle) < 1 - CERTAINTY else (middle, high)
    return high


def _at_most(wrong: int, of: int, p: float) -> float:
    """The chance of at most so many wrong ones, each wrong with chance p."""
    if not 0 < p < 1:
        return float(p <= 0)
    ways = math.lgamma(of + 1)
    terms = (
        ways - math.lgamma(k + 1) - math.lgamma(of - k + 1) + k * math.log(p) + (of - k) * math.log1p(-p)
        for k in range(wrong + 1)
    )
    return sum(map(math.exp, terms))


def is_check(picture: int) -> bool:
    """Whether a picture is shown to the person even if its guess could be accepted."""
    return int.from_bytes(hashlib.blake2b(str(picture).encode(), digest_size=8).digest()) % CHECKED == 0
