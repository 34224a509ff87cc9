"""An agent looks at whatever a user has, and says clearly what is no picture."""

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image

from tests.live_agents import WIDTH, agent_of
from wanderlearn import WanderError
from wanderlearn.agent.inputs import MOST_PIXELS, Ink, feature_or_pixels


def drawing(size: int = 28) -> npt.NDArray[np.uint8]:
    """Bright strokes on black that do not touch the border much."""
    canvas = np.zeros((size, size), np.uint8)
    canvas[size // 4 : -size // 4, size // 3] = 255
    canvas[size // 2, 2:-2] = 180
    return canvas


def pixels(picture: Any, size: int = 28, channels: int = 1, ink: Ink = "auto") -> npt.NDArray[np.float32]:
    vector, found = feature_or_pixels(picture, size, channels, 64, ink)
    assert vector is None
    assert found is not None
    assert found.shape == (channels, size, size)
    assert found.dtype == torch.float32
    made: npt.NDArray[np.float32] = found.numpy()
    return made


def png(width: int, height: int) -> bytes:
    """A file of few bytes that claims to be a large picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    )


def test_one_picture_in_every_form_is_one_picture(tmp_path: Path) -> None:
    grey = drawing()
    wanted = grey[None] / np.float32(127.5) - 1  # what worlds give the encoder
    Image.fromarray(grey).save(tmp_path / "grey.png")
    Image.fromarray(grey).convert("RGB").save(tmp_path / "colour.bmp")
    colour = np.stack([grey] * 3, -1)
    forms: dict[str, Any] = {
        "uint8": grey,
        "uint8 with a channel": grey[..., None],
        "channel first": grey[None],
        "uint16": grey.astype(np.uint16) * 257,
        "float": grey / 255,
        "float16": (grey / 255).astype(np.float16),
        "colour": colour,
        "not contiguous": np.asfortranarray(colour)[..., ::-1],
        "tensor": torch.from_numpy(grey),
        "tensor of colour": torch.from_numpy(colour).permute(2, 0, 1).float() / 255,
        "bfloat16": torch.from_numpy(grey / 255).bfloat16(),
        "with a gradient": torch.from_numpy(grey / 255).requires_grad_(),
        "PIL": Image.fromarray(grey),
        "PIL palette": Image.fromarray(grey).convert("P"),
        "PIL with transparency": Image.fromarray(grey).convert("RGBA"),
        "PIL 16 bit": Image.fromarray(grey.astype(np.uint16) * 257),
        "PIL float": Image.fromarray(grey.astype(np.float32)),
        "path": tmp_path / "grey.png",
        "name": str(tmp_path / "colour.bmp"),
        "dark on light": 255 - grey,
    }
    before = grey.copy()
    for name, form in forms.items():
        assert np.abs(pixels(form) - wanted).max() < 0.02, name
    assert np.array_equal(grey, before)
    assert np.array_equal(pixels(grey), wanted)
    assert np.array_equal(pixels(grey > 0), np.where(grey > 0, 1, -1)[None])


def test_ink_says_which_drawings_are_inverted() -> None:
    grey = drawing()
    assert np.array_equal(pixels(grey, ink="dark"), -pixels(grey))
    assert np.allclose(pixels(255 - grey, ink="bright"), -pixels(grey), atol=1e-6)
    assert np.allclose(pixels(255 - grey, ink="dark"), pixels(grey), atol=1e-6)
    white = np.full((28, 28, 3), 255, np.uint8)
    assert (pixels(white, channels=3) == 1).all()  # photographs are never inverted


def test_another_size_is_scaled() -> None:
    large = np.kron(drawing(), np.ones((4, 4), np.uint8))
    assert np.abs(pixels(large) - pixels(drawing())).mean() < 0.12
    assert (
        np.abs(pixels(Image.fromarray(np.kron(large, np.ones((3, 3), np.uint8)))) - pixels(large)).mean()
        < 0.05
    )
    wide = np.zeros((10, 40), np.uint8)
    wide[3:7, 5:35] = 255
    found = pixels(wide, 20)[0]  # 40 x 40 after padding
    assert (found[:6] == -1).all()
    assert (found[-6:] == -1).all()
    assert found[9:11, 5:15].min() > 0.7
    photograph = np.zeros((20, 40, 3))
    photograph[:, 10:30] = 1
    assert pixels(photograph, 20, channels=3) == pytest.approx(1, abs=0.5)  # the middle is kept
    assert pixels(np.full((1, 1), 200, np.uint8), ink="bright") == pytest.approx(200 / 127.5 - 1)


def test_what_is_transparent_is_paper() -> None:
    ink = np.zeros((28, 28, 4), np.uint8)  # black, and transparent but for the strokes
    ink[..., 3] = drawing()
    assert np.abs(pixels(Image.fromarray(ink)) - pixels(drawing())).max() < 0.02
    assert np.abs(pixels(ink) - pixels(drawing())).max() < 0.02


def test_photographs_are_turned_upright(tmp_path: Path) -> None:
    grey = drawing()
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    Image.fromarray(grey).save(tmp_path / "turned.png", exif=exif)
    assert np.array_equal(pixels(tmp_path / "turned.png"), pixels(np.ascontiguousarray(grey[::-1, ::-1])))


def test_a_feature_vector_is_taken_as_it_is() -> None:
    agent = agent_of()
    vector = np.arange(WIDTH) / 7
    for form in (vector, vector.astype(np.float32), torch.from_numpy(vector)):
        assert agent.look(form).meeting.trace == pytest.approx(vector)
    vector = vector.astype(np.float32)
    answer = agent.look(vector)
    vector[:] = 0
    assert answer.meeting.trace.any()


def test_what_is_no_picture_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    files = {
        "missing.png": None,
        "text.png": b"not a picture",
        "empty.png": b"",
        "bomb.png": png(60000, 60000),
        "large.png": png(MOST_PIXELS // 5000 + 1, 5000),
        "cut.png": None,
    }
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (50, 50), dtype=np.uint8)).save(
        tmp_path / "cut.png"
    )
    files["cut.png"] = (tmp_path / "cut.png").read_bytes()[:900]
    for name, data in files.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
    good = np.zeros((8, 8))
    wrong: list[tuple[Any, str]] = [
        (tmp_path / "missing.png", "There is no picture"),
        (tmp_path / "text.png", "cannot be read as a picture"),
        (tmp_path / "empty.png", "cannot be read as a picture"),
        (tmp_path / "cut.png", "cannot be read as a picture"),
        (tmp_path, "cannot be read as a picture"),
        (tmp_path / "bomb.png", "too large to be decoded safely"),
        (tmp_path / "large.png", "more than the 50,000,000"),
        (Image.new("L", (0, 5)), "is empty"),
        (Image.new("1", (10000, 6000)), "more than the 50,000,000"),
        (np.full((8, 8), np.nan), "not finite"),
        (np.full((8, 8), np.inf), "not finite"),
        (np.full((8, 8), 1e300), "not finite"),
        (np.full(WIDTH, 1e300), "not finite"),
        (np.full(WIDTH, 1e12), "too large to be squared"),
        (good - 1, r"from -1 to -1\. Floats must lie"),
        (good + 255, "for 0 to 255 use uint8"),
        (good.astype(np.int64), "is of int64"),
        (good.astype(object), "is of object"),
        (np.zeros((0, 8)), "is empty"),
        (np.zeros((8, 8, 2)), "is no picture"),
        (np.zeros((1, 3, 8, 8)), "is no picture"),
        (np.float32(3), "Cannot look at a float32"),
        (np.zeros(()), "is no picture"),
        (np.zeros(WIDTH + 1), f"A feature vector has {WIDTH} float numbers here, not {WIDTH + 1}"),
        (np.zeros(WIDTH, np.int32), "not 8 of int32"),
        (np.full(WIDTH, np.nan), "not finite"),
        (torch.full((WIDTH,), torch.inf), "not finite"),
        (None, "Cannot look at a NoneType"),
        ([[0.0]], "Cannot look at a list"),
    ]
    agent = agent_of()
    for picture, sentence in wrong:
        with pytest.raises(WanderError, match=sentence):
            agent.look(picture)
    assert (len(agent), agent.changes) == (0, 0)
