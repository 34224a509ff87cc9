"""What a preset is: a whole recipe that says what it does, how long it takes and what to expect."""

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from wanderlearn.feature_training import FeaturesConfig
from wanderlearn.learners.ablations import ARCHITECTURE_ABLATIONS, SEMI_ABLATIONS, slug_of
from wanderlearn.model import ModelConfig
from wanderlearn.paper import ARCHITECTURE_ABLATION_AP, PAPER_AP, SEMI_ABLATION_AP
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.worlds.roaming import RoamingConfig
from wanderlearn.worlds.world import Process

__all__ = ["METHODS", "RETURNING", "Method", "Preset"]

Method = Literal["cpm", "protonet", "matchingnet", "imp", "lstm", "dnc", "oml-u", "oml-u-plus", "wayfarer"]
METHODS: Final = get_args(Method)
RETURNING: Final[dict[Method, float]] = {"wayfarer": 0.25}
"""In which share of the sequences things return as they like: who counts else learns that what was met as
often as the world allows never returns."""
ABLATION_AP: Final[dict[str, float]] = {
    f"{slug_of(config)}-omniglot-semi": paper[row]
    for rows, paper in (
        (ARCHITECTURE_ABLATIONS, ARCHITECTURE_ABLATION_AP),
        (SEMI_ABLATIONS, SEMI_ABLATION_AP),
    )
    for row, config in rows.items()
}


@dataclass(frozen=True)
class Preset:
    """A recipe: the world, the model and how it is trained."""

    name: str
    world: str
    roaming: Process = field(default_factory=RoamingConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    pretrain: PretrainConfig | None = None
    features: FeaturesConfig | None = None

    @property
    def about(self) -> str:
        """The command, what it does, how long it takes and the number to expect."""
        labels = "few labels" if self.roaming.semi else "all labels"
        paper = f"paper: AP {PAPER_AP[self.name]}" if self.name in PAPER_AP else "not in the paper"
        if "-context-" in self.name:
            paper = "paper: a bar without a number"
        if not self.world and "-imagenet" in self.name:
            known = f" ({paper} on tiered-ImageNet)" if self.name in PAPER_AP else ""
            return f"wander train {self.name} --world imagenet:PATH: {labels}, {self._stages()}{known}"
        if "-rooms" in self.name:
            known = f" ({paper} on Matterport3D)" if self.name in PAPER_AP else ""
            return f"wander train {self.name} --world rooms:PATH: {labels}, {self._stages()}{known}"
        if not self.world:
            return f"wander train {self.name} --world folder:PATH: {labels}, {self._stages()}"
        if self.name in ABLATION_AP:
            paper = f"paper: validation AP {ABLATION_AP[self.name]:.2f}"
        return f"wander train {self.name}: {labels}, {self._stages()} ({paper})"

    def _stages(self) -> str:
        budget = _budget(self.train.minutes, self.train.steps, "steps")
        if self.pretrain is None or not self.pretrain.wanted:
            return f"from scratch, {budget} of sequences"
        stages = [f"{_budget(self.pretrain.minutes, self.pretrain.epochs, 'epochs')} of pretraining"]
        if self.features is not None and self.features.wanted:
            mirrored = ", of mirrored pictures too" * self.features.mirror
            between = _budget(self.features.minutes, self.features.steps, "steps")
            stages += [f"{between} of features{mirrored}"]
        stages += [f"{budget} of sequences"] * self.train.wanted
        how = ", some without a limit on how often a class returns" * (self.train.returning > 0)
        how += ", the rarely asked counting more" * (self.train.balance > 0)
        return ", ".join([*stages[:-1], f"then {stages[-1]}" if stages[1:] else stages[0]]) + how


def _budget(minutes: float | None, other: float | None, unit: str) -> str:
    parts = [f"{minutes:g} minutes"] if minutes else []
    parts += [f"{other:g} {unit}"] if other else []
    return " or ".join(parts) or "no budget"
