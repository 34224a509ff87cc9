"""The rows of the paper's ablation tables."""

from dataclasses import replace
from typing import Final

from wanderlearn.learners.ablations import ABLATIONS
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.presets.methods import PRESETS
from wanderlearn.presets.preset import Preset

__all__ = ["ABLATION_PRESETS", "ablation_preset"]


def ablation_preset(slug: str) -> Preset:
    """What trains a row of the paper's ablation tables: as CPM's preset or ProtoNet's, but for the learner.

    A row that is one of those two as it is comes as that preset, so that nobody trains it twice. All rows
    start with the same encoder, which has no last ReLU, also where the comparison is Euclidean.
    """
    config = ABLATIONS[slug]
    base = PRESETS["cpm-omniglot-semi" if isinstance(config, CPMConfig) else "protonet-omniglot-semi"]
    cpm = base.model.learner
    if isinstance(config, CPMConfig) and isinstance(cpm, CPMConfig) and config.similarity == cpm.similarity:
        starts = {name: getattr(cpm, name) for name in ("temperature", "beta_read", "beta_write")}
        config = replace(config, **starts)
    model = replace(base.model, learner=config)
    return base if model == base.model else replace(base, name=f"{slug}-omniglot-semi", model=model)


ABLATION_PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset for preset in map(ablation_preset, ABLATIONS) if preset.name not in PRESETS
}
"""Those of the paper's ablation tables by name, beside PRESETS."""
