"""Presets: whole recipes by name, each saying what it does, how long it takes and what to expect.

    wander train cpm-omniglot            fully labelled
    wander train cpm-omniglot-semi       most labels of frequent classes hidden
    wander train cpm-glyphs              the embedded world: no download, ten minutes
    wander train cpm --world folder:PATH your own pictures
    wander train no-metric-omniglot-semi one row of the paper's ablation tables

The methods are all of the paper's tables, with the authors' settings, but for a budget that suits a computer
without a graphics card, and Wayfarer, which is ours. On Omniglot that takes more than a budget: the encoder
comes pretrained for cosines, so it has no last ReLU, and Online ProtoNet and Online MatchingNet compare by
cosine.
"""

from dataclasses import dataclass, field, replace
from typing import Final, Literal, get_args

from wanderlearn.feature_training import FeaturesConfig
from wanderlearn.learners.ablations import ABLATIONS, ARCHITECTURE_ABLATIONS, SEMI_ABLATIONS, slug_of
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.dnc import DNCConfig
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.imp import IMPConfig
from wanderlearn.learners.lstm import LSTMConfig
from wanderlearn.learners.matchingnet import MatchingNetConfig
from wanderlearn.learners.oml import OMLConfig
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.wayfarer import WayfarerConfig
from wanderlearn.model import LearnerConfig, ModelConfig
from wanderlearn.paper import ARCHITECTURE_ABLATION_AP, PAPER_AP, SEMI_ABLATION_AP
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.worlds.roaming import RoamingConfig

__all__ = ["ABLATION_PRESETS", "METHODS", "METHOD_PRESETS", "PRESETS", "Preset", "ablation_preset"]

Method = Literal["cpm", "protonet", "matchingnet", "imp", "lstm", "dnc", "oml-u", "oml-u-plus", "wayfarer"]
World = Literal["omniglot", "glyphs"]
METHODS: Final = get_args(Method)


