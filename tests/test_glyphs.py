"""The procedural world: the same everywhere, as large as Omniglot, varied, in a cache that can be trusted."""

import hashlib
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from wanderlearn.errors import WanderError
from wanderlearn.files import cache_dir
from wanderlearn.pictures import glyphs as glyphs_module
from wanderlearn.pictures.cached import load_or_build, with_rotations
from wanderlearn.pictures.collection import SPLITS, Split
from wanderlearn.pictures.glyphs import CHARACTERS, DRAWERS, draw_alphabet, glyphs
from wanderlearn.pictures.strokes import KNOTS, PAGE, SIDE, Chance, direction, ink, path, spline

# A change here means that every seed now gives other pictures: raise VERSION with it.
FIRST_ALPHABET = "a7db3273f147a3ad6e42366c3e44387bf9d63e22165f33250ea66320f9ed6634"  # its first 14 characters

Bytes = npt.NDArray[np.uint8]


def _sha(array: Bytes) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def test_the_pixels_are_the_ones_they_have_always_been() -> None:
    assert _sha(draw_alphabet(0, 14)) == FIRST_ALPHABET


@pytest.mark.parametrize("without", ["", "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX", "X86_V3 X86_V4"])
def test_another_process_with_other_vector_instructions_draws_the_same(without: str) -> None:
    code = (
        "import hashlib; from wanderlearn.pictures.glyphs import draw_alphabet;"
        "print(hashlib.sha256(draw_alphabet(0, 14).tobytes()).hexdigest())"
    )
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": without, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-W", "ignore", "-c", code]  # numpy warns of names that it does not know
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == FIRST_ALPHABET


def test_a_longer_alphabet_starts_with_the_shorter() -> None:
    assert np.array_equal(draw_alphabet(3, 9)[:4], draw_alphabet(3, 4))


def test_other_seeds_and_other_alphabets_are_other_drawings() -> None:
    drawn = [draw_alphabet(a, 4, seed=s) for a, s in ((0, 0), (0, 1), (1, 0))]
    for one, other in itertools.combinations(drawn, 2):
        assert (one != other).any(axis=(2, 3)).all()


@pytest.mark.parametrize(
    ("split", "alphabets", "characters"), [("train", 32, 987), ("val", 5, 172), ("test", 13, 464)]
)
def test_counts_and_splits_are_those_of_omniglot(split: Split, alphabets: int, characters: int) -> None:
    pictures = glyphs(split)
    assert (pictures.name, pictures.split) == ("glyphs", split)
    assert pictures.families == alphabets
    assert pictures.classes == characters * 4 == len(set(pictures.class_names))
    assert pictures.images.shape == (characters * 4 * 20, 1, 28, 28)
    assert pictures.images.dtype == np.uint8
    assert (np.diff(pictures.first) == 20).all()
    assert pictures.first[0] == 0
    per_family = np.bincount(pictures.family)
    assert per_family.tolist() == [4 * count for count in CHARACTERS[split]]
    for name, family in zip(pictures.class_names, pictures.family, strict=True):
        assert name.startswith(pictures.family_names[family] + "/")


def test_the_splits_share_no_alphabet() -> None:
    names = [name for split in SPLITS for name in glyphs(split).family_names]
    assert len(names) == len(set(names)) == 50


def test_a_split_holds_the_drawings_of_its_own_alphabets() -> None:
    test = glyphs("test")
    assert test.family_names[0] == "alphabet38"
    count = CHARACTERS["test"][0]
    expected = draw_alphabet(37, count)  # [characters, drawers, 28, 28]
    upright = test.images.reshape(-1, 4, DRAWERS, 28, 28)[:count, 3]
    assert np.array_equal(upright, expected)
    assert test.class_names[:5] == [
        "alphabet38/character01/rot090",
        "alphabet38/character01/rot180",
        "alphabet38/character01/rot270",
        "alphabet38/character01/rot000",
        "alphabet38/character02/rot090",
    ]


def test_rotations_are_counter_clockwise_in_the_order_90_180_270_0() -> None:
    corner = np.zeros((1, 1, 3, 3), dtype=np.uint8)
    corner[0, 0, 0, 2] = 9  # top right
    turned = with_rotations(corner)
    places = [tuple(np.argwhere(picture[0])[0].tolist()) for picture in turned]
    assert places == [(0, 0), (2, 0), (2, 2), (0, 2)]


