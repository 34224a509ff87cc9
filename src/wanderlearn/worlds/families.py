"""Enough families for a sequence, where a split has few."""

import math
from dataclasses import replace

import numpy as np

from wanderlearn.pictures.collection import Pictures
from wanderlearn.worlds.roaming import RoamingConfig

__all__ = ["with_families"]


def with_families(pictures: Pictures, config: RoamingConfig) -> Pictures:
    """The same pictures with as many families as a sequence draws from: each is divided, where it can be."""
    smallest = int(np.bincount(pictures.family).min())
    parts = math.ceil(config.classes // config.environments / pictures.families)
    parts = min(parts, smallest // config.environments)
    if parts <= 1:
        return pictures
    family = np.empty_like(pictures.family)
    for one in range(pictures.families):
        members = np.flatnonzero(pictures.family == one)
        family[members] = one * parts + np.arange(len(members)) * parts // len(members)
    names = [f"{name}/{part + 1}" for name in pictures.family_names for part in range(parts)]
    return replace(pictures, family=family, family_names=names)
