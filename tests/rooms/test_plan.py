"""Floor plans fill their outline, hang together and have doors and windows where walls are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wanderlearn.rooms.plan import PRIVATE, WALL, Plan, draw_plan

SEEDS = st.integers(0, 2**32)


def plan_of(seed: int) -> Plan:
    return draw_plan(np.random.default_rng(seed))


@given(SEEDS)
def test_rooms_fill_the_outline_without_overlap(seed: int) -> None:
    plan = plan_of(seed)
    assert 3 <= len(plan.rooms) <= 8
    assert [r.number for r in plan.rooms] == list(range(len(plan.rooms)))
    area = sum(r.cell.width * r.cell.depth for r in plan.rooms)
    assert area == pytest.approx(plan.outline.width * plan.outline.depth)
    for a in plan.rooms:
        for b in plan.rooms[: a.number]:
            assert not a.inside.meets(b.inside)


@given(SEEDS)
def test_every_room_is_reached_and_never_through_a_bathroom(seed: int) -> None:
    plan = plan_of(seed)
    passable = [r.number for r in plan.rooms if r.kind not in PRIVATE]
    reached = {passable[0]}
    for _ in plan.rooms:
        for d in plan.doors:
            for a, b in (d.rooms, d.rooms[::-1]):
                if a in reached and a in passable:
                    reached.add(b)
    assert reached == set(range(len(plan.rooms)))


@given(SEEDS)
def test_doors_lie_in_the_wall_between_their_rooms(seed: int) -> None:
    plan = plan_of(seed)
    for door in plan.doors:
        assert door.end - door.start > 0.8
        sides = [door.zone(WALL)[:2], door.zone(WALL)[2:]]
        middle = door.middle
        ends = [(s[0], middle[1]) if door.across == 0 else (middle[0], s[1]) for s in sides]
        assert {plan.room_at(*end) for end in ends} == set(door.rooms)
        for number in door.rooms:
            inside = plan.rooms[number].inside
            low, high = (inside.y0, inside.y1) if door.across == 0 else (inside.x0, inside.x1)
            assert low < door.start < door.end < high


@given(SEEDS)
def test_windows_lie_in_outer_walls(seed: int) -> None:
    plan = plan_of(seed)
    assert plan.windows
    for w in plan.windows:
        cell, o = plan.rooms[w.room].cell, plan.outline
        mine, edge = {
            "south": (cell.y0, o.y0),
            "north": (cell.y1, o.y1),
            "west": (cell.x0, o.x0),
            "east": (cell.x1, o.x1),
        }[w.side]
        assert mine == pytest.approx(edge)
        low, high = (cell.x0, cell.x1) if w.side in ("south", "north") else (cell.y0, cell.y1)
        assert low < w.start < w.end < high
        assert 0 < w.sill < w.top < plan.height


def test_a_seed_is_a_plan_and_plans_differ() -> None:
    assert plan_of(5) == plan_of(5)
    assert len({str(plan_of(s)) for s in range(20)}) == 20
    sizes = {len(plan_of(s).rooms) for s in range(150)}
    assert sizes == {3, 4, 5, 6, 7, 8}