@dataclass(frozen=True)
class Preset:
    """A recipe: the world, the model and how it is trained."""

    name: str
    world: str
    roaming: RoamingConfig = field(default_factory=RoamingConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    pretrain: PretrainConfig | None = None
    features: FeaturesConfig | None = None

    @property
    def about(self) -> str:
        """The command, what it does, how long it takes and the number to expect."""
        labels = "few labels" if self.roaming.semi else "all labels"
        paper = f"paper: AP {PAPER_AP[self.name]}" if self.name in PAPER_AP else "not in the paper"
        if not self.world:
            return f"wander train {self.name} --world folder:PATH: {labels}, {self._stages()}"
        if self.name in ABLATION_AP:
            paper = f"paper: validation AP {ABLATION_AP[self.name]:.2f}"
        return f"wander train {self.name}: {labels}, {self._stages()} ({paper})"

    def _stages(self) -> str:
        budget = _budget(self.train.minutes, self.train.steps, "steps")
        if self.pretrain is None or not self.pretrain.wanted:
            return f"from scratch, {budget} of sequences"
        before = _budget(self.pretrain.minutes, self.pretrain.epochs, "epochs")
        between = ""
        if self.features is not None and self.features.wanted:
            between = f"{_budget(self.features.minutes, self.features.steps, 'steps')} of features, "
        return f"{before} of pretraining, {between}then {budget} of sequences"


def _budget(minutes: float | None, other: float | None, unit: str) -> str:
    parts = [f"{minutes:g} minutes"] if minutes else []
    parts += [f"{other:g} {unit}"] if other else []
    return " or ".join(parts) or "no budget"


def _model(method: Method, momentum: float) -> ModelConfig:
    """The authors' model: CPM and OML-U++ without the encoder's last ReLU, the others with; ours without."""
    signed = method in ("cpm", "oml-u-plus", "wayfarer")
    encoder = Conv4Config(last_relu=not signed, batch_norm_momentum=momentum)
    learners: dict[Method, LearnerConfig] = {
        "cpm": CPMConfig(),
        "protonet": ProtoNetConfig(),
        "matchingnet": MatchingNetConfig(),
        "imp": IMPConfig(),
        "lstm": LSTMConfig(),
        "dnc": DNCConfig(),
        "oml-u": OMLConfig(),
        "oml-u-plus": OMLConfig(classifier="cosine"),
        "wayfarer": WayfarerConfig(),
    }
    return ModelConfig(encoder=encoder, learner=learners[method])


def _preset(method: Method, world: World, semi: bool) -> Preset:
    """One method on one world."""
    recurrent, by_gradient = method in ("lstm", "dnc"), method in ("oml-u", "oml-u-plus")
    shared = TrainConfig(
        clip=5.0 if recurrent or by_gradient or method in ("cpm", "wayfarer") else 0.0,
        weight_decay=5e-5 if recurrent or by_gradient else 1e-5,
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
    pretrain = PretrainConfig(epochs=30.0, warmup=100)
    features = None if by_gradient else FeaturesConfig(steps=2000, weight_decay=shared.weight_decay)
    train = replace(
        shared,
        steps=300 if method == "cpm" else 100,
        lr=1e-4,
        schedule="cosine",
        validate_every=100 if method == "cpm" else 50,
        # The authors train IMP's encoder, and by the paper DNC's, at a tenth of the rate.
        encoder_lr=0.1 if method in ("imp", "dnc") else 1.0,
    )
    if method in ("protonet", "matchingnet", "imp"):  # only thresholds to find
        features = FeaturesConfig(steps=150, copies=1, lr=1e-2, weight_decay=shared.weight_decay)
    if method == "wayfarer":  # it has learned all it can from the features, and only the encoder is to gain
        train = replace(train, steps=400, validate_every=50)
    model = _by_cosine(_model(method, momentum=0.01))
    if semi and isinstance(model.learner, ProtoNetConfig):  # learn from what has no name only when very sure
        model = replace(model, learner=replace(model.learner, beta_write=-10.0))
    return Preset(name, world, RoamingConfig(semi=semi), model, train, pretrain, features)


def _by_cosine(model: ModelConfig) -> ModelConfig:
    """A model for features that were pretrained to be compared by cosine, so without a last ReLU.

    Where a learner knows no cosine its features get one length, at which its first thresholds and steps are
    of the right size; these and the sharpness of MatchingNet were chosen on validation.
    """
    encoder, learner = model.encoder, model.learner
    assert isinstance(encoder, Conv4Config)
    encoder = replace(encoder, last_relu=False)
    if isinstance(learner, CPMConfig):
        learner = replace(learner, memory="average")
    elif isinstance(learner, ProtoNetConfig):
        learner = replace(learner, similarity="cosine", beta_read=-6.0, beta_write=-6.0)
    elif isinstance(learner, MatchingNetConfig):
        learner = replace(learner, similarity="cosine", temperature=30.0, beta=-18.0)
    elif isinstance(learner, IMPConfig):
        encoder = replace(encoder, length=3.2)
    elif isinstance(learner, OMLConfig) and learner.classifier == "linear":
        encoder, learner = replace(encoder, length=10.0), replace(learner, inner_lr=0.1)
    elif isinstance(learner, OMLConfig):
        learner = replace(learner, inner_lr=3e-3)
    return ModelConfig(encoder, learner)


PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset
    for world in get_args(World)
    for semi in (False, True)
    for preset in (_preset(method, world, semi) for method in METHODS)
}
"""All presets by name."""


def _method_preset(method: Method, semi: bool) -> Preset:
    """One method on whatever pictures the user has: in colour, 64 x 64, nothing cropped or hidden."""
    base = PRESETS[f"{method}-omniglot{'-semi' if semi else ''}"]
    before = base.model.encoder
    assert isinstance(before, Conv4Config)
    encoder = replace(before, image_size=64, in_channels=3, blocks=5, batch_norm_momentum=0.02)  # 2 x 2 x 64
    learner = replace(base.model.learner, features=encoder.feature_dim)
    return replace(
        base,
        name=f"{method}{'-semi' if semi else ''}",
        world="",
        roaming=RoamingConfig(semi=semi, crop="none", occlusion=0.0),
        model=ModelConfig(encoder, learner),
        pretrain=PretrainConfig(minutes=6.0, batch_size=128, warmup=50),
        features=base.features and replace(base.features, steps=None, minutes=2.0, copies=1, batch_size=8),
        train=replace(base.train, steps=None, minutes=2.0, batch_size=4, validate_every=25),
    )


METHOD_PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset
    for semi in (False, True)
    for preset in (_method_preset(method, semi) for method in METHODS)
}
"""Recipes for pictures of the user's: named by the method alone, they need `--world`."""


def ablation_preset(slug: str) -> Preset:
    """What trains a row of the paper's ablation tables: as CPM's preset or ProtoNet's, but for the learner.

    A row that is one of those two as it is comes as that preset, so that nobody trains it twice. All rows
    start with the same encoder, which has no last ReLU, also where the comparison is Euclidean.
    """
    config = ABLATIONS[slug]
    base = PRESETS["cpm-omniglot-semi" if isinstance(config, CPMConfig) else "protonet-omniglot-semi"]
    model = replace(base.model, learner=config)
    return base if model == base.model else replace(base, name=f"{slug}-omniglot-semi", model=model)


ABLATION_PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset for preset in map(ablation_preset, ABLATIONS) if preset.name not in PRESETS
}
"""Those of the paper's ablation tables by name, beside PRESETS."""
ABLATION_AP: Final[dict[str, float]] = {
    name: paper[row]
    for rows, paper in (
        (ARCHITECTURE_ABLATIONS, ARCHITECTURE_ABLATION_AP),
        (SEMI_ABLATIONS, SEMI_ABLATION_AP),
    )
    for row, config in rows.items()
    if (name := ablation_preset(slug_of(config)).name) in ABLATION_PRESETS
}
