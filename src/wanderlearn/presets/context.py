"""The paper's context experiment: two learners, with and without a spatial and a temporal cue.

    wander train cpm-context-both-omniglot --encoder omniglot      textures behind the pictures, order kept
    wander train cpm-context-spatial-omniglot --encoder omniglot   textures; sequences shuffled
    wander train cpm-context-temporal-omniglot --encoder omniglot  no textures; order kept
    wander train cpm-context-none-omniglot --encoder omniglot      neither

All are trained with few labels. As in the paper both learners compare by Euclidean distance and keep plain
means, so that CPM differs from Online ProtoNet by its context alone. On glyphs all is trained from scratch,
end to end. On Omniglot all eight start with one encoder of pictures, pretrained on single ones without any
context; the half for textures is pretrained by naming the training textures. Features then have a fixed
length (and no last ReLU, which that encoder was pretrained without).
"""

from dataclasses import replace
from typing import Final, Literal, NamedTuple, get_args

from wanderlearn.feature_training import FeaturesConfig
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.double import DoubleConfig
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.model import EncoderConfig, LearnerConfig, ModelConfig
from wanderlearn.presets.preset import Preset
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.worlds.backgrounds import BackgroundConfig
from wanderlearn.worlds.roaming import RoamingConfig

__all__ = ["CONDITIONS", "CONTEXT_LEARNERS", "CONTEXT_PRESETS", "Condition", "context_name"]

World = Literal["omniglot", "glyphs"]
LENGTH: Final = 3.2  # of the feature of a picture: distances are then of the size of the first thresholds
BACKGROUND_LENGTH: Final = 1.6  # of the feature of a background; chosen on validation


class Condition(NamedTuple):
    """Which cues there are."""

    spatial: bool
    temporal: bool


CONDITIONS: Final[dict[str, Condition]] = {
    "none": Condition(spatial=False, temporal=False),
    "spatial": Condition(spatial=True, temporal=False),
    "temporal": Condition(spatial=False, temporal=True),
    "both": Condition(spatial=True, temporal=True),
}
"""The four conditions by name, in the paper's order."""
CONTEXT_LEARNERS: Final = ("protonet", "cpm")


def context_name(learner: str, condition: str, world: str) -> str:
    """The name of a preset, and of its result."""
    return f"{learner}-context-{condition}-{world}"


def _preset(learner: str, condition: str, world: World) -> Preset:
    spatial, temporal = CONDITIONS[condition]
    roaming = RoamingConfig(
        semi=True, shuffle=not temporal, background=BackgroundConfig() if spatial else None
    )
    pretrained = world == "omniglot"
    picture = Conv4Config(
        last_relu=not pretrained,
        batch_norm_momentum=0.01 if pretrained else 0.02,
        length=LENGTH if pretrained else 0.0,
    )
    behind = BACKGROUND_LENGTH if pretrained else 0.0
    encoder: EncoderConfig = DoubleConfig(picture, behind) if spatial else picture
    learners: dict[str, LearnerConfig] = {
        "protonet": ProtoNetConfig(features=encoder.feature_dim),
        "cpm": CPMConfig(features=encoder.feature_dim, memory="average", similarity="euclidean"),
    }
    train = TrainConfig(schedule="cosine", batch_size=8, clip=5.0 if learner == "cpm" else 0.0)
    preset = Preset(
        context_name(learner, condition, world),
        world,
        roaming,
        ModelConfig(encoder, learners[learner]),
        train,
    )
    if not pretrained:  # as the presets of the same methods there, but in steps: so all cells see as much
        return replace(preset, train=replace(train, steps=250, lr=2e-3, validate_every=50))
    return replace(
        preset,
        pretrain=PretrainConfig(epochs=30.0, warmup=100),
        features=FeaturesConfig(steps=500, copies=1),
        train=replace(train, steps=80, lr=3e-4, validate_every=80, validate_sequences=60),
    )


CONTEXT_PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset
    for world in get_args(World)
    for preset in (_preset(learner, c, world) for learner in CONTEXT_LEARNERS for c in CONDITIONS)
}
"""By name: {protonet,cpm}-context-{none,spatial,temporal,both}-{omniglot,glyphs}."""
