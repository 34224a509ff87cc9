"""Every method on Omniglot and on the embedded world, with all labels and with few."""

from dataclasses import replace
from typing import Final, Literal, get_args

from wanderlearn.feature_training import FeaturesConfig
from wanderlearn.learners.dnc import DNCConfig
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.lstm import LSTMConfig
from wanderlearn.model import ModelConfig
from wanderlearn.presets.preset import METHODS, RETURNING, Method, Preset
from wanderlearn.presets.pretrained import (
    BY_GRADIENT,
    FEW_NUMBERS,
    OMNIGLOT_PRETRAINING,
    OMNIGLOT_TEMPERATURE,
    PLAIN,
    for_cosines,
)
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.worlds.roaming import RoamingConfig

__all__ = ["GOES_ON_FROM", "PRESETS", "SCRATCH_PRESETS"]

World = Literal["omniglot", "glyphs"]
SCRATCH_MINUTES: Final = 25.0
GOES_ON_FROM: Final[dict[str, tuple[str, ...]]] = {
    "lstm-omniglot-second": ("lstm-omniglot-first",),
    "lstm-omniglot-third": ("lstm-omniglot-second", "--features.steps", "5000", "--features.lr", "2e-4"),
    "lstm-omniglot": ("lstm-omniglot-third", "--features.steps", "14000", "--train.seed", "1"),
    "lstm-omniglot-semi": ("lstm-omniglot-first",),
}
"""Runs of what learns for long: each goes on from another by the preset with all labels, perhaps changed."""
LOOK_UP: Final = 5.0  # length of the features that an LSTM or a DNC begins by looking up


def _model(method: Method, momentum: float) -> ModelConfig:
    """The authors' model: CPM and OML-U++ without the encoder's last ReLU, the others with; ours without."""
    signed = method in ("cpm", "oml-u-plus", "wayfarer")
    encoder = Conv4Config(last_relu=not signed, batch_norm_momentum=momentum)
    return ModelConfig(encoder, PLAIN[method])


def _preset(method: Method, world: World, semi: bool) -> Preset:
    """One method on one world."""
    recurrent, by_gradient = method in ("lstm", "dnc"), method in BY_GRADIENT
    shared = TrainConfig(
        clip=5.0 if recurrent or by_gradient or method in ("cpm", "wayfarer") else 0.0,
        weight_decay=5e-5 if recurrent or by_gradient else 1e-5,
        returning=RETURNING.get(method, 0.0),
    )
    name = f"{method}-{world}{'-semi' if semi else ''}"
    if world == "glyphs":
        # So short a run learns most by many small steps at a higher rate that falls smoothly; its averages
        # must be quicker, too.
        train = replace(shared, minutes=10.0, batch_size=8, lr=2e-3, schedule="cosine", validate_every=100)
        preset = Preset(name, world, RoamingConfig(semi=semi), _model(method, momentum=0.02), train)
        if not recurrent:
            return preset
        # What has to learn even how to remember gets nowhere in ten minutes of whole sequences: the encoder
        # comes pretrained, and most steps are taken on its features, where they cost little.
        return replace(
            preset,
            pretrain=PretrainConfig(minutes=3.0, turn=0.0, classifier_lr=3e-3),
            features=FeaturesConfig(
                minutes=5.0, copies=1, batch_size=8, muon=False, weight_decay=train.weight_decay
            ),
            train=replace(train, minutes=2.0, lr=5e-4, encoder_lr=0.1),
        )
    # One encoder for all methods, pretrained by classification; then the learner alone on its features; then
    # everything together at a low rate. OML has nothing to train but the encoder.
    # The last stage of the encoder and that on features see pictures where a test shows them. What uses
    # context would learn the training classes by heart in so many steps, were there not the mirrored, too.
    contextual = method in ("cpm", "wayfarer")
    features = FeaturesConfig(steps=2000, copies=2, crop=False, mirror=True, weight_decay=shared.weight_decay)
    if method == "wayfarer":
        # At a higher rate it comes as far in fewer steps.
        features = replace(features, steps=2000 if semi else 3000, lr=6e-3, warmup=30)
    elif method in FEW_NUMBERS:
        features = FeaturesConfig(steps=150, copies=1, crop=False, lr=1e-2, weight_decay=shared.weight_decay)
    elif recurrent:  # they begin by knowing how to look something up, and larger steps would undo that
        steps, lr = (4000 if semi else 6000, 4e-4) if method == "lstm" else (1800, 1e-3)
        features = replace(features, steps=steps, lr=lr, muon=False, warmup=20, weight_decay=0.0)
    steps = 100 if contextual or recurrent else 200
    if method == "wayfarer":
        steps = 1000
    elif method == "matchingnet":  # it does not compare as the encoder was pretrained to
        steps = 400
    train = replace(
        shared,
        steps=steps,  # after so many all together validation gained nothing or next to nothing more
        batch_size=8,
        lr=1e-4,
        schedule="cosine",
        validate_every=500 if method == "lstm" else 200,
        validate_sequences=240,
        encoder_lr=0.1 if method == "dnc" else 1.0,  # by the paper
        # An LSTM is so long unsure of names that little of the loss would be of what is new.
        novelty_weight=3.0 if method == "lstm" else 1.0,
        # With few labels what was told often, long ago, is hardly ever asked about, and Wayfarer gives it up.
        balance=0.4 if method == "wayfarer" and semi else 0.0,
    )
    plain = _model(method, momentum=0.01)
    assert isinstance(plain.encoder, Conv4Config)
    encoder, learner = plain.encoder, plain.learner
    if isinstance(learner, DNCConfig | LSTMConfig):
        encoder, learner = replace(encoder, length=LOOK_UP), replace(learner, look_up=LOOK_UP)
    if isinstance(learner, DNCConfig):
        learner = replace(learner, writes_first=True, trace_writes=False)
    model = for_cosines(encoder, learner, semi=semi, temperature=OMNIGLOT_TEMPERATURE)
    return Preset(
        name,
        world,
        RoamingConfig(semi=semi),
        model,
        train,
        OMNIGLOT_PRETRAINING,
        None if by_gradient else features,
    )


PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset
    for world in get_args(World)
    for semi in (False, True)
    for preset in (_preset(method, world, semi) for method in METHODS)
}
"""All presets by name."""


def _from_scratch(method: Method) -> Preset:
    """The authors' way, nothing pretrained and nothing changed, for as long as one core can spare."""
    name = f"{method}-omniglot-scratch"
    clip = PRESETS[f"{method}-omniglot"].train.clip
    train = TrainConfig(minutes=SCRATCH_MINUTES, clip=clip, validate_every=100)
    return Preset(name, "omniglot", RoamingConfig(), _model(method, momentum=0.01), train)


WITHOUT: Final[tuple[Method, ...]] = ("protonet", "cpm")
SCRATCH_PRESETS: Final[dict[str, Preset]] = {preset.name: preset for preset in map(_from_scratch, WITHOUT)}
"""Two rows without the recipe, so that its effect is seen."""
