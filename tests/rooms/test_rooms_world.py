"""The world of rooms: walks become sequences by rules that every sequence keeps."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rooms.made_walks import SMALL, made_walks
from wanderlearn import WanderError
from wanderlearn.pictures.collection import SPLITS
from wanderlearn.rooms.process import RoomsConfig
from wanderlearn.rooms.world import Rooms
from wanderlearn.worlds import NEW, UNLABELED, Meetings, RoamingConfig, world_of

seeds = st.integers(0, 2**40)
indices = st.integers(0, 500)
splits = st.sampled_from(SPLITS)
TRAIN, TEST = made_walks("train"), made_walks("test")


def world(split: str, **changes: object) -> Rooms:
    walks = {"train": TRAIN, "val": made_walks("val"), "test": TEST}[split]
    return Rooms(walks, replace(SMALL, **changes))  # type: ignore[arg-type]


def frames_of(rooms: Rooms, m: Meetings) -> np.ndarray:
    return rooms.pictures.frame[m.picture]


@given(splits, seeds, indices, st.booleans())
def test_every_sequence_keeps_the_caps(split: str, seed: int, index: int, semi: bool) -> None:
    rooms = world(split, semi=semi)
    m = rooms.meetings(seed, index)
    assert SMALL.least_meetings <= len(m) <= SMALL.length
    assert 1 <= m.truth.max() + 1 <= SMALL.slots - 1
    assert len(set(m.picture.tolist())) == len(m)  # nothing is met twice at one moment
    walk = np.searchsorted(rooms.pictures.first, m.picture, side="right") - 1
    assert len(set(walk.tolist())) == 1
    assert m.index == index


@given(splits, seeds, indices)
def test_time_runs_forward_and_in_training_perhaps_backward(split: str, seed: int, index: int) -> None:
    steps = np.diff(frames_of(rooms := world(split), rooms.meetings(seed, index)))
    forward, backward = (steps >= 0).all(), (steps <= 0).all()
    assert forward or (split == "train" and backward)


def test_reversal_is_exact_and_comes_half_of_the_time() -> None:
    forward, backward = world("train", reverse=0.0), world("train", reverse=1.0)
    half = world("train")
    turned = 0
    for i in range(200):
        one, other = forward.meetings(3, i), backward.meetings(3, i)
        np.testing.assert_array_equal(one.picture, other.picture[::-1])
        turned += bool(np.array_equal(half.meetings(3, i).picture, other.picture))
    assert 70 < turned < 130


def test_without_thinning_and_caps_a_walk_is_met_whole_and_in_order() -> None:
    rooms = world("test", per_class=1000, slots=100, length=1000)
    for i in range(rooms.once):
        m = rooms.meetings(0, i)
        assert m.picture.tolist() != sorted(m.picture.tolist())  # chance orders what is met in one frame
        np.testing.assert_array_equal(
            np.sort(m.picture), np.arange(rooms.pictures.first[i], rooms.pictures.first[i + 1])
        )
        assert (np.diff(frames_of(rooms, m)) >= 0).all()


def test_things_beyond_the_cap_are_those_that_come_last() -> None:
    rooms = world("test", per_class=1000, slots=6, length=1000)
    for i in range(rooms.once):
        m = rooms.meetings(1, i)
        whole = np.arange(rooms.pictures.first[i], rooms.pictures.first[i + 1])
        met = set(rooms.pictures.class_of[m.picture].tolist())
        assert len(met) == 5
        last_new = max(min(frames_of(rooms, m)[rooms.pictures.class_of[m.picture] == c]) for c in met)
        before = whole[rooms.pictures.frame[whole] < last_new]
        assert set(rooms.pictures.class_of[before].tolist()) <= met
        kept = whole[np.isin(rooms.pictures.class_of[whole], list(met))]
        assert set(m.picture.tolist()) == set(kept.tolist())


def test_thinning_leaves_the_rare_whole_and_of_the_frequent_about_so_many() -> None:
    rooms = world("test", length=1000)
    whole = Counter(rooms.pictures.class_of[: rooms.pictures.first[1]].tolist())
    counts: dict[int, list[int]] = {}
    for i in range(0, 400 * rooms.once, rooms.once):  # the first walk again and again
        for c, n in Counter(rooms.pictures.class_of[rooms.meetings(0, i).picture].tolist()).items():
            counts.setdefault(c, []).append(n)
    for c, found in counts.items():
        if whole[c] <= SMALL.per_class:
            assert set(found) == {whole[c]}
        elif len(found) == 400:  # always within the cap
            assert abs(np.mean(found) - SMALL.per_class) < 0.4
            assert max(found) > SMALL.per_class  # by chance, not by counting


def test_training_drops_a_twentieth_more() -> None:
    walks = made_walks("train", walks=1, frames=80, things=8)
    plain, dropping = (Rooms(walks, replace(SMALL, length=1000, per_class=1000, drop=d)) for d in (0.0, 0.05))
    lengths = [len(dropping.meetings(0, i)) / len(plain.meetings(0, i)) for i in range(300)]
    assert abs(np.mean(lengths) - 0.95) < 0.01


@given(seeds, indices)
def test_crops_and_masks_stay_within_their_bounds_in_training(seed: int, index: int) -> None:
    rooms = world("train")
    m = rooms.meetings(seed, index)
    assert m.mask_crop is not None
    assert (m.crop >= 0).all()
    assert (m.crop <= [2 * SMALL.crop_rows, 2 * SMALL.crop_columns]).all()
    assert (np.abs(m.mask_crop - m.crop) <= SMALL.mask_shift).all()
    for frame in np.unique(frames_of(rooms, m)):  # one crop for all that is met in a frame
        assert len(np.unique(m.crop[frames_of(rooms, m) == frame], axis=0)) == 1


def test_all_crops_and_shifts_occur() -> None:
    rooms = world("train")
    sequences = [rooms.meetings(0, i) for i in range(60)]
    crops = np.concatenate([m.crop for m in sequences])
    shifts = np.concatenate([np.asarray(m.mask_crop) - m.crop for m in sequences])
    assert {tuple(c) for c in crops.tolist()} == {(r, c) for r in range(5) for c in range(7)}
    assert {tuple(s) for s in shifts.tolist()} == {(r, c) for r in range(-2, 3) for c in range(-2, 3)}


@given(st.sampled_from(("val", "test")), seeds, indices)
def test_nothing_is_moved_in_evaluation(split: str, seed: int, index: int) -> None:
    rooms = world(split)
    m = rooms.meetings(seed, index)
    assert m.mask_crop is not None
    assert (m.crop == [SMALL.crop_rows, SMALL.crop_columns]).all()
    assert (m.mask_crop == m.crop).all()
    seen = rooms.batch([m]).frames
    assert seen is not None
    np.testing.assert_array_equal(seen.masks[:, 0].numpy() == 1, rooms.pictures.mask(m.picture))
    exact = rooms.pictures.frames[frames_of(rooms, m)] / np.float32(127.5) - 1
    np.testing.assert_allclose(seen.rgb[seen.of].numpy(), exact, atol=1e-6)


@settings(max_examples=20)
@given(seeds, indices)
def test_pixels_are_those_of_a_plain_crop(seed: int, index: int) -> None:
    rooms = world("train")
    m = rooms.meetings(seed, index)
    seen = rooms.batch([m]).frames
    assert seen is not None
    whole = seen.whole().numpy()
    height, width = rooms.pictures.shape[1:]
    around = (SMALL.crop_rows, SMALL.crop_rows), (SMALL.crop_columns, SMALL.crop_columns)
    far = tuple((a + SMALL.mask_shift,) * 2 for a, _ in around)  # a mask may go beyond the padding
    masks = rooms.pictures.mask(m.picture)
    for t in range(len(m)):
        frame = np.pad(rooms.pictures.frames[frames_of(rooms, m)[t]], ((0, 0), *around))
        y, x = m.crop[t]
        np.testing.assert_allclose(
            whole[t, :3], frame[:, y : y + height, x : x + width] / 127.5 - 1, atol=1e-6
        )
        y, x = np.asarray(m.mask_crop)[t] + SMALL.mask_shift
        expected = np.pad(masks[t], far)[y : y + height, x : x + width]
        np.testing.assert_array_equal(whole[t, 3] == 1, expected)


@given(splits, seeds, indices, st.booleans())
def test_what_is_told_and_what_is_right(split: str, seed: int, index: int, semi: bool) -> None:
    rooms = world(split, semi=semi)
    m = rooms.meetings(seed, index)
    class_of = rooms.pictures.class_of[m.picture]
    told: list[int] = []
    for t in range(len(m)):
        assert m.given[t] in (UNLABELED, m.truth[t])
        assert m.target[t] == (m.truth[t] if m.truth[t] in told else NEW)
        if m.given[t] != UNLABELED and m.given[t] not in told:
            told.append(int(m.given[t]))
    assert told == list(range(len(set(class_of.tolist()))))  # slots by first label; every class is told once
    assert len({(int(c), int(k)) for c, k in zip(class_of, m.truth, strict=True)}) == len(told)
    if not semi:
        np.testing.assert_array_equal(m.given, m.truth)


def test_a_sequence_is_a_function_of_seed_split_and_number() -> None:
    for split in SPLITS:
        one, other = world(split, semi=True), world(split, semi=True)
        for i in (7, 0, 31, 7):
            other.meetings(1, i)  # whatever was drawn before
            a, b = one.meetings(5, i), other.meetings(5, i)
            for name in ("picture", "given", "crop", "mask_crop", "environment"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    pictures = [world(split).meetings(seed, 0).picture.tolist() for split in SPLITS for seed in (0, 1)]
    assert len({tuple(p) for p in pictures}) == len(pictures)


def test_every_walk_comes_once_in_a_pass() -> None:
    def walk_of(rooms: Rooms, i: int) -> int:
        return int(np.searchsorted(rooms.pictures.first, rooms.meetings(2, i).picture[0], side="right")) - 1

    test, train = world("test"), world("train")
    assert [walk_of(test, i) for i in range(8)] == [0, 1, 2, 3] * 2
    passes = [[walk_of(train, 4 * n + i) for i in range(4)] for n in range(12)]
    assert all(sorted(each) == [0, 1, 2, 3] for each in passes)
    assert len({tuple(each) for each in passes}) > 3


def test_the_first_pass_begins_at_the_start_of_a_walk_and_later_ones_anywhere() -> None:
    rooms = world("test", per_class=1000, slots=100)
    starts = [int(frames_of(rooms, rooms.meetings(0, i))[0]) % 30 for i in range(40)]
    assert starts[:4] == [0] * 4
    assert len(set(starts[4:])) > 3


def test_shuffling_keeps_what_is_met_and_destroys_its_order() -> None:
    plain, shuffled = world("test"), world("test", shuffle=True)
    one, other = plain.meetings(0, 0), shuffled.meetings(0, 0)
    assert sorted(one.picture.tolist()) == sorted(other.picture.tolist())
    assert (np.diff(frames_of(shuffled, other)) < 0).any()


def test_walks_with_too_little_are_left_out() -> None:
    walks = made_walks(walks=3)
    first, end = walks.first[1], walks.first[2]
    one_thing = walks.class_of.copy()
    one_thing[first:end] = one_thing[first]  # the second walk meets one thing only
    assert Rooms(replace(walks, class_of=one_thing), SMALL).walks == [0, 2]
    with pytest.raises(WanderError, match="None of the 3 walks"):
        Rooms(walks, replace(SMALL, least_meetings=10**6))


def test_a_world_of_rooms_and_a_world_of_pictures_are_not_mixed_up() -> None:
    from tests.tiny_world import tiny_pictures

    with pytest.raises(WanderError, match="preset of their own"):
        world_of(TEST, RoamingConfig())
    with pytest.raises(WanderError, match="rooms:PATH"):
        world_of(tiny_pictures(), RoomsConfig())


@pytest.mark.parametrize("wrong", [{"slots": 1}, {"drop": 1.0}, {"reverse": 1.5}, {"mask_shift": -1}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(WanderError):
        RoomsConfig(**wrong)  # type: ignore[arg-type]
