"""Vectors with their labels: read in every form, refused in words."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wanderlearn.errors import WanderError
from wanderlearn.pictures.collection import SPLITS, Pictures, Split
from wanderlearn.worlds import Roaming, RoamingConfig, open_pictures

VECTORS = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
CLASSES = [f"c{n % 20:02}" for n in range(60)]


def opened(tmp_path: Path, split: Split = "train", options: str = "") -> Pictures:
    return open_pictures(f"features:{tmp_path}/v.npy{options}", split)


def save(tmp_path: Path, labels: Any, vectors: Any = VECTORS) -> None:
    np.save(tmp_path / "v.npy", vectors)
    if isinstance(labels, np.ndarray):
        np.save(tmp_path / "v.labels.npy", labels)
    else:
        (tmp_path / "v.labels.json").write_text(json.dumps(labels))


def rows_of(found: Pictures) -> dict[str, set[tuple[float, ...]]]:
    return {
        name: {tuple(row) for row in found.images[found.first[c] : found.first[c + 1], :, 0, 0].tolist()}
        for c, name in enumerate(found.class_names)
    }


def test_every_row_is_with_its_class(tmp_path: Path) -> None:
    save(tmp_path, CLASSES)
    seen: dict[str, set[tuple[float, ...]]] = {}
    for split in SPLITS:
        found = opened(tmp_path, split)
        assert found.images.shape[1:] == (4, 1, 1)
        seen |= rows_of(found)
    for name in set(CLASSES):
        own = {tuple(VECTORS[n].tolist()) for n, each in enumerate(CLASSES) if each == name}
        assert seen[name] == own


def test_families_and_splits_as_told(tmp_path: Path) -> None:
    split = [SPLITS[int(name[1:]) % 3] for name in CLASSES]
    family = ["even" if int(name[1:]) % 2 == 0 else "odd" for name in CLASSES]
    save(tmp_path, {"class": CLASSES, "family": family, "split": split})
    found = opened(tmp_path, "val")
    assert found.family_names == ["even", "odd"]
    assert found.class_names == [
        "even/c04",
        "even/c10",
        "even/c16",
        "odd/c01",
        "odd/c07",
        "odd/c13",
        "odd/c19",
    ]


@pytest.mark.parametrize("kind", ["numbers", "words", "families"])
def test_labels_as_an_array(tmp_path: Path, kind: str) -> None:
    numbers = np.arange(60) % 20
    forms = {
        "numbers": numbers,
        "words": numbers.astype(str),
        "families": np.stack([numbers, numbers % 2], 1),
    }
    save(tmp_path, forms[kind])
    found = [opened(tmp_path, split) for split in SPLITS]
    assert [each.classes for each in found] == [12, 4, 4]
    if kind == "families":
        assert found[0].family_names == ["0", "1"]


def test_sequences_show_the_vectors_as_they_are(tmp_path: Path) -> None:
    save(tmp_path, CLASSES)
    found = opened(tmp_path)
    world = Roaming(found, RoamingConfig(environments=3, classes=6, length=12, per_class=1, occlusion=0))
    meetings = world.meetings(0, 0)
    batch = world.batch([meetings])
    assert batch.images.shape[2:] == (4, 1, 1)
    assert (batch.images[0].numpy() == found.images[meetings.picture]).all()


@pytest.mark.parametrize(
    ("labels", "vectors", "problem"),
    [
        (CLASSES[:-1], VECTORS, "59 of class for 60 vectors"),
        ({"family": CLASSES}, VECTORS, "does not say the classes"),
        ({"class": [1.5] * 60}, VECTORS, "does not say the classes"),
        ({"class": CLASSES, "split": ["exam"] * 60}, VECTORS, "no split 'exam'"),
        (CLASSES, VECTORS.astype(int), "floats"),
        (CLASSES, VECTORS[0], r"\[N, D\]"),
        (CLASSES, np.where(np.arange(60)[:, None] == 7, np.nan, VECTORS), "not finite"),
        (np.zeros((60, 3)), VECTORS, "whole numbers or words"),
        (np.array([{}] * 60), VECTORS, "not an array of labels"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, labels: Any, vectors: Any, problem: str) -> None:
    save(tmp_path, labels, vectors)
    with pytest.raises(WanderError, match=problem):
        [opened(tmp_path, split) for split in SPLITS]


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(WanderError, match="no file"):
        opened(tmp_path)
    np.save(tmp_path / "v.npy", VECTORS)
    with pytest.raises(WanderError, match=r"neither .*v\.labels\.json nor"):
        opened(tmp_path)
