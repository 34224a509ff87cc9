"""What lies behind pictures: one kind of texture per environment, cut, noisy, and part of every batch."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.context.textures import CHANNEL, OVERLAY, PROCESS, tiny_textures, world
from tests.tiny_world import tiny_pictures
from wanderlearn.errors import WanderError
from wanderlearn.pictures.collection import Pictures
from wanderlearn.worlds import BackgroundConfig, Meetings, Roaming
from wanderlearn.worlds.backgrounds import Backgrounds, overlaid
from wanderlearn.worlds.sequence import Background

FIELDS = ("picture", "truth", "given", "target", "environment", "crop", "occlusion")


def behind(m: Meetings) -> Background:
    assert m.background is not None
    return m.background


def textures_of(textures: Pictures, m: Meetings) -> list[set[int]]:
    """The classes of texture met in each environment."""
    classes = textures.class_of[behind(m).texture]
    return [set(classes[m.environment == e].tolist()) for e in range(int(m.environment.max()) + 1)]


@given(st.integers(0, 2**40), st.integers(0, 10**6), st.booleans(), st.sampled_from(["train", "val", "test"]))
def test_every_environment_has_one_texture_and_shares_none(
    seed: int, index: int, shuffle: bool, split: str
) -> None:
    here = world(split, shuffle=shuffle)  # type: ignore[arg-type]
    m = here.meetings(seed, index)
    assert here.backgrounds is not None
    met = textures_of(here.backgrounds.textures, m)
    assert all(len(classes) == 1 for classes in met)
    assert len(set.union(*met)) == len(met)  # five classes for three environments


@given(st.integers(0, 1000))
def test_with_too_few_textures_environments_may_share_but_keep_one_each(index: int) -> None:
    here = world(classes=2)
    assert here.backgrounds is not None
    met = textures_of(here.backgrounds.textures, here.meetings(0, index))
    assert all(len(classes) == 1 for classes in met)


def test_all_textures_and_all_their_pictures_come_up() -> None:
    here = world()
    seen = np.unique(np.concatenate([behind(here.meetings(0, i)).texture for i in range(60)]))
    assert here.backgrounds is not None
    assert len(seen) == len(here.backgrounds.textures.images)


def test_the_shuffled_world_is_the_same_process_with_pairs_kept() -> None:
    """Shuffled or not, each meeting's texture is that of the environment its picture was met in."""
    for index in range(5):
        ordered, mixed = world().meetings(3, index), world(shuffle=True).meetings(3, index)
        textures = tiny_textures("test").class_of
        for m in (ordered, mixed):
            of = {int(e): int(c) for e, c in zip(m.environment, textures[behind(m).texture], strict=True)}
            assert [of[int(e)] for e in m.environment] == textures[behind(m).texture].tolist()
        assert len(ordered) == len(mixed)
        assert sorted(np.bincount(ordered.environment)) == sorted(np.bincount(mixed.environment))
    changes = [
        int((np.diff(w.meetings(0, 0).environment) != 0).sum()) for w in (world(), world(shuffle=True))
    ]
    assert changes[1] > changes[0]


@given(st.integers(0, 500), st.sampled_from(["train", "test"]))
def test_a_background_changes_nothing_else(index: int, split: str) -> None:
    plain = world(split, None).meetings(1, index)  # type: ignore[arg-type]
    with_texture = world(split).meetings(1, index)  # type: ignore[arg-type]
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(plain, name), getattr(with_texture, name))
    assert plain.background is None


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_first_channel_is_the_plain_world_and_the_second_the_texture(split: str) -> None:
    plain, here = world(split, None), world(split)  # type: ignore[arg-type]
    m = here.meetings(0, 4)
    both, alone = here.batch([m]).images[0], plain.batch([plain.meetings(0, 4)]).images[0]
    assert torch.equal(both[:, :1], alone)
    assert here.channels == both.shape[1] == 2
    expected = slow_channel(here, m)
    np.testing.assert_allclose(both[:, 1].numpy(), expected, atol=1e-6)


def slow_channel(here: Roaming, m: Meetings) -> np.ndarray:
    """The second channel, pixel by pixel, from the definition: noise, clip, invert, crop, [-1, 1], hide."""
    assert here.backgrounds is not None
    side, padding = int(here.config.occlusion * 28), here.config.crop_padding
    out = np.zeros((len(m), 28, 28))
    for t in range(len(m)):
        texture = here.backgrounds.textures.images[behind(m).texture[t], 0].astype(float) / 255
        top, left = behind(m).corner[t]
        key = np.array([behind(m).noise[t], 0], dtype=np.uint64)
        noise = np.random.Generator(np.random.Philox(key=key)).standard_normal((28, 28), dtype=np.float32)
        for y in range(28):
            for x in range(28):
                sy, sx = y + m.crop[t, 0] - padding, x + m.crop[t, 1] - padding
                value = 0.0  # black comes in at the edge
                if 0 <= sy < 28 and 0 <= sx < 28:
                    value = 1 - min(max(texture[top + sy, left + sx] + 0.1 * noise[sy, sx], 0), 1)
                row, column = m.occlusion[t]
                hidden = row <= y < row + side and column <= x < column + side
                out[t, y, x] = 0 if hidden else 2 * value - 1
    return out


