"""What methods need that start with an encoder pretrained for cosines, the same in all worlds."""

from dataclasses import replace
from typing import Final, TypeVar

from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.dnc import DNCConfig
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.imp import IMPConfig
from wanderlearn.learners.lstm import LSTMConfig
from wanderlearn.learners.matchingnet import MatchingNetConfig
from wanderlearn.learners.oml import OMLConfig
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.resnet12 import ResNet12Config
from wanderlearn.learners.wayfarer import WayfarerConfig
from wanderlearn.model import LearnerConfig, ModelConfig
from wanderlearn.presets.preset import Method
from wanderlearn.pretrain import PretrainConfig

__all__ = [
    "BY_GRADIENT",
    "FEW_NUMBERS",
    "OMNIGLOT_FINISH",
    "OMNIGLOT_PRETRAINING",
    "OMNIGLOT_TEACHER",
    "OMNIGLOT_TEACHER_FINISH",
    "OMNIGLOT_TEACHING",
    "OMNIGLOT_TEMPERATURE",
    "PLAIN",
    "for_cosines",
]

PLAIN: Final[dict[Method, LearnerConfig]] = {
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
"""Every method with the authors' settings on Omniglot."""
FEW_NUMBERS: Final = ("protonet", "matchingnet", "imp")  # they have only thresholds to learn
BY_GRADIENT: Final = ("oml-u", "oml-u-plus")  # they have nothing to learn on kept features
OMNIGLOT_PRETRAINING: Final = PretrainConfig(epochs=80.0, turn=0.06, lr=2e-3, classifier_lr=6e-3, warmup=100)
"""How the encoder `omniglot` of the package began, by names.

In 30 epochs from a turn of 0.1 the loss stood still until the rate had fallen to a third, and then fell to
the end: this is longer, and spends more of it at such rates. Its loss is lower, but on classes it has never
seen it is no better: what it lacks now is not more of the same.
"""
OMNIGLOT_TEACHER: Final = replace(OMNIGLOT_PRETRAINING, epochs=16.0, warp=1.0, mirror=True)
"""How its teacher began, `omniglot-resnet` of the package: by names, of bent and mirrored pictures too."""
OMNIGLOT_TEACHING: Final = PretrainConfig(
    epochs=16.0,
    turn=0.015,
    lr=5e-4,
    classifier_lr=2e-3,
    scale=16.0,
    warmup=50,
    mirror=True,
    teacher="omniglot-resnet",
)
"""How it then went on, with its teacher."""
OMNIGLOT_FINISH: Final = replace(OMNIGLOT_TEACHING, epochs=18.0, crop=False)
"""How it was finished: pictures are where a test shows them. As long with a crop of one pixel gained less."""
OMNIGLOT_TEACHER_FINISH: Final = replace(OMNIGLOT_FINISH, epochs=5.0, turn=0.01, lr=3e-4)
"""How its teacher was finished: its own teacher, who sees pictures whole where it has to guess
(`benchmarks/omniglot_encoders.py` does all five)."""
OMNIGLOT_TEMPERATURE: Final = 20.0
"""Where CPM's starts there, as in pretraining. From 10, where names stay doubtful, it hardly moves."""

Encoder = TypeVar("Encoder", Conv4Config, ResNet12Config)


def for_cosines(
    encoder: Encoder, learner: LearnerConfig, *, semi: bool, temperature: float = 10.0
) -> ModelConfig:
    """A model for features that were pretrained to be compared by cosine, so without a last ReLU.

    Where a learner knows no cosine its features get one length, at which its first thresholds and steps are
    of the right size. `temperature` is where CPM's starts. All these, first thresholds and the sharpness of
    MatchingNet were chosen on validation.
    """
    encoder = replace(encoder, last_relu=False)
    if isinstance(learner, CPMConfig):
        learner = replace(learner, memory="average", temperature=temperature)
        if temperature != 10:
            new_below = -0.6 * temperature  # a cosine of 0.6
            learner = replace(learner, beta_read=new_below, beta_write=new_below)
    elif isinstance(learner, WayfarerConfig):
        learner = replace(learner, dropout=0.25)
    elif isinstance(learner, ProtoNetConfig):
        sure = -10.0 if semi else -6.0  # from what has no name it learns only when very sure
        learner = replace(learner, similarity="cosine", beta_read=-6.0, beta_write=sure)
    elif isinstance(learner, MatchingNetConfig):
        learner = replace(learner, similarity="cosine", temperature=45.0, beta=-27.0, gamma=3.0)
    elif isinstance(learner, IMPConfig):
        wide = 9.0 if semi else 14.0  # what has no name joins any cluster as near as that
        encoder, learner = replace(encoder, length=3.2), replace(learner, similarity="cosine", beta=wide)
    elif isinstance(learner, OMLConfig) and learner.classifier == "linear":
        encoder, learner = replace(encoder, length=10.0), replace(learner, inner_lr=0.1)
    elif isinstance(learner, OMLConfig):
        learner = replace(learner, inner_lr=3e-3)
    return ModelConfig(encoder, replace(learner, features=encoder.feature_dim))
