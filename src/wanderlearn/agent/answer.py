"""What an agent says about a picture, and why."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from wanderlearn.agent.life import Meeting

__all__ = ["Answer", "Explanation", "Neighbour"]


@dataclass(frozen=True)
class Neighbour:
    """A class near what was looked at."""

    label: Hashable
    distance: float
    """In the learner's own measure (with its metric, and for a cosine minus the scaled cosine)."""
    examples: tuple[Hashable, ...] = ()
    """The ids given with its latest examples, oldest first."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What an agent says about one picture. Give it to `tell`, now or later."""

    label: Hashable | None
    """The name, or None for "new"."""
    p_new: float
    """The probability that it is new; above 1/2, `label` is None."""
    ranking: tuple[tuple[Hashable, float], ...]
    """The most probable labels with their probabilities, best first. All labels together have 1 - p_new."""
    neighbours: tuple[Neighbour, ...]
    """The nearest classes, nearest first."""
    distance: float | None
    """The distance to the nearest thing kept (None while no class is known)."""
    threshold: float
    """The distance at which the agent is undecided between known and new, in the context of this meeting."""
    id: Hashable | None = None
    """What the caller calls this picture."""
    meeting: Meeting = field(repr=False, kw_only=True)
    """For `tell`."""

    @property
    def new(self) -> bool:
        """Whether the agent says that this is new."""
        return self.label is None

    @property
    def confidence(self) -> float:
        """The probability of the most probable label, even if it says "new"; 0 if there is none."""
        return self.ranking[0][1] if self.ranking else 0.0


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why an agent said what it said. `print` it for the same in words."""

    said: Answer
    """What it said when it looked."""
    now: Answer
    """What it says of the same meeting with the memory of now: neighbours, distance and threshold."""
    without_context: Answer
    """What it says of the same picture with the memory of now, but as if nothing had been met before."""

    def __str__(self) -> str:
        said, now = self.said, self.now
        lines = [f"It said {_words(said)}; it says {_words(now)} now."]
        if now.distance is not None:
            side = "within" if now.distance <= now.threshold else "beyond"
            lines.append(
                f"The nearest thing it keeps is {now.distance:.4g} away, "
                f"{side} the threshold of {now.threshold:.4g}."
            )
        for near in now.neighbours:
            ids = f" ({', '.join(map(str, near.examples))})" if near.examples else ""
            lines.append(f"  {near.label!r} at {near.distance:.4g}{ids}")
        lines.append(f"With its context reset it says {_words(self.without_context)}.")
        return "\n".join(lines)


def _words(answer: Answer) -> str:
    if answer.label is None:
        best = f", else {answer.ranking[0][0]!r}" if answer.ranking else ""
        return f"new ({answer.p_new:.0%}{best})"
    return f"{answer.label!r} ({answer.ranking[0][1]:.0%}; new {answer.p_new:.0%})"
