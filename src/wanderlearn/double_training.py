"""Training a double encoder: its halves are pretrained, and their features kept, each on its own.

The half for pictures names single pictures as any encoder does; that for backgrounds names the training
textures, from pieces that are cut, made noisy and hidden as in a sequence.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor

from wanderlearn.configs import from_json
from wanderlearn.distributed.compute import Compute
from wanderlearn.errors import WanderError
from wanderlearn.learners.double import Double, DoubleConfig
from wanderlearn.model import Model, ModelConfig
from wanderlearn.optimiser import Trained, trained
from wanderlearn.pretrain import CosineClassifier, PretrainConfig, Pretraining
from wanderlearn.tensors import load_tensors
from wanderlearn.worlds.backgrounds import Backgrounds, finished
from wanderlearn.worlds.draws import Purpose, uniforms
from wanderlearn.worlds.roaming import Roaming
from wanderlearn.worlds.sequence import Background, Ints, Meetings
from wanderlearn.worlds.world import World

__all__ = [
    "DoublePretraining",
    "KeptBackgrounds",
    "TexturePieces",
    "backgrounds_of",
    "lacks_background",
    "picture_half",
    "pretraining",
]

TEXTURE_STEPS: Final = 400  # when only the half for backgrounds is left to pretrain
COPIES: Final = 16  # kept of every texture: as many places to cut a piece from
AT_ONCE: Final = 256

Floats = npt.NDArray[np.float64]


def picture_half(model: Model) -> Model:
    """The model with the half of its encoder that looks at pictures; a model without halves as it is."""
    encoder = model.encoder
    if not isinstance(encoder, Double):
        return model
    return Model(replace(model.config, encoder=encoder.config.picture), encoder.picture, model.learner)


def lacks_background(path: Path, config: ModelConfig) -> bool:
    """Whether a file of weights has only the half for pictures of a model that has two."""
    if not isinstance(config.encoder, DoubleConfig):
        return False
    _, header = load_tensors(path)
    theirs = from_json(ModelConfig, header.get("config"), f"The model config in {path}").encoder
    return not isinstance(theirs, DoubleConfig)


def pretraining(
    model: Model,
    world: World,
    config: PretrainConfig,
    seed: int,
    compute: Compute | None = None,
    *,
    only_background: bool = False,
    begun: bool = False,
) -> "Pretraining | DoublePretraining":
    """The stage that pretrains this model's encoder."""
    if isinstance(model.encoder, Double) and isinstance(world, Roaming):
        return DoublePretraining(model, world, config, seed, compute, only_background=only_background)
    return Pretraining(model, world, config, seed, compute, begun=begun)


class DoublePretraining:
    """The stage of a run in which both halves of a double encoder name what they see."""

    name: Final = "pretrain"

    def __init__(
        self,
        model: Model,
        world: Roaming,
        config: PretrainConfig,
        seed: int,
        compute: Compute | None = None,
        *,
        only_background: bool = False,
    ) -> None:
        encoder = model.encoder
        assert isinstance(encoder, Double)
        self.encoder, self.config, self.compute = encoder.background, config, compute or Compute()
        self.share = self.compute.group.share(config.batch_size)
        self.data = TexturePieces(world, seed, config.batch_size)
        self.pictures = (
            None if only_background else Pretraining(picture_half(model), world, config, seed, compute)
        )
        self.steps = TEXTURE_STEPS if self.pictures is None else self.pictures.steps
        features, classes = encoder.background.feature_dim, self.data.textures.classes
        self.classifier = CosineClassifier(features, classes, config.scale, config.margin)
        self.classifier.to(self.compute.device)

    def prepare(self, stopped: Callable[[], bool] | None = None) -> None:
        """Ask the teacher of the pictures, if there is one."""
        if self.pictures:
            self.pictures.prepare(stopped)

    def tensors(self) -> list[Trained]:
        """What is trained."""
        own = trained(self.encoder, "background") + trained(self.classifier, "texture classifier")
        return own + (self.pictures.tensors() if self.pictures else [])

    def losses(self, step: int) -> dict[str, Tensor]:
        """The loss of a step, and how often it was right, about textures and (if asked) about pictures."""
        compute = self.compute
        images, truth = self.data.batch(step, self.share)
        truth = compute.here(truth)
        scores = self.classifier(compute.encode(self.encoder, images))  # [N, classes]
        accuracy = (scores.detach().argmax(-1) == truth).float().mean()
        part = len(self.share) / self.config.batch_size  # of the mean over the whole batch
        loss = compute.whole(self.classifier.loss(scores, truth) * part)
        found = {"loss": loss, "texture_accuracy": compute.whole(accuracy * part)}
        if self.pictures is None:
            return found
        theirs = self.pictures.losses(step)
        return theirs | found | {"loss": loss + theirs["loss"]}


