"""The application: what the page asks for, as addresses."""

import base64
import binascii
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from wanderlearn.errors import WanderError
from wanderlearn.serve.events import Events
from wanderlearn.serve.export import HOW, export, suggested
from wanderlearn.serve.guard import Guard, TooLongError
from wanderlearn.serve.session import ConflictError, Session, UnknownError
from wanderlearn.serve.sight import MissingError, NotAPictureError, TooLargeError
from wanderlearn.serve.store import BROKEN, DECIDED, FOLDER, GONE, SKIPPED, STATES, WAITING, Picture
from wanderlearn.serve.words import about_class, about_picture

__all__ = ["application"]

STATIC: Final = Path(__file__).parent / "static"
TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
RECENT: Final = 24  # pictures in the strip of the past
CLASSES: Final = 200  # classes that are listed at once; the rest is found by searching
PAGE: Final = 60

Fields = dict[str, Any]


def application(session: Session, host: str, port: int) -> Guard:
    """The whole application of a session, behind its guard."""
    events = Events(lambda: session.version)
    session.changed = events.changed
    web = _Web(session, events)
    post: dict[str, Callable[[Fields], Any]] = {
        "decide": web.decide, "skip": web.skip, "undo": web.undo, "rename": web.rename, "merge": web.merge,
        "forget": web.forget, "auto": web.auto, "export": web.export, "draw": web.draw, "name": web.name,
    }  # fmt: skip
    routes = [
        Route("/", _static("index.html")),
        *(Route(f"/static/{path.name}", _static(path.name)) for path in STATIC.iterdir()),
        Route("/picture/{id:int}", web.picture),
        Route("/thumb/{id:int}", web.thumb),
        Route("/api/events", web.listen),
        Route("/api/state", web.get_state),
        Route("/api/look", web.get_look),
        Route("/api/classes", web.get_classes),
        Route("/api/pictures", web.get_pictures),
        *(Route(f"/api/{name}", _post(function), methods=["POST"]) for name, function in post.items()),
    ]
    app = Starlette(routes=routes, exception_handlers={WanderError: _said})
    app.state.events = events
    return Guard(app, session.home.token, host, port)


class _Web:
    """What stands behind the addresses."""

    def __init__(self, session: Session, events: Events) -> None:
        self.session, self.store, self.events = session, session.store, events

    # Asking --------------------------------------------------------------------------------------------

    def get_state(self, request: Request) -> Response:
        return JSONResponse(self.state())

    def get_look(self, request: Request) -> Response:
        id = request.query_params.get("picture")
        if id is not None and not (id.isascii() and id.isdigit() and len(id) < 16):
            raise UnknownError("There is no such picture.")
        return JSONResponse(self.look(None if id is None else int(id)))

    def get_classes(self, request: Request) -> Response:
        return JSONResponse({"classes": self.classes(request.query_params.get("search", "")[:100])})

    def get_pictures(self, request: Request) -> Response:
        """A page of the pictures of a class or in a state."""
        asked = request.query_params
        with self.session.lock:
            if "label" in asked:
                id = self.store.classes.find(asked["label"])
                if id is None:
                    raise ConflictError("There is no such class.")
                found = [(picture, b"") for picture in self.store.of_class(id, PAGE)]
            else:
                if asked.get("state") not in STATES:
                    raise WanderError(f"The state is one of {', '.join(STATES)}.")
                try:
                    after = bytes.fromhex(asked.get("after", ""))
                except ValueError as error:
                    raise WanderError("`after` is what the page before gave.") from error
                found = self.store.in_state(STATES.index(asked["state"]), after, PAGE)
            pictures = [about_picture(self.store, picture) for picture, _ in found]
        more = found[-1][1].hex() if len(found) == PAGE and found[-1][1] else None
        return JSONResponse({"pictures": pictures, "after": more})

    def picture(self, request: Request) -> Response:
        picture = self._picture(request)
        view = self.session.sight.view(picture)
        self.session.seen.set()
        return _image(view, picture)

    def thumb(self, request: Request) -> Response:
        picture = self._picture(request)
        return _image(self.session.sight.thumb(picture), picture)

    async def listen(self, request: Request) -> Response:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self.events.listen(), headers=headers, media_type="text/event-stream")

    def _picture(self, request: Request) -> Picture:
        picture = self.store.picture(min(int(request.path_params["id"]), 2**62))
        if picture is None:
            raise UnknownError("There is no such picture.")
        return picture

    # Doing ---------------------------------------------------------------------------------------------

    def decide(self, fields: Fields) -> Any:
        new, seen = fields.get("new") is True, _whole(fields, "seen", None)
        self.session.decide(_id(fields), _text(fields, "label"), new=new, seen=seen)
        return self.now()

    def skip(self, fields: Fields) -> Any:
        self.session.skip(_id(fields), seen=_whole(fields, "seen", None))
        return self.now()

    def undo(self, fields: Fields) -> Any:
        made = self.session.undo()
        back = self.store.entry(made.other or 0)
        label = back.label if back else None
        return self.now() | {"undone": {"kind": back.kind if back else "", "label": label}}

    def rename(self, fields: Fields) -> Any:
        self.session.rename(_text(fields, "old"), _text(fields, "new"))
        return self.now()

    def merge(self, fields: Fields) -> Any:
        self.session.merge(_text(fields, "kept"), _text(fields, "gone"))
        return self.now()

    def forget(self, fields: Fields) -> Any:
        self.session.forget(_text(fields, "label"))
        return self.now()

    def auto(self, fields: Fields) -> Any:
        error = fields.get("error")
        if error is not None and (isinstance(error, bool) or not isinstance(error, int | float)):
            raise WanderError("`error` is a number, or null to be asked always.")
        self.session.set_auto(None if error is None else float(error))
        return self.now()

    def export(self, fields: Fields) -> Any:
        how = _text(fields, "how")
        path = Path(_text(fields, "to")).expanduser()
        if "\0" in str(path):
            raise WanderError("That is no name of a folder.")
        beside = (self.session.home.folder or self.session.home.state).absolute().parent
        return export(self.session.home, beside / path, how)  # type: ignore[arg-type]

    def draw(self, fields: Fields) -> Any:
        return self.session.look_at_drawing(_png(fields))

    def name(self, fields: Fields) -> Any:
        self.session.tell_drawing(_png(fields), _text(fields, "label"))
        return self.now()

    # Said ----------------------------------------------------------------------------------------------

    def now(self) -> Fields:
        """All that the page shows."""
        with self.session.lock:
            return {"state": self.state(), "look": self.look(None)}

    def look(self, id: int | None) -> Fields:
        with self.session.lock:
            return self.session.look(id) | {"ahead": self.session.ahead()}

    def classes(self, search: str) -> list[Fields]:
        """Classes whose name has these letters; those that begin with them first, then the largest."""
        wanted = search.casefold()
        with self.session.lock:
            found = [
                (not label.casefold().startswith(wanted), -self.store.classes.pictures(id), label, id)
                for id, label in self.store.classes
                if wanted in label.casefold()
            ]
            return [about_class(self.store, id) for *_, id in sorted(found)[:CLASSES]]

    def state(self) -> Fields:
        session, store = self.session, self.store
        with session.lock:
            counts, listing = store.counts, session.listing
            rule = session.rule() if not session.waking else None
            past = []
            for entry in store.past(RECENT):
                picture = store.picture(entry.picture or 0)
                if picture is not None:
                    past.append(about_picture(store, picture) | {"by": entry.by, "right": entry.right})
            return {
                "version": session.version,
                "waking": session.waking,
                "problem": str(session.problem) if session.problem else None,
                "folder": str(session.home.folder) if session.home.folder else None,
                "weights": store.meta("weights"),
                "listing": listing is not None and not listing.finished.is_set(),
                "pictures": sum(counts) - counts[GONE],
                "decided": counts[DECIDED],
                "skipped": counts[SKIPPED],
                "broken": counts[BROKEN],
                "waiting": counts[WAITING],
                "tally": store.tally.shares(),
                "past": past,
                "classes": self.classes(""),
                "class_count": len(store.classes),
                "undo": store.last_made() is not None,
                "auto": {
                    "error": session.error,
                    "source": rule.source if rule else None,
                    "threshold": rule.threshold if rule else None,
                    "judged": rule.judged if rule else 0,
                    "needed": rule.needed if rule else 0,
                },
                "export": {"how": HOW, "to": str(suggested(session.home))},
            }


