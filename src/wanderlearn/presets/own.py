"""Every method on pictures of the user's."""

from dataclasses import replace
from typing import Final

from wanderlearn.feature_training import FeaturesConfig
from wanderlearn.learners.dnc import DNCConfig
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.model import ModelConfig
from wanderlearn.presets.methods import PRESETS
from wanderlearn.presets.preset import METHODS, Method, Preset
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.worlds.roaming import RoamingConfig

__all__ = ["METHOD_PRESETS"]

DNC_UNITS: Final = 384  # for a table of features of 256 numbers


def _method_preset(method: Method, semi: bool) -> Preset:
    """One method on whatever pictures the user has: in colour, 64 x 64, nothing cropped or hidden."""
    base = PRESETS[f"{method}-omniglot{'-semi' if semi else ''}"]
    before = base.model.encoder
    assert isinstance(before, Conv4Config)
    encoder = replace(before, image_size=64, in_channels=3, blocks=5, batch_norm_momentum=0.02)  # 2 x 2 x 64
    learner = replace(base.model.learner, features=encoder.feature_dim)
    if isinstance(learner, DNCConfig):
        learner = replace(learner, units=DNC_UNITS)
    return replace(
        base,
        name=f"{method}{'-semi' if semi else ''}",
        world="",
        roaming=RoamingConfig(semi=semi, crop="none", occlusion=0.0),
        model=ModelConfig(encoder, learner),
        pretrain=PretrainConfig(minutes=6.0, batch_size=128, warmup=50),
        features=base.features
        and replace(
            base.features,
            steps=None,
            minutes=2.0,
            copies=1,
            batch_size=8,
            crop=True,
            mirror=False,
            lr=FeaturesConfig.lr if method == "wayfarer" else base.features.lr,  # of fewer pictures
        ),
        train=replace(
            base.train, steps=None, minutes=2.0, batch_size=4, validate_every=25, validate_sequences=120
        ),
    )


METHOD_PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset
    for semi in (False, True)
    for preset in (_method_preset(method, semi) for method in METHODS)
}
"""Recipes for pictures of the user's: named by the method alone, they need `--world`."""
