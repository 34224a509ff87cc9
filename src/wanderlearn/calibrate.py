"""Fit the calibration of a trained learner on sequences it has never seen."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wanderlearn.calibration import DELTA, Calibration
from wanderlearn.errors import WanderError
from wanderlearn.evaluate import gather
from wanderlearn.files import digest_of
from wanderlearn.learners.wayfarer import Wayfarer
from wanderlearn.metrics import Record, naming_confidence
from wanderlearn.model import Model, about_model, load_model
from wanderlearn.shipped import find_weights
from wanderlearn.worlds import Roaming, RoamingConfig, draw_manifest, open_pictures
from wanderlearn.worlds.families import with_families

__all__ = ["calibrate", "fit_record", "live_model"]


def fit_record(
    record: Record,
    *,
    delta: float = DELTA,
    longest: int | None = None,
    about: Mapping[str, Any] | None = None,
) -> Calibration:
    """The calibration of all that a learner answered to some sequences."""
    sequence, _ = np.nonzero(record.valid)
    # Where it says "new" it names no label, so there is none to accept.
    named = np.where(record.novelty <= 0, naming_confidence(record), 0.0)[record.valid]
    return Calibration.fit(
        named, record.correct[record.valid], sequence, delta=delta, longest=longest, about=about
    )


def live_model(weights: Path) -> Model:
    """A model that answers as an agent does: what is new and which name is right are said apart."""
    model = load_model(weights)
    if isinstance(model.learner, Wayfarer):
        model.learner.doubt = False
    return model


def calibrate(
    weights: str | Path,
    *,
    sequences: int = 2000,
    seed: int = 1,
    delta: float = DELTA,
    source: Path | None = None,
    progress: bool = False,
) -> Calibration:
    """Fit the calibration of weights on held-out sequences: the validation pictures of their own world.

    `weights` is a run folder, a file or a shipped name. The seed is not that of the sequences by which
    training chose its best weights. `source`: a folder with the original files of the world (omniglot).

    A validation split of few families gives sequences of fewer classes, on which naming is easier (in the
    paper's worlds half as many). So here families are divided until a sequence can have all its classes.
    """
    path = find_weights(str(weights))
    told = about_model(path)
    if not isinstance(told.get("world"), str):
        raise WanderError(
            f"{weights} does not say which world it was trained in. Gather answers to a stream of your own "
            "and give them to Calibration.fit."
        )
    config = RoamingConfig(semi=bool(told.get("semi")))
    pictures = open_pictures(told["world"], "val", source)
    world = Roaming(with_families(pictures, config), config)
    manifest = draw_manifest(world, seed, sequences)
    record = gather(live_model(path), world, manifest.sequences, progress=progress)
    about = {
        "weights": Path(weights).name.removesuffix(".safetensors"),
        "weights_sha256": digest_of(path),
        "world": told["world"],
        "split": "val",
        "semi": world.config.semi,
        "seed": seed,
        "manifest_sha256": manifest.sha256,
    }
    return fit_record(record, delta=delta, longest=world.config.length, about=about)
