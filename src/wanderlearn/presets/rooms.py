"""Every method on recorded walks through rooms.

    wander train cpm-rooms --world rooms:PATH            as the authors did
    wander train cpm-rooms-small --world rooms:PATH      for a computer without a graphics card

The first are the authors' settings: frames of 120 x 160, ResNet-12 with attention, 512 numbers, everything
from nothing. The second have frames of 60 x 80 and a narrower encoder, which is pretrained for all methods
alike by naming the things of the training homes.
"""

from dataclasses import replace
from typing import Final, Literal, get_args

from wanderlearn.feature_training import FeaturesConfig
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.dnc import DNCConfig
from wanderlearn.learners.imp import IMPConfig
from wanderlearn.learners.lstm import LSTMConfig
from wanderlearn.learners.matchingnet import MatchingNetConfig
from wanderlearn.learners.oml import OMLConfig
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.resnet12 import ResNet12Config
from wanderlearn.learners.wayfarer import WayfarerConfig
from wanderlearn.model import LearnerConfig, ModelConfig
from wanderlearn.presets.preset import METHODS, Method, Preset
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.rooms.process import RoomsConfig
from wanderlearn.sequence_training import TrainConfig

__all__ = ["ROOMS_PRESETS"]

Size = Literal["", "-small"]
WORLD: Final = "rooms:rooms"  # where `wander rooms record` leaves its files
SLOTS: Final = 40
BY_GRADIENT: Final = ("oml-u", "oml-u-plus")
SMALL_CHANNELS: Final = (16, 32, 64, 128)
SMALL_HEIGHT: Final = 60
LENGTHS: Final[dict[Method, float]] = {"cpm": 3.2, "imp": 3.2, "oml-u": 10.0}  # of features; 0: as they come
WRITE_SCHEDULE: Final = 10_000  # steps until all that is unlabelled is written


def _as_the_authors(method: Method, semi: bool) -> Preset:
    signed = method in ("cpm", "oml-u-plus", "wayfarer")
    encoder = ResNet12Config(
        image_size=120,
        in_channels=4,
        pooling="attention",
        last_relu=not signed,
        scale=0.1 if method == "cpm" else 1.0,
    )
    learners: dict[Method, LearnerConfig] = {
        "cpm": CPMConfig(write_schedule=WRITE_SCHEDULE),
        "protonet": ProtoNetConfig(write_schedule=WRITE_SCHEDULE),
        "matchingnet": MatchingNetConfig(),
        "imp": IMPConfig(beta=30.0),
        "lstm": LSTMConfig(slots=SLOTS),
        "dnc": DNCConfig(width=256, slots=SLOTS),
        "oml-u": OMLConfig(slots=SLOTS, truncate=20),
        "oml-u-plus": OMLConfig(classifier="cosine", slots=SLOTS, truncate=20),
        "wayfarer": WayfarerConfig(),
    }
    steps = {"dnc": 40_000, "oml-u": 16_000, "oml-u-plus": 16_000}.get(method, 20_000)
    return Preset(
        name=f"{method}-rooms{'-semi' if semi else ''}",
        world=WORLD,
        roaming=RoomsConfig(slots=SLOTS, semi=semi),
        model=ModelConfig(encoder, replace(learners[method], features=encoder.feature_dim)),
        train=TrainConfig(
            steps=steps,
            batch_size=8,
            clip=0.0 if method == "protonet" else 5.0,
            weight_decay=1e-4 if method == "cpm" else 2e-4,
            validate_every=500,
        ),
    )


def _small(method: Method, semi: bool) -> Preset:
    """Forty minutes on one core, and the same for every method, so that they can be compared.

    Features are pretrained for cosines, so those who know none get features of one length. So does CPM, a
    length at which its context has something to add to (the authors scale CPM's features by 0.1).
    """
    encoder = ResNet12Config(
        image_size=SMALL_HEIGHT,
        in_channels=4,
        pooling="attention",
        channels=SMALL_CHANNELS,
        last_relu=False,
        batch_norm_momentum=0.02,
        length=LENGTHS.get(method, 0.0),
    )
    learners: dict[Method, LearnerConfig] = {
        "cpm": CPMConfig(memory="average"),
        "protonet": ProtoNetConfig(similarity="cosine", beta_read=-6.0, beta_write=-6.0),
        "matchingnet": MatchingNetConfig(similarity="cosine", temperature=30.0, beta=-18.0),
        "imp": IMPConfig(),
        "lstm": LSTMConfig(slots=SLOTS),
        "dnc": DNCConfig(slots=SLOTS),
        "oml-u": OMLConfig(slots=SLOTS, inner_lr=0.1, truncate=20),
        "oml-u-plus": OMLConfig(classifier="cosine", slots=SLOTS, inner_lr=3e-3, truncate=20),
        "wayfarer": WayfarerConfig(),
    }
    few_numbers = method in ("protonet", "matchingnet", "imp")  # only thresholds to find
    return Preset(
        name=f"{method}-rooms-small{'-semi' if semi else ''}",
        world=WORLD,
        roaming=RoomsConfig(slots=SLOTS, semi=semi, crop_rows=3, crop_columns=4, mask_shift=1),
        model=ModelConfig(encoder, replace(learners[method], features=encoder.feature_dim)),
        train=TrainConfig(
            minutes=10.0,
            batch_size=4,
            lr=3e-4,
            schedule="cosine",
            clip=0.0 if few_numbers else 5.0,
            weight_decay=1e-4,
            validate_every=25,
            validate_sequences=40,
        ),
        pretrain=PretrainConfig(minutes=25.0, batch_size=48, flip=True, warmup=100),
        features=None
        if method in BY_GRADIENT
        else FeaturesConfig(minutes=5.0, copies=2, batch_size=8, lr=1e-2 if few_numbers else 2e-3),
    )


ROOMS_PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset
    for size in get_args(Size)
    for semi in (False, True)
    for preset in ((_small if size else _as_the_authors)(method, semi) for method in METHODS)
}
"""Recipes for recorded walks; without `--world` they look for them in the folder rooms."""
