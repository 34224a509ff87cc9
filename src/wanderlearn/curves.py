"""TensorBoard curves, for those who have it: the same figures as in log.jsonl."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wanderlearn.checkpoint import Progress
from wanderlearn.errors import WanderError

__all__ = ["Curves"]


class Curves:
    """Writes what is logged as TensorBoard scalars."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise WanderError(
                "TensorBoard is not installed. Install the extra, `pip install 'wanderlearn[tensorboard]'`, "
                "or leave out --train.tensorboard; the curves are in log.jsonl either way."
            ) from error
        self.writer = SummaryWriter(str(folder / "tensorboard"))

    def add(self, progress: Progress, figures: Mapping[str, Any]) -> None:
        """Add the figures of a step, or those of a validation."""
        flat = {name: value for name, value in figures.items() if isinstance(value, float)}
        flat |= {
            f"validation_{name}": v for name, v in figures.get("validation", {}).items() if v is not None
        }
        for name, value in flat.items():
            self.writer.add_scalar(f"{progress.stage}/{name}", value, progress.step)
        self.writer.flush()
