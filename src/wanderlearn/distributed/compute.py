"""What a run computes with: its processes, the device of each, and how precisely the encoder works."""

from dataclasses import dataclass
from typing import Any, Final, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wanderlearn.distributed.group import ALONE, Group
from wanderlearn.errors import WanderError
from wanderlearn.worlds.frames import Frames

__all__ = ["DEVICES", "Compute", "Precision", "backend_for", "choose_device", "with_value"]

Precision = Literal["float32", "bfloat16", "float16"]
DEVICES: Final = "cpu, cuda, cuda:N or auto"


@dataclass(frozen=True)
class Compute:
    """How training is carried out. The default: one process, on the processor, in single precision."""

    group: Group = ALONE
    device: torch.device = torch.device("cpu")  # noqa: RUF009 - it cannot be changed
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        if self.precision == "float16" and self.device.type == "cpu":
            raise WanderError(
                "float16 is for GPUs (--device cuda): its range is small. On a processor take bfloat16."
            )

    def here(self, tensor: Tensor) -> Tensor:
        """The tensor on our device."""
        return tensor.to(self.device, non_blocking=True)

    def encode(self, encoder: nn.Module, pictures: Float[Tensor, "N C H W"] | Frames) -> Float[Tensor, "N D"]:
        """Features in single precision, by an encoder that may work in less.

        Only the encoder does: it has nearly all of the arithmetic, while what a learner adds up over a
        sequence does not bear the rounding.
        """
        pictures = pictures.to(self.device, non_blocking=True)
        if self.precision == "float32":
            features: Tensor = encoder(pictures)
            return features
        with torch.autocast(self.device.type, getattr(torch, self.precision)):
            mixed: Tensor = encoder(pictures)
        return mixed.float()

    def whole(self, part: Tensor) -> Tensor:
        """The sum of all processes' parts of a loss; its gradient here is that of this process's part."""
        return part if self.group.size == 1 else with_value(part, self.group.sum(part))


def with_value(part: Tensor, whole: Tensor) -> Tensor:
    """Another value, with the gradient of `part`."""
    result: Tensor = _WithValue.apply(part, whole)  # type: ignore[no-untyped-call]
    return result


class _WithValue(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor, whole: Tensor) -> Tensor:
        return whole.to(part.dtype, copy=True)

    @staticmethod
    def backward(ctx: Any, d_whole: Tensor) -> tuple[Tensor, None]:
        return d_whole, None


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """The device of a name; every process on a machine gets a GPU of its own."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise WanderError(f"There is no device {name!r}. Choose one of {DEVICES}.") from error
    if device.type not in ("cpu", "cuda"):
        raise WanderError(f"Training and evaluation do not know the device {name!r}. Choose {DEVICES}.")
    if device.type == "cpu":
        return torch.device("cpu")
    found = torch.cuda.device_count()
    if not found:
        raise WanderError(
            "This machine has no GPU that torch can use. Leave --device out, or install CUDA's."
        )
    number = local_rank if device.index is None else device.index
    if number >= found:
        raise WanderError(
            f"GPU {number} was asked for, but this machine has {found} (the first is 0). Start at most one "
            "process per GPU: torchrun --nproc-per-node gpu."
        )
    chosen = torch.device("cuda", number)
    torch.cuda.set_device(chosen)
    return chosen


def backend_for(name: str) -> str:
    """What carries the words between processes that use a device of this name."""
    on_gpu = name.startswith("cuda") or (name == "auto" and torch.cuda.is_available())
    return "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
