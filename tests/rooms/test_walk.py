"""The walk keeps the paper's rules, stays out of furniture, and can go everywhere."""

from itertools import pairwise

import numpy as np
import pytest

from wanderlearn.errors import WanderError
from wanderlearn.rooms import Camera, Home, Viewpoint, WalkConfig, walk
from wanderlearn.rooms.walk import in_view

TURN, NOD = np.deg2rad(12.5), np.deg2rad(2.5)


def turned(a: float, b: float) -> float:
    return float((b - a + np.pi) % (2 * np.pi) - np.pi)


def stays(cameras: list[Camera]) -> list[list[Camera]]:
    """The walk cut where the agent moves."""
    out = [[cameras[0]]]
    for a, b in pairwise(cameras):
        if a.viewpoint != b.viewpoint:
            out.append([])
        out[-1].append(b)
    return out


def test_it_turns_12_5_degrees_one_way_and_nods_within_limits(home: Home) -> None:
    cameras = list(walk(home, 0, 600))
    assert len(cameras) == 600
    nods = still = 0
    for stay in stays(cameras):
        ways = [turned(a.yaw, b.yaw) for a, b in pairwise(stay)]
        assert all(abs(abs(w) - TURN) < 1e-9 for w in ways)
        if len(stay) <= 28:
            assert len({np.sign(w) for w in ways}) <= 1
        for a, b in pairwise(stay):
            step = b.pitch - a.pitch
            nods += abs(step) > 1e-9
            still += abs(step) <= 1e-9
    assert all(abs(c.pitch) <= NOD + 1e-9 for c in cameras)
    assert {round(float(np.rad2deg(c.pitch)), 1) for c in cameras} <= {-2.5, 0.0, 2.5}
    # A nod against the limit changes nothing: half of 0.95 at the limit.
    assert 0.35 < nods / (nods + still) < 0.6


def test_it_moves_only_to_a_viewpoint_it_sees_ahead(home: Home, other: Home) -> None:
    for h in (home, other):
        for a, b in pairwise(walk(h, 2, 600)):
            if a.viewpoint != b.viewpoint:
                assert b.viewpoint in h.viewpoints[a.viewpoint].ways
                assert b.viewpoint in in_view(h, a.viewpoint, a.yaw, 25)
                assert (a.yaw, a.pitch) == (b.yaw, b.pitch)
            assert b.position == h.viewpoints[b.viewpoint].position


def test_it_stays_five_steps_and_on_until_it_sees_a_way(home: Home) -> None:
    lengths, late = [], 0
    for seed in range(6):
        for stay in stays(list(walk(home, seed, 600)))[1:-1]:
            seen = [bool(in_view(home, c.viewpoint, c.yaw, 25)) for c in stay]
            assert seen[-1]  # it left when it saw a way
            lengths.append(len(stay))
            late += len(stay) > 9 and any(seen[8:-1])  # it saw a way after all its time and did not go
    assert late == 0
    assert min(lengths) >= 1
    # Stays that end with the time drawn, not with waiting for a way: int(N(5, 1)) is 4.5 on average.
    prompt = [n for n in lengths if n <= 8]
    assert 3.8 < float(np.mean(prompt)) < 6.2


def test_dwell_follows_the_gaussian_where_a_way_is_always_in_view(home: Home) -> None:
    config = WalkConfig(ahead=180.0)
    cut = [len(stay) for seed in range(8) for stay in stays(list(walk(home, seed, 500, config)))[1:-1]]
    assert float(np.mean(cut)) == pytest.approx(4.5, abs=0.15)
    assert float(np.std(cut)) == pytest.approx(1.04, abs=0.15)


def test_viewpoints_are_free_of_furniture_and_walls(home: Home, other: Home) -> None:
    for h in (home, other):
        for v in h.viewpoints:
            x, y, z = v.position
            assert h.plan.rooms[v.room].cell.holds(x, y)
            for t in h.things:
                if t.low[2] < z and t.high[2] > 0.05 and t.on_floor:
                    away = max(t.low[0] - x, x - t.high[0], t.low[1] - y, y - t.high[1])
                    assert away > 0.15, t.kind


def joined(viewpoints: list[Viewpoint]) -> bool:
    reached, queue = {0}, [0]
    while queue:
        for n in viewpoints[queue.pop()].ways:
            if n not in reached:
                reached.add(n)
                queue.append(n)
    return len(reached) == len(viewpoints)


def test_every_room_has_a_viewpoint_and_all_hang_together(home: Home, other: Home) -> None:
    for h in (home, other):
        assert {v.room for v in h.viewpoints} == set(range(len(h.plan.rooms)))
        assert joined(h.viewpoints)
        for v in h.viewpoints:
            assert v.number not in v.ways
            assert all(v.number in h.viewpoints[n].ways for n in v.ways)


def test_a_seed_is_a_walk(home: Home, other: Home) -> None:
    assert list(walk(home, 3, 50)) == list(walk(home, 3, 50))
    assert list(walk(home, 3, 50)) == list(walk(home, 3, 80))[:50]
    assert list(walk(home, 3, 50)) != list(walk(home, 4, 50))
    assert list(walk(home, 3, 600)) != list(walk(home, 3, 600, WalkConfig(choice="uniform")))


def test_a_long_walk_sees_many_rooms(home: Home) -> None:
    seen = {home.viewpoints[c.viewpoint].room for seed in range(5) for c in walk(home, seed, 600)}
    assert len(seen) >= len(home.plan.rooms) - 1


def test_nonsense_is_refused(home: Home) -> None:
    with pytest.raises(WanderError, match="at least 1 frame"):
        walk(home, 0, 0)
    with pytest.raises(WanderError, match="from 0 on"):
        walk(home, -1, 5)
