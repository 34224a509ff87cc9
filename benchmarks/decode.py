"""How fast a folder of pictures is decoded into the cache, against Pillow's own decoding in the same run.

    python benchmarks/decode.py PATH          # such as an ImageNet-like tree of JPEG files

PATH is a folder that `folder:PATH` takes. Every round does both, one after the other, so that whatever else
the machine does is in both: Pillow alone (open, decode, convert to RGB; as many processes as we use; pixels
thrown away), and the whole of ours (scan, decode, resize, write, manifest) into an empty cache. Writes
results/decode.json, in seconds of the clock and of the processor: the latter also mean something on a machine
that has other things to do. Peak memory is the most that our processes held at once, children included.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import PIL

from wanderlearn.files import write_json
from wanderlearn.pictures.decode import SUFFIXES
from wanderlearn.pictures.decoding import cores
from wanderlearn.results import commit

ROOT = Path(__file__).parent.parent
BAR_SPEED, BAR_RATIO, BAR_MEMORY = 2000.0, 1.3, 1e9  # at least, or at most as slow as; bytes

PILLOW = """
import sys
from PIL import Image
for line in sys.stdin:
    with Image.open(line.rstrip("\\n")) as picture:
        picture.convert("RGB").load()
"""
OURS = """
import sys
from wanderlearn.pictures.address import read_address
from wanderlearn.pictures.folder import folder
folder(read_address(sys.argv[1]), "train")
"""


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("path", type=Path, help="a folder of pictures")
    asked.add_argument("--size", type=int, default=64, help="side that ours brings pictures to")
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--out", type=Path, default=ROOT / "results" / "decode.json")
    options = asked.parse_args()
    files = sorted(str(p) for p in options.path.rglob("*") if p.suffix.lower() in SUFFIXES)
    workers = cores()
    rounds = []
    for n in range(options.rounds):
        before = _processor()
        pillow, between = _pillow(files, workers), _processor()
        ours, peak = _ours(options.path, options.size)
        rounds.append(
            {
                "pillow_seconds": pillow,
                "seconds": ours,
                "pillow_processor_seconds": between - before,
                "processor_seconds": _processor() - between,
                "peak_bytes": peak,
            }
        )
        print(
            f"round {n + 1}: Pillow {len(files) / pillow:.0f}/s, ours {len(files) / ours:.0f}/s", flush=True
        )
    result = _summary(rounds, len(files), workers, options.size)
    write_json(options.out, result)
    print(json.dumps({name: value for name, value in result.items() if name != "rounds"}, indent=2))


def _summary(rounds: list[dict[str, float]], files: int, workers: int, size: int) -> dict[str, Any]:
    ratio = statistics.median(each["seconds"] / each["pillow_seconds"] for each in rounds)
    speed = files / statistics.median(each["seconds"] for each in rounds)
    busy = statistics.median(each["processor_seconds"] for each in rounds)
    pillow_busy = statistics.median(each["pillow_processor_seconds"] for each in rounds)
    peak = max(each["peak_bytes"] for each in rounds)
    return {
        "kind": "decode",
        "pictures": files,
        "size": size,
        "processes": workers,
        "pictures_per_second": speed,
        "pillow_pictures_per_second": files / statistics.median(each["pillow_seconds"] for each in rounds),
        "time_over_pillow": ratio,
        "pictures_per_processor_second": files / busy,
        "processor_time_over_pillow": busy / pillow_busy,
        "peak_bytes": peak,
        "bars": {
            "pictures_per_second_at_least": BAR_SPEED,
            "or_time_over_pillow_at_most": BAR_RATIO,
            "peak_bytes_below": BAR_MEMORY,
        },
        "met": (speed >= BAR_SPEED or ratio <= BAR_RATIO) and peak < BAR_MEMORY,
        "pillow": PIL.__version__,
        "commit": commit(),
        "rounds": rounds,
    }


def _pillow(files: list[str], workers: int) -> float:
    """Seconds that so many processes take to decode all files and keep nothing."""
    start = time.perf_counter()
    processes = [
        subprocess.Popen([sys.executable, "-c", PILLOW], stdin=subprocess.PIPE, text=True)
        for _ in range(workers)
    ]
    threads = [
        threading.Thread(target=process.communicate, args=("".join(f"{f}\n" for f in files[n::workers]),))
        for n, process in enumerate(processes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if any(process.returncode for process in processes):
        raise SystemExit("Pillow could not read all files: measure on a folder without broken ones.")
    return time.perf_counter() - start


def _ours(path: Path, size: int) -> tuple[float, int]:
    """Seconds until the cache is there, and the most memory on the way."""
    cache = tempfile.mkdtemp(prefix="wanderlearn-decode-")
    try:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", OURS, f"folder:{path}?size={size},channels=3"],
            env=os.environ | {"WANDERLEARN_CACHE": cache},
            stderr=subprocess.DEVNULL,
        )
        peak = 0
        while process.poll() is None:
            peak = max(peak, _held(process.pid))
            time.sleep(0.05)
        seconds = time.perf_counter() - start
        if process.returncode:
            raise SystemExit(f"Decoding {path} failed: try `wander sample folder:{path}`.")
        return seconds, peak
    finally:
        shutil.rmtree(cache)


def _processor() -> float:
    """Seconds of the processor that ended children have used so far, and their children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _held(pid: int) -> int:
    """Bytes of memory that a process and its children hold (Linux)."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(_held, children))


if __name__ == "__main__":
    main()