def test_rotations_keep_classes_together_and_drawers_in_order() -> None:
    drawings = np.random.default_rng(0).integers(0, 255, (3, 5, 4, 4), dtype=np.uint8)
    turned = with_rotations(drawings)
    for character, rotation, drawer in itertools.product(range(3), range(4), range(5)):
        expected = np.rot90(drawings[character, drawer], (rotation + 1) % 4)
        assert np.array_equal(turned[(character * 4 + rotation) * 5 + drawer, 0], expected)


def _all_drawings() -> Bytes:
    """[1623, 20, 784], upright."""
    parts = [glyphs(split).images.reshape(-1, 4, DRAWERS, 784)[:, 3] for split in SPLITS]
    return np.concatenate(parts)


def test_every_picture_is_a_drawing() -> None:
    drawings = _all_drawings()
    lit = (drawings > 127).mean(axis=2)
    assert lit.min() > 0.005
    assert lit.max() < 0.35
    pages = drawings.reshape(-1, 28, 28)
    edge = np.concatenate((pages[:, 0], pages[:, -1], pages[:, :, 0], pages[:, :, -1]), axis=1)
    assert (edge > 0).mean() < 0.02  # drawings stay on the page


def test_no_two_drawings_are_the_same() -> None:
    drawings = _all_drawings().reshape(-1, 784)
    assert len({picture.tobytes() for picture in drawings}) == len(drawings)


def _closeness(drawings: Bytes) -> tuple[float, float]:
    """Mean cosine of slightly blurred drawings of one character, and of different ones of the alphabet."""
    pages = np.pad(drawings.reshape(-1, DRAWERS, 28, 28).astype(np.float64), ((0, 0), (0, 0), (2, 2), (2, 2)))
    blurred = sum(pages[:, :, y : y + 28, x : x + 28] for y in range(5) for x in range(5))
    unit = np.asarray(blurred).reshape(len(pages), DRAWERS, 784)
    unit /= np.linalg.norm(unit, axis=-1, keepdims=True)
    cosine = np.einsum("adk,bek->abde", unit, unit)
    same = np.eye(len(pages), dtype=bool)
    others = ~np.eye(DRAWERS, dtype=bool)
    return float(cosine[same][:, others].mean()), float(cosine[~same].mean())


@pytest.mark.parametrize("alphabet", [0, 20, 40])
def test_drawings_of_one_character_are_alike_but_not_the_same(alphabet: int) -> None:
    within, between = _closeness(draw_alphabet(alphabet, 12))
    assert between + 0.08 < within < 0.9


def test_a_drawer_has_a_hand() -> None:
    """The amount of ink, say, goes with the drawer through all characters of an alphabet."""
    ink_used = draw_alphabet(5, 40).reshape(40, DRAWERS, -1).astype(np.float64).mean(axis=2)
    relative = ink_used / ink_used.mean(axis=1, keepdims=True)
    odd, even = relative[::2].mean(axis=0), relative[1::2].mean(axis=0)
    assert np.corrcoef(odd, even)[0, 1] > 0.6


def test_the_second_call_reads_what_the_first_has_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path))
    monkeypatch.setattr(glyphs_module, "draw_alphabet", _quick_alphabet)
    first = glyphs("val", seed=3)
    kept = tmp_path / "glyphs" / "drawings-v1-seed3.npy"
    assert kept.is_file()
    monkeypatch.setattr(glyphs_module, "draw_alphabet", _must_not_draw)
    assert glyphs("val", seed=3).digest == first.digest
    with pytest.raises(AssertionError, match="drawn again"):
        glyphs("val", seed=4)


def _quick_alphabet(alphabet: int, count: int, *, seed: int = 0) -> Bytes:
    return np.full((count, DRAWERS, 28, 28), alphabet + seed, dtype=np.uint8)


def _must_not_draw(alphabet: int, count: int, *, seed: int = 0) -> Bytes:
    raise AssertionError("drawn again")


