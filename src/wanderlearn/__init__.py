"""Online contextualized few-shot learning: meet one thing at a time, name it or say it is new, learn.

What most programs need is here by name; each module has the rest. Names are imported when first used, so that
`import wanderlearn` and the command line start at once.
"""

import importlib
from typing import TYPE_CHECKING, Any

from wanderlearn._version import __version__
from wanderlearn.errors import WanderError

if TYPE_CHECKING:
    from wanderlearn.agent import Agent, load, weights
    from wanderlearn.checks import check_learner
    from wanderlearn.learners.answer import Answers, Learner
    from wanderlearn.model import Model, build, load_model, save_model
    from wanderlearn.shipped import shipped_weights
    from wanderlearn.worlds import NEW, UNLABELED, Roaming, RoamingConfig, open_world

__all__ = [
    "NEW",
    "UNLABELED",
    "Agent",
    "Answers",
    "Learner",
    "Model",
    "Roaming",
    "RoamingConfig",
    "WanderError",
    "__version__",
    "build",
    "check_learner",
    "load",
    "load_model",
    "open_world",
    "save_model",
    "shipped_weights",
    "weights",
]

_HOME = {
    "agent": ("Agent", "load", "weights"),
    "checks": ("check_learner",),
    "learners.answer": ("Answers", "Learner"),
    "model": ("Model", "build", "load_model", "save_model"),
    "shipped": ("shipped_weights",),
    "worlds": ("NEW", "UNLABELED", "Roaming", "RoamingConfig", "open_world"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(f"wanderlearn.{module}"), name)
    raise AttributeError(f"module 'wanderlearn' has no attribute {name!r}")
