"""Single frames for pretraining and for kept features."""

import numpy as np
import pytest
import torch

from tests.rooms.made_walks import SMALL, made_walks
from wanderlearn import WanderError
from wanderlearn.feature_training import kept_features
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.resnet12 import ResNet12Config
from wanderlearn.model import ModelConfig, build
from wanderlearn.rooms.singles import SingleFrames
from wanderlearn.rooms.world import Rooms
from wanderlearn.singles import singles_of

WORLD = Rooms(made_walks("train"), SMALL)


def test_a_batch_has_all_that_is_met_in_its_frames() -> None:
    data = SingleFrames(WORLD, 0, 20)
    assert data.count == 120
    seen: list[int] = []
    for step in range(6):
        frames, truth = data.batch(step)
        assert len(frames.rgb) == 20
        assert len(truth) == len(frames.of) == data.whole(step)
        seen += truth.tolist()
    assert sorted(seen) == sorted(WORLD.pictures.class_of.tolist())  # an epoch meets everything once


def test_the_shares_of_a_batch_are_the_whole() -> None:
    data, again = SingleFrames(WORLD, 3, 20, flip=True), SingleFrames(WORLD, 3, 20, flip=True)
    for step in (7, 0):
        whole, truth = data.batch(step)
        parts = [again.batch(step, share) for share in (range(7), range(7, 8), range(8, 20))]
        torch.testing.assert_close(torch.cat([p.whole() for p, _ in parts]), whole.whole())
        torch.testing.assert_close(torch.cat([t for _, t in parts]), truth)


def test_frame_and_mask_are_mirrored_together() -> None:
    plain, mirrored = SingleFrames(WORLD, 1, 30), SingleFrames(WORLD, 1, 30, flip=True)
    one, other = plain.batch(2)[0].whole(), mirrored.batch(2)[0].whole()
    turned = 0
    for a, b in zip(one, other, strict=True):
        assert torch.equal(a, b) or torch.equal(a.flip(2), b)
        turned += not torch.equal(a, b)
    assert 0 < turned < len(one)


def test_bending_is_for_drawings() -> None:
    with pytest.raises(WanderError, match="warp"):
        singles_of(WORLD, 0, 4, warp=1.0)
    with pytest.raises(WanderError, match="flip"):
        singles_of(WORLD, 0, 4, mirror=True)
    with pytest.raises(WanderError, match="always cropped"):
        singles_of(WORLD, 0, 4, crop=False)
    with pytest.raises(WanderError, match="batch-size"):
        singles_of(WORLD, 0, 10**4)


def test_kept_features_are_those_of_the_encoder() -> None:
    config = ResNet12Config(image_size=12, in_channels=4, channels=(4,), pooling="attention")
    model = build(ModelConfig(config, ProtoNetConfig(features=config.feature_dim))).eval()
    with torch.no_grad():
        kept = kept_features(model, WORLD, 2, seed=0)
        data = singles_of(WORLD, 0, 1)
        chosen = np.arange(len(WORLD.pictures.class_of))
        for n in range(2):
            for start in range(0, len(chosen), 512):
                expected = model.encoder(data.shown(chosen[start : start + 512], f"copy {n}", start))
                torch.testing.assert_close(kept[start : start + 512, n], expected)
    assert not torch.equal(kept[:, 0], kept[:, 1])
