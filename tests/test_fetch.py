"""Downloads: whole and checked, resumed after any interruption, and clear about what went wrong."""

import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from wanderlearn.errors import WanderError
from wanderlearn.pictures import fetch

CONTENT = bytes((7 * i + i // 251) % 256 for i in range(300_000))
MD5 = hashlib.md5(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """A web server with one file and every bad habit a test asks for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.ranges = True  # whether it understands Range
        self.dies_after: int | None = None  # bytes of the body before the connection is cut
        self.status: int | None = None  # answer this instead
        self.shift = 0  # how far a range is off
        self.tells_length = True
        self.asked: list[str | None] = []  # the Range header of every request
        self.sent = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/archive.zip"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers["Range"]
        server.asked.append(wanted)
        if server.status:
            self.send_error(server.status)
            return
        start = 0
        if wanted and server.ranges:
            start = int(wanted.removeprefix("bytes=").rstrip("-")) + server.shift
            if start >= len(server.content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header(
                "Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}"
            )
        else:
            self.send_response(200)
        body = server.content[start:]
        if server.tells_length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        body = body[: server.dies_after]
        server.sent += len(body)
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "*")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "made" / "on the way" / "archive.zip"


def part_of(target: Path) -> Path:
    return target.with_name("archive.zip.part")


def leave_part(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True)
    part_of(target).write_bytes(content)


@pytest.mark.parametrize("tells_length", [True, False])
def test_a_download_is_whole_and_leaves_nothing_else(
    server: Server, target: Path, tells_length: bool
) -> None:
    server.tells_length = tells_length
    assert fetch.download(server.url, target, md5=MD5) == target
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]
    assert server.asked == [None]


def test_a_file_already_there_is_not_fetched_again(server: Server, target: Path) -> None:
    fetch.download(server.url, target, md5=MD5)
    fetch.download(server.url, target, md5=MD5)
    assert len(server.asked) == 1


def test_a_damaged_file_already_there_is_replaced(server: Server, target: Path) -> None:
    target.parent.mkdir(parents=True)
    target.write_bytes(CONTENT[:-1] + b"?")
    fetch.download(server.url, target, md5=MD5)
    assert target.read_bytes() == CONTENT


def test_a_download_goes_on_where_it_stopped(server: Server, target: Path) -> None:
    leave_part(target, CONTENT[:123_456])
    fetch.download(server.url, target, md5=MD5)
    assert target.read_bytes() == CONTENT
    assert server.asked == ["bytes=123456-"]
    assert server.sent == len(CONTENT) - 123_456


def test_a_server_that_dies_in_the_middle_is_resumed_by_the_next_call(server: Server, target: Path) -> None:
    server.dies_after = 200_000
    with pytest.raises(WanderError, match=r"200000 of 300000 bytes.*goes on where it stopped"):
        fetch.download(server.url, target, md5=MD5)
    assert not target.exists()
    assert part_of(target).read_bytes() == CONTENT[:200_000]
    server.dies_after = None
    fetch.download(server.url, target, md5=MD5)
    assert target.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=200000-"]


def test_a_server_without_ranges_starts_over(server: Server, target: Path) -> None:
    server.ranges = False
    leave_part(target, CONTENT[:1000])
    fetch.download(server.url, target, md5=MD5)
    assert target.read_bytes() == CONTENT
    assert len(server.asked) == 1


def test_what_a_server_without_ranges_sent_is_counted_from_the_start(server: Server, target: Path) -> None:
    server.ranges = False
    server.dies_after = 5000
    leave_part(target, CONTENT[:1000])
    with pytest.raises(WanderError, match="5000 of 300000 bytes"):
        fetch.download(server.url, target, md5=MD5)
    assert part_of(target).read_bytes() == CONTENT[:5000]


def test_a_part_that_is_already_whole_only_needs_checking(server: Server, target: Path) -> None:
    leave_part(target, CONTENT)  # the server answers 416: there is nothing after it
    fetch.download(server.url, target, md5=MD5)
    assert target.read_bytes() == CONTENT
    assert server.sent == 0


@pytest.mark.parametrize("stale", [b"something else", CONTENT + b"too long"])
def test_a_part_of_something_else_is_thrown_away(server: Server, target: Path, stale: bytes) -> None:
    leave_part(target, stale)
    fetch.download(server.url, target, md5=MD5)
    assert target.read_bytes() == CONTENT
    assert server.asked[-1] is None


def test_corrupted_content_is_removed_and_named(server: Server, target: Path) -> None:
    server.content = CONTENT[:5000] + b"\0" + CONTENT[5001:]
    with pytest.raises(WanderError, match=rf"instead of {MD5}.*`--from DIR`"):
        fetch.download(server.url, target, md5=MD5)
    assert list(target.parent.iterdir()) == []


def test_the_wrong_piece_is_not_appended(server: Server, target: Path) -> None:
    server.shift = 10
    leave_part(target, CONTENT[:1000])
    with pytest.raises(WanderError, match="wrong piece"):
        fetch.download(server.url, target, md5=MD5)
    fetch.download(server.url, target, md5=MD5)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("status", [404, 500])
def test_a_refusal_is_a_sentence(server: Server, target: Path, status: int) -> None:
    server.status = status
    leave_part(target, CONTENT[:1000])
    with pytest.raises(WanderError, match=rf"answered {status}.*archive\.zip.*WANDERLEARN_DATA"):
        fetch.download(server.url, target, md5=MD5)
    assert part_of(target).read_bytes() == CONTENT[:1000]


def test_without_network_the_way_by_hand_is_shown(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(WanderError, match=r"Cannot reach .*`--from DIR` or set WANDERLEARN_DATA"):
        fetch.download(f"http://127.0.0.1:{port}/archive.zip", target, md5=MD5)
    assert not target.exists()


def test_ctrl_c_leaves_only_a_part_that_the_next_call_resumes(
    server: Server, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = fetch._receive
    pieces: list[bytes] = []

    def interrupted(*args: object) -> bytes:
        if len(pieces) == 2:
            raise KeyboardInterrupt
        pieces.append(receive(*args))  # type: ignore[arg-type]
        return pieces[-1]

    monkeypatch.setattr(fetch, "_receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch.download(server.url, target, md5=MD5)
    monkeypatch.setattr(fetch, "_receive", receive)
    arrived = b"".join(pieces)
    assert list(target.parent.iterdir()) == [part_of(target)]
    assert part_of(target).read_bytes() == arrived == CONTENT[: len(arrived)]
    fetch.download(server.url, target, md5=MD5)
    assert target.read_bytes() == CONTENT
    assert server.asked == [None, f"bytes={len(arrived)}-"]


def test_a_folder_that_cannot_be_written_is_a_sentence(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(WanderError, match=r"Cannot write .*WANDERLEARN_CACHE"):
        fetch.download(server.url, tmp_path / "file" / "archive.zip", md5=MD5)
