"""What a model, a preset and a place of the user's pictures have to agree on: size, channels, the process."""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from wanderlearn.configs import from_json
from wanderlearn.errors import WanderError
from wanderlearn.learners.double import DoubleConfig
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.resnet12 import ResNet12Config
from wanderlearn.learners.vectors import VectorsConfig
from wanderlearn.model import EncoderConfig, ModelConfig
from wanderlearn.pictures.address import is_address, read_address
from wanderlearn.pictures.collection import SPLITS
from wanderlearn.pictures.encoded import encoded, load_encoder
from wanderlearn.rooms.process import RoomsConfig
from wanderlearn.worlds.backgrounds import BackgroundConfig
from wanderlearn.worlds.named import default_process, is_rooms, open_pictures
from wanderlearn.worlds.roaming import RoamingConfig
from wanderlearn.worlds.world import Collection, Process

__all__ = [
    "at_place",
    "check_seen",
    "encoded_place",
    "merged_place",
    "model_before",
    "model_for",
    "place_process",
    "trained_background",
]

ROOMS_CHANNELS: Final = 4  # colours and a mask


def at_place(world: str, model: ModelConfig) -> str:
    """The address in full: an absolute path, and size and channels as the model wants them if left open."""
    address, encoder = read_address(world), model.encoder
    if address.kind == "rooms":
        size = address.options.size or encoder.image_size
        return str(address.with_absolute_path().with_options(size=size))
    if isinstance(encoder, VectorsConfig) or address.kind == "features":
        return str(address.with_absolute_path())
    return str(address.filled(encoder.image_size, _channels(encoder)))


def merged_place(world: str, environments: int) -> str:
    """The address with small families put together, so that each has a class for every environment.

    Where all families are large enough, as in tiered-ImageNet, that changes nothing.
    """
    address = read_address(world)
    told = address.options.merge is not None or address.options.families is not None
    if told or address.kind == "features" or environments < 2:
        return world
    return str(address.with_options(merge=environments))


def encoded_place(world: str, encoder: str, source: Path | None = None) -> str:
    """The address of the vectors that a user's encoder makes of all pictures of a world."""
    own, pictures = load_encoder(encoder), []
    for split in SPLITS:
        with contextlib.suppress(WanderError):  # a folder may have nothing to test on
            pictures.append(open_pictures(world, split, source))
    if not pictures:
        open_pictures(world, "train", source)  # says why not
    return str(encoded(pictures, own))


def model_for(world: str, model: ModelConfig) -> ModelConfig:
    """The model, for the size and the channels of a place, or for its vectors."""
    address = read_address(world)
    encoder: EncoderConfig
    if address.kind == "rooms":
        return _model_for_rooms(model, address.options.size)
    if address.kind == "features":
        from wanderlearn.pictures.features import width_of

        before = model.encoder if isinstance(model.encoder, VectorsConfig) else VectorsConfig()
        encoder = replace(before, width=width_of(address))
    elif isinstance(model.encoder, VectorsConfig):
        raise WanderError(f"This model takes vectors, but {world} holds pictures. Use features:PATH.npy.")
    else:
        encoder = _encoder_for(
            model.encoder,
            address.options.size or model.encoder.image_size,
            address.options.channels or _channels(model.encoder),
        )
    learner = replace(model.learner, features=encoder.feature_dim)
    return ModelConfig(encoder, learner)


def _model_for_rooms(model: ModelConfig, size: int | None) -> ModelConfig:
    """The model for frames of so many rows. Their width is as recorded."""
    encoder = model.encoder
    if not isinstance(encoder, ResNet12Config) or encoder.in_channels != ROOMS_CHANNELS:
        raise WanderError(
            "Walks through rooms are for a ResNet-12 that takes a frame and a mask, as the presets for rooms "
            "have it: wander train cpm-rooms-small --world rooms:PATH."
        )
    return replace(model, encoder=replace(encoder, image_size=size or encoder.image_size))


def _channels(encoder: EncoderConfig) -> int:
    """How many channels a picture has for this encoder, without what lies behind it."""
    return encoder.picture.in_channels if isinstance(encoder, DoubleConfig) else encoder.in_channels


def _encoder_for(
    encoder: Conv4Config | DoubleConfig | ResNet12Config, size: int, channels: int
) -> Conv4Config | DoubleConfig | ResNet12Config:
    if isinstance(encoder, DoubleConfig):
        return replace(encoder, picture=_conv4_for(encoder.picture, size, channels))
    if isinstance(encoder, ResNet12Config):
        return replace(encoder, image_size=size, in_channels=channels)
    return _conv4_for(encoder, size, channels)


def _conv4_for(encoder: Conv4Config, size: int, channels: int) -> Conv4Config:
    blocks = min(
        encoder.blocks, size.bit_length() - 1
    )  # each halves the side: at least one pixel must be left
    return replace(encoder, image_size=size, in_channels=channels, blocks=blocks)


def place_process(world: str, about: Mapping[str, Any]) -> Process:
    """The process to evaluate in at a place: as the weights were trained at one, else nothing is hidden."""
    trained = about.get("world")
    if isinstance(trained, str) and is_address(trained) and "roaming" in about:
        where, words = about["roaming"], "The process of the weights"
        if is_rooms(trained) and is_rooms(world):
            return from_json(RoomsConfig, where, words)
        if not is_rooms(trained) and not is_rooms(world):
            return from_json(RoamingConfig, where, words)
    return default_process(world)


def trained_background(about: Mapping[str, Any]) -> BackgroundConfig | None:
    """What lay behind the pictures that weights were trained on."""
    if "roaming" not in about or is_rooms(str(about.get("world"))):
        return None
    return from_json(RoamingConfig, about["roaming"], "The process of the weights").background


def model_before(model: ModelConfig, background: BackgroundConfig | None) -> ModelConfig:
    """The model for pictures with this behind them: with a double encoder where that is a channel."""
    encoder = model.encoder
    if background is not None and background.how == "channel":
        if isinstance(encoder, DoubleConfig):
            return model
        if not isinstance(encoder, Conv4Config):
            raise WanderError(
                "A background as a channel is for the encoder Conv4, of which there are then two."
            )
        encoder = DoubleConfig(encoder, encoder.length)
    elif isinstance(encoder, DoubleConfig):
        encoder = encoder.picture
    else:
        return model
    return ModelConfig(encoder, replace(model.learner, features=encoder.feature_dim))


def check_seen(model: ModelConfig, pictures: Collection, background: BackgroundConfig | None = None) -> None:
    """Whether the encoder takes pictures of this shape, with this behind them."""
    encoder, seen = model.encoder, pictures.shape
    double, behind = isinstance(encoder, DoubleConfig), background is not None and background.how == "channel"
    if double != behind and (double or seen[0] == encoder.in_channels):
        raise WanderError(
            "The model looks at what lies behind the pictures: evaluate it with --background channel."
            if double
            else "The model looks at pictures alone, not at a background in a channel of its own: evaluate "
            "it with --background none."
        )
    any_width = isinstance(encoder, ResNet12Config) and encoder.in_channels == ROOMS_CHANNELS
    takes = (encoder.in_channels, encoder.image_size, seen[2] if any_width else encoder.image_size)
    found = (seen[0] + behind, *seen[1:])
    if found != takes:
        shown = "x".join(map(str, found))
        raise WanderError(
            f"The model takes pictures of {'x'.join(map(str, takes))} (channels, height, width), but those "
            f"of {pictures.name} are {shown}. Leave size and channels out of the address, or train for them."
        )
