"""What a run was trained on, in one clause, from the config that its result repeats."""

from collections.abc import Mapping
from typing import Any

__all__ = ["recipe"]


def recipe(config: Mapping[str, Any] | None) -> str | None:
    """The stages of a run and their budgets, or None where the config does not say.

    >>> recipe({"pretrain": {"epochs": 45}, "features": {"steps": 1500}, "train": {"minutes": 60.0}})
    '45 epochs of pretraining, 1,500 steps on features, 60 minutes on sequences'
    >>> recipe({"encoder": "ab12", "teacher": "cd", "pretrain": {"epochs": 16}, "train": {"steps": 1}})
    'encoder of the weights ab12, 16 epochs of pretraining by a teacher, 1 steps on sequences'
    >>> recipe({"features": {"steps": 9, "mirror": True}, "train": {"steps": 1}})
    '9 steps on features, of mirrored pictures too, 1 steps on sequences'
    >>> recipe({"features": {"steps": 9}, "train": {"steps": 1, "returning": 0.5, "balance": 0.5}})
    '9 steps on features, 1 steps on sequences, classes return without limit in 50%, balance 0.5'
    >>> recipe({"features": {"steps": 9}, "train": {"steps": 0, "balance": 0.5}})
    '9 steps on features, none on sequences, balance 0.5'
    >>> recipe({"start": "ab12", "train": {"steps": 1}})
    'went on from the weights ab12, 1 steps on sequences'
    """
    if config is None or not isinstance(config.get("train"), Mapping):
        return None
    parts = []
    if "start" in config:
        parts.append(f"went on from the weights {str(config['start'])[:12]}")
    if "encoder" in config:  # the digest of the weights it was taken from
        parts.append(f"encoder of the weights {str(config['encoder'])[:12]}")
    if before := _budget(config.get("pretrain"), "epochs"):
        parts.append(f"{before} of pretraining" + " by a teacher" * ("teacher" in config))
    if between := _budget(config.get("features"), "steps"):
        mirrored = ", of mirrored pictures too" * bool(config["features"].get("mirror"))
        parts.append(f"{between} on features{mirrored}{_how(config['features'])}")
    after = _budget(config["train"], "steps") or ("none" if config["train"].get("steps") == 0 else "no time")
    parts.append(f"{after} on sequences{_how(config['train'])}")
    return ", ".join(parts)


def _how(stage: Mapping[str, Any]) -> str:
    """What is met beside what the world says, and what counts more, as more words.

    It is said of both stages by the last; results of before it was say it of features.
    """
    words = ""
    if share := stage.get("returning"):
        words += f", classes return without limit in {share:.0%}"
    if balance := stage.get("balance"):
        words += f", balance {balance:g}"
    return words


def _budget(stage: Mapping[str, Any] | None, unit: str) -> str:
    """ "2,000 steps or 60 minutes": whichever ends first."""
    if stage is None:
        return ""
    amounts = ((stage.get(unit), unit), (stage.get("minutes"), "minutes"))
    return " or ".join(f"{amount:,g} {words}" for amount, words in amounts if amount)
