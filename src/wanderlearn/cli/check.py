"""`wander check`: does a learner of your own keep the contract?"""

import sys
from dataclasses import asdict, dataclass

import tyro
from rich.console import Console

from wanderlearn.cli.output import put_json
from wanderlearn.errors import WanderError

__all__ = ["Command"]


@dataclass(frozen=True)
class Command:
    """Try every law of the learners' contract on a learner of your own, and say in words what is broken.

    Exits with 0 if all laws are kept, with 1 if one is broken, with 2 if the learner could not be loaded.

    Examples:
      wander check mypackage.models:Learner
      wander check ./mylearner.py:make --feature-dim 128 --json -
    """

    learner: tyro.conf.Positional[str]
    """MODULE:LEARNER or FILE.py:LEARNER, where LEARNER is a learner, a class or a function that makes one."""
    feature_dim: int | None = None
    """How many numbers a feature has (default: what the learner's feature_dim says, else 64)."""
    slots: int = 12
    """How many classes there is room for in the trials."""
    seed: int = 0
    """Of the random sequences it is tried on."""
    json: str | None = None
    """Write what was found as JSON to this file, or to standard output for -."""

    def run(self) -> None:
        """Load, try, say."""
        if self.feature_dim is not None and self.feature_dim < 1:
            raise WanderError(f"--feature-dim must be at least 1, not {self.feature_dim}.")
        from wanderlearn.checks import check_learner, load_learner

        learner = load_learner(self.learner)
        report = check_learner(learner, feature_dim=self.feature_dim, slots=self.slots, seed=self.seed)
        found = [asdict(finding) for finding in report.findings]
        put_json(
            {"format": 1, "kind": "check", "learner": self.learner, "passed": report.passed, "laws": found},
            self.json,
        )
        if self.json != "-":
            console = Console(highlight=False)
            colours = {"kept": "green", "broken": "red", "exempt": "yellow"}
            for finding in report.findings:
                console.print(str(finding), style=colours[finding.outcome], markup=False)
            broken, laws = len(report.failures), len(report.findings)
            said = "keeps the contract" if report.passed else f"breaks {broken} of {laws} laws"
            console.print(f"{report.learner} {said}.", markup=False)
        if not report.passed:
            sys.exit(1)
