"""The rows of the paper's ablation tables.

All have the same short budget, CPM itself too, so that they can be compared with each other: differences in a
table are of the learner alone. The rows of the main table are trained longer.
"""

from dataclasses import replace
from typing import Final

from wanderlearn.learners.ablations import ABLATIONS
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.presets.methods import PRESETS
from wanderlearn.presets.preset import Preset

__all__ = ["ABLATION_PRESETS", "ablation_preset"]

ON_FEATURES: Final = 300  # steps
TOGETHER: Final = 50


def ablation_preset(slug: str) -> Preset:
    """What trains a row of the paper's ablation tables: as CPM's preset or ProtoNet's, but shorter.

    All rows start with the same encoder, which has no last ReLU, also where the comparison is Euclidean.
    """
    config = ABLATIONS[slug]
    base = PRESETS["cpm-omniglot-semi" if isinstance(config, CPMConfig) else "protonet-omniglot-semi"]
    cpm = base.model.learner
    if isinstance(config, CPMConfig) and isinstance(cpm, CPMConfig) and config.similarity == cpm.similarity:
        starts = {name: getattr(cpm, name) for name in ("temperature", "beta_read", "beta_write")}
        config = replace(config, **starts)
    assert base.features is not None
    return replace(
        base,
        name=f"{slug}-omniglot-semi",
        model=replace(base.model, learner=config),
        features=replace(base.features, steps=ON_FEATURES, copies=1, mirror=False),
        train=replace(base.train, steps=TOGETHER),
    )


ABLATION_PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset for preset in map(ablation_preset, ABLATIONS)
}
"""Those of the paper's ablation tables by name, beside PRESETS."""
