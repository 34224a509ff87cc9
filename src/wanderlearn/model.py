"""A model is an encoder and a learner: pictures in, answers out. And how its weights are kept in a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from wanderlearn.configs import from_json, to_json
from wanderlearn.errors import WanderError
from wanderlearn.learners.answer import Answers
from wanderlearn.learners.cpm import CPM, CPMConfig
from wanderlearn.learners.dnc import DNC, DNCConfig
from wanderlearn.learners.double import Double, DoubleConfig
from wanderlearn.learners.encoders import Conv4, Conv4Config
from wanderlearn.learners.imp import IMPConfig, OnlineIMP
from wanderlearn.learners.lstm import LSTMConfig, LSTMLearner
from wanderlearn.learners.matchingnet import MatchingNetConfig, OnlineMatchingNet
from wanderlearn.learners.offline import OfflineConfig, OfflineLR
from wanderlearn.learners.oml import OML, OMLConfig
from wanderlearn.learners.protonet import OnlineProtoNet, ProtoNetConfig
from wanderlearn.learners.resnet12 import ResNet12, ResNet12Config
from wanderlearn.learners.vectors import Vectors, VectorsConfig
from wanderlearn.learners.wayfarer import Wayfarer, WayfarerConfig
from wanderlearn.tensors import load_tensors, save_tensors
from wanderlearn.worlds.frames import Frames

__all__ = [
    "EncoderConfig",
    "LearnerConfig",
    "Model",
    "ModelConfig",
    "about_model",
    "build",
    "load_model",
    "restore_model",
    "save_model",
    "take_encoder",
    "take_learner",
]

EncoderConfig = Conv4Config | DoubleConfig | ResNet12Config | VectorsConfig
LearnerConfig = (
    CPMConfig
    | ProtoNetConfig
    | MatchingNetConfig
    | IMPConfig
    | LSTMConfig
    | DNCConfig
    | OMLConfig
    | OfflineConfig
    | WayfarerConfig
)

FORMAT: Final = 1
BESIDE: Final = "beside."  # tensors of this prefix are not the model's: an optimiser's, in a checkpoint
ENCODERS: Final[dict[type, type[nn.Module]]] = {
    Conv4Config: Conv4,
    DoubleConfig: Double,
    ResNet12Config: ResNet12,
    VectorsConfig: Vectors,
}
AFTER: Final = (  # of any weights
    "last_relu", "batch_norm_momentum", "length", "background_length", "scale", "evaluate_with",
)  # fmt: skip
LEARNERS: Final[dict[type, type[nn.Module]]] = {
    CPMConfig: CPM,
    ProtoNetConfig: OnlineProtoNet,
    MatchingNetConfig: OnlineMatchingNet,
    IMPConfig: OnlineIMP,
    LSTMConfig: LSTMLearner,
    DNCConfig: DNC,
    OMLConfig: OML,
    OfflineConfig: OfflineLR,
    WayfarerConfig: Wayfarer,
}


@dataclass(frozen=True)
class ModelConfig:
    """What a model is made of."""

    encoder: EncoderConfig = field(default_factory=Conv4Config)
    learner: LearnerConfig = field(default_factory=CPMConfig)


class Model(nn.Module):
    """An encoder and a learner. Built by `build`, which knows its config."""

    def __init__(self, config: ModelConfig, encoder: nn.Module, learner: nn.Module) -> None:
        super().__init__()
        self.config, self.encoder, self.learner = config, encoder, learner

    @property
    def transductive(self) -> bool:
        """Whether, also in evaluation, a feature depends on the pictures around it, later ones included."""
        return bool(getattr(self.encoder, "transductive", False))

    def forward(
        self,
        images: Float[Tensor, "B T C H W"] | Frames,
        given: Int[Tensor, "B T"],
        valid: Bool[Tensor, "B T"],
        slots: int,
    ) -> Answers:
        """Answers to whole sequences. Padding costs nothing: only valid pictures reach the encoder."""
        if self.transductive and not self.training:  # each by the statistics of its own sequence
            parts = (
                images.parted(valid.sum(1).tolist())
                if isinstance(images, Frames)
                else [row[real] for row, real in zip(images, valid, strict=True)]
            )
            features = torch.cat([self.encoder(part) for part in parts])
        else:
            features = self.encoder(images if isinstance(images, Frames) else images[valid])  # [N, D]
        placed = features.new_zeros(*valid.shape, features.shape[-1])  # [B, T, D]
        answers: Answers = self.learner(placed.index_put((valid,), features), given, slots)
        return answers


def build(config: ModelConfig) -> Model:
    """A model with fresh weights, drawn from torch's own generator (`torch.manual_seed` fixes them)."""
    encoder = ENCODERS[type(config.encoder)](config.encoder)
    wanted, given = config.learner.features, config.encoder.feature_dim
    if wanted != given:
        raise WanderError(
            f"The encoder gives features of {given} numbers, but the learner expects {wanted}. "
            f"Set the learner's features to {given} (`--model.learner.features {given}`)."
        )
    return Model(config, encoder, LEARNERS[type(config.learner)](config.learner))