@pytest.mark.parametrize("damage", ["truncated", "altered", "no note", "broken note", "odd note", "version"])
def test_a_damaged_cache_is_built_again(tmp_path: Path, damage: str) -> None:
    kept, note = tmp_path / "a" / "array.npy", tmp_path / "a" / "array.json"
    array = np.arange(60, dtype=np.uint8).reshape(3, 20)
    built = []

    def build() -> Bytes:
        built.append(1)
        return array

    assert np.array_equal(load_or_build(kept, "1", build), array)
    assert np.array_equal(load_or_build(kept, "1", build), array)
    assert len(built) == 1
    content = kept.read_bytes()
    if damage == "truncated":
        kept.write_bytes(content[:-7])
    elif damage == "altered":
        kept.write_bytes(content[:-1] + b"\xff")
    elif damage == "no note":
        note.unlink()
    elif damage == "broken note":
        note.write_text('{"version": ', encoding="utf-8")
    elif damage == "odd note":
        note.write_bytes(b"[1, \xff]")
    version = "2" if damage == "version" else "1"
    assert np.array_equal(load_or_build(kept, version, build), array)
    assert np.array_equal(load_or_build(kept, version, build), array)
    assert len(built) == 2


def test_without_a_place_to_write_there_is_just_no_cache(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    array = np.ones((2, 2), dtype=np.uint8)
    assert np.array_equal(load_or_build(blocked / "array.npy", "1", lambda: array), array)
    with pytest.raises(WanderError, match="Cannot write"):
        load_or_build(blocked / "array.npy", "1", lambda: array, must_write=True)


def test_only_known_splits_and_seeds() -> None:
    with pytest.raises(WanderError, match="no split 'holdout'"):
        glyphs("holdout")  # type: ignore[arg-type]
    with pytest.raises(WanderError, match="not -1"):
        glyphs("train", seed=-1)
    assert not (cache_dir() / "glyphs" / "drawings-v1-seed-1.npy").exists()


def test_directions_are_those_of_the_circle() -> None:
    turns = np.linspace(-2.0, 2.0, 401)
    c, s = direction(turns)
    assert np.allclose(c, np.cos(2 * np.pi * turns), atol=1e-3)
    assert np.allclose(s, np.sin(2 * np.pi * turns), atol=1e-3)
    assert np.allclose(c * c + s * s, 1.0, atol=1e-12)


def test_a_path_goes_where_it_is_sent() -> None:
    corner = path(0.0, [(0.0, 2.0, 0.0), (0.25, 1.0, 0.0)])  # right, then down
    assert corner.shape == (KNOTS, 2)
    assert np.allclose(corner[-1], (2.0, 1.0), atol=1e-3)
    circle = path(0.1, [(0.0, 3.0, 1.0)])
    assert np.allclose(circle[-1], circle[0], atol=1e-2)
    many = path(0.0, [(0.3, 0.01, 0.1)] * 5 + [(0.0, 2.0, 0.0)])
    assert many.shape == (KNOTS, 2)


def test_a_spline_starts_and_ends_at_its_outer_knots_and_keeps_lines_straight() -> None:
    knots = path(0.06, [(0.0, 50.0, 0.0)])
    points = spline(knots)
    step = np.linalg.norm(np.diff(points, axis=0), axis=1)
    assert np.allclose(step, step[0], rtol=1e-9)
    assert np.linalg.norm(points[0] - knots[0]) < step[0]
    assert np.linalg.norm(points[-1] - knots[-1]) < step[0]


def test_ink_lights_what_is_within_the_pen_and_nothing_off_the_page() -> None:
    pixel = PAGE / SIDE
    middle = (np.array([10.0, 4.0]) + 0.5) * pixel - 0.5  # the middle of column 10, row 4
    pictures = ink(
        np.stack([middle, middle + pixel / 2, middle - 1000.0])[:, None], np.array([1.5, 3.5, 3.0])
    )
    assert np.argwhere(pictures[0]).tolist() == [[4, 10]]
    assert pictures[0, 4, 10] == 255
    assert np.argwhere(pictures[1]).tolist() == [[4, 10], [4, 11], [5, 10], [5, 11]]
    assert not pictures[2].any()


def test_chance_is_a_function_of_its_four_numbers() -> None:
    keys = list(itertools.product((0, 1), repeat=4))
    draws = [Chance(*key).numbers(0.0, 1.0, 3).tolist() for key in keys]
    assert draws == [Chance(*key).numbers(0.0, 1.0, 3).tolist() for key in keys]
    assert len({tuple(draw) for draw in draws}) == len(keys)
    bell = Chance(0, 0, 0, 0).bell(20000)
    assert abs(bell.mean()) < 0.03
    assert abs(bell.std() - 1.0) < 0.03
    counts = np.bincount([Chance(0, n, 0, 0).among((1.0, 0.0, 3.0)) for n in range(400)], minlength=3)
    assert counts[1] == 0
    assert 60 < counts[0] < 140
