"""Pieces of training and evaluation that come out the same in one process and in any group of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.tiny_runs import CHANNELS, CPM, PROTONET, pictures, tiny_preset
from wanderlearn.distributed import Group
from wanderlearn.distributed.compute import Compute
from wanderlearn.distributed.exchange import GroupBackward
from wanderlearn.evaluate import gather
from wanderlearn.feature_training import FeaturesConfig, FeatureTraining
from wanderlearn.learners.lstm import LSTMConfig
from wanderlearn.learners.oml import OMLConfig
from wanderlearn.learners.together import synchronise
from wanderlearn.metrics import Record
from wanderlearn.model import Model, build
from wanderlearn.optimiser import Optimiser
from wanderlearn.pictures.collection import Split
from wanderlearn.pretrain import PretrainConfig, Pretraining
from wanderlearn.sequence_training import SequenceTraining
from wanderlearn.stages import Stage
from wanderlearn.train import Outcome, train
from wanderlearn.worlds import Roaming, RoamingConfig

LEARNERS: dict[str, Any] = {
    "cpm": CPM,
    "protonet": PROTONET,
    "protonet that writes by chance": replace(PROTONET, write_schedule=10),
    "oml": OMLConfig(features=CHANNELS, slots=8),
    "oml that starts by chance": OMLConfig(features=CHANNELS, slots=8, classifier="cosine"),
    "lstm": LSTMConfig(features=CHANNELS, units=12, slots=8),
}
SEQUENCES = (7, 2)  # in a batch: neither divides by three, and two leave one of three processes without any
STAGES = ("pretrain", "features")
STEP = 3  # the schedule of chance is neither at its start nor over


def everything(group: Group) -> dict[str, Tensor]:
    """The tensors of all that follows, by name."""
    found: dict[str, Tensor] = {}
    for name in LEARNERS:
        for count in SEQUENCES:
            found |= _under(f"{name}/{count}", after_one_step(name, count, group))
    for stage in STAGES:
        found |= _under(stage, after_one_step("cpm", 7, group, stage=stage))
    found |= _under("own statistics", after_one_step("cpm", 7, group, synchronised=False))
    record = asdict(evaluation(group))
    return found | {f"record/{name}": torch.from_numpy(array) for name, array in record.items()}


def after_one_step(
    name: str, count: int, group: Group, *, stage: str = "sequences", synchronised: bool = True
) -> dict[str, Tensor]:
    """Loss, gradients and BatchNorm's averages of one step, and the weights after it.

    In double precision: what is equal in theory then differs by next to nothing.
    """
    with doubles():
        return _after_one_step(name, count, group, stage, synchronised)


@contextmanager
def doubles() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def _after_one_step(name: str, count: int, group: Group, stage: str, synchronised: bool) -> dict[str, Tensor]:
    preset = tiny_preset(LEARNERS[name], semi=True, batch_size=count)
    torch.manual_seed(1)
    model = build(preset.model).train()
    model.encoder.register_forward_pre_hook(lambda _, pictures: (pictures[0].double(),))
    compute = Compute(group)
    synchronise(model.encoder, group.sum if synchronised and group.size > 1 else None)
    taken = stage_of(stage, model, tiny_world("train"), preset.train, compute)
    config = taken.config
    backward = GroupBackward(compute, model.encoder.buffers(), config.batch_size) if group.size > 1 else None
    tensors = taken.tensors()
    optimiser = Optimiser(tensors, config, backward)
    torch.manual_seed(2)
    losses = taken.losses(STEP)
    optimiser.step(losses["loss"], 1.0)
    trained = {f"gradient/{t.name}": t.tensor.grad for t in tensors if t.tensor.grad is not None}
    return (
        {f"loss/{what}": value.detach().reshape(1) for what, value in losses.items()}
        | trained
        | {f"buffer/{what}": value for what, value in model.encoder.named_buffers()}
        | {f"weight/{t.name}": t.tensor.detach() for t in tensors}
    )


def tiny_world(split: Split) -> Roaming:
    """The world of tiny runs with few labels."""
    roaming = tiny_preset(semi=True).roaming
    assert isinstance(roaming, RoamingConfig)
    return Roaming(pictures(split), roaming)


def stage_of(name: str, model: Model, world: Roaming, config: Any, compute: Compute) -> Stage:
    """A stage of a tiny run."""
    if name == "pretrain":
        how = PretrainConfig(epochs=1, batch_size=7, warp=1.0, flip=True, turn=0.0)
        return Pretraining(model, world, how, 0, compute)
    if name == "features":
        model.encoder(compute.here(torch.rand(4, 1, 28, 28)))  # so that it has averages to evaluate with
        return FeatureTraining(model, world, FeaturesConfig(steps=1, batch_size=7), config, compute)
    return SequenceTraining(model, world, config, compute)


def evaluation_model() -> Model:
    """An untrained model."""
    torch.manual_seed(1)
    return build(tiny_preset(CPM).model)


def evaluation(group: Group, model: Model | None = None) -> Record:
    """What it answers."""
    world = tiny_world("test")
    meetings = [world.meetings(0, i) for i in range(5)]
    return gather(model or evaluation_model(), world, meetings, 2, group=group)


def whole_run(folder: Path, group: Group, *, resume: bool = False, **changes: Any) -> Outcome:
    """A run with the statistics of the whole batch, so that it does not depend on the group."""
    changes = {"steps": 6, "batch_size": 4, "sync_batch_norm": True} | changes
    preset = tiny_preset(CPM, semi=True, **changes)
    return train(preset, folder, resume=resume, pictures=pictures, compute=Compute(group))


def _under(name: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{name}/{inner}": tensor.contiguous() for inner, tensor in tensors.items()}
