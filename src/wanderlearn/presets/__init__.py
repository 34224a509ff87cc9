"""Presets: whole recipes by name, each saying what it does, how long it takes and what to expect.

    wander train cpm-omniglot            fully labelled
    wander train cpm-omniglot-semi       most labels of frequent classes hidden
    wander train cpm-glyphs              the embedded world: no download, ten minutes
    wander train cpm --world folder:PATH your own pictures
    wander train cpm-imagenet --world imagenet:PATH
                                         natural pictures, as the authors; cpm-imagenet-small in an hour
    wander train cpm-rooms --world rooms:PATH
                                         recorded walks, as the authors; cpm-rooms-small in half an hour
    wander train cpm-omniglot-resnet     with a stronger encoder
    wander train cpm-omniglot-scratch    without the recipe: sequences only, as the authors
    wander train no-metric-omniglot-semi one row of the paper's ablation tables

The methods are all of the paper's tables, with the authors' settings, but for a budget that suits a computer
without a graphics card, and Wayfarer, which is ours. On Omniglot that takes more than a budget: the encoder
comes pretrained for cosines, so it has no last ReLU, and Online ProtoNet, Online MatchingNet and Online IMP
compare by cosine.
"""

from typing import Final

from wanderlearn.presets.ablations import ABLATION_PRESETS, ablation_preset
from wanderlearn.presets.context import CONTEXT_PRESETS
from wanderlearn.presets.imagenet import IMAGENET_PRESETS
from wanderlearn.presets.methods import GOES_ON_FROM, PRESETS, SCRATCH_PRESETS
from wanderlearn.presets.own import METHOD_PRESETS
from wanderlearn.presets.preset import METHODS, Preset
from wanderlearn.presets.resnet import RESNET_PRESETS
from wanderlearn.presets.rooms import ROOMS_PRESETS

__all__ = [
    "ABLATION_PRESETS",
    "ALL_PRESETS",
    "CONTEXT_PRESETS",
    "GOES_ON_FROM",
    "IMAGENET_PRESETS",
    "METHODS",
    "METHOD_PRESETS",
    "PRESETS",
    "RESNET_PRESETS",
    "ROOMS_PRESETS",
    "SCRATCH_PRESETS",
    "Preset",
    "ablation_preset",
]

ALL_PRESETS: Final[dict[str, Preset]] = (
    METHOD_PRESETS
    | PRESETS
    | IMAGENET_PRESETS
    | ROOMS_PRESETS
    | CONTEXT_PRESETS
    | RESNET_PRESETS
    | SCRATCH_PRESETS
    | ABLATION_PRESETS
)
"""Whatever may be said after `wander train`."""
