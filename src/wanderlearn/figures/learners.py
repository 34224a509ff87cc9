"""The learners of a figure: found by name, loaded, and called what the paper calls them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wanderlearn.configs import kind_of
from wanderlearn.errors import WanderError
from wanderlearn.files import digest_of
from wanderlearn.model import Model, about_model, load_model
from wanderlearn.paper import METHOD_NAMES
from wanderlearn.shipped import find_weights

__all__ = ["Loaded", "load_learners"]


class Loaded(NamedTuple):
    """A learner with what a figure tells of it."""

    given: str  # as it was asked for
    name: str  # as the figure names it
    model: Model
    about: dict[str, Any]  # where it came from
    sha256: str  # of its weights


def load_learners(names: Sequence[str]) -> list[Loaded]:
    """By run folder, file or shipped name; called what the paper calls them, two of a kind by their own."""
    if not names:
        raise WanderError("Name at least one learner: a run folder, a file of weights, or a shipped name.")
    loaded = []
    for given in names:
        weights = find_weights(given)
        model, about = load_model(weights), about_model(weights)
        loaded.append(Loaded(given, _name(model, about), model, about, digest_of(weights)))
    alike = [one.name for one in loaded]
    return [one._replace(name=_own(one.given)) if alike.count(one.name) > 1 else one for one in loaded]


def _name(model: Model, about: Mapping[str, Any]) -> str:
    """The paper's name for a learner; where one class serves several (OML), its preset says which."""
    kind = kind_of(type(model.config.learner))
    of_preset = [key for key in METHOD_NAMES if str(about.get("preset")).startswith(f"{key}-")]
    key = kind if kind in METHOD_NAMES else max(of_preset, key=len, default=kind)
    return METHOD_NAMES.get(key, key)


def _own(given: str) -> str:
    return Path(given).name.removesuffix(".safetensors")
