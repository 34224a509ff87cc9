"""What a learner says and what every learner is: the contract of the whole project."""

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol, TypeVar

from jaxtyping import Float, Int
from torch import Tensor, nn

__all__ = ["CERTAINLY_NEW", "UNUSED", "Answers", "Learner"]

UNUSED: Final = -1e6  # the score of a slot no label has opened yet
CERTAINLY_NEW: Final = 1e3  # the novelty of anything met with an empty memory


State = TypeVar("State")


class Answers(NamedTuple):
    """Answers as logits: of one meeting ([B, K] and [B]) or of whole sequences ([B, T, K] and [B, T])."""

    scores: Float[Tensor, "*B K"]  # one per class slot; UNUSED where the slot is empty
    novelty: Float[Tensor, "*B"]  # above 0: "new"


class Learner(Protocol[State]):
    """Answers each meeting, is then told a label or nothing, and remembers.

    `step` is pure: it returns a new state and leaves the old one as it was. Calling the learner on whole
    sequences gives the same answers as stepping through them, only faster.
    """

    def begin(self, batch_size: int, slots: int) -> State:
        """An empty memory for `batch_size` sequences with room for `slots` classes."""
        ...

    def step(
        self, state: State, feature: Float[Tensor, "B D"], given: Int[Tensor, " B"]
    ) -> tuple[Answers, State]:
        """One meeting: answer first, then write what was told (a slot, or UNLABELED)."""
        ...

    def __call__(self, features: Float[Tensor, "B T D"], given: Int[Tensor, "B T"], slots: int) -> Answers:
        """Whole sequences at once."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """As every torch module."""
        ...
