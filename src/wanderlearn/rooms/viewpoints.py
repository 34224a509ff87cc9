"""The viewpoints of a home and which can be reached from which: where a walker stands and may go next."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.rooms.patterns import Chance
from wanderlearn.rooms.plan import WALL, Plan

if TYPE_CHECKING:
    from wanderlearn.rooms.home import Thing

__all__ = ["EYE", "Viewpoint", "draw_viewpoints"]

EYE: Final = 1.5  # metres above the floor
GRID: Final = 0.1
BODY: Final = 0.2  # as wide as a walker is, to each side
FACE: Final = 0.4  # how near a viewpoint may be to furniture and walls
FAR: Final = 5.0  # the longest way from one viewpoint to the next
SPACING: Final = 1.7  # how far apart viewpoints of one room are, but for those at bends of the way

Mask = npt.NDArray[np.bool_]


class Viewpoint(NamedTuple):
    """A place to stand: its number, room, and the viewpoints one can go to in a straight line."""

    number: int
    room: int
    position: tuple[float, float, float]
    ways: tuple[int, ...]


def draw_viewpoints(plan: Plan, things: Sequence[Thing], chance: Chance) -> list[Viewpoint]:
    """Viewpoints in every room, spread out, off the furniture, all reachable from each other."""
    x, y, rooms = _cells(plan)
    walk, stand = _free(plan, things, x, y, BODY, doors=True), _free(plan, things, x, y, FACE, doors=False)
    walk = _reachable(walk)
    stand &= walk
    for room in plan.rooms:  # a crowded room: stand as far off as one can
        here = rooms == room.number
        for closer in (0.3, 0.25, BODY):
            if not (stand & here).any():
                stand |= _free(plan, things, x, y, closer, doors=False) & here & walk
    spots = np.argwhere(stand)
    spots = spots[chance.permutation(len(spots))]
    chosen, ways = _join(_spread_out(spots, rooms, SPACING), walk)
    if len(chosen) < 2:
        raise WanderError("This home has no room to walk in. Choose another seed.")
    out = []
    for n, (i, j) in enumerate(chosen):
        way = tuple(int(k) for k in np.flatnonzero(ways[n]))
        out.append(Viewpoint(n, int(rooms[i, j]), (float(x[i]), float(y[j]), EYE), way))
    return out


def _cells(plan: Plan) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    o = plan.outline
    x, y = np.arange(o.x0 + GRID / 2, o.x1, GRID), np.arange(o.y0 + GRID / 2, o.y1, GRID)
    rooms = np.full((len(x), len(y)), -1)
    for room in plan.rooms:
        c = room.cell
        rooms[np.ix_((x > c.x0) & (x <= c.x1), (y > c.y0) & (y <= c.y1))] = room.number
    return x, y, rooms


def _free(
    plan: Plan,
    things: Sequence[Thing],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    away: float,
    *,
    doors: bool,
) -> Mask:
    """Cells at least this far from walls and furniture; openings of doors count only for walking."""
    free = np.zeros((len(x), len(y)), bool)
    for room in plan.rooms:
        i = room.inside.grown(-away)
        free |= ((x > i.x0) & (x < i.x1))[:, None] & ((y > i.y0) & (y < i.y1))[None, :]
    for door in plan.doors if doors else ():
        z = door.zone(WALL / 2 + away + GRID)
        room_side = away - 0.02
        low, high = (
            (z.y0 + room_side, z.y1 - room_side) if door.across == 0 else (z.x0 + room_side, z.x1 - room_side)
        )
        if door.across == 0:
            free |= ((x > z.x0) & (x < z.x1))[:, None] & ((y > low) & (y < high))[None, :]
        else:
            free |= ((x > low) & (x < high))[:, None] & ((y > z.y0) & (y < z.y1))[None, :]
    for thing in things:
        if (
            thing.low[2] < EYE + 0.3
            and thing.high[2] > 0.05
            and (thing.on_floor or thing.size[:2].min() > 0.1)
        ):
            gap = (
                away + 0.25 if away > 0.3 and thing.high[2] > 1.2 else away
            )  # not with the nose to a wardrobe
            ax, ay, bx, by = thing.low[0] - gap, thing.low[1] - gap, thing.high[0] + gap, thing.high[1] + gap
            free &= ~(((x > ax) & (x < bx))[:, None] & ((y > ay) & (y < by))[None, :])
    return free


def _reachable(walk: Mask) -> Mask:
    """The largest piece of floor one can walk about on."""
    left, best = walk.copy(), np.zeros_like(walk)
    while left.sum() > best.sum():
        piece = np.zeros_like(walk)
        piece[tuple(np.argwhere(left)[0])] = True
        while True:
            grown = piece.copy()
            grown[1:] |= piece[:-1]
            grown[:-1] |= piece[1:]
            grown[:, 1:] |= piece[:, :-1]
            grown[:, :-1] |= piece[:, 1:]
            grown &= walk
            if (grown == piece).all():
                break
            piece = grown
        left &= ~piece
        if piece.sum() > best.sum():
            best = piece
    return best


def _spread_out(
    spots: npt.NDArray[np.int64], rooms: npt.NDArray[np.int64], spacing: float
) -> npt.NDArray[np.int64]:
    """As many of the spots as are this far apart, taken in order; in one room only, so walls do not count."""
    left, chosen = spots, []
    while len(left):
        first = left[0]
        chosen.append(first)
        same = rooms[tuple(left.T)] == rooms[tuple(first)]
        left = left[~(same & (np.hypot(*(left - first).T) * GRID < spacing))]
    return np.array(chosen, np.int64).reshape(-1, 2)


def _ways(chosen: npt.NDArray[np.int64], walk: Mask) -> Mask:
    """Which can be reached from which in a straight line."""
    n = len(chosen)
    ways = np.zeros((n, n), bool)
    for a in range(n):
        for b in range(a):
            ways[a, b] = ways[b, a] = _straight(chosen[a], chosen[b], walk)
    return ways


def _join(chosen: npt.NDArray[np.int64], walk: Mask) -> tuple[npt.NDArray[np.int64], Mask]:
    """Add viewpoints at the bends of the way until all can be reached from each other."""
    while True:
        ways = _ways(chosen, walk)
        if not len(chosen) or (reached := _reached(ways, 0)).all():
            return chosen, ways
        path = _path(walk, chosen[reached], chosen[~reached])
        bends, at = [], 0
        while at < len(path) - 1:
            ahead = range(len(path) - 1, at, -1)
            at = next((k for k in ahead if _straight(path[at], path[k], walk)), at + 1)
            bends.append(path[at])
        chosen = np.concatenate([chosen, np.array(bends[:-1], np.int64).reshape(-1, 2)])


def _path(walk: Mask, start: npt.NDArray[np.int64], goal: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The shortest way from any of these cells to any of those, cell by cell."""
    goals = {(g[0], g[1]) for g in goal.tolist()}
    parents: dict[tuple[int, int], tuple[int, int] | None] = {(s[0], s[1]): None for s in start.tolist()}
    queue = deque(parents)
    while queue:
        here = queue.popleft()
        if here in goals:
            path, step = [here], parents[here]
            while step is not None:
                path.append(step)
                step = parents[step]
            return np.array(path[::-1])
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            there = (here[0] + di, here[1] + dj)
            if there not in parents and walk[there]:
                parents[there] = here
                queue.append(there)
    raise AssertionError("viewpoints stand on one piece of floor")


def _straight(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], walk: Mask) -> bool:
    """Can one go from a to b in a straight line?"""
    gap = b - a
    if np.hypot(*gap) * GRID > FAR:
        return False
    line = np.rint(a + np.linspace(0, 1, int(FAR / GRID * 2))[:, None] * gap).astype(int)
    return bool(walk[tuple(line.T)].all())


def _reached(ways: Mask, start: int) -> Mask:
    reached = np.zeros(len(ways), bool)
    reached[start] = True
    while True:
        grown = reached | ways[reached].any(0)
        if (grown == reached).all():
            return reached
        reached = grown
