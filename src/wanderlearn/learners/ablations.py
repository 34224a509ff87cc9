"""Every row of the paper's two ablation tables, by name. Both are semi-supervised, on validation sequences.

Rows without a tick under GAU average and are Euclidean, unless the name says otherwise: the two tables share
"CPM Avg. Euc" (94.08) and "CPM GAU Cos" (94.65).
"""

import re
from dataclasses import replace
from typing import Final

from wanderlearn.learners.cpm import CPMConfig
from wanderlearn.learners.protonet import ProtoNetConfig

__all__ = ["ABLATIONS", "ARCHITECTURE_ABLATIONS", "SEMI_ABLATIONS", "AblationConfig", "as_built", "slug_of"]

AblationConfig = CPMConfig | ProtoNetConfig

ARCHITECTURE_ABLATIONS: Final[dict[str, AblationConfig]] = {
    "Online ProtoNet": ProtoNetConfig(),
    "No h_RNN": CPMConfig(context="none", memory="average", similarity="euclidean"),
    "h_RNN only": CPMConfig(
        metric=False, predicted_thresholds=False, memory="average", similarity="euclidean"
    ),
    "No metric": CPMConfig(metric=False, memory="average", similarity="euclidean"),
    "No thresholds": CPMConfig(predicted_thresholds=False, memory="average", similarity="euclidean"),
    "h = h_RNN": CPMConfig(context="replace", memory="average", similarity="euclidean"),
    "CPM Avg. Euc": CPMConfig(memory="average", similarity="euclidean"),
    "CPM Avg. Cos": CPMConfig(memory="average", similarity="cosine"),
    "CPM GAU Euc": CPMConfig(memory="gau", similarity="euclidean"),
    "CPM GAU Cos": CPMConfig(memory="gau", similarity="cosine"),
}
"""Table "Ablation of CPM architectural components"."""

SEMI_ABLATIONS: Final[dict[str, AblationConfig]] = {
    "Online ProtoNet": ProtoNetConfig(self_write=False, write_thresholds=False),
    "Online ProtoNet + Prototype": ProtoNetConfig(write_thresholds=False),
    "Online ProtoNet + Prototype + write thresholds": ProtoNetConfig(),
    "CPM": CPMConfig(
        recurrent_on_unlabelled=False,
        self_write=False,
        write_thresholds=False,
        memory="average",
        similarity="euclidean",
    ),
    "CPM + RNN": CPMConfig(
        self_write=False, write_thresholds=False, memory="average", similarity="euclidean"
    ),
    "CPM + RNN + Prototype": CPMConfig(write_thresholds=False, memory="average", similarity="euclidean"),
    "CPM + RNN + Prototype + write thresholds": CPMConfig(memory="average", similarity="euclidean"),
    "CPM + RNN + Prototype + write thresholds + GAU": CPMConfig(memory="gau", similarity="cosine"),
}
"""Table "Ablation of semi-supervised learning components": what learns from unlabelled items."""


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower().replace(" = ", " is ")).strip("-")


ABLATIONS: Final[dict[str, AblationConfig]] = {
    _slug(name): config for name, config in ARCHITECTURE_ABLATIONS.items()
} | {
    # Both tables have a row "Online ProtoNet", but not the same one; those of the second say which they are.
    f"semi-{_slug(name)}": config
    for name, config in SEMI_ABLATIONS.items()
    if config not in ARCHITECTURE_ABLATIONS.values()
}
"""Every row of either table once, by the word for it on a command line and in the name of its result."""


def slug_of(config: AblationConfig) -> str:
    """The word for a row of either table: "no-metric", or "semi-cpm-rnn". Equal rows share one."""
    built = as_built(config)
    return next(slug for slug, other in ABLATIONS.items() if other == built)


def as_built(config: AblationConfig) -> AblationConfig:
    """What a row is, without where temperature and thresholds start: that is a matter of training."""
    return replace(config, temperature=10.0, beta_read=None, beta_write=None)
