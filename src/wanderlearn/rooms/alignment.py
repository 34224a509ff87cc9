"""Lay one picture of a view over another of the same view: features, FLANN, a homography.

The two simulators of Matterport3D do not draw the same picture: one shows photographs, the other a mesh that
was made from them. The way from the one to the other is found by SIFT features, which are matched by FLANN
and Lowe's ratio, and by RANSAC. A way that cannot be trusted is refused with the reason.
"""

import importlib
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError

__all__ = ["Alignment", "Unaligned", "align", "moved_ids", "opencv"]

TREES: Final = 5  # of FLANN's index of features, and leaves that are looked at
CHECKS: Final = 50
RATIO: Final = 0.7  # Lowe's: the next best match must be this much worse
LEAST_MATCHES: Final = 10
LEAST_INLIERS: Final = 10
LEAST_SHARE: Final = 0.3  # of the matches that must be inliers
REACH: Final = 3.0  # pixels within which a match is an inlier
MOST_UNSURE: Final = 0.01  # of the diagonal: standard error of where a corner comes to
LEAST_NOISE: Final = 0.25  # pixels; inliers that fit better fit by chance
MOST_MOVED: Final = 0.15  # of the diagonal: how far a corner may move; both cameras stand in one place

Colours = npt.NDArray[np.uint8]
Matrix = npt.NDArray[np.float64]


class Alignment(NamedTuple):
    """Where every pixel of the second picture is in the first."""

    matrix: Matrix  # [3, 3], x and y from the left upper pixel's middle
    matches: int
    inliers: Matrix  # [N, 2], the matches that agree: where they are in the second picture
    error: float  # pixels, the mean over the inliers


class Unaligned(NamedTuple):
    """Two pictures that cannot be laid over each other, and why."""

    reason: str


def opencv() -> Any:
    """The module cv2, or a sentence that says how to get it."""
    try:
        return importlib.import_module("cv2")
    except ModuleNotFoundError as error:
        if error.name != "cv2":
            raise
        raise WanderError(
            "Pictures of two simulators are aligned by OpenCV, which is not installed. "
            "Install the extra: pip install 'wanderlearn[matterport]'."
        ) from error


def align(first: Colours, second: Colours) -> Alignment | Unaligned:
    """The way from the second picture to the first, both RGB [H, W, 3]; the same for the same pictures."""
    cv2 = opencv()
    cv2.setRNGSeed(0)  # FLANN's trees are drawn
    sift = cv2.SIFT_create()
    features = [sift.detectAndCompute(cv2.cvtColor(p, cv2.COLOR_RGB2GRAY), None) for p in (second, first)]
    if min(len(points) for points, _ in features) < LEAST_MATCHES:
        return Unaligned("too few features")
    (points, found), (to_points, to_found) = features
    flann = cv2.FlannBasedMatcher({"algorithm": 1, "trees": TREES}, {"checks": CHECKS})  # 1: k-d trees
    pairs = [pair for pair in flann.knnMatch(found, to_found, k=2) if len(pair) == 2]
    good = [best for best, other in pairs if best.distance < RATIO * other.distance]
    if len(good) < LEAST_MATCHES:
        return Unaligned("too few matches")
    start = np.array([points[m.queryIdx].pt for m in good])
    end = np.array([to_points[m.trainIdx].pt for m in good])
    matrix, inside = cv2.findHomography(start, end, cv2.RANSAC, REACH)
    if matrix is None:
        return Unaligned("no homography")
    inside = inside.ravel().astype(bool)
    if inside.sum() < max(LEAST_INLIERS, LEAST_SHARE * len(good)):
        return Unaligned("too few inliers")
    off = _transformed(matrix, start[inside]) - end[inside]
    height, width = second.shape[:2]
    corners = np.array([[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]])
    if _absurd(matrix, corners):
        return Unaligned("absurd homography")
    noise = max(LEAST_NOISE, float(np.sqrt((off**2).mean())))
    if _unsure(matrix, start[inside], corners, noise):
        return Unaligned("inliers in one spot")
    return Alignment(matrix, len(good), start[inside], float(np.linalg.norm(off, axis=1).mean()))


def _transformed(matrix: Matrix, points: Matrix) -> Matrix:
    """Where points [N, 2] come to."""
    projected = np.column_stack([points, np.ones(len(points))]) @ matrix.T
    return np.asarray(projected[:, :2] / projected[:, 2:])


def moved_ids(ids: npt.NDArray[np.int32], matrix: Matrix) -> npt.NDArray[np.int32]:
    """Ids of the second picture, at their places in the first; 0 where the second does not show anything.

    Every pixel takes the id that is nearest to where it comes from.
    """
    height, width = ids.shape
    y, x = np.mgrid[:height, :width]
    back = np.linalg.inv(matrix)
    w = back[2, 0] * x + back[2, 1] * y + back[2, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        from_x = np.rint((back[0, 0] * x + back[0, 1] * y + back[0, 2]) / w)
        from_y = np.rint((back[1, 0] * x + back[1, 1] * y + back[1, 2]) / w)
        seen = (w > 0) & (from_x >= 0) & (from_x < width) & (from_y >= 0) & (from_y < height)
    moved = np.zeros_like(ids)
    moved[seen] = ids[from_y[seen].astype(np.int64), from_x[seen].astype(np.int64)]
    return moved


def _absurd(matrix: Matrix, corners: Matrix) -> bool:
    """Can it not be the way between two cameras that stand in one place and look the same way?"""
    ahead = np.column_stack([corners, np.ones(4)]) @ matrix[2]
    if not np.isfinite(matrix).all() or (ahead <= 0).any():
        return True
    moved = _transformed(matrix, corners)
    sides = np.roll(moved, -1, axis=0) - moved
    after = np.roll(sides, -1, axis=0)
    turns = sides[:, 0] * after[:, 1] - sides[:, 1] * after[:, 0]
    most = MOST_MOVED * np.linalg.norm(corners[2])
    return bool((turns <= 0).any() or np.linalg.norm(moved - corners, axis=1).max() > most)


def _unsure(matrix: Matrix, inliers: Matrix, corners: Matrix, noise: float) -> bool:
    """Do the inliers say too little about the corners? By the errors of a fit of least squares."""
    diagonal = np.linalg.norm(corners[2])
    scale = np.diag([1 / diagonal, 1 / diagonal, 1.0])  # coordinates of about 1, so that nothing is lost
    small = scale @ matrix @ np.linalg.inv(scale)
    small /= small[2, 2]
    known, wanted = _slopes(small, inliers / diagonal), _slopes(small, corners / diagonal)
    try:
        spread = np.linalg.inv(known.T @ known)  # [8, 8]
    except np.linalg.LinAlgError:
        return True
    variance = np.einsum("ij,jk,ik->i", wanted, spread, wanted).reshape(-1, 2).sum(1)  # of each corner
    error = noise * np.sqrt(variance.max()) if (variance >= 0).all() else np.inf
    return bool(error > MOST_UNSURE * diagonal)


def _slopes(matrix: Matrix, points: Matrix) -> Matrix:
    """How x and y of moved points [N, 2] change with the first 8 numbers of a homography, [2 N, 8]."""
    ones, zeros = np.ones((len(points), 1)), np.zeros((len(points), 3))
    moved = _transformed(matrix, points)
    here = np.column_stack([points, ones])
    weight = here @ matrix[2][:, None]
    rows = [
        np.hstack([here, zeros, -moved[:, :1] * points]),
        np.hstack([zeros, here, -moved[:, 1:] * points]),
    ]
    return np.stack([row / weight for row in rows], axis=1).reshape(-1, 8)
