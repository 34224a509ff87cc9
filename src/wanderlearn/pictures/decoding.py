"""Many picture files at once, shared among processes of our own (`decode.serve`)."""

import contextlib
import json
import os
import queue
import subprocess
import threading
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from wanderlearn.errors import WanderError
from wanderlearn.pictures.decode import Done, Look, Piece, do
from wanderlearn.progress import bar
from wanderlearn.workers import worker

__all__ = ["Job", "cores", "decode_files"]

Job = tuple[Path, int, Sequence[str]]
"""A file for pixels, the byte from which they go there, and the pictures."""

AT_ONCE: Final = 128  # pictures in a piece of work
AHEAD: Final = 3  # pieces that a worker is given ahead, so that it never waits for us
FEW: Final = 400  # so few pictures are sooner done than a worker has started
MOST_WORKERS: Final = 8


def decode_files(
    jobs: Sequence[Job], look: Look, caption: str, workers: int | None = None
) -> list[tuple[dict[int, str], list[str]]]:
    """Decode the pictures of every job into its file, one after another.

    Gives for each job what could not be read (by its place, with the reason) and the SHA-256 of every file.
    """
    count = sum(len(sources) for _, _, sources in jobs)
    if workers is None:
        workers = 1 if count < FEW else min(MOST_WORKERS, cores())
    one = look.channels * look.size**2
    pieces, owners = [], []
    for n, (target, offset, sources) in enumerate(jobs):
        for start in range(0, len(sources), AT_ONCE):
            pieces.append(Piece(target, offset + start * one, sources[start : start + AT_ONCE]))
            owners.append((n, start))
    ends: list[tuple[dict[int, str], list[str]]] = [({}, [""] * len(sources)) for _, _, sources in jobs]
    with bar(caption, count) as shown, contextlib.closing(_all_done(pieces, look, workers)) as finished:
        for place, done in finished:
            n, start = owners[place]
            broken, digests = ends[n]
            broken |= {start + at: why for at, why in done.broken}
            digests[start : start + len(done.digests)] = done.digests
            shown.advance(len(done.digests))
    return [(dict(sorted(broken.items())), digests) for broken, digests in ends]


def cores() -> int:
    """How many processor cores we may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _all_done(pieces: Sequence[Piece], look: Look, workers: int) -> Generator[tuple[int, Done], None, None]:
    """The pieces as they are done, with their numbers."""
    if workers <= 1:
        for n, piece in enumerate(pieces):
            yield n, do(piece, look)
        return
    waiting = deque(enumerate(pieces))
    finished: queue.SimpleQueue[tuple[int, Done] | BaseException] = queue.SimpleQueue()
    with contextlib.ExitStack() as stack:
        for _ in range(workers):
            process = stack.enter_context(worker("wanderlearn.pictures.decode"))
            threading.Thread(target=_feed, args=(process, waiting, look, finished), daemon=True).start()
        for _ in pieces:
            end = finished.get()
            if isinstance(end, BaseException):
                raise end
            yield end


def _feed(
    process: "subprocess.Popen[str]",
    waiting: "deque[tuple[int, Piece]]",
    look: Look,
    finished: "queue.SimpleQueue[tuple[int, Done] | BaseException]",
) -> None:
    """Give a worker pieces until none are left, and pass on what it answers."""
    given: deque[tuple[int, Piece]] = deque()
    try:
        while True:
            while len(given) < AHEAD:
                try:
                    given.append(waiting.popleft())
                except IndexError:
                    break
                _ask(process, given[-1][1], look)
            if not given:
                return
            n, piece = given[0]
            answer = _answer(process, piece)
            given.popleft()
            finished.put((n, answer))
    except (WanderError, OSError, ValueError) as error:
        finished.put(error if isinstance(error, WanderError) else _ended(process, given[0][1]))


def _ask(process: "subprocess.Popen[str]", piece: Piece, look: Look) -> None:
    assert process.stdin is not None
    asked = piece._asdict() | {"target": str(piece.target), "look": asdict(look)}
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()


def _answer(process: "subprocess.Popen[str]", piece: Piece) -> Done:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise _ended(process, piece)
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise WanderError(f"Cannot write decoded pictures: {answer['error']}. Free some space.")
    return Done([(place, why) for place, why in answer["broken"]], answer["digests"])


def _ended(process: "subprocess.Popen[str]", piece: Piece) -> WanderError:
    return WanderError(
        f"A process that decodes pictures ended (code {process.wait()}), in one of the files from "
        f"{piece.sources[0]} to {piece.sources[-1]}. Is there enough memory?"
    )
