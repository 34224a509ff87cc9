"""Learners that come with the package, ready to use."""

from pathlib import Path
from typing import Final

from jaxtyping import Float
from torch import Tensor, nn

from wanderlearn.errors import WanderError
from wanderlearn.learners.protonet import OnlineProtoNet, ProtoNetConfig
from wanderlearn.model import Model, ModelConfig, load_model

__all__ = [
    "DEFAULT_WEIGHTS",
    "Pixels",
    "demo_learners",
    "find_encoder",
    "find_weights",
    "raw_pixels",
    "shipped_weights",
]

FOLDER: Final = Path(__file__).parent / "weights"
ENCODERS: Final = FOLDER / "encoders"
DEFAULT_WEIGHTS: Final = "wayfarer-omniglot"
"""What agent and assistant live with, unless somebody says otherwise."""


class Pixels(nn.Module):
    """The encoder that does nothing: a picture's feature is its pixels, 0 for black to 1 for white."""

    def forward(self, images: Float[Tensor, "N C H W"]) -> Float[Tensor, "N F"]:
        """Flatten."""
        return (images.flatten(1) + 1) / 2


def raw_pixels(size: int = 28) -> Model:
    """A floor that needs no training: nearest class mean by the cosine between pictures.

    It says "new" below a cosine of 0.5: a plain choice, not a tuned one.
    """
    config = ProtoNetConfig(features=size * size, similarity="cosine", beta_read=-5.0)
    return Model(ModelConfig(learner=config), Pixels(), OnlineProtoNet(config)).eval()


def shipped_weights() -> dict[str, Path]:
    """The files of the learners that come with the package, by the name of their preset."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.safetensors"))}


def find_weights(name: str) -> Path:
    """The file of weights that somebody means: of a run folder the best, a file, or one that is shipped."""
    path = Path(name)
    if path.is_dir():
        weights = path / "best" / "model.safetensors"
        if not weights.exists():
            raise WanderError(
                f"{path} has no best weights yet ({weights} is missing). "
                "Is it a run folder, and has it got to its first validation?"
            )
        return weights
    if path.exists():
        return path
    shipped = shipped_weights()
    if name in shipped:
        return shipped[name]
    known = f", and no weights of that name come with the package ({', '.join(shipped)})" if shipped else ""
    raise WanderError(f"There is no run folder or file of weights {name}{known}.")


def find_encoder(name: str) -> Path:
    """As `find_weights`, but of a run folder what its pretraining gave, if it did any.

    A pretrained encoder of a world that comes with the package has that world's name.
    """
    pretrained, shipped = Path(name) / "pretrained" / "model.safetensors", ENCODERS / f"{name}.safetensors"
    if pretrained.exists():
        return pretrained
    return shipped if shipped.exists() and not Path(name).exists() else find_weights(name)


def demo_learners() -> dict[str, Model]:
    """What `wander demo` compares, the best last."""
    names = {"protonet-glyphs": "Online ProtoNet", "cpm-glyphs": "CPM"}
    found = shipped_weights()
    if missing := names.keys() - found.keys():
        raise WanderError(f"The package lacks its weights {', '.join(sorted(missing))}. Install it again.")
    trained = {words: load_model(found[name]) for name, words in names.items()}
    return {"raw pixels": raw_pixels()} | trained
