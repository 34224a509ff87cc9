"""What is in a folder: found in a fixed order, whatever the disk does, and nothing from outside."""

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.serve.worlds import drop, folder_of, session_of
from wanderlearn.errors import WanderError
from wanderlearn.serve.home import Home
from wanderlearn.serve.listing import BATCH, FIRST, Listing, open_inside
from wanderlearn.serve.session import Session
from wanderlearn.serve.sight import MissingError, NotAPictureError, Sight, decode
from wanderlearn.serve.store import FOLDER, Picture
from wanderlearn.serve.words import about_picture

part = st.text("ab.-é~ ", min_size=1, max_size=3).filter(lambda name: not name.startswith("."))


def order_of(session: Session) -> list[str]:
    rows = session.store.db.execute("SELECT path FROM pictures ORDER BY place").fetchall()
    return [os.fsdecode(path) for (path,) in rows]


@settings(max_examples=15)
@given(paths=st.sets(st.lists(part, min_size=1, max_size=3).map(tuple), min_size=1, max_size=12))
def test_pictures_come_in_the_order_of_somebody_who_walks(
    paths: set[tuple[str, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("walk")
    wanted = []
    for path in paths:
        file = root.joinpath(*path[:-1], path[-1] + ".png")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        wanted.append((*path[:-1], path[-1] + ".png"))
    session = session_of(root, root.parent / f"{root.name}-state")
    assert order_of(session) == [
        "/".join(path) for path in sorted(wanted, key=lambda path: [os.fsencode(name) for name in path])
    ]
    drop(session)


def test_the_first_pictures_of_a_large_folder_come_first_and_in_order(tmp_path: Path) -> None:
    """While it is being listed, what is shown is what will be first in the end."""
    names = [f"{n:05}.png" for n in range(3 * BATCH)]
    random.Random(0).shuffle(names)
    (tmp_path / "z").mkdir()
    for name in names:
        (tmp_path / "z" / name).touch()
    home = Home(tmp_path / ".wanderlearn", tmp_path)
    shown: list[str] = []

    def changed() -> None:
        with home.store.lock:
            waiting = home.store.waiting(listing.frontier, 10**6)
        shown.append(",".join(os.fsdecode(picture.path)[2:7] for picture in waiting))

    listing = Listing(home.store, tmp_path, "path", 0, changed)
    listing.run()
    whole = ",".join(sorted(name[:5] for name in names))
    assert shown[-1] == whole
    assert all(whole.startswith(some) for some in shown)
    assert any(0 < len(some.split(",")) == FIRST for some in shown)  # early
    home.close()


def test_shuffled_is_another_order_fixed_by_its_seed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "pictures", 12)
    orders = []
    for n, seed in enumerate((1, 1, 2)):
        session = session_of(folder, tmp_path / f"state-{n}", order="shuffled", seed=seed)
        orders.append(order_of(session))
        drop(session)
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])
    session = session_of(folder, tmp_path / "state-0")  # another order on opening again
    assert order_of(session) == sorted(orders[0])
    drop(session)


def test_new_pictures_are_found_on_opening_again(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "pictures", 3)
    drop(session_of(folder))
    folder_of(folder, 5)
    session = session_of(folder)
    assert len(order_of(session)) == 5
    assert session.store.counts[0] == 5
    drop(session)


def test_what_is_passed_over(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "pictures", 2)
    (folder / ".hidden.png").touch()
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "in.png").touch()
    (folder / "notes.txt").touch()
    (folder / "loop").symlink_to(folder)
    (folder / "folder.png").mkdir()
    os.mkfifo(folder / "pipe.png")
    (folder / "broken-link.png").symlink_to(folder / "nowhere.png")
    odd = os.fsencode(folder) + b"/caf\xe9.PNG"  # not UTF-8, and a suffix in capitals
    Image.new("L", (4, 4)).save(os.fsdecode(odd), "PNG")
    session = session_of(folder)
    assert [os.fsencode(name) for name in order_of(session)] == [b"a/001.png", b"b/000.png", b"caf\xe9.PNG"]
    names = [about_picture(session.store, picture)["name"] for picture in session.store.waiting(None, 9)]
    assert names[2] == "caf?.PNG"
    assert [session.look(picture.id)["answer"]["new"] for picture in session.store.waiting(None, 9)] == [
        True
    ] * 3
    drop(session)


@pytest.mark.parametrize(
    "path", [b"../secret", b"/etc/passwd", b"a/../../secret", b"link", b"dir/secret", b"", b"a"]
)
def test_only_plain_files_inside_can_be_opened(path: bytes, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "dir").symlink_to(tmp_path)
    with pytest.raises((WanderError, OSError)):
        open_inside(os.fsencode(root), path)


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    sight = Sight(tmp_path, tmp_path)
    with pytest.raises((NotAPictureError, WanderError)):
        sight.read(Picture(1, FOLDER, b"pipe.png", 0, None, None, 0, None))
    with pytest.raises(MissingError):
        sight.read(Picture(2, FOLDER, b"gone.png", 0, None, None, 0, None))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F"])
def test_pictures_of_every_kind_are_read(mode: str, tmp_path: Path) -> None:
    path = tmp_path / ("picture.tif" if mode in ("CMYK", "I;16", "I", "F") else "picture.png")
    Image.new(mode, (300, 200)).save(path)
    with path.open("rb") as file:
        picture = decode(file, 100)
    assert picture.mode in ("L", "RGB")
    assert picture.size == (100, 67)
    if mode in ("LA", "RGBA"):
        assert picture.convert("L").getpixel((5, 5)) == 255  # transparent is white paper


def test_listing_stops_when_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "pictures", 4)
    home = Home(tmp_path / "state", folder)
    listing = Listing(home.store, folder, "path", 0, lambda: None)
    listing.stop()
    thread = listing.start()
    assert listing.finished.wait(30)
    thread.join(30)
    assert not home.store.meta("listed")
    home.close()
