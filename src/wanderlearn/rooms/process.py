"""How recorded walks become sequences of meetings: the settings, with the authors' values as defaults."""

from dataclasses import dataclass

from wanderlearn.errors import WanderError

__all__ = ["RoomsConfig"]


@dataclass(frozen=True)
class RoomsConfig:
    """RoamingRooms: every object that is annotated in a frame is a meeting."""

    slots: int = 40
    """Class slots of a learner. One of them stays free: a sequence has at most one class fewer."""
    length: int = 100
    """Most meetings in one sequence."""
    per_class: int = 8
    """About so many meetings are left of an instance that a walk meets more often."""
    least_meetings: int = 50
    """Fewest meetings that a walk must have left to be a sequence."""
    least_classes: int = 6
    """Fewest instances that a walk must meet to be a sequence."""
    drop: float = 0.05
    """Share of the meetings that is left out beyond that in training."""
    reverse: float = 0.5
    """Chance that a training sequence runs backward in time."""
    crop_rows: int = 6
    """Black rows added above and below a frame before its random crop in training; crops are of the frame's
    size. All that is met in one frame is met in one crop."""
    crop_columns: int = 8
    """The same to the left and to the right."""
    mask_shift: int = 2
    """Pixels, up and down and sideways, by which the mask of a thing may be off in training."""
    shuffle: bool = False
    """Destroy temporal context by one random permutation of each sequence (the paper's control)."""
    semi: bool = False
    """Hide labels: frequent instances lose more of them."""
    label_ratio: float = 0.3
    """Share of labels that a very frequent instance keeps in the semi-supervised setting."""

    def __post_init__(self) -> None:
        for name, least in (("slots", 2), ("length", 1), ("per_class", 1), ("least_meetings", 1)):
            if getattr(self, name) < least:
                raise WanderError(f"{name} must be at least {least}, not {getattr(self, name)}.")
        for name in ("crop_rows", "crop_columns", "mask_shift", "least_classes"):
            if getattr(self, name) < 0:
                raise WanderError(f"{name} must not be below 0, but it is {getattr(self, name)}.")
        if not 0 <= self.drop < 1:
            raise WanderError(f"drop must be from 0 to below 1, not {self.drop}.")
        for name in ("reverse", "label_ratio"):
            if not 0 <= getattr(self, name) <= 1:
                raise WanderError(f"{name} must lie between 0 and 1, not {getattr(self, name)}.")

    @property
    def classes(self) -> int:
        """Most classes in one sequence."""
        return self.slots - 1

    @property
    def background(self) -> None:
        """Frames are their own background: textures are for drawings."""
        return None