class TexturePieces:
    """Batches of pieces of the textures of a world, each cut, made noisy and hidden in its own way.

    Batch n of a seed is always the same. All classes come equally often.
    """

    def __init__(self, world: Roaming, seed: int, batch_size: int) -> None:
        self.behind, self.textures = backgrounds_of(world), backgrounds_of(world).textures
        self.process, self.seed, self.batch_size = world.config, seed, batch_size

    def batch(self, step: int, share: range) -> tuple[Float[Tensor, "N 1 H W"], Int[Tensor, " N"]]:
        """A share of the pieces of a step in [-1, 1], and their classes."""
        u = uniforms(self.seed, "textures", step, Purpose.BACKGROUND, 9 * self.batch_size)
        u = u.reshape(9, self.batch_size)[:, share.start : share.stop]
        chosen = (u[0] * self.textures.classes).astype(np.int64)
        low, high = self.textures.first[chosen], self.textures.first[chosen + 1]
        texture = low + (u[1] * (high - low)).astype(np.int64)
        return self.shown(texture, u[2:4], u[4:]), torch.from_numpy(chosen)

    def shown(self, texture: Ints, cut: Floats, u: Floats) -> Float[Tensor, "N 1 H W"]:
        """Pieces of these textures by random numbers: `cut` says where, [2, N], `u` the rest, [5, N]."""
        behind, process = self.behind, self.process
        size = np.array(behind.size)
        spare = np.array(self.textures.images.shape[2:]) - size
        key = (u[0] * 2**31).astype(np.int64)
        corner = (cut * (spare + 1)[:, None]).astype(np.int64).T
        values = behind.pieces(Background(texture, corner, key))
        padding = process.crop_padding if process.crop != "none" else 0
        offset = (u[1:3] * (2 * padding + 1)).astype(np.int64).T - padding
        side = int(process.occlusion * size[0])
        corners = (u[3:5] * (size - side)[:, None]).astype(np.int64).T
        out = np.empty_like(values)
        finished(values, offset, corners if side else np.full_like(corners, -1), process.occlusion, out)
        return torch.from_numpy(out)


class KeptBackgrounds:
    """Features of the textures of a world, of each in some copies, by the encoder as it is in evaluation.

    A copy is cut from the same place of every texture, as all pieces of a training sequence are.
    """

    def __init__(self, model: Model, world: Roaming, seed: int, compute: Compute) -> None:
        encoder = model.encoder
        assert isinstance(encoder, Double)
        self.seed, data = seed, TexturePieces(world, seed, 1)
        count = len(data.textures.images)
        self.features = torch.zeros(count, COPIES, encoder.background.feature_dim, device=compute.device)
        was_training = encoder.background.training
        encoder.background.eval()
        with torch.no_grad():
            for n in compute.group.share(COPIES):
                u = uniforms(seed, "kept textures", n, Purpose.BACKGROUND, 2 + 5 * count)
                cut, rest = np.repeat(u[:2, None], count, axis=1), u[2:].reshape(5, count)
                for start in range(0, count, AT_ONCE):
                    some = slice(start, min(start + AT_ONCE, count))
                    pieces = data.shown(np.arange(some.start, some.stop), cut[:, some], rest[:, some])
                    self.features[some, n] = encoder.background(compute.here(pieces))
        encoder.background.train(was_training)
        self.features = compute.group.sum(self.features)

    def of(self, meetings: Sequence[Meetings]) -> Float[Tensor, "N D"]:
        """The features behind the pictures of these sequences, one after the other."""
        found = []
        for each in meetings:
            assert each.background is not None
            copy = int(uniforms(self.seed, "kept textures of", each.index, Purpose.BACKGROUND, 1)[0] * COPIES)
            texture = torch.from_numpy(each.background.texture)
            found.append(self.features[texture.to(self.features.device), copy])
        return torch.cat(found)


def backgrounds_of(world: Roaming) -> Backgrounds:
    """What lies behind the pictures of a world, as a channel of its own."""
    if world.backgrounds is None or world.backgrounds.config.how != "channel":
        raise WanderError(
            "A double encoder looks at pictures and at what lies behind them: use it in a world with "
            "--background channel."
        )
    return world.backgrounds
