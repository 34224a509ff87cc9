"""Download one file: with progress, resumed where it stopped, checked, and either whole or not there."""

import http.client
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path

from wanderlearn.errors import WanderError
from wanderlearn.files import digest_of
from wanderlearn.progress import bar

__all__ = ["download"]

TIMEOUT_SECONDS = 30
CHUNK_BYTES = 1 << 16
LOST = (OSError, http.client.HTTPException)  # what a network that stops working raises


def download(url: str, path: Path, *, md5: str) -> Path:
    """Fetch `url` into `path` and check its MD5; a file already there with that MD5 is kept as it is.

    What has arrived is kept in `<name>.part`: after Ctrl-C or a lost connection the next call goes on from
    there. A file with the wrong checksum is removed.
    """
    part = path.with_name(path.name + ".part")
    try:
        if path.is_file() and digest_of(path, "md5") == md5:
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        resumed = _transfer(url, part)
        if resumed and digest_of(part, "md5") != md5:
            part.unlink()  # the old piece was of something else: begin again, once
            _transfer(url, part)
        if (found := digest_of(part, "md5")) != md5:
            part.unlink()
            raise WanderError(
                f"{url} arrived with MD5 {found} instead of {md5} and was thrown away. "
                f"Try again later, or {_by_hand(url)}"
            )
        part.replace(path)
    except OSError as error:  # of our own files: what the network raises is already in words
        raise WanderError(
            f"Cannot write {path}: {error.strerror or error}. "
            "Free some space or choose a folder you may write to (WANDERLEARN_CACHE sets the cache)."
        ) from error
    return path


def _transfer(url: str, part: Path) -> bool:
    """Bring `part` up to the whole file; say whether bytes of an earlier call were kept."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        if have and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return True  # nothing beyond what we have: the checksum says whether that is the whole file
        raise WanderError(
            f"The server answered {error.code} ({error.reason}) for {url}. "
            f"Try again later, or {_by_hand(url)}"
        ) from error
    except LOST as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        reason = getattr(cause, "strerror", None) or cause
        raise WanderError(f"Cannot reach {url}: {reason}. Check the network, or {_by_hand(url)}") from error
    with response:
        resumed = have > 0 and response.status == HTTPStatus.PARTIAL_CONTENT
        if resumed and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            part.unlink()
            raise WanderError(f"The server sent the wrong piece of {url}. Try again: it will start over.")
        have = have if resumed else 0  # a server that knows no ranges sends everything: start over
        length = response.headers.get("Content-Length", "")
        whole = have + int(length) if length.isdigit() else None
        caption = f"Downloading {part.stem} (kB)"
        with (
            part.open("ab" if resumed else "wb") as file,
            bar(caption, whole / 1000 if whole else None) as shown,
        ):
            shown.advance(have / 1000)
            while chunk := _receive(response, url):
                file.write(chunk)
                have += len(chunk)
                shown.advance(len(chunk) / 1000)
    if whole is not None and have < whole:
        raise WanderError(_lost(url, f"{have} of {whole} bytes arrived"))
    return resumed


def _receive(response: http.client.HTTPResponse, url: str) -> bytes:
    try:
        return response.read(CHUNK_BYTES)
    except LOST as error:
        raise WanderError(_lost(url, str(error))) from error


def _lost(url: str, how: str) -> str:
    return (
        f"The connection was lost while downloading {url} ({how}). "
        f"Run the same command again: it goes on where it stopped. Or {_by_hand(url)}"
    )


def _by_hand(url: str) -> str:
    return (
        f"download {url.rpartition('/')[2]} by hand, put it in a folder, "
        "and pass `--from DIR` or set WANDERLEARN_DATA to that folder."
    )