def test_training_cuts_one_place_per_sequence_and_tests_cut_the_centre() -> None:
    corners = [behind(world("train").meetings(0, i)).corner for i in range(40)]
    assert all((corner == corner[0]).all() for corner in corners)
    placed = np.stack([corner[0] for corner in corners])
    assert len(np.unique(placed, axis=0)) > 20
    assert placed.min() >= 0
    assert placed.max() <= 40 - 28
    for split in ("val", "test"):
        assert (behind(world(split).meetings(0, 0)).corner == (40 - 28) // 2).all()


def test_noise_has_the_right_size_and_is_clipped() -> None:
    grey = replace_images(tiny_textures(), 128)
    pieces = Backgrounds(grey, CHANNEL, (28, 28)).pieces(some_background())
    assert abs(float((1 - pieces).mean()) - 128 / 255) < 0.01
    assert abs(float(pieces.std()) - 0.1) < 0.01
    for shade in (0, 255):
        pieces = Backgrounds(replace_images(grey, shade), CHANNEL, (28, 28)).pieces(some_background())
        assert pieces.min() >= 0
        assert pieces.max() <= 1
        clipped = pieces == (1 if shade == 0 else 0)  # inverted
        assert 0.4 < clipped.mean() < 0.6  # half of the noise goes beyond the end
    still = Backgrounds(grey, BackgroundConfig(noise=0.0), (28, 28)).pieces(some_background())
    np.testing.assert_allclose(still, 1 - 128 / 255, atol=1e-6)


def replace_images(textures: Pictures, shade: int) -> Pictures:
    return replace(textures, images=np.full_like(textures.images, shade))


def some_background(count: int = 20) -> Background:
    return Background(np.zeros(count, int), np.zeros((count, 2), int), np.arange(count))


def test_sequences_do_not_depend_on_the_batch_and_seeds_differ() -> None:
    here = world("train")
    together = here.batch([here.meetings(0, i) for i in range(3)]).images
    again = world("train")
    for i in (2, 0):
        m = again.meetings(0, i)
        assert torch.equal(again.batch([m]).images[0], together[i, : len(m)])
    a, b = (behind(here.meetings(seed, 0)) for seed in (0, 1))
    assert not np.array_equal(a.noise[:10], b.noise[:10])


def slow_overlay(drawing: np.ndarray, texture: np.ndarray) -> np.ndarray:
    """Upsample three times (bilinear), dilate by squares of 5 and 3, take the middle of three pixels."""
    size, large = len(drawing), np.zeros((3 * len(drawing), 3 * len(drawing)))
    for y in range(3 * size):
        for x in range(3 * size):
            sy, sx = (max((v + 0.5) / 3 - 0.5, 0) for v in (y, x))
            y0, x0 = int(sy), int(sx)
            y1, x1 = min(y0 + 1, size - 1), min(x0 + 1, size - 1)
            fy, fx = sy - y0, sx - x0
            upper = drawing[y0, x0] * (1 - fx) + drawing[y0, x1] * fx
            lower = drawing[y1, x0] * (1 - fx) + drawing[y1, x1] * fx
            large[y, x] = upper * (1 - fy) + lower * fy
    out = np.zeros_like(drawing)
    for y in range(size):
        for x in range(size):
            cy, cx = 3 * y + 1, 3 * x + 1
            near = large[max(cy - 2, 0) : cy + 3, max(cx - 2, 0) : cx + 3].max()
            ink = large[max(cy - 1, 0) : cy + 2, max(cx - 1, 0) : cx + 2].max()
            out[y, x] = ink if near > 0.1 else texture[y, x]
    return out


@given(st.integers(0, 10**6))
def test_overlay_equals_the_slow_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawing = (rng.random((2, 1, 9, 9)) * (rng.random((2, 1, 9, 9)) < 0.2)).astype(np.float32)
    texture = rng.random((2, 1, 9, 9)).astype(np.float32)
    quick = overlaid(drawing, texture)
    for n in range(2):
        np.testing.assert_allclose(quick[n, 0], slow_overlay(drawing[n, 0], texture[n, 0]), atol=1e-5)


def test_an_overlay_is_one_channel_and_keeps_far_texture() -> None:
    here = world("test", OVERLAY, occlusion=0.0)
    m = here.meetings(0, 0)
    images = here.batch([m]).images[0]
    assert images.shape[1] == here.channels == 1
    assert here.backgrounds is not None
    drawn = np.multiply(here.pictures.images[m.picture], np.float32(1 / 255), dtype=np.float32)
    expected = 2 * overlaid(drawn, here.backgrounds.pieces(behind(m))) - 1
    np.testing.assert_allclose(images.numpy(), expected, atol=1e-6)


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(WanderError, match="less than the pictures"):
        Roaming(tiny_pictures(), replace(PROCESS, background=CHANNEL), tiny_textures(size=20))
    with pytest.raises(WanderError, match="one channel"):
        Roaming(tiny_pictures(channels=3), replace(PROCESS, background=OVERLAY), tiny_textures())
    with pytest.raises(WanderError, match="noise of backgrounds"):
        BackgroundConfig(noise=2.0)
