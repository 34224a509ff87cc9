"""tiered-ImageNet in its forms, and pickles that want to be more than data."""

import json
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.folder.trees import encoded, picture, three_splits, tree
from wanderlearn.errors import WanderError
from wanderlearn.pictures.collection import SPLITS
from wanderlearn.pictures.imagenet import PNG
from wanderlearn.pictures.pickles import payloads, read_pickle
from wanderlearn.worlds import open_pictures

GENERAL = ["dish", "boat"]
SPECIFIC = ["soup", "canoe", "pizza", "ferry"]  # of dish, boat, dish, boat
ORDER = [3, 0, 1, 2, 0, 3, 2, 1, 0, 3, 1, 2]  # the classes of the pictures, all mixed up


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def labels() -> dict[str, Any]:
    specific = np.array(ORDER)
    return {
        "label_specific": specific,
        "label_general": specific % 2,
        "label_specific_str": SPECIFIC,
        "label_general_str": GENERAL,
    }


def shown(n: int) -> Any:
    return np.asarray(picture(1000 * ORDER[n] + n, (84, 84)))


def published(root: Path, protocol: int = 2) -> Path:
    """The first release: PNG bytes as arrays [n, 1] in a list."""
    root.mkdir()
    pngs = [
        np.frombuffer(encoded(picture(1000 * c + n, (84, 84))), np.uint8)[:, None]
        for n, c in enumerate(ORDER)
    ]
    for split in SPLITS:
        (root / f"{split}_images_png.pkl").write_bytes(pickle.dumps(pngs, protocol))
        (root / f"{split}_labels.pkl").write_bytes(pickle.dumps(labels(), protocol))
    return root


def check(root: Path, cut: int | None = None) -> None:
    found = open_pictures(f"imagenet:{root}", "val")
    assert found.images.shape[1:] == (3, 84, 84)
    assert found.class_names == ["boat/canoe", "boat/ferry", "dish/pizza", "dish/soup"]
    assert found.family_names == ["boat", "dish"]
    for c, name in enumerate(found.class_names):
        wanted = [n for n, each in enumerate(ORDER) if SPECIFIC[each] == name.split("/")[1] and n != cut]
        rows = range(found.first[c], found.first[c + 1])
        assert len(rows) == len(wanted)
        for row, n in zip(rows, wanted, strict=True):
            assert (found.images[row] == shown(n).transpose(2, 0, 1)).all()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_the_first_release(tmp_path: Path, protocol: int) -> None:
    check(published(tmp_path / "tiered", protocol))


