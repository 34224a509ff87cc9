"""The stages of a run: which of them a preset wants, in which order, and what each trains.

A stage has a `config` with the budget, the `tensors` it trains and the `losses` of a step. What it has to
make before its first step it makes in `prepare`, if it has that.
"""

from typing import TYPE_CHECKING

from wanderlearn.checkpoint import Stage as StageName
from wanderlearn.distributed.compute import Compute
from wanderlearn.double_training import DoublePretraining, pretraining
from wanderlearn.feature_training import FeatureTraining
from wanderlearn.model import Model
from wanderlearn.pretrain import Pretraining
from wanderlearn.sequence_training import SequenceTraining
from wanderlearn.worlds.world import World

if TYPE_CHECKING:
    from wanderlearn.presets import Preset

__all__ = ["Stage", "following", "stage_of"]

Stage = Pretraining | DoublePretraining | FeatureTraining | SequenceTraining


def following(preset: "Preset", stage: StageName | None) -> StageName:
    """The stage after this one, of those the preset wants; the first, if there was none yet."""
    order: list[StageName] = []
    order += ["pretrain"] if preset.pretrain and preset.pretrain.wanted else []
    order += ["features"] if preset.features and preset.features.wanted else []
    order += ["sequences"] if preset.train.wanted else []
    order += ["finished"]
    return order[0 if stage is None else order.index(stage) + 1]


def stage_of(
    name: StageName,
    preset: "Preset",
    model: Model,
    world: World,
    compute: Compute,
    *,
    only_background: bool = False,
    encoder_begun: bool = False,
    learner_begun: bool = False,
) -> Stage:
    """A stage of a run by its name.

    `only_background`: of a double encoder the half for pictures knows all it has to. The encoder and the
    learner may have begun with what another run has learned.
    """
    if name == "pretrain" and preset.pretrain is not None:
        return pretraining(
            model,
            world,
            preset.pretrain,
            preset.train.seed,
            compute,
            only_background=only_background,
            begun=encoder_begun,
        )
    if name == "features" and preset.features is not None:
        return FeatureTraining(model, world, preset.features, preset.train, compute, begun=learner_begun)
    return SequenceTraining(model, world, preset.train, compute)
