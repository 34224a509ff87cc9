"""What a model, a preset and a place of the user's pictures have to agree on: size, channels, the process."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wanderlearn.configs import from_json
from wanderlearn.errors import WanderError
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.vectors import VectorsConfig
from wanderlearn.model import EncoderConfig, ModelConfig
from wanderlearn.pictures.address import is_address, read_address
from wanderlearn.pictures.collection import Pictures
from wanderlearn.worlds.named import PLACE_ROAMING
from wanderlearn.worlds.roaming import RoamingConfig

__all__ = ["at_place", "check_seen", "model_for", "place_roaming"]


def at_place(world: str, model: ModelConfig) -> str:
    """The address in full: an absolute path, and size and channels as the model wants them if left open."""
    address, encoder = read_address(world), model.encoder
    if isinstance(encoder, VectorsConfig) or address.kind == "features":
        return str(address.with_absolute_path())
    return str(address.filled(encoder.image_size, encoder.in_channels))


def model_for(world: str, model: ModelConfig) -> ModelConfig:
    """The model, for the size and the channels of a place, or for its vectors."""
    address = read_address(world)
    encoder: EncoderConfig
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
            address.options.channels or model.encoder.in_channels,
        )
    learner = replace(model.learner, features=encoder.feature_dim)
    return ModelConfig(encoder, learner)


def _encoder_for(encoder: Conv4Config, size: int, channels: int) -> Conv4Config:
    blocks = min(
        encoder.blocks, size.bit_length() - 1
    )  # each halves the side: at least one pixel must be left
    return replace(encoder, image_size=size, in_channels=channels, blocks=blocks)


def place_roaming(about: Mapping[str, Any]) -> RoamingConfig:
    """The process to evaluate in at a place: as the weights were trained at one, else nothing is hidden."""
    trained = about.get("world")
    if isinstance(trained, str) and is_address(trained) and "roaming" in about:
        return from_json(RoamingConfig, about["roaming"], "The process of the weights")
    return PLACE_ROAMING


def check_seen(model: ModelConfig, pictures: Pictures) -> None:
    """Whether the encoder takes pictures of this shape."""
    encoder = model.encoder
    takes = (encoder.in_channels, encoder.image_size, encoder.image_size)
    if pictures.images.shape[1:] != takes:
        shown = "x".join(map(str, pictures.images.shape[1:]))
        raise WanderError(
            f"The model takes pictures of {'x'.join(map(str, takes))} (channels, height, width), but those "
            f"of {pictures.name} are {shown}. Leave size and channels out of the address, or train for them."
        )
