"""A process that fits the pictures, where a small collection cannot give what the paper's can."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from wanderlearn.errors import WanderError
from wanderlearn.pictures.address import read_address
from wanderlearn.pictures.collection import Pictures
from wanderlearn.worlds.roaming import Roaming, RoamingConfig

__all__ = ["advice", "fitted"]

LOWERED = ("environments", "classes", "per_class")


def fitted(pictures: Sequence[Pictures], config: RoamingConfig) -> RoamingConfig | None:
    """The process nearest to `config` that all of these collections can feed, or None.

    Environments are given up last, then the number of items of a class.
    """
    for tried in _candidates(pictures, config):
        if all(_fits(some, tried) for some in pictures):
            return tried
    return None


def _candidates(pictures: Sequence[Pictures], config: RoamingConfig) -> Iterator[RoamingConfig]:
    families = min(some.families for some in pictures)
    for environments in range(config.environments, 0, -1):
        room = config.classes // config.environments
        without_repeats = environments * min(room, families)  # no class stands for two of its environment
        for per_class in range(config.per_class, 0, -1):
            for classes in dict.fromkeys((min(config.classes, environments * room), without_repeats)):
                yield replace(config, environments=environments, classes=classes, per_class=per_class)


def _fits(pictures: Pictures, config: RoamingConfig) -> bool:
    try:
        Roaming(pictures, config)
    except WanderError:
        return False
    return True


def advice(name: str, pictures: Sequence[Pictures], config: RoamingConfig) -> str:
    """The options that would help, in a sentence."""
    address, ways = read_address(name), []
    small = min(_smallest_family(some) for some in pictures)
    if small < config.environments <= min(some.classes for some in pictures):
        merged = address.with_options(merge=config.environments)
        ways.append(f"put small families together: --world '{merged}'")
    fit = fitted(pictures, config)
    if fit is not None:
        changed = [field for field in LOWERED if getattr(fit, field) != getattr(config, field)]
        told = " ".join(f"--roaming.{f.replace('_', '-')} {getattr(fit, f)}" for f in changed)
        ways.append(f"lower what is asked: {told}")
    if not ways:
        return "There is too little for any sequence."
    return f"What fits here: {'; or '.join(ways)}."


def _smallest_family(pictures: Pictures) -> int:
    return min(int((pictures.family == f).sum()) for f in range(pictures.families))
