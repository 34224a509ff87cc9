"""What an evaluation gathers: every answer beside what the right one was."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.worlds.sequence import NEW, UNLABELED

__all__ = ["Bools", "Floats", "Ints", "Record", "ranks"]

Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]

# The fields in order, with what stands where a sequence is padded, and the kinds of array accepted.
_PADDING: Final[dict[str, tuple[Any, str]]] = {
    "novelty": (0.0, "f"),
    "predicted": (0, "iu"),
    "confidence": (0.0, "f"),
    "target": (NEW, "iu"),
    "truth": (0, "iu"),
    "given": (UNLABELED, "iu"),
    "valid": (False, "b"),
}
# Slots, counts and ranks fit 32 bits, and so a bootstrap has half as much to copy.
_DTYPES: Final = {"f": np.float64, "iu": np.int32, "b": np.bool_}
_DERIVED: Final = ("known", "correct", "history", "novelty_rank", "joint_rank")
_ROUNDING: Final = 1e-3  # how far above 0 a log-probability in single precision may come out


@dataclass(frozen=True, eq=False)
class Record:
    """The answers to N sequences padded to T steps, all arrays [N, T]; padded steps are never looked at.

    Arrays are brought to float64 and int32. Not to be changed once made: what the metrics share
    (history, ranks) is worked out once and kept.
    """

    novelty: Floats  # logit; above 0 the answer is "new"
    predicted: Ints  # the class slot with the highest score, whatever the novelty
    confidence: Floats  # log-probability of `predicted` under a softmax over the class scores
    target: Ints  # slot, or NEW
    truth: Ints  # slot of the true class
    given: Ints  # slot, or UNLABELED
    valid: Bools  # False where padded

    def __post_init__(self) -> None:
        shape = np.shape(self.novelty)
        if len(shape) != 2:
            raise WanderError(f"A record holds arrays of [sequences, steps], but novelty has shape {shape}.")
        for name, (_, kinds) in _PADDING.items():
            array = np.asarray(getattr(self, name))
            if array.shape != shape:
                raise WanderError(
                    f"The arrays of a record must share a shape: novelty is {shape}, {name} is {array.shape}."
                )
            if array.dtype.kind not in kinds:
                raise WanderError(
                    f"{name} of a record cannot be {array.dtype}; give it as {_DTYPES[kinds].__name__}."
                )
            object.__setattr__(self, name, array.astype(_DTYPES[kinds], copy=False))
        self._refuse(np.isnan(self.novelty), "novelty is NaN: the learner has diverged or divides by zero")
        self._refuse(np.isnan(self.confidence), "confidence is NaN: the learner has diverged")
        self._refuse(self.confidence > _ROUNDING, "confidence is above 0, but it must be a log-probability")
        self._refuse(self.predicted < 0, "predicted is negative: it must be a class slot even when new")
        self._refuse(
            (self.target != NEW) & (self.target != self.truth), "target is neither NEW nor the truth"
        )
        self._refuse((self.given != UNLABELED) & (self.given != self.truth), "given is not the truth")

    def _refuse(self, wrong: Bools, what: str) -> None:
        where = wrong & self.valid
        if where.any():
            sequence, step = np.argwhere(where)[0]
            raise WanderError(f"Sequence {sequence}, step {step}: {what} ({where.sum()} such steps in all).")

    def __len__(self) -> int:
        return len(self.valid)

    @property
    def steps(self) -> int:
        """How many steps there are in all, padding not counted."""
        return int(self.valid.sum())

    @classmethod
    def concat(cls, records: Sequence["Record"]) -> "Record":
        """All sequences of several records in order, padded to the longest."""
        if not records:
            raise WanderError("There are no records to put together: no sequence was evaluated.")
        longest = max(record.valid.shape[1] for record in records)
        joined = {
            name: np.concatenate(
                [_widened(getattr(record, name), longest, padding) for record in records], axis=0
            )
            for name, (padding, _) in _PADDING.items()
        }
        return cls(**joined)

    def take(self, sequences: npt.ArrayLike) -> "Record":
        """The record of the sequences with these indices, in this order, repeated where an index is.

        History is a matter of one sequence and a subset keeps the order of its ranks, so whatever this
        record has worked out already is taken along. That is what makes a bootstrap cheap.
        """
        chosen = np.asarray(sequences, dtype=np.int64)
        taken = object.__new__(Record)  # rows of a sound record are sound: no second look
        for name in (*_PADDING, *_DERIVED):
            if name in self.__dict__:
                taken.__dict__[name] = self.__dict__[name][chosen]
        return taken

    @cached_property
    def known(self) -> Bools:
        """Steps whose class has had a labelled item before, [N, T]."""
        known: Bools = self.valid & (self.target != NEW)
        return known

    @cached_property
    def correct(self) -> Bools:
        """Known steps where the highest class score is the right one, [N, T]. The novelty has no say."""
        correct: Bools = self.known & (self.predicted == self.target)
        return correct

    @property
    def answer(self) -> Ints:
        """What was said: NEW where novelty is above 0, else the predicted slot, [N, T]."""
        return np.where(self.novelty > 0, NEW, self.predicted)

    @property
    def right(self) -> Bools:
        """Steps answered rightly when "new" is an answer too, [N, T]."""
        right: Bools = self.valid & (self.answer == self.target)
        return right

    @property
    def appearances(self) -> Ints:
        """How often the class was met before, labelled or not, [N, T]."""
        return self.history[:, 0]

    @property
    def labels(self) -> Ints:
        """How often the class was met with its label before, [N, T]."""
        return self.history[:, 1]

    @property
    def since_appearance(self) -> Ints:
        """Steps since the class was last met, labelled or not; 0 if never, [N, T]."""
        return self.history[:, 2]

    @property
    def since_label(self) -> Ints:
        """Steps since the class was last met with its label; 0 if never, [N, T]."""
        return self.history[:, 3]

    @cached_property
    def history(self) -> Ints:
        """Appearances, labels, steps since appearance and steps since label, [N, 4, T]; 0 where padded."""
        sequence, time = np.nonzero(self.valid)  # [M]
        truth = self.truth[sequence, time]
        order = np.lexsort((time, truth, sequence))  # one run per class of a sequence, in order of time
        sequence, time, truth = sequence[order], time[order], truth[order]
        labelled = self.given[sequence, time] != UNLABELED
        place = np.arange(len(order))
        opens = np.ones(len(order), dtype=bool)
        opens[1:] = (sequence[1:] != sequence[:-1]) | (truth[1:] != truth[:-1])
        first = np.maximum.accumulate(np.where(opens, place, 0))  # where one's run starts
        told = np.cumsum(labelled) - labelled  # labelled before, over all runs
        # The last labelled place strictly before; one that lies before the run's start is another class's.
        last = np.concatenate(([-1], np.maximum.accumulate(np.where(labelled, place, -1))))[:-1]

        history = np.zeros((len(self), 4, self.valid.shape[1]), dtype=np.int32)
        history[sequence, 0, time] = place - first
        history[sequence, 1, time] = told - told[first]
        history[sequence, 2, time] = np.where(opens, 0, time - time[place - 1])
        history[sequence, 3, time] = np.where(last >= first, time - time[last], 0)
        return history

    @cached_property
    def novelty_rank(self) -> Ints:
        """Place in ascending novelty, from 1, ties sharing one; 0 where padded, [N, T]."""
        return self._ranked(self.novelty[self.valid])

    @cached_property
    def joint_rank(self) -> Ints:
        """Place in descending P(known) x P(class), from 1, ties sharing one; 0 where padded, [N, T]."""
        return self._ranked(np.logaddexp(0.0, self.novelty[self.valid]) - self.confidence[self.valid])

    def _ranked(self, values: Floats) -> Ints:
        placed = np.zeros(self.valid.shape, dtype=np.int32)
        placed[self.valid] = ranks(values)
        return placed


def ranks(values: Floats) -> Ints:
    """The place of each value in ascending order, from 1; equal values share one place."""
    _, inverse = np.unique(values, return_inverse=True)
    return inverse.reshape(-1).astype(np.int32) + 1


def _widened(array: npt.NDArray[Any], steps: int, padding: Any) -> npt.NDArray[Any]:
    return np.pad(array, ((0, 0), (0, steps - array.shape[1])), constant_values=padding)