def _static(name: str) -> Callable[[Request], Response]:
    data, type = (STATIC / name).read_bytes(), TYPES[os.path.splitext(name)[1]]

    def answer(request: Request) -> Response:
        return Response(data, headers={"cache-control": "no-cache"}, media_type=type)

    return answer


def _image(encoded: Any, picture: Picture) -> Response:
    headers = {
        "cache-control": "private, max-age=600" if picture.source == FOLDER else "private, max-age=86400"
    }
    return Response(encoded.data, headers=headers, media_type=encoded.type)


def _post(function: Callable[[Fields], Any]) -> Callable[[Request], Awaitable[Response]]:
    """A function of JSON fields as an address. It runs in a thread: it may wait for the disk."""

    async def answer(request: Request) -> Response:
        try:
            fields = json.loads(await request.body() or b"{}")
        except (ValueError, RecursionError) as error:
            raise WanderError("That is no JSON.") from error
        if not isinstance(fields, dict):
            raise WanderError("Send an object.")
        return JSONResponse(await run_in_threadpool(function, fields))

    return answer


def _said(request: Request, error: Exception) -> Response:
    """An error as a sentence, with the status that fits."""
    fits: dict[type[Exception], int] = {
        TooLongError: 413, TooLargeError: 422, NotAPictureError: 415,
        MissingError: 404, UnknownError: 404, ConflictError: 409,
    }  # fmt: skip
    status = next((status for kind, status in fits.items() if isinstance(error, kind)), 400)
    return JSONResponse({"error": str(error)}, status)


def _text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise WanderError(f"`{name}` is missing.")
    return value


def _whole(fields: Fields, name: str, otherwise: int | None) -> int | None:
    value = fields.get(name, otherwise)
    if value is not None and (type(value) is not int or not 0 <= value < 2**62):
        raise WanderError(f"`{name}` is a whole number.")
    return value


def _id(fields: Fields) -> int:
    id = _whole(fields, "picture", None)
    if id is None:
        raise WanderError("`picture` is missing.")
    return id


def _png(fields: Fields) -> bytes:
    try:
        return base64.b64decode(_text(fields, "png"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise WanderError("`png` is a PNG in base64.") from error
