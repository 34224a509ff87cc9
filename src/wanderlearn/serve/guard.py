"""Who may come in: every request needs the token, the right Host and, where it writes, the right Origin.

The server listens on this machine only, but pages of other sites in the same browser can send requests here,
and a name of theirs can be made to point here. So: no token, no answer, not even for pictures; a Host that is
not ours is refused (a name that was pointed here); a request that another site's page made is refused; and
what our own page may do is fixed by a content security policy.
"""

import hmac
import ipaddress
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wanderlearn.errors import WanderError

__all__ = ["LARGEST", "Guard", "TooLongError"]

LARGEST: Final = 1_000_000  # bytes of a request
TOO_LONG: Final = f"A request has at most {LARGEST:,} bytes."
SAFE: Final = ("GET", "HEAD")
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class TooLongError(WanderError):
    """A request with more bytes than are read."""


class Guard:
    """Middleware around the whole application."""

    def __init__(self, app: ASGIApp, token: str, host: str, port: int) -> None:
        self.app, self.token, self.host, self.port = app, token, host, port
        self.cookie = f"wander-{port}"  # cookies are shared by all ports of a host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # no websockets here
        headers = Headers(scope=scope)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[-1]
        refused = self._refusal(scope["method"], headers, given)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                out = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    out[name] = value
                if "cache-control" not in out:
                    out["cache-control"] = "no-store"
                if refused is None and given:
                    out.append("set-cookie", f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict")
            await send(message)

        if refused is not None:
            status, sentence = refused
            plain = PlainTextResponse(sentence + "\n", status)
            response = plain if scope["method"] in SAFE else JSONResponse({"error": sentence}, status)
            await response(scope, receive, sending)
            return
        await self.app(scope, _bounded(receive), sending)

    def _refusal(self, method: str, headers: Headers, given: str) -> tuple[int, str] | None:
        if not self._ours(headers.get("host", "")):
            return 403, "This name does not lead here. Open the address that wander serve printed."
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and not (
            origin.startswith("http://") and self._ours(origin.removeprefix("http://"))
        ):
            return 403, "A page of another site asked for this."
        if site not in (None, "same-origin", "none") and not (method in SAFE and given):
            return 403, "A page of another site asked for this."
        if not self._knows_token(headers, given):
            return 403, "The token is missing or wrong. Open the address that wander serve printed."
        if method not in (*SAFE, "POST"):
            return 405, "There is nothing here for that method."
        length = headers.get("content-length")
        if length is not None and (not length.isdigit() or int(length) > LARGEST):
            return 413, TOO_LONG
        if method == "POST" and headers.get("content-type", "").split(";")[0].strip() != "application/json":
            return 415, "Send JSON (content-type: application/json)."
        return None

    def _ours(self, host: str) -> bool:
        """Whether a Host header (or what follows http:// in an Origin) means this server."""
        name, _, port = host.rpartition(":")
        if not name or name.endswith(":") or (name.startswith("[") != name.endswith("]")):
            name, port = host, "80"
        if port != str(self.port):
            return False
        name = name.strip("[]").lower()
        if name in ("localhost", self.host.lower()):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        try:
            local = ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            local = self.host == "localhost"
        # Where others may come in, they come by an address: no name can be pointed at that.
        return address.is_loopback or not local

    def _knows_token(self, headers: Headers, given: str) -> bool:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        cookies = SimpleCookie()
        with suppress(CookieError):
            cookies.load(headers.get("cookie", ""))
        kept = cookies[self.cookie].value if self.cookie in cookies else ""
        token = self.token.encode()
        tries = [given, kept, bearer if scheme.lower() == "bearer" else ""]
        found = [hmac.compare_digest(one.encode("utf-8", "replace"), token) for one in tries]
        return any(found)


def _bounded(receive: Receive) -> Receive:
    """Stop reading a body that does not say its length and is too long."""
    read = 0

    async def receiving() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > LARGEST:
            raise TooLongError(TOO_LONG)
        return message

    return receiving
