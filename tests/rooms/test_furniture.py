"""Every kind of furniture is sound geometry, and no two drawn are the same."""

from itertools import combinations

import numpy as np
import pytest

from wanderlearn.rooms.furniture import CATEGORIES, MAKERS, OTHERS, Maker
from wanderlearn.rooms.looks import difference, look_of
from wanderlearn.rooms.workshop import Workshop

ALL = [(c, k, m) for c, makers in (MAKERS | OTHERS).items() for k, m in makers.items()]
ON_WALLS = ("picture", "board panel", "towel", "clothes", "blinds", "mirror")


def test_all_21_categories_of_the_paper_are_there() -> None:
    paper = (
        "picture, chair, lighting, cushion, table, plant, chest of drawers, towel, sofa, bed, appliances, "
        "stool, tv monitor, clothes, toilet, fireplace, furniture, bathtub, gym equipment, blinds, "
        "board panel"
    )
    assert set(CATEGORIES) == set(paper.split(", "))


@pytest.mark.parametrize(("category", "kind", "maker"), ALL, ids=[f"{c}-{k}" for c, k, _ in ALL])
def test_geometry_is_sound(category: str, kind: str, maker: Maker) -> None:
    for seed in range(3):
        model = maker(Workshop(np.random.default_rng(seed)))
        assert 0.05 < model.size.max() < 2.6
        for part in model.parts:
            assert np.isfinite(part.vertices).all()
            assert part.vertices.shape == part.normals.shape
            assert part.uv.shape == (len(part.vertices), 2)
            assert 0 <= part.faces.min() <= part.faces.max() < len(part.vertices)
            used = part.normals[part.faces]
            corner = part.vertices[part.faces]
            across = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
            large = np.linalg.norm(across, axis=1) > 1e-7
            assert np.abs(np.linalg.norm(used[large], axis=-1) - 1).max() < 1e-6
            if part.solid:  # what is left out when it faces away must know where it faces
                assert ((across * used.mean(1)).sum(1)[large] > -1e-9).mean() > 0.97
        if category not in ON_WALLS and kind not in ("ceiling lamp", "wall lamp", "clock"):
            assert model.low[2] == pytest.approx(0, abs=0.06)  # it stands on the floor


@pytest.mark.parametrize(("category", "kind", "maker"), ALL, ids=[f"{c}-{k}" for c, k, _ in ALL])
def test_every_instance_is_its_own_and_a_function_of_chance(category: str, kind: str, maker: Maker) -> None:
    looks = [look_of(maker(Workshop(np.random.default_rng(seed)))) for seed in range(4)]
    again = look_of(maker(Workshop(np.random.default_rng(0))))
    assert difference(looks[0], again) == 0
    for one, two in combinations(looks, 2):
        assert difference(one, two) == difference(two, one) > 0.01
