"""Online ProtoNet, CPM and Wayfarer on Omniglot with a stronger encoder: a small ResNet-12.

    wander train cpm-omniglot-resnet         as cpm-omniglot, another encoder
    wander train cpm-omniglot-resnet-semi

The pictures, their crop and their hidden part are the same, and so is the recipe, but that in pretraining
half of the pictures are bent and half are mirrored. Rows of their own, so that what better features gain
stands apart from what a better learner gains. This encoder is also the teacher of that of the other rows.
"""

from dataclasses import replace
from typing import Final

from wanderlearn.learners.resnet12 import ResNet12Config
from wanderlearn.presets.methods import PRESETS
from wanderlearn.presets.preset import Method, Preset
from wanderlearn.presets.pretrained import OMNIGLOT_TEACHER, OMNIGLOT_TEMPERATURE, PLAIN, for_cosines

__all__ = ["RESNET_PRESETS"]

LEARNERS: Final[tuple[Method, ...]] = ("protonet", "cpm", "wayfarer")
ENCODER: Final = ResNet12Config(
    image_size=28, in_channels=1, channels=(16, 32, 64, 128), last_relu=False, batch_norm_momentum=0.01
)


def _preset(method: Method, semi: bool) -> Preset:
    base = PRESETS[f"{method}-omniglot{'-semi' if semi else ''}"]
    return replace(
        base,
        name=f"{method}-omniglot-resnet{'-semi' if semi else ''}",
        model=for_cosines(ENCODER, PLAIN[method], semi=semi, temperature=OMNIGLOT_TEMPERATURE),
        pretrain=OMNIGLOT_TEACHER,
        # A picture costs twice as much. All together validation gains hardly anything.
        train=replace(base.train, batch_size=4, steps=min(base.train.steps or 0, 200)),
        features=base.features and replace(base.features, steps=min(base.features.steps or 0, 1200)),
    )


RESNET_PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset for semi in (False, True) for preset in (_preset(method, semi) for method in LEARNERS)
}
"""By name: {protonet,cpm,wayfarer}-omniglot-resnet[-semi]."""
