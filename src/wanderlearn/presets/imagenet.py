"""Every method on natural pictures: RoamingImageNet and any tree like it.

    wander train cpm-imagenet --world imagenet:PATH            as the authors did
    wander train cpm-imagenet-small --world imagenet:PATH      for a computer without a graphics card

The first are the authors' settings at 84 x 84. LSTM, DNC and Online ProtoNet (marked * in the paper) have an
encoder that was pretrained and stays as it is; the others learn from nothing. The second have a narrower
encoder for smaller pictures, which is pretrained for all methods alike.
"""

from dataclasses import replace
from typing import Final, Literal, get_args

from wanderlearn.feature_training import FeaturesConfig
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.dnc import DNCConfig
from wanderlearn.learners.imp import IMPConfig
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.resnet12 import ResNet12Config
from wanderlearn.model import ModelConfig
from wanderlearn.presets.preset import METHODS, RETURNING, Method, Preset
from wanderlearn.presets.pretrained import BY_GRADIENT, FEW_NUMBERS, PLAIN, for_cosines
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.worlds.roaming import RoamingConfig

__all__ = ["IMAGENET_PRESETS"]

Size = Literal["", "-small"]
STARRED: Final = ("lstm", "dnc", "protonet")  # pretrained and frozen in the paper
SMALL_CHANNELS: Final = (16, 32, 64, 128)
SMALL_SIZE: Final = 32
CROP: Final = 3  # pixels around the small pictures, to crop from


def _as_the_authors(method: Method, semi: bool) -> Preset:
    encoder = ResNet12Config(last_relu=method == "oml-u")
    learners = PLAIN | {
        "cpm": CPMConfig(unit_features=True),
        "protonet": ProtoNetConfig(similarity="cosine", beta_write=-12.0),
        "imp": IMPConfig(beta=30.0),
        "dnc": DNCConfig(width=256),
    }
    by_gradient, pretrained = method in BY_GRADIENT, method in (*STARRED, "wayfarer")
    return Preset(
        name=f"{method}-imagenet{'-semi' if semi else ''}",
        world="",
        roaming=RoamingConfig(semi=semi, crop="none", occlusion=0.0),
        model=ModelConfig(encoder, replace(learners[method], features=encoder.feature_dim)),
        train=TrainConfig(
            steps=12_000 if by_gradient else 80_000,
            batch_size=3,
            clip=0.0 if method == "protonet" else 5.0,
            weight_decay=2e-4,
            encoder_lr=0.0 if method in STARRED else 1.0,
            validate_every=500 if by_gradient else 1000,
            returning=RETURNING.get(method, 0.0),
        ),
        pretrain=PretrainConfig(epochs=23.0, flip=True, warmup=200) if pretrained else None,
    )


def _small(method: Method, semi: bool) -> Preset:
    """Minutes instead of hours, and the same for every method, so that they can be compared.

    Of so few pictures the encoder knows more about new classes after 20 epochs than after 40, and far more
    than after 150, when it has the training classes by heart. On its features Wayfarer soon learns to trust
    them, so it has few steps of those, and the time for sequences.
    """
    encoder = ResNet12Config(
        image_size=SMALL_SIZE, channels=SMALL_CHANNELS, last_relu=False, batch_norm_momentum=0.02
    )
    plain = CPMConfig(unit_features=True) if method == "cpm" else PLAIN[method]
    few_numbers, wayfarer = method in FEW_NUMBERS, method == "wayfarer"
    return Preset(
        name=f"{method}-imagenet-small{'-semi' if semi else ''}",
        world="",
        roaming=RoamingConfig(semi=semi, crop="picture", crop_padding=CROP, occlusion=0.0),
        model=for_cosines(encoder, plain, semi=semi),
        train=TrainConfig(
            minutes=5.0 if wayfarer else 3.0,
            batch_size=4,
            lr=1e-4,
            schedule="cosine",
            clip=0.0 if few_numbers else 5.0,
            validate_every=100,
            validate_sequences=60,
            returning=RETURNING.get(method, 0.0),
        ),
        pretrain=PretrainConfig(epochs=20.0, batch_size=128, flip=True, warmup=100),
        features=None
        if method in BY_GRADIENT
        else FeaturesConfig(
            steps=150 if wayfarer else None,
            minutes=1.0 if wayfarer else 3.0,
            copies=2,
            batch_size=8,
            lr=1e-2 if few_numbers else 2e-3,
        ),
    )


IMAGENET_PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset
    for size in get_args(Size)
    for semi in (False, True)
    for preset in ((_small if size else _as_the_authors)(method, semi) for method in METHODS)
}
"""Recipes for natural pictures; they need `--world`."""
