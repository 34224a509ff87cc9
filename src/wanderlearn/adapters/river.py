"""A river classifier that learns on the spot, with a label or without, and knows what is new.

>>> learner = WanderClassifier()
>>> for x, y in (({"height": 0.0}, "low"), ({"height": 3.0}, "high")):
...     learner.learn_one(x, y)
>>> learner.predict_one({"height": 2.8})
'high'
>>> learner.novelty_one({"height": 2.8}) < 0.5 < learner.novelty_one({"height": -9.0})
True
"""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wanderlearn.adapters.memory import Labelled, Pictures, Vectors
from wanderlearn.errors import WanderError

try:
    from river import base
except ImportError as error:
    raise WanderError(
        "This adapter needs river. Install the extra, `pip install 'wanderlearn[river]'`."
    ) from error

__all__ = ["WanderClassifier"]


class WanderClassifier(base.Classifier):
    """An online few-shot learner with river's verbs.

    Without weights it takes dictionaries of numbers and answers by the nearest class mean (an Online ProtoNet
    without encoder): put a `preprocessing.StandardScaler` before it. Features may come and go; one that is
    missing counts as 0. With weights (a shipped name, a run folder or a file) it takes pictures: files, PIL
    pictures or arrays.

    `predict_one` always names a known class; `novelty_one` gives the probability that it is none of them.

    Parameters
    ----------
    weights
        What to see with; None for dictionaries.
    new_beyond
        For dictionaries: a mean squared difference per feature from every class mean beyond which a thing is
        new.
    ink
        For pictures of one channel: "auto", "bright" or "dark", as in `wanderlearn.load`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | WanderClassifier()
    >>> score = evaluate.progressive_val_score(datasets.ImageSegments().take(300), model, metrics.Accuracy())
    >>> score.get() > 0.6
    True

    """

    def __init__(self, weights: str | Path | None = None, new_beyond: float = 1.0, ink: str = "auto") -> None:
        self.weights = weights
        self.new_beyond = new_beyond
        self.ink = ink
        self._places: dict[Hashable, int] = {}
        self._memory: Labelled | None = None

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Any, y: Hashable | None = None) -> None:
        """Meet one thing: with its label, or (None) without."""
        if self.weights is None:
            self._make_room(x)
        memory = self._begun()
        memory.learn(self._thing(x), y.item() if isinstance(y, np.generic) else y)

    def predict_proba_one(self, x: Any, **_: Any) -> dict[Any, float]:
        """The probabilities of all labels told so far, given that it is one of them."""
        memory = self._begun()
        known = memory.look([self._thing(x)]).known
        return dict(zip(memory.labels, known[0].tolist(), strict=True))

    def novelty_one(self, x: Any) -> float:
        """The probability that this is of a class that has never been told."""
        return float(self._begun().look([self._thing(x)]).new[0])

    def _begun(self) -> Labelled:
        if self._memory is None:
            seen = Vectors(len(self._places), self.new_beyond) if self.weights is None else None
            self._memory = Labelled(seen or Pictures(str(self.weights), self.ink))
        return self._memory

    def _make_room(self, x: Any) -> None:
        """A place for every feature. Those that come together are sorted: their order is no matter."""
        more = sorted((name for name in _numbers(x) if name not in self._places), key=repr)
        for name in more:
            self._places[name] = len(self._places)
        if more and self._memory is not None:
            self._memory.widen(len(self._places))

    def _thing(self, x: Any) -> Any:
        if self.weights is not None:
            return x
        vector = np.zeros(len(self._places))
        for name, value in _numbers(x).items():
            if name in self._places:  # one that was never learned says nothing
                vector[self._places[name]] = value
        return vector


def _numbers(x: Any) -> Mapping[Hashable, float]:
    if not isinstance(x, Mapping):
        raise WanderError(
            f"Without weights a thing is a dictionary of numbers, not a {type(x).__name__}. "
            "For pictures name weights, such as WanderClassifier('cpm-glyphs')."
        )
    for name, value in x.items():
        if not isinstance(value, int | float | np.number | np.bool_):
            raise WanderError(
                f"The feature {name!r} is {value!r}, which is no number. Encode it first, for instance with "
                "river's preprocessing.OneHotEncoder."
            )
    return x
