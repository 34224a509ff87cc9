"""One file to pixels: every kind of picture, every way to be broken, and the workers."""

import io
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.folder.trees import encoded, picture
from wanderlearn.errors import WanderError
from wanderlearn.pictures.decode import Look, UnreadableError, decode
from wanderlearn.pictures.decoding import decode_files

RGB, GREY = Look(8, 3), Look(8, 1)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "GIF", "WEBP"])
def test_pictures_of_the_wanted_size_keep_their_pixels(kind: str) -> None:
    image = Image.new("RGB", (8, 8), (10, 200, 90))
    lossless = {"lossless": True} if kind == "WEBP" else {}
    pixels = decode(encoded(image, kind, **lossless), RGB)
    assert pixels.shape == (3, 8, 8)
    assert (pixels == np.array([10, 200, 90])[:, None, None]).all()


def test_a_jpeg_equals_what_pillow_decodes() -> None:
    data = encoded(picture(3, (8, 8)), "JPEG", quality=90)
    with Image.open(io.BytesIO(data)) as plain:
        assert (decode(data, RGB) == np.asarray(plain).transpose(2, 0, 1)).all()
        assert (decode(data, GREY)[0] == np.asarray(plain.convert("L"))).all()


def test_a_large_jpeg_is_scaled_to_nearly_what_a_full_decode_gives() -> None:
    ramp = np.linspace(0, 255, 256).astype(np.uint8)
    image = Image.fromarray(
        np.stack(
            [np.tile(ramp, (256, 1)), np.tile(ramp[:, None], (1, 256)), np.full((256, 256), 99, np.uint8)], -1
        )
    )
    slow = image.resize((8, 8), Image.Resampling.BICUBIC)
    fast = decode(encoded(image, "JPEG", quality=95), RGB).astype(int)
    assert np.abs(fast - np.asarray(slow).transpose(2, 0, 1)).max() <= 4


def test_sixteen_bit_grey_keeps_its_scale() -> None:
    deep = np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)
    data = encoded(Image.fromarray(deep))
    assert (decode(data, GREY)[0] == np.rint(deep / 257)).all()
    assert (decode(data, RGB) == decode(data, GREY)).all()


def test_fractions_are_from_black_to_white() -> None:
    data = encoded(Image.fromarray(np.full((8, 8), 0.5, np.float32)), "TIFF")
    assert (decode(data, GREY) == 128).all()


def test_cmyk_becomes_the_same_colours() -> None:
    image = Image.new("CMYK", (8, 8), (0, 255, 255, 0))  # red
    red, green, blue = decode(encoded(image, "JPEG", quality=95), RGB).reshape(3, -1).mean(1)
    assert red > 240
    assert green < 15
    assert blue < 15


def test_of_an_animation_the_first_frame_counts() -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "green")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert (decode(data, RGB)[0] == 255).all()
    assert (decode(data, RGB)[2] == 0).all()


def test_the_camera_s_rotation_is_undone() -> None:
    pixels = np.zeros((8, 16, 3), np.uint8)
    pixels[:, :8] = 255  # the left is white
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise: the left comes up
    for kind in ("JPEG", "PNG", "WEBP"):
        upright = decode(encoded(Image.fromarray(pixels), kind, exif=exif), Look(8, 1, "squash"))[0]
        assert upright[:3].min() > 200, kind
        assert upright[-3:].max() < 55, kind


def test_what_is_transparent_lies_on_white() -> None:
    palette = Image.new("P", (8, 8), 0)
    palette.putpalette([0, 0, 0, 255, 0, 0])
    palette.paste(1, (0, 0, 8, 4))  # red above; black below, which is transparent
    pixels = decode(encoded(palette, "PNG", transparency=0), RGB)
    assert (pixels[:, 5:] == 255).all()
    assert (pixels[1, :3] == 0).all()
    assert (pixels[0] == 255).all()
    clear = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    assert (decode(encoded(clear), GREY) == 255).all()
    assert (decode(encoded(Image.new("LA", (8, 8), (7, 255))), GREY) == 7).all()


def test_crops() -> None:
    pixels = np.zeros((8, 24, 3), np.uint8)
    pixels[:, 8:16] = 255  # a white square in the middle
    data = encoded(Image.fromarray(pixels))
    assert (decode(data, Look(8, 1, "center")) == 255).all()
    padded = decode(data, Look(24, 1, "pad"))[0]
    assert (padded[8:16] == pixels[..., 0]).all()
    assert padded[:8].max() == padded[16:].max() == 0
    squashed = decode(data, Look(6, 1, "squash"))[0]
    assert squashed[:, 0].max() < 30
    assert squashed[:, 2].min() > 200


@given(width=st.integers(1, 40), height=st.integers(1, 40), size=st.integers(1, 20),
       crop=st.sampled_from(["center", "squash", "pad"]), channels=st.sampled_from([1, 3]))  # fmt: skip
def test_any_size_comes_out_as_wanted(width: int, height: int, size: int, crop: str, channels: int) -> None:
    data = encoded(Image.new("RGB", (width, height), (80, 80, 80)))
    pixels = decode(data, Look(size, channels, crop))  # type: ignore[arg-type]
    assert pixels.shape == (channels, size, size)
    assert pixels.dtype == np.uint8
    if crop != "pad":
        assert (pixels == 80).all()


@given(st.binary(max_size=200))
def test_noise_is_unreadable_and_nothing_worse(noise: bytes) -> None:
    for data in (noise, b"\xff\xd8\xff" + noise, b"\x89PNG\r\n\x1a\n" + noise, b"GIF89a" + noise):
        with pytest.raises(UnreadableError):
            decode(data, RGB)


@given(st.data())
def test_a_damaged_file_is_decoded_or_unreadable(data: st.DataObject) -> None:
    good = bytearray(
        encoded(picture(1), data.draw(st.sampled_from(["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP"])))
    )
    good[data.draw(st.integers(0, len(good) - 1))] ^= data.draw(st.integers(1, 255))
    piece = bytes(good[: data.draw(st.integers(1, len(good)))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as the workers do
        try:
            pixels = decode(piece, RGB)
        except UnreadableError:
            return
    assert pixels.shape == RGB.shape


def test_programs_in_pictures_are_not_run() -> None:
    with pytest.raises(UnreadableError, match="known kind"):
        decode(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n", RGB)


def test_workers_give_what_one_process_gives(tmp_path: Path) -> None:
    names = []
    for n in range(300):
        (tmp_path / f"ü {n}.png").write_bytes(encoded(picture(n)) if n % 50 else b"no")
        names.append(str(tmp_path / f"ü {n}.png"))
    ends = []
    for workers in (1, 2):
        target = tmp_path / f"{workers}.raw"
        target.write_bytes(bytes(5 + 300 * 192))
        jobs = [(target, 5, names[:140]), (target, 5 + 140 * 192, names[140:])]
        ends.append((decode_files(jobs, RGB, "", workers), target.read_bytes()))
    assert ends[0] == ends[1]
    (broken, digests), (others, _) = ends[0][0]
    assert list(broken) == [0, 50, 100]
    assert list(others) == [10, 60, 110]
    assert len(set(digests)) > 130
    assert any(ends[0][1])


def test_a_worker_that_dies_is_an_error_that_names_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    names = [str(tmp_path / f"{n}.png") for n in range(3)]
    with pytest.raises(WanderError, match=r"0\.png"):
        decode_files([(tmp_path / "x", 0, names)], RGB, "", 2)
