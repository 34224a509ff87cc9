"""The rows of the paper's ablation tables.

All have the same short budget, CPM itself too, so that they can be compared with each other: differences in a
table are of the learner alone. The rows of the main table are trained longer.
"""

from dataclasses import replace
from typing import Final

from wanderlearn.learners.ablations import ABLATIONS
from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.encoders import Conv4Config
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.presets.methods import PRESETS
from wanderlearn.presets.preset import Preset

__all__ = ["ABLATION_PRESETS", "ablation_preset"]

ON_FEATURES: Final = 600  # steps
TOGETHER: Final = 50
LENGTH: Final = 5.0  # of features, where distances are Euclidean
NEW_FROM: Final = 0.4 * 2 * LENGTH**2  # a cosine of 0.6, as such a distance


def ablation_preset(slug: str) -> Preset:
    """What trains a row of the paper's ablation tables: as CPM's preset or ProtoNet's, but shorter.

    All rows start with the same encoder, which was pretrained for cosines: without a last ReLU, and where the
    comparison is Euclidean with features of one length.
    """
    config = ABLATIONS[slug]
    base = PRESETS["cpm-omniglot-semi" if isinstance(config, CPMConfig) else "protonet-omniglot-semi"]
    encoder, cpm = base.model.encoder, base.model.learner
    assert isinstance(encoder, Conv4Config)
    if config.similarity == "euclidean":
        encoder = replace(encoder, length=LENGTH)
    if isinstance(config, ProtoNetConfig):  # as in its preset: without a name it learns only when very sure
        config = replace(config, beta_read=NEW_FROM, beta_write=0.0)
    if isinstance(config, CPMConfig) and isinstance(cpm, CPMConfig) and config.similarity == cpm.similarity:
        starts = {name: getattr(cpm, name) for name in ("temperature", "beta_read", "beta_write")}
        config = replace(config, **starts)
    assert base.features is not None
    return replace(
        base,
        name=f"{slug}-omniglot-semi",
        model=replace(base.model, encoder=encoder, learner=config),
        features=replace(base.features, steps=ON_FEATURES, copies=1, mirror=False),
        train=replace(base.train, steps=TOGETHER),
    )


ABLATION_PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset for preset in map(ablation_preset, ABLATIONS)
}
"""Those of the paper's ablation tables by name, beside PRESETS."""
