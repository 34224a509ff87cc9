"""A saved agent: weights, memory, labels and what can be undone, in one safetensors file with a SHA-256."""

import os
import sys
import uuid
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from wanderlearn.agent.changes import Change, frame, frames, pack, unpack
from wanderlearn.agent.kinds import live_memory
from wanderlearn.agent.life import Life
from wanderlearn.agent.names import Names
from wanderlearn.configs import from_json, to_json
from wanderlearn.errors import WanderError
from wanderlearn.model import Model, ModelConfig, build
from wanderlearn.tensors import load_tensors, save_tensors

__all__ = ["Saved", "open_agent_file", "save_agent_file"]

FORMAT: Final = 1


class Saved(NamedTuple):
    """What a saved agent holds."""

    model: Model
    life: Life
    about: dict[str, Any]  # the weights' name and digest, how pictures are read
    save: str  # names this save
    previous: str | None  # names the save before it


def save_agent_file(path: Path, model: Model, life: Life, about: dict[str, Any], previous: str | None) -> str:
    """Write the file, atomically; gives the name of this save."""
    save = uuid.uuid4().hex
    first = life.sequence - len(life.done)
    history = b"".join(frame(pack(first + n, done.change)) for n, done in enumerate(life.done))
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    # What is empty is left out: there is nothing to read it from.
    kept = {name: part for name, part in life.base.memory.arrays().items() if part.size}
    tensors |= {f"memory.{name}": torch.tensor(part) for name, part in kept.items()}
    if history:
        tensors["history"] = torch.frombuffer(bytearray(history), dtype=torch.uint8)
    header = {
        "agent": FORMAT,
        "config": to_json(model.config),
        "names": life.base.names.plain(),
        "sequence": life.sequence,
        "about": about,
        "save": save,
        "previous": previous,
    }
    save_tensors(path, tensors, header)
    if sys.platform != "win32":  # the new name must be on the disk before the journal is begun afresh
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return save


def open_agent_file(path: Path) -> Saved:
    """Read what `save_agent_file` wrote. Nothing in the file is executed."""
    tensors, header = load_tensors(path, "agents")
    if "agent" not in header:
        raise WanderError(
            f"{path} is a file of weights, not a saved agent. Use wanderlearn.load to begin with them."
        )
    if header["agent"] != FORMAT:
        raise WanderError(f"{path} has agent format {header['agent']}; this version reads {FORMAT}.")
    config = from_json(ModelConfig, header.get("config"), f"The model config in {path}")
    try:
        with torch.random.fork_rng(devices=[]):  # fresh weights are drawn and then replaced
            model = build(config).eval()
        model.load_state_dict(_under("model.", tensors))
        names, memory = Names.of_plain(header["names"]), live_memory(model.learner)
        arrays = {name: part.numpy() for name, part in _under("memory.", tensors).items()}
        memory.restore(memory.arrays() | arrays, len(names.labels))
        changes = _history(tensors["history"]) if "history" in tensors else []
        life = Life(memory, names, int(header["sequence"]) - len(changes))
        for change in changes:
            if problem := life.objection(change):
                raise ValueError(problem)
            life.apply(change)
        return Saved(model, life, dict(header["about"]), str(header["save"]), header["previous"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise WanderError(
            f"{path} cannot be opened: its parts do not fit together ({error}). "
            "Was it written by another version?"
        ) from error


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): part for name, part in tensors.items() if name.startswith(prefix)}


def _history(data: Tensor) -> list[Change]:
    changes = []
    for found in frames(data.numpy().tobytes()):
        if found.packed is None:
            raise ValueError("its history is damaged")
        changes.append(unpack(found.packed)[1])
    return changes