def python2(value: Any) -> bytes:
    """Pickled as Python 2 with protocol 2 wrote it: text is bytes, arrays hold them as they are."""
    if isinstance(value, dict):
        body = b"".join(python2(key) + python2(item) for key, item in value.items())
        return b"}(" + body + b"u"
    if isinstance(value, list):
        return b"](" + b"".join(map(python2, value)) + b"e"
    if isinstance(value, str):
        return b"U" + bytes([len(value)]) + value.encode()
    data: bytes = value.tobytes()
    shape: bytes = b"".join(b"J" + struct.pack("<i", n) for n in value.shape)
    code: bytes = value.dtype.str[1:].encode()
    order = b"<" if value.dtype.itemsize > 1 else b"|"
    return (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01(" + shape + b"t"
        b"cnumpy\ndtype\nU" + bytes([len(code)]) + code + b"K\x00K\x01\x87R(K\x03U\x01" + order
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T" + struct.pack("<i", len(data)) + data + b"tb"
    )  # fmt: skip


def test_as_python_2_wrote_it(tmp_path: Path) -> None:
    root = tmp_path / "tiered"
    root.mkdir()
    pngs = [
        np.frombuffer(encoded(picture(1000 * c + n, (84, 84))), np.uint8)[:, None]
        for n, c in enumerate(ORDER)
    ]
    assert (pickle.loads(b"\x80\x02" + python2(pngs) + b".", encoding="latin1")[0] == pngs[0]).all()
    (root / "val_images_png.pkl").write_bytes(b"\x80\x02" + python2(pngs) + b".")
    (root / "val_labels.pkl").write_bytes(b"\x80\x02" + python2(labels()) + b".")
    check(root)


def test_npz(tmp_path: Path) -> None:
    root = tmp_path / "tiered"
    root.mkdir()
    pixels = np.stack([shown(n) for n in range(len(ORDER))])
    np.savez_compressed(root / "val_images.npz", images=pixels)
    np.savez(root / "val_labels.npz", **labels())
    check(root)
    (root / "val_images.npz").write_bytes((root / "val_images.npz").read_bytes()[:5000])
    with pytest.raises(WanderError, match="not a whole"):
        check(root)


def test_a_broken_picture_in_a_release_is_left_out(tmp_path: Path) -> None:
    root = published(tmp_path / "tiered")
    pngs = pickle.loads((root / "val_images_png.pkl").read_bytes())
    pngs[4] = pngs[4][:90]
    (root / "val_images_png.pkl").write_bytes(pickle.dumps(pngs))
    check(root, cut=4)


@pytest.mark.parametrize("kept", [11, 13])
def test_as_many_labels_as_pictures(tmp_path: Path, kept: int) -> None:
    root = published(tmp_path / "tiered")
    pngs = pickle.loads((root / "val_images_png.pkl").read_bytes())
    (root / "val_images_png.pkl").write_bytes(pickle.dumps([*pngs, pngs[0].copy()][:kept]))
    with pytest.raises(WanderError, match="labels 12"):
        open_pictures(f"imagenet:{root}", "val")


def test_ilsvrc_folders_with_a_list_of_classes(tmp_path: Path) -> None:
    names = [f"n{n:08}" for n in range(12)]
    tree(tmp_path / "ilsvrc" / "train", names, 2, "JPEG")
    rows = [
        {"wnid": name, "group": f"g{n % 2}", "group_split": SPLITS[n % 3]} for n, name in enumerate(names[:9])
    ]
    (tmp_path / "classes.json").write_text(json.dumps(rows))
    lines = ["class,family,split", *(",".join(row.values()) for row in rows)]
    (tmp_path / "classes.csv").write_text("\n".join(lines))
    for end in ("json", "csv"):
        for root in (tmp_path / "ilsvrc", tmp_path / "ilsvrc" / "train"):
            place = f"imagenet:{root}?size=8,classes={tmp_path / 'classes'}.{end}"
            found = open_pictures(place, "test")
            assert found.class_names == ["g0/n00000002", "g0/n00000008", "g1/n00000005"]
            assert found.images.shape == (6, 3, 8, 8)
    (tmp_path / "classes.csv").write_text("\n".join([*lines, "n99999999,g0,train"]))
    with pytest.raises(WanderError, match=r"lacks 1 of the 10 classes.*n99999999"):
        open_pictures(place, "test")
    (tmp_path / "classes.csv").write_text("class,split\nn00000001,train")
    with pytest.raises(WanderError, match="class, family and split"):
        open_pictures(place, "test")


def test_any_tree_at_84_pixels(tmp_path: Path) -> None:
    root = three_splits(tmp_path / "x", families=1, classes=2, pictures=1)
    assert open_pictures(f"imagenet:{root}", "test").images.shape == (2, 3, 84, 84)


class Evil:
    """Leaves a file behind when it is unpickled by somebody careless."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [0, 2, 3, 4, 5])
def test_a_malicious_pickle_is_refused_and_not_run(tmp_path: Path, protocol: int) -> None:
    harm = tmp_path / "harm"
    root = published(tmp_path / "tiered")
    evil = labels() | {"more": Evil(harm)}
    (root / "val_labels.pkl").write_bytes(pickle.dumps(evil, protocol))
    with pytest.raises(WanderError, match=r"not loaded: it asks for (posix|nt)\.mkdir"):
        open_pictures(f"imagenet:{root}", "val")
    root = published(tmp_path / "again")
    (root / "val_images_png.pkl").write_bytes(pickle.dumps([Evil(harm), *range(5)], protocol))
    with pytest.raises(WanderError, match=r"not loaded: it asks for (posix|nt)\.mkdir"):
        open_pictures(f"imagenet:{root}", "val")
    assert not harm.exists()
    pickle.loads((root / "val_images_png.pkl").read_bytes())  # the test itself can fail
    assert harm.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"cbuiltins\neval\n(U\x011tR.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R.",
        b"\x80\x04\x8c\x04eval\x94\x8c\x08builtins\x94h\x01h\x00\x93\x8c\x011\x85R.",  # names out of the memo
        b"(ibuiltins\neval\n.",
        b"c_codecs\nencode\n(X\x01\x00\x00\x001X\x05\x00\x00\x00rot13tR.",
        b"cnumpy\ndtype\n(U\x02V8tR.",
        b"cnumpy\nndarray\n.",
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\ndtype\nK\x00tR.",
    ],
)
def test_programs_written_by_hand_are_refused(tmp_path: Path, program: bytes) -> None:
    path = tmp_path / "x.pkl"
    path.write_bytes(program)
    with pytest.raises(WanderError, match="not loaded"):
        read_pickle(path)
    if b"eval" in program:
        with pytest.raises(WanderError, match="not loaded"):
            list(payloads(path, PNG))


@given(st.binary(max_size=60))
@example(b"\x96\x10\x00\x00\x00\x00\x00\x00\x00short")  # more bytes promised than there are
@example(b"\x96" + b"\xff" * 7 + b"\x7f")  # and more than there is memory
def test_noise_is_an_error_in_words_or_plain_values(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.pkl"
    path.write_bytes(noise)
    for read in (read_pickle, lambda path: list(payloads(path, PNG))):
        try:
            read(path)
        except WanderError as error:
            problem = str(error)
            assert "noise.pkl" in problem


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(plain, st.sampled_from([2, 3, 4, 5]))
def test_plain_values_come_through(
    tmp_path_factory: pytest.TempPathFactory, value: Any, protocol: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "plain.pkl"
    path.write_bytes(pickle.dumps(value, protocol))
    assert read_pickle(path) == value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", ["u1", "<i8", ">i4", "f4", "f8", "S3", "U4", "O", "?"])
def test_arrays_come_through(tmp_path: Path, dtype: str, protocol: int) -> None:
    words = np.array([["a", "bc"], ["de", "f"]])
    array = words.astype(dtype) if dtype in ("S3", "U4", "O") else np.array([[1, 0], [3, 250]]).astype(dtype)
    for each in (array, np.asfortranarray(array), array[0]):
        path = tmp_path / "x.pkl"
        path.write_bytes(pickle.dumps({"a": [each]}, protocol))
        read = read_pickle(path)["a"][0]
        assert read.tolist() == each.tolist()
    if dtype not in ("O", "S3", "U4"):
        path.write_bytes(pickle.dumps(array[1, 1], protocol))
        assert read_pickle(path) == array[1, 1]
