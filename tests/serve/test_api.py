"""The addresses: what the page is told, and who is refused, with which status and nothing written."""

import base64
import io
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio
import pytest
from PIL import Image

from tests.serve.worlds import TestClient, draw, drop, folder_of, session_of
from wanderlearn.serve.app import application
from wanderlearn.serve.guard import LARGEST
from wanderlearn.serve.session import Session

HOST, PORT = "127.0.0.1", 8421
HERE = f"http://{HOST}:{PORT}"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    folder = folder_of(tmp_path / "pictures", 10)
    secret = draw(tmp_path / "outside.png", 99)
    (folder / "a" / "link-out.png").symlink_to(secret)
    (folder / "a" / "link-in.png").symlink_to(folder / "b" / "000.png")
    (folder / "out").symlink_to(tmp_path)
    made = session_of(folder)
    yield made
    drop(made)


@pytest.fixture
def page(session: Session) -> Iterator[TestClient]:
    """A browser that has opened the printed address."""
    with TestClient(application(session, HOST, PORT), base_url=HERE) as client:
        opened = client.get(f"/?token={session.home.token}")
        assert opened.status_code == 200
        client.headers["origin"] = HERE
        client.headers["sec-fetch-site"] = "same-origin"
        yield client


@pytest.fixture
def stranger(session: Session) -> Iterator[TestClient]:
    """A browser that has not."""
    with TestClient(application(session, HOST, PORT), base_url=HERE) as client:
        yield client


def everything(session: Session) -> Any:
    """All that is kept: nothing of it may change by what is refused."""
    files = {
        path.relative_to(session.home.state): path.read_bytes()
        for path in sorted(session.home.state.rglob("*"))
        if path.is_file()
    }
    return files, session.agent.changes, session.store.last_number()


