"""The options of the roaming process that `wander sample` and `wander evaluate` share with `wander train`."""

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from wanderlearn.worlds import RoamingConfig

__all__ = ["ProcessOptions"]


@dataclass(frozen=True)
class ProcessOptions:
    """What may be lowered for a small collection. None leaves it as it is."""

    environments: Annotated[int | None, tyro.conf.arg(name="roaming.environments")] = None
    """Hidden contexts in one sequence (default: 5, or as it was trained)."""
    classes: Annotated[int | None, tyro.conf.arg(name="roaming.classes")] = None
    """Most classes in one sequence (default: 50, or as it was trained)."""
    length: Annotated[int | None, tyro.conf.arg(name="roaming.length")] = None
    """Most meetings in one sequence (default: 150, or as it was trained)."""
    per_class: Annotated[int | None, tyro.conf.arg(name="roaming.per-class")] = None
    """Most items of one class (default: 6, or as it was trained)."""

    def applied(self, config: "RoamingConfig") -> "RoamingConfig":
        """The process with these changes."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(config, **{name: value for name, value in given.items() if value is not None})
