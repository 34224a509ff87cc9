"""A scikit-learn classifier that learns on the spot: `partial_fit` as things are met; it knows what is new.

>>> import numpy as np
>>> learner = WanderClassifier().partial_fit(np.array([[0.0, 0.0], [3.0, 3.0]]), ["a", "b"])
>>> learner.predict([[0.2, 0.1], [2.9, 3.2]]).tolist()
['a', 'b']
>>> learner.predict_new([[0.2, 0.1], [-9.0, 9.0]]).tolist()
[False, True]
"""

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from wanderlearn.adapters.memory import Labelled, Pictures, Vectors
from wanderlearn.errors import WanderError

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets, unique_labels
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    raise WanderError(
        "This adapter needs scikit-learn 1.6 or newer. "
        "Install the extra, `pip install 'wanderlearn[sklearn]'`."
    ) from error

__all__ = ["WanderClassifier"]

Array = npt.NDArray[Any]


class WanderClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An online few-shot learner with scikit-learn's verbs.

    Without weights it takes vectors of any width and answers by the nearest class mean (an Online ProtoNet
    without encoder): scale features first, as for nearest neighbours. With weights (a shipped name, a run
    folder or a file) it takes pictures, [N, H, W] or [N, H, W, C] or flat, or features of those weights.

    Rows are met in order, and with the weights of a CPM that order is its context. `predict` always names a
    known class; `novelty` gives the probability that it is none of them, `predict_new` says so.

    Parameters
    ----------
    weights : str, path or None
        What to see with; None for vectors.
    new_beyond : float
        For vectors: a mean squared difference per feature from every class mean beyond which a thing is new.
    unlabelled : object
        What stands for "no label" in y, beside None: give -1 for scikit-learn's semi-supervised convention.
        By default -1 is a label like any other, as in problems of -1 and 1.
    ink : {"auto", "bright", "dark"}
        For pictures of one channel, as in `wanderlearn.load`.
    """

    def __init__(
        self,
        weights: str | Path | None = None,
        *,
        new_beyond: float = 1.0,
        unlabelled: Any = None,
        ink: str = "auto",
    ) -> None:
        self.weights = weights
        self.new_beyond = new_beyond
        self.unlabelled = unlabelled
        self.ink = ink

    classes_: Array
    """Labels that were told or named, sorted."""
    memory_: Labelled
    """What it has met."""

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then meet all rows in order."""
        if y is None:
            raise ValueError("This estimator requires y to be passed, but the target y is None.")
        return self._meet(X, y, None, afresh=True)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Meet more rows in order, with their labels or (y=None) without any.

        `classes` may name classes that have not been met yet; it need not.
        """
        return self._meet(X, y, classes, afresh=not hasattr(self, "memory_"))

    def predict(self, X: Any) -> Array:
        """The most probable known class of each row."""
        known = self.predict_proba(X)
        named: Array = self.classes_[known.argmax(axis=1)]
        return named

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of `classes_` of each row, given that it is one of them, [N, classes]."""
        check_is_fitted(self)
        known = self.memory_.look(self._things(X, reset=False)).known
        places = {label: n for n, label in enumerate(self.classes_.tolist())}
        all_of_them = np.zeros((len(known), len(self.classes_)))
        all_of_them[:, [places[label] for label in self.memory_.labels]] = known
        if not self.memory_.labels:  # nothing but names so far
            all_of_them[:] = 1 / len(self.classes_)
        return all_of_them

    def novelty(self, X: Any) -> Array:
        """The probability that each row is of a class that has never been told, [N]."""
        check_is_fitted(self)
        return self.memory_.look(self._things(X, reset=False)).new

    def predict_new(self, X: Any) -> Array:
        """Whether each row is more probably new than known, [N]."""
        new: Array = self.novelty(X) > 0.5
        return new

    def _meet(self, X: Any, y: Any, classes: Any, *, afresh: bool) -> Self:
        if afresh:
            self._pictures = None if self.weights is None else Pictures(self.weights, self.ink)
        things = self._things(X, reset=afresh)
        labels, told = self._labels(y, len(things))
        before = None if afresh else self.classes_
        names = [part for part in (before, classes, _plain(labels[told])) if part is not None and len(part)]
        if not names:
            raise ValueError("The first rows need a label, or `classes` that say what there can be.")
        every = unique_labels(*names)
        if afresh:
            self.memory_ = Labelled(self._pictures or Vectors(self.n_features_in_, self.new_beyond))
        self.classes_ = every
        for thing, label, is_told in zip(things, labels.tolist(), told.tolist(), strict=True):
            self.memory_.learn(thing, label if is_told else None)
        return self

    def _things(self, X: Any, *, reset: bool) -> Any:
        """The rows, checked: vectors, or pictures for the encoder."""
        if self._pictures is None:
            return validate_data(self, X, reset=reset, dtype=np.float64)
        rows = validate_data(self, X, reset=reset, dtype=None, allow_nd=True, ensure_all_finite=False)
        return [self._pictures.unflattened(row) for row in rows] if rows.ndim == 2 else list(rows)

    def _labels(self, y: Any, rows: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Labels, and which of them are told."""
        if y is None:
            return np.full(rows, None), np.zeros(rows, dtype=bool)
        labels = column_or_1d(y, warn=True)
        if len(labels) != rows:
            raise ValueError(f"There are {rows} rows, but {len(labels)} labels.")
        told = np.ones(rows, dtype=bool)
        if labels.dtype == object:
            told &= np.array([label is not None for label in labels.tolist()], dtype=bool)
        if self.unlabelled is not None:
            told &= np.array([label != self.unlabelled for label in labels.tolist()], dtype=bool)
        if told.any():
            check_classification_targets(_plain(labels[told]))
        return labels, told


def _plain(labels: Array) -> Array:
    """Labels that were objects only because some were None, as what they are."""
    return np.array(labels.tolist()) if labels.dtype == object and len(labels) else labels
