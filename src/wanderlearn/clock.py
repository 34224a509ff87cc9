"""The seconds of a stage of training."""

import time
from dataclasses import replace

from wanderlearn.checkpoint import Progress

__all__ = ["Clock"]


class Clock:
    """Counts the seconds of a stage, from what earlier processes had spent."""

    def __init__(self, progress: Progress) -> None:
        self.before, self.start = progress, time.monotonic()

    def passed(self) -> float:
        """Seconds since this process began with the stage."""
        return time.monotonic() - self.start

    def at(self, progress: Progress, passed: float) -> Progress:
        """The progress after so many seconds."""
        return replace(
            progress,
            seconds=self.before.seconds + passed,
            total_seconds=self.before.total_seconds + passed,
        )
