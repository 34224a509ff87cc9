"""Several independent agents that look at their pictures in one batch."""

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from wanderlearn.agent.answer import Answer
from wanderlearn.agent.names import as_label
from wanderlearn.errors import WanderError

if TYPE_CHECKING:
    from wanderlearn.agent.agent import Agent

__all__ = ["Agents"]


class Agents:
    """Agents with the same weights and memories of their own: one per camera, one per user.

    The encoder, which is most of the work, sees all pictures at once. `agents[i]` is an ordinary agent, with
    all its verbs.
    """

    def __init__(self, agent: "Agent", streams: int) -> None:
        if streams < 1:
            raise WanderError(f"There must be at least 1 stream, not {streams}.")
        self._agents = tuple(agent._twin() for _ in range(streams))

    def __len__(self) -> int:
        return len(self._agents)

    def __getitem__(self, index: int) -> "Agent":
        return self._agents[index]

    def __iter__(self) -> Iterator["Agent"]:
        return iter(self._agents)

    def look(
        self, pictures: Sequence[Any], *, ids: Sequence[Hashable | None] | None = None
    ) -> list[Answer | None]:
        """One picture per stream, or None where a stream meets nothing now; the answers likewise."""
        names = self._one_each(ids, "ids")
        met = [n for n, picture in enumerate(self._one_each(pictures, "pictures")) if picture is not None]
        features = self._agents[0]._encode([pictures[n] for n in met])
        answers: list[Answer | None] = [None] * len(self)
        for n, feature in zip(met, features, strict=True):
            answers[n] = self._agents[n]._answer(feature, as_label(names[n], "id"))
        return answers

    def tell(self, answers: Sequence[Answer | None], labels: Sequence[Hashable | None] | None = None) -> None:
        """One answer per stream (None: nothing was met) and its label (None: told without one).

        If one of them cannot be told, none is.
        """
        told = self._one_each(labels, "labels")
        each = list(zip(self._agents, self._one_each(answers, "answers"), told, strict=True))
        changes = [
            None if answer is None else agent._tell(answer, label, None) for agent, answer, label in each
        ]
        for (agent, answer, _), change in zip(each, changes, strict=True):
            if answer is not None and change is not None:
                agent._change(change, answer.meeting)

    def _one_each(self, values: Sequence[Any] | None, what: str) -> Sequence[Any]:
        if values is None:
            return [None] * len(self)
        if len(values) != len(self):
            raise WanderError(f"There are {len(self)} streams, but {len(values)} {what}.")
        return values
