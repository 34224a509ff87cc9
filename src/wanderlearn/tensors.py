"""Named tensors in one safetensors file that knows whether it is whole. No pickle anywhere.

The header carries text (what the tensors are, where they came from) and a SHA-256 over everything else.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors import torch as safetensors_torch
from torch import Tensor

from wanderlearn.errors import WanderError
from wanderlearn.files import writing

__all__ = ["digest_of_tensors", "load_tensors", "save_tensors"]


def digest_of_tensors(tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> str:
    """SHA-256 over names, types, shapes and bytes of the tensors, and over the text beside them."""
    seen = hashlib.sha256(json.dumps(dict(about), sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().contiguous()
        seen.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        seen.update(tensor.view(-1).view(torch.uint8).numpy().data)
    return seen.hexdigest()


def save_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> str:
    """Write tensors with their header, atomically; gives the SHA-256. `about` is stored as JSON by name."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = {name: json.dumps(value, allow_nan=False) for name, value in about.items()}
    digest = digest_of_tensors(whole, text)
    data = safetensors_torch.save(whole, metadata=text | {"sha256": digest})
    with writing(path) as part:
        part.write_bytes(data)
    return digest


def load_tensors(path: Path, what: str = "weights") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the header of a file written by `save_tensors`, after checking the SHA-256."""
    foreign = f"{path} is not a file of {what} written by wanderlearn"
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            text = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise WanderError(f"There are no {what} at {path}.") from error
    except OSError as error:
        raise WanderError(f"Cannot read {path}: {error.strerror or error}.") from error
    except safetensors.SafetensorError as error:
        raise WanderError(
            f"{foreign}, or it was truncated or altered ({error}). Copy it again from where it came."
        ) from error
    digest = text.pop("sha256", None)
    if digest is None:
        raise WanderError(f"{foreign}: its header names no SHA-256.")
    if digest != digest_of_tensors(tensors, text):
        raise WanderError(
            f"{path} was altered: its contents do not match its SHA-256. Copy it again from where it came."
        )
    try:
        return tensors, {name: json.loads(value) for name, value in text.items()}
    except ValueError as error:
        raise WanderError(f"{foreign}: its header is not JSON ({error}).") from error