def save_model(
    path: Path, model: Model, about: Mapping[str, Any], beside: Mapping[str, Tensor] | None = None
) -> None:
    """Write a model as one safetensors file: weights, config, `about` (where it came from) and a SHA-256.

    `beside` are tensors that belong to the file but not to the model, such as the state of an optimiser.
    """
    tensors = dict(model.state_dict()) | {BESIDE + name: tensor for name, tensor in (beside or {}).items()}
    save_tensors(path, tensors, {"format": FORMAT, "config": to_json(model.config), "about": dict(about)})


def load_model(path: Path | str) -> Model:
    """Read a model written by `save_model`, in evaluation mode. Nothing in the file is executed."""
    path = Path(path)
    tensors, header = load_tensors(path)
    _check_format(path, header)
    config = from_json(ModelConfig, header.get("config"), f"The model config in {path}")
    with torch.random.fork_rng(devices=[]):  # fresh weights are drawn and then replaced
        model = build(config)
    _put(path, model, tensors)
    return model.eval()


def about_model(path: Path) -> dict[str, Any]:
    """Where a model came from, as written beside it: preset, world, step and the like."""
    _, header = load_tensors(path)
    _check_format(path, header)
    return dict(header.get("about") or {})


def restore_model(path: Path, model: Model) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Put the weights of a file into a model of the same config; gives `about` and the tensors beside."""
    tensors, header = load_tensors(path)
    _check_format(path, header)
    _put(path, model, tensors)
    beside = {name.removeprefix(BESIDE): t for name, t in tensors.items() if name.startswith(BESIDE)}
    return dict(header.get("about") or {}), beside


def take_encoder(path: Path, model: Model) -> float:
    """Put the encoder of a file of weights into a model; gives the seconds it was trained for (0: unknown).

    What does not touch the weights may differ: whether there is a last ReLU, the length of features, how
    quickly BatchNorm's averages move and whether they are used, for a ResNet-12 the size of pictures.
    """
    tensors, header = load_tensors(path)
    _check_format(path, header)
    theirs = from_json(ModelConfig, header.get("config"), f"The model config in {path}").encoder
    encoder: nn.Module = model.encoder
    ours = model.config.encoder
    if isinstance(encoder, Double) and not isinstance(theirs, DoubleConfig):
        ours, encoder = encoder.config.picture, encoder.picture  # the half for pictures
    if type(theirs) is not type(ours) or _with_ours(theirs, ours) != ours:
        raise WanderError(f"The encoder in {path} is another one than this model's: {theirs}, not {ours}.")
    prefix = "encoder."
    own = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    encoder.load_state_dict(own)
    return float((header.get("about") or {}).get("seconds") or 0.0)


def take_learner(path: Path, model: Model) -> None:
    """Put the learner of a file of weights into a model whose learner is of the same kind and size.

    What does not touch the weights may differ: where thresholds would have started, say, or a dropout.
    """
    tensors, header = load_tensors(path)
    _check_format(path, header)
    theirs = from_json(ModelConfig, header.get("config"), f"The model config in {path}").learner
    ours, prefix = model.config.learner, "learner."
    own = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    try:
        if type(theirs) is not type(ours):
            raise RuntimeError
        model.learner.load_state_dict(own)
    except RuntimeError as error:
        raise WanderError(
            f"The learner in {path} is another one than this model's: {theirs}, not {ours}."
        ) from error


def _with_ours(theirs: EncoderConfig, ours: EncoderConfig) -> EncoderConfig:
    """Their config with all of ours that does not touch the weights."""
    after: dict[str, Any] = {f.name: getattr(ours, f.name) for f in fields(ours) if f.name in AFTER}
    if isinstance(ours, ResNet12Config):
        after["image_size"] = ours.image_size  # its pooling takes any
    if isinstance(theirs, DoubleConfig) and isinstance(ours, DoubleConfig):
        after["picture"] = _with_ours(theirs.picture, ours.picture)
    return replace(theirs, **after)


def _check_format(path: Path, header: Mapping[str, Any]) -> None:
    if header.get("format") != FORMAT:
        raise WanderError(f"{path} has model format {header.get('format')}; this version reads {FORMAT}.")


def _put(path: Path, model: Model, tensors: Mapping[str, Tensor]) -> None:
    weights = {name: tensor for name, tensor in tensors.items() if not name.startswith(BESIDE)}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise WanderError(
            f"The weights in {path} do not fit the model its config describes ({error}). "
            "Was it written by another version?"
        ) from error
