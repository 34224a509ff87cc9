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
from wanderlearn.learners.oml import OMLConfig
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.resnet12 import ResNet12Config
from wanderlearn.learners.wayfarer import WayfarerConfig
from wanderlearn.model import LearnerConfig, ModelConfig
from wanderlearn.presets.preset import METHODS, Method, Preset
from wanderlearn.presets.pretrained import BY_GRADIENT, FEW_NUMBERS, PLAIN, for_cosines
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.rooms.process import RoomsConfig
from wanderlearn.sequence_training import TrainConfig

__all__ = ["ROOMS_PRESETS"]

Size = Literal["", "-small"]
WORLD: Final = "rooms:rooms"  # where `wander rooms record` leaves its files
SLOTS: Final = 40
SMALL_CHANNELS: Final = (16, 32, 64, 128)
SMALL_HEIGHT: Final = 60
CPM_LENGTH: Final = 3.2
SLOTTED: Final[dict[Method, LearnerConfig]] = PLAIN | {
    "lstm": LSTMConfig(slots=SLOTS),
    "dnc": DNCConfig(slots=SLOTS),
    "oml-u": OMLConfig(slots=SLOTS, truncate=20),
    "oml-u-plus": OMLConfig(classifier="cosine", slots=SLOTS, truncate=20),
}
"""With as many slots as walks need."""
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
    learners = SLOTTED | {
        "cpm": CPMConfig(write_schedule=WRITE_SCHEDULE),
        "protonet": ProtoNetConfig(write_schedule=WRITE_SCHEDULE),
        "imp": IMPConfig(beta=30.0),
        "dnc": DNCConfig(width=256, slots=SLOTS),
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
    """Half an hour on one core, and the same for every method, so that they can be compared.

    After the encoder a learner is trained on its features, and on nothing else: ten minutes of whole
    sequences after that added nothing to CPM and Wayfarer by validation. What has nothing but an encoder to
    train has those.

    CPM's features get a length at which its context has something to add to (the authors scale them by 0.1).
    Wayfarer does not guess who lives where: homes are no Chinese restaurants, and it gains nothing by it.
    Different things are more alike here than characters are, and in so few steps it cannot learn to credit
    fewer. One copy of every frame is kept: sixty homes have enough of them.
    """
    encoder = ResNet12Config(
        image_size=SMALL_HEIGHT,
        in_channels=4,
        pooling="attention",
        channels=SMALL_CHANNELS,
        last_relu=False,
        batch_norm_momentum=0.02,
    )
    model = for_cosines(encoder, SLOTTED[method], semi=semi)
    if method == "cpm":
        model = replace(model, encoder=replace(encoder, length=CPM_LENGTH))
    if isinstance(model.learner, WayfarerConfig):
        model = replace(model, learner=replace(model.learner, guesses=0, credited_from=0.95))
    few_numbers, by_gradient = method in FEW_NUMBERS, method in BY_GRADIENT
    return Preset(
        name=f"{method}-rooms-small{'-semi' if semi else ''}",
        world=WORLD,
        roaming=RoomsConfig(slots=SLOTS, semi=semi, crop_rows=3, crop_columns=4, mask_shift=1),
        model=model,
        train=TrainConfig(
            steps=None if by_gradient else 0,
            minutes=10.0 if by_gradient else None,
            batch_size=4,
            lr=3e-4,
            schedule="cosine",
            clip=0.0 if few_numbers else 5.0,
            weight_decay=1e-4,
            validate_every=25 if by_gradient else 100,
            validate_sequences=40,
        ),
        pretrain=PretrainConfig(minutes=25.0, batch_size=48, flip=True, warmup=100),
        features=None
        if by_gradient
        else FeaturesConfig(steps=400, copies=1, batch_size=8, lr=1e-2 if few_numbers else 2e-3),
    )


ROOMS_PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset
    for size in get_args(Size)
    for semi in (False, True)
    for preset in ((_small if size else _as_the_authors)(method, semi) for method in METHODS)
}
"""Recipes for recorded walks; without `--world` they look for them in the folder rooms."""