def png(side: int = 16) -> str:
    out = io.BytesIO()
    Image.new("L", (side, side), 255).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def bomb(width: int, height: int) -> str:
    """A PNG that says it is very large."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(1_000_000), 9)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return base64.b64encode(data).decode()


# What works ----------------------------------------------------------------------------------------------


def test_the_page_and_its_parts_come_with_a_strict_policy(page: TestClient) -> None:
    opened = page.get("/")
    policy = opened.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "//" not in policy  # no other host
    for name in ("main.js", "pad.js", "base.css", "icon.svg"):
        assert f"/static/{name}" in opened.text or page.get(f"/static/{name}").status_code == 200
    for path in (Path(__file__).parents[2] / "src/wanderlearn/serve/static").iterdir():
        part = page.get(f"/static/{path.name}")
        assert part.status_code == 200
        assert "https://" not in part.text
        assert part.headers["x-content-type-options"] == "nosniff"


def test_a_picture_is_looked_at_decided_and_undone(page: TestClient, session: Session) -> None:
    look = page.get("/api/look").json()
    assert look["answer"]["new"]
    first = look["picture"]
    assert first["name"] == "a/001.png"
    made = page.post(
        "/api/decide", json={"picture": first["id"], "label": "cat", "new": True, "seen": 0}
    ).json()
    assert made["look"]["picture"]["name"] == "a/003.png"
    assert made["look"]["answer"]["ranking"][0]["examples"] == [first["id"]]
    assert made["state"]["classes"] == [{"label": "cat", "count": 1, "examples": [first["id"]]}]
    assert made["state"]["tally"]["accuracy"] == 1.0
    assert "cat" in session.agent
    skipped = page.post("/api/skip", json={"picture": made["look"]["picture"]["id"]}).json()
    assert skipped["state"]["skipped"] == 1
    assert page.get("/api/pictures?state=skipped").json()["pictures"][0]["name"] == "a/003.png"
    assert page.get("/api/pictures?label=cat").json()["pictures"][0]["name"] == "a/001.png"
    page.post("/api/undo", json={})
    undone = page.post("/api/undo", json={}).json()
    assert undone["undone"] == {"kind": "decide", "label": "cat"}
    assert undone["look"]["picture"]["id"] == first["id"]
    assert undone["state"]["classes"] == []


def test_classes_are_found_renamed_merged_and_forgotten(page: TestClient) -> None:
    for label in ("cat", "caterpillar", "dog", "cat"):
        id = page.get("/api/look").json()["picture"]["id"]
        page.post("/api/decide", json={"picture": id, "label": label, "new": True})
    found = [one["label"] for one in page.get("/api/classes?search=CAT").json()["classes"]]
    assert found == ["cat", "caterpillar"]
    assert page.post("/api/rename", json={"old": "cat", "new": "lion"}).status_code == 200
    assert page.post("/api/merge", json={"kept": "lion", "gone": "caterpillar"}).status_code == 200
    state = page.post("/api/forget", json={"label": "dog"}).json()["state"]
    assert [(one["label"], one["count"]) for one in state["classes"]] == [("lion", 3)]
    assert state["waiting"] == 10 + 1 - 3


def test_pictures_are_sent_as_plain_pixels(page: TestClient, session: Session, tmp_path: Path) -> None:
    id = page.get("/api/look").json()["picture"]["id"]
    for kind in ("picture", "thumb"):
        sent = page.get(f"/{kind}/{id}")
        assert sent.headers["content-type"] == "image/png"
        with Image.open(io.BytesIO(sent.content)) as picture:
            assert picture.size == (8, 8)


def test_large_pictures_are_sent_small(tmp_path: Path) -> None:
    Image.new("RGB", (3000, 1500), "red").save(tmp_path / "large.jpg")
    session = session_of(tmp_path)
    with TestClient(application(session, HOST, PORT), base_url=HERE) as page:
        page.headers["authorization"] = f"Bearer {session.home.token}"
        for kind, side in (("picture", 1024), ("thumb", 160)):
            with Image.open(io.BytesIO(page.get(f"/{kind}/1").content)) as picture:
                assert max(picture.size) == side
    drop(session)


def test_drawings_are_looked_at_then_kept(page: TestClient, session: Session) -> None:
    before = everything(session)
    answer = page.post("/api/draw", json={"png": png()}).json()["answer"]
    assert answer["new"]
    assert everything(session) == before  # looking keeps nothing
    made = page.post("/api/name", json={"png": png(), "label": "square"}).json()
    assert made["state"]["classes"][0]["label"] == "square"
    assert made["state"]["decided"] == 0  # of the folder
    assert len(list(session.home.drawings.iterdir())) == 1
    drawn = made["state"]["past"][0]["id"]
    assert page.get(f"/picture/{drawn}").status_code == 200
    page.post("/api/undo", json={})
    assert "square" not in session.agent


# Who is refused ------------------------------------------------------------------------------------------

GET = ["/", "/static/main.js", "/api/state", "/api/look", "/api/classes", "/api/pictures?state=waiting",
       "/api/events", "/picture/1", "/thumb/1", "/nothing"]  # fmt: skip
POST = ["decide", "skip", "undo", "rename", "merge", "forget", "auto", "export", "draw", "name"]


@pytest.mark.parametrize("token", ["", "wrong", "é", "x" * 5000])
def test_without_the_token_nothing_is_answered(token: str, stranger: TestClient, session: Session) -> None:
    before = everything(session)
    for path in GET:
        answer = stranger.get(path, params={"token": token} if token else None)
        assert answer.status_code == 403, path
        assert "set-cookie" not in answer.headers
    for name in POST:
        assert stranger.post(f"/api/{name}", json={}, params={"token": token}).status_code == 403
        headers = {"authorization": f"Bearer {token}".encode()}
        assert stranger.post(f"/api/{name}", json={}, headers=headers).status_code == 403
    stranger.cookies.set(f"wander-{PORT}", base64.b64encode(token.encode()).decode())
    assert stranger.get("/api/state").status_code == 403
    assert everything(session) == before


def test_the_token_comes_once_and_then_a_strict_cookie(stranger: TestClient, session: Session) -> None:
    opened = stranger.get("/", params={"token": session.home.token})
    kept = opened.headers["set-cookie"].lower()
    assert "httponly" in kept
    assert "samesite=strict" in kept
    assert stranger.get("/api/state").status_code == 200
    assert (session.home.state / "token").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8421", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil.example:8421",
     "localhost.evil.example:8421", "192.168.0.7:8421", "[::2]:8421", "", ":8421", "127.0.0.1:8421:8421"],
)  # fmt: skip
def test_names_that_were_pointed_here_are_refused(host: str, page: TestClient) -> None:
    assert page.get("/api/state", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost:8421", "127.0.0.1:8421", "[::1]:8421", "LOCALHOST:8421"])
def test_our_own_names_are_not(host: str, page: TestClient) -> None:
    assert page.get("/api/state", headers={"host": host, "origin": f"http://{host}"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "https://127.0.0.1:8421"},
     {"origin": "http://127.0.0.1:9999"}, {"origin": "http://127.0.0.1:8421.evil.example"},
     {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}],
    ids=str,
)  # fmt: skip
def test_other_sites_cannot_post_even_with_the_cookie(
    headers: dict[str, str], page: TestClient, session: Session
) -> None:
    before = everything(session)
    for name in POST:
        fields = {"picture": 1, "label": "evil", "new": True, "png": png(), "error": 0.5}
        assert page.post(f"/api/{name}", json=fields, headers=headers).status_code == 403, name
    assert page.get("/picture/1", headers=headers).status_code == 403
    assert everything(session) == before


def test_forms_cannot_post(page: TestClient, session: Session) -> None:
    before = everything(session)
    for type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        answer = page.post("/api/undo", content=b"{}", headers={"content-type": type})
        assert answer.status_code == 415
    assert everything(session) == before


def test_other_methods_are_refused(page: TestClient) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert page.request(method, "/api/state").status_code == 405
    assert page.get("/api/undo").status_code == 405
    assert page.post("/api/state", json={}).status_code == 405


@pytest.mark.parametrize(
    "path",
    ["/picture/../../outside.png", "/picture/%2e%2e%2foutside.png", "/static/../session.py",
     "/static/%2e%2e/session.py", "/static//etc/passwd", "/etc/passwd", "/picture/a%2f001.png",
     "/picture/-1", "/picture/0", "/picture/99999999999999999999999", "/picture/1/../2", "/picture/1%00",
     "/thumb/..", "/api/look?picture=../../outside.png", "/api/look?picture=-1", "/api/look?picture=%D9%A3"],
)  # fmt: skip
def test_nothing_outside_the_folder_can_be_named(path: str, session: Session) -> None:
    secret = (session.home.state.parent.parent / "outside.png").read_bytes()
    status, content = raw_get(session, path)
    assert status == 404
    assert secret not in content
    assert b"root:" not in content
    assert b"import " not in content


def raw_get(session: Session, path: str) -> tuple[int, bytes]:
    """What an attacker sends, who does not tidy the path up as clients do."""
    name, _, query = path.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": unquote(name), "raw_path": name.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [(b"host", f"{HOST}:{PORT}".encode()),
                    (b"authorization", f"Bearer {session.home.token}".encode())],
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def call() -> None:
        await application(session, HOST, PORT)(scope, receive, send)

    anyio.run(call)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


def test_links_that_lead_out_are_not_listed_and_not_read(page: TestClient, session: Session) -> None:
    names = {one["name"] for one in page.get("/api/pictures?state=waiting").json()["pictures"]}
    assert "a/link-in.png" in names
    assert not [name for name in names if "link-out" in name or name.startswith("out")]
    # A picture that was listed and is a way out by now:
    first = page.get("/api/pictures?state=waiting").json()["pictures"][2]
    path = session.home.state.parent / first["name"]
    path.unlink()
    path.symlink_to(session.home.state.parent.parent / "outside.png")
    assert page.get(f"/picture/{first['id']}").status_code in (400, 404)


def test_a_folder_that_became_a_way_out_is_not_followed(
    page: TestClient, session: Session, tmp_path: Path
) -> None:
    folder = session.home.state.parent
    first = page.get("/api/pictures?state=waiting").json()["pictures"][2]
    (tmp_path / "elsewhere").mkdir()
    draw(tmp_path / "elsewhere" / Path(first["name"]).name, 5)
    (folder / "a").rename(tmp_path / "was-a")
    (folder / "a").symlink_to(tmp_path / "elsewhere")
    assert page.get(f"/picture/{first['id']}").status_code in (400, 404)


def test_huge_requests_are_refused_unread(page: TestClient, session: Session) -> None:
    before = everything(session)
    fat = base64.b64encode(os.urandom(LARGEST)).decode()
    assert page.post("/api/name", json={"png": fat, "label": "fat"}).status_code == 413
    read = 0

    def endless() -> Iterator[bytes]:  # chunked: it does not say how long it is
        nonlocal read
        yield b'{"png": "'
        for _ in range(50):
            read += 100_000
            yield b"A" * 100_000

    answer = page.post("/api/name", content=endless(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    lying = {"content-length": "-5", "content-type": "application/json"}
    assert page.post("/api/name", content=b"{}", headers=lying).status_code == 413
    assert everything(session) == before


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (bomb(60_000, 60_000), 422),
        (bomb(2**31 - 1, 2**31 - 1), 422),
        (bomb(8000, 7000), 422),
        (base64.b64encode(b"<svg onload=alert(1)>").decode(), 415),
        (base64.b64encode(b"GIF89a" + bytes(50)).decode(), 415),
        (base64.b64encode(b"\x89PNG\r\n\x1a\n").decode(), 415),
        (base64.b64encode(base64.b64decode(png())[:-30]).decode(), 415),
        ("not base64!", 400),
        ("", 400),
        (17, 400),
    ],
    ids=["bomb", "huge bomb", "small bomb", "svg", "gif", "head", "truncated", "text", "empty", "number"],
)
def test_bombs_and_what_is_no_picture_are_refused(
    data: Any, status: int, page: TestClient, session: Session
) -> None:
    before = everything(session)
    for name in ("draw", "name"):
        answer = page.post(f"/api/{name}", json={"png": data, "label": "bomb"})
        assert answer.status_code == status
        assert answer.json()["error"]
    assert everything(session) == before


def test_a_bomb_in_the_folder_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "0-bomb.png").write_bytes(base64.b64decode(bomb(60_000, 60_000)))
    draw(tmp_path / "1.png", 1)
    session = session_of(tmp_path)
    with TestClient(application(session, HOST, PORT), base_url=HERE) as page:
        page.headers["authorization"] = f"Bearer {session.home.token}"
        assert page.get("/picture/1").status_code == 422
        assert page.get("/api/look").json()["picture"]["name"] == "1.png"
        state = page.get("/api/state").json()
        assert (state["broken"], state["waiting"]) == (1, 1)
    drop(session)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("decide", {}), ("decide", {"picture": "1", "label": "x"}),
        ("decide", {"picture": True, "label": "x"}),
        ("decide", {"picture": 1, "label": ["x"]}), ("decide", {"picture": 1, "label": "x\x00", "new": True}),
        ("decide", {"picture": 1, "label": "x" * 101, "new": True}),
        ("decide", {"picture": 2**63, "label": "x"}),
        ("skip", {"picture": 1.5}), ("rename", {"old": "x"}), ("merge", {"kept": {}, "gone": []}),
        ("auto", {"error": "0.1"}), ("auto", {"error": 5}), ("auto", {"error": -1}),
        ("auto", {"error": True}),
        ("export", {"to": "/nowhere/at/all/x", "how": "copies"}), ("export", {"to": "x", "how": "moving"}),
        ("export", {"to": "x\x00y", "how": "copies"}),
    ],
    ids=str,
)  # fmt: skip
def test_fields_that_make_no_sense_are_sentences(
    name: str, fields: dict[str, Any], page: TestClient, session: Session
) -> None:
    before = everything(session)
    answer = page.post(f"/api/{name}", json=fields)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")
    assert everything(session) == before


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"nonsense", b'"text"', b"\xff\xfe", b"[" * 100_000])
def test_bodies_that_are_no_object_are_refused(body: bytes, page: TestClient, session: Session) -> None:
    before = everything(session)
    answer = page.post("/api/decide", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert everything(session) == before


def test_somebody_was_faster(page: TestClient) -> None:
    id = page.get("/api/look").json()["picture"]["id"]
    page.post("/api/decide", json={"picture": id, "label": "cat", "new": True, "seen": 0})
    late = page.post("/api/decide", json={"picture": id, "label": "dog", "new": True, "seen": 0})
    assert late.status_code == 409
    assert "another tab" in late.json()["error"]
    assert page.post("/api/decide", json={"picture": 12345, "label": "dog", "new": True}).status_code == 404
