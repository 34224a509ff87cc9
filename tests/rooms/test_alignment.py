"""Alignment: known warps are found to less than a pixel, what cannot be trusted is refused."""

import sys

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.rooms.own_simulators import second_look
from wanderlearn.errors import WanderError
from wanderlearn.rooms import Home, Renderer, walk
from wanderlearn.rooms.alignment import Alignment, Unaligned, align, moved_ids, opencv

WIDTH, HEIGHT = 400, 300
CORNERS = np.array([[0.0, 0.0], [WIDTH, 0.0], [WIDTH, HEIGHT], [0.0, HEIGHT]])

Picture = npt.NDArray[np.uint8]
Matrix = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def pictures(home: Home) -> list[Picture]:
    """Views with much in them, from different rooms."""
    renderer = Renderer(home, WIDTH, HEIGHT, light=False)
    return [renderer.draw(camera).rgb for camera in list(walk(home, 0, 60))[15::21]]


def homography(to: Matrix) -> Matrix:
    """The matrix that brings the corners of a picture to these places, from eight equations."""
    rows, right = [], []
    for (x, y), (u, v) in zip(CORNERS, to, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    return np.append(np.linalg.solve(np.array(rows), np.array(right)), 1.0).reshape(3, 3)


def seen_through(picture: Picture, matrix: Matrix) -> Picture:
    """The picture whose pixel at p shows what `picture` has at matrix p."""
    cv2 = opencv()
    way = cv2.WARP_INVERSE_MAP | cv2.INTER_LINEAR
    return np.asarray(cv2.warpPerspective(picture, matrix, (WIDTH, HEIGHT), flags=way), np.uint8)


def places(matrix: Matrix, points: Matrix) -> Matrix:
    """Where points come to."""
    projected = np.column_stack([points, np.ones(len(points))]) @ matrix.T
    return np.asarray(projected[:, :2] / projected[:, 2:])


@settings(max_examples=12)
@given(st.integers(0, 2), st.lists(st.floats(-20, 20), min_size=8, max_size=8))
def test_a_known_warp_is_found_to_less_than_a_pixel(
    pictures: list[Picture], which: int, moves: list[float]
) -> None:
    """Every corner is moved by up to 20 pixels of 400 x 300; colours and sharpness change too."""
    truth = homography(CORNERS + np.array(moves).reshape(4, 2))
    first = pictures[which]
    found = align(first, second_look(seen_through(first, truth)))
    assert isinstance(found, Alignment)
    assert len(found.inliers) <= found.matches
    assert found.error < 1  # between the features that were matched
    at = found.inliers
    assert np.linalg.norm(places(found.matrix, at) - places(truth, at), axis=1).mean() < 1  # from the truth
    y, x = np.mgrid[0 : HEIGHT + 1 : 20, 0 : WIDTH + 1 : 20]
    at = np.column_stack([x.ravel(), y.ravel()]).astype(float)
    off = np.linalg.norm(places(found.matrix, at) - places(truth, at), axis=1)
    assert off.mean() < 0.01 * np.hypot(HEIGHT, WIDTH)  # also where there are no features


def test_the_same_pictures_give_the_same_whatever_came_before(pictures: list[Picture]) -> None:
    first, second = pictures[0], second_look(seen_through(pictures[0], homography(CORNERS + 5)))
    once = align(first, second)
    align(pictures[1], second)
    again = align(first, second)
    assert isinstance(once, Alignment)
    assert isinstance(again, Alignment)
    assert (once.matrix == again.matrix).all()


def test_what_is_blank_or_of_something_else_is_refused(pictures: list[Picture]) -> None:
    blank = np.full((HEIGHT, WIDTH, 3), 120, np.uint8)
    noise = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    first, other, third = pictures[:3]
    assert align(first, blank) == Unaligned("too few features")
    assert align(blank, first) == Unaligned("too few features")
    for a, b in ((first, other), (other, third), (first, third), (first, noise), (noise, first)):
        assert isinstance(align(a, second_look(b)), Unaligned)


@pytest.mark.parametrize(
    "to",
    [
        np.roll(CORNERS, 2, axis=0),  # upside down
        CORNERS / 2 + [WIDTH / 4, HEIGHT / 4],  # half as far away
        CORNERS + np.array([[0, 0], [80, 45], [80, -45], [0, 0]]),  # from the side
        CORNERS + np.array([150, 0]),  # beside
    ],
)
def test_what_two_cameras_in_one_place_cannot_see_is_absurd(to: Matrix) -> None:
    """A picture with features everywhere, so that the way is found, and refused for what it is."""
    coarse = np.random.default_rng(2).integers(0, 256, (HEIGHT // 6, WIDTH // 6, 3)).astype(np.uint8)
    first = np.asarray(Image.fromarray(coarse).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))
    assert align(first, seen_through(first, homography(to))) == Unaligned("absurd homography")


def test_features_in_one_spot_say_nothing_of_the_rest(pictures: list[Picture]) -> None:
    first = np.full((HEIGHT, WIDTH, 3), 120, np.uint8)
    rows, columns = slice(20, 80), slice(30, 100)
    first[rows, columns] = np.random.default_rng(1).integers(0, 256, (60, 70, 3)).astype(np.uint8)
    second = seen_through(first, homography(CORNERS + 4))
    assert align(first, second) == Unaligned("inliers in one spot")
    everywhere = first.copy()
    everywhere[:] = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3))
    assert isinstance(align(everywhere, seen_through(everywhere, homography(CORNERS + 4))), Alignment)


def slowly_moved(ids: npt.NDArray[np.int32], matrix: Matrix) -> npt.NDArray[np.int32]:
    """Pixel by pixel."""
    back = np.linalg.inv(matrix)
    moved = np.zeros_like(ids)
    for y in range(ids.shape[0]):
        for x in range(ids.shape[1]):
            u, v, w = back @ [x, y, 1]
            column, row = round(u / w), round(v / w)
            if w > 0 and 0 <= row < ids.shape[0] and 0 <= column < ids.shape[1]:
                moved[y, x] = ids[row, column]
    return moved


@given(st.integers(0, 2**32 - 1), st.lists(st.floats(-30, 30), min_size=8, max_size=8))
@settings(max_examples=20)
def test_ids_move_as_pixel_by_pixel(seed: int, moves: list[float]) -> None:
    scale = np.diag([12 / WIDTH, 9 / HEIGHT, 1.0])
    matrix = scale @ homography(CORNERS + np.array(moves).reshape(4, 2)) @ np.linalg.inv(scale)
    ids = np.random.default_rng(seed).integers(0, 60_000, (9, 12)).astype(np.int32)
    assert (moved_ids(ids, matrix) == slowly_moved(ids, matrix)).all()
    assert (moved_ids(ids, np.eye(3)) == ids).all()


@given(st.integers(-11, 11), st.integers(-8, 8))
def test_a_shift_brings_nothing_in_from_outside(right: int, down: int) -> None:
    ids = np.arange(1, 109, dtype=np.int32).reshape(9, 12)
    moved = moved_ids(ids, np.array([[1.0, 0, right], [0, 1, down], [0, 0, 1]]))
    wanted = np.zeros((27, 36), np.int32)
    wanted[9 + down : 18 + down, 12 + right : 24 + right] = ids
    assert (moved == wanted[9:18, 12:24]).all()


def test_without_opencv_the_extra_is_named(pictures: list[Picture], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(WanderError, match=r"OpenCV.*wanderlearn\[matterport\]"):
        align(pictures[0], pictures[0])
