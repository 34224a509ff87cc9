"""Record many homes at once: one process for each, which ends when the one that started it ends."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from wanderlearn.configs import from_json, to_json
from wanderlearn.distributed import ALONE, Group
from wanderlearn.errors import WanderError
from wanderlearn.progress import bar
from wanderlearn.rooms.annotate import scene_name
from wanderlearn.rooms.recording import RecordConfig, Walked, begin, record_world, sweep
from wanderlearn.rooms.streams import h5_library
from wanderlearn.workers import worker

if sys.platform != "win32":
    import fcntl

__all__ = ["alone", "make_folder", "record_worlds", "serve"]

Tell = Callable[[int], None]


def record_worlds(
    seeds: Sequence[int],
    folder: Path,
    config: RecordConfig | None = None,
    processes: int = 1,
    group: Group = ALONE,
) -> dict[int, list[Walked]]:
    """Record the homes of these seeds into a folder, or what is still missing there; by seed what came of it.

    The files are the same whatever the number of processes. In a group every process records its share of the
    homes, into one folder or (on machines that do not share a disk) into one folder each.
    """
    config = config or RecordConfig()
    if processes < 1:
        raise WanderError(f"There must be at least 1 process, not {processes}.")
    h5_library()
    make_folder(folder)
    with contextlib.ExitStack() as stack:
        if group.first_here:  # what is half-written may only be swept up before anybody writes
            stack.enter_context(alone(folder))
            begin(folder, config)
        group.barrier()
        mine = [seeds[n] for n in group.share(len(seeds))]
        done = _recorded(mine, folder, config, processes, group)
        told = [[seed, [w._asdict() for w in walked]] for seed, walked in done.items()]
        everybodys = {seed: walked for each in group.gather(told) for seed, walked in each}
    return {seed: [Walked(**w) for w in everybodys[seed]] for seed in seeds}


def _recorded(
    seeds: Sequence[int], folder: Path, config: RecordConfig, processes: int, group: Group
) -> dict[int, list[Walked]]:
    """Record these homes, one after the other or several at once."""
    total = len(seeds) * config.walks * config.frames
    with bar("recording", total, shown=group.first) as shown:
        if processes == 1:
            return {seed: record_world(seed, folder, config, shown.advance) for seed in seeds}
        try:
            return _shared_out(seeds, folder, config, processes, shown.advance)
        finally:
            if group.size == 1:  # others may be writing
                sweep(folder)


def serve() -> None:
    """A process that records: reads what to do from standard input, line by line, and tells how it goes.

    When its input ends, the one who asked is gone; so is this process then, at once.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the one who asked ends us
    asked: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    while True:
        task = json.loads(asked.get())
        config = from_json(RecordConfig, task["config"])
        try:
            walked = record_world(
                task["seed"], Path(task["folder"]), config, lambda steps: _say({"steps": steps})
            )
        except WanderError as error:
            _say({"error": str(error)})
        else:
            _say({"done": [w._asdict() for w in walked]})


def _listen(asked: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        asked.put(line)
    os._exit(0)


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def _shared_out(
    seeds: Sequence[int], folder: Path, config: RecordConfig, processes: int, tell: Tell
) -> dict[int, list[Walked]]:
    waiting, done = deque(seeds), dict[int, list[Walked]]()
    heard: queue.SimpleQueue[tuple[int, dict[str, Any]]] = queue.SimpleQueue()
    with contextlib.ExitStack() as stack:
        for _ in range(min(processes, len(seeds))):
            process = stack.enter_context(worker("wanderlearn.rooms.recorder"))
            threading.Thread(
                target=_feed, args=(process, waiting, folder, config, heard), daemon=True
            ).start()
        while len(done) < len(seeds):
            seed, message = heard.get()
            if "error" in message:
                raise WanderError(message["error"])
            if "done" in message:
                done[seed] = [Walked(**w) for w in message["done"]]
            else:
                tell(message["steps"])
    return done


def _feed(
    process: "subprocess.Popen[str]",
    waiting: "deque[int]",
    folder: Path,
    config: RecordConfig,
    heard: "queue.SimpleQueue[tuple[int, dict[str, Any]]]",
) -> None:
    """Give a process homes until none are left, and pass on what it tells."""
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        try:
            seed = waiting.popleft()
        except IndexError:
            return
        task = {"seed": seed, "folder": str(folder.absolute()), "config": to_json(config)}
        message: dict[str, Any] = {}
        try:
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            while "done" not in message:
                line = process.stdout.readline()
                message = json.loads(line) if line else {"error": _ended(process, seed)}
                heard.put((seed, message))
                if "error" in message:
                    return
        except (OSError, ValueError):
            heard.put((seed, {"error": _ended(process, seed)}))
            return


def _ended(process: "subprocess.Popen[str]", seed: int) -> str:
    return (
        f"The process that recorded {scene_name(seed)} ended (code {process.wait()}). Is there enough "
        "memory? What is recorded stays: the same command goes on from there."
    )


def make_folder(folder: Path) -> None:
    """The folder of a recording, if there is none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WanderError(
            f"Cannot make the folder {folder}: {error.strerror}. Choose one you may write to."
        ) from error


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Refuse to record into a folder that another process is recording into."""
    if sys.platform == "win32":
        yield
        return
    try:
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise WanderError(
            f"Cannot write into {folder}: {error.strerror}. Choose a folder you may write to."
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise WanderError(
                f"Another process is recording into {folder}. Wait for it or stop it."
            ) from error
        yield
