"""The options of the process that `wander sample`, `wander evaluate` and `wander train` share."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wanderlearn.errors import WanderError

if TYPE_CHECKING:
    from wanderlearn.worlds.world import Process

__all__ = ["Behind", "ProcessOptions", "with_background"]

Behind = Literal["none", "channel", "overlay"]


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

    def applied(self, config: "Process") -> "Process":
        """The process with these changes."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        changes = {name: value for name, value in given.items() if value is not None}
        if foreign := changes.keys() - {field.name for field in fields(config)}:
            told = ", ".join(f"--roaming.{name.replace('_', '-')}" for name in sorted(foreign))
            raise WanderError(f"Walks through rooms know no {told}: what is met there is as recorded.")
        return replace(config, **changes)


def with_background(config: "Process", background: Behind | None, textures: str | None) -> "Process":
    """The process with the background that was asked for. None leaves it as it is."""
    from wanderlearn.worlds.backgrounds import BackgroundConfig
    from wanderlearn.worlds.roaming import RoamingConfig

    if not isinstance(config, RoamingConfig):
        if background not in (None, "none") or textures is not None:
            raise WanderError("Textures are put behind drawings, not behind the frames of rooms.")
        return config
    if background == "none" or (background is None and config.background is None):
        if textures is not None:
            raise WanderError(
                "--textures says what lies behind the pictures, but nothing does. Add --background channel "
                "or --background overlay."
            )
        return replace(config, background=None)
    before = config.background or BackgroundConfig()
    source = before.textures if textures is None else textures
    if Path(source).exists():  # the same place from wherever one looks
        source = str(Path(source).absolute())
    return replace(config, background=replace(before, how=background or before.how, textures=source))
