"""A folder of 100,000 pictures in `wander serve`: how soon the first page is there, and each next picture.

    python benchmarks/assistant.py

A real process on loopback, asked over HTTP as the page asks. `first_page_seconds` counts from the start of
the process until the page, the state and the first picture itself have been received, the folder never having
been listed before; `first_guess_seconds` until there is an answer about it too (torch has to be loaded for
that). `next_ms` is one decision and the next picture with its pixels, after the folder has been listed, and
`next_while_listing_ms` the same during it. Figures with `cpu` in their name count the time of computing of
the server alone, which does not depend on what else the machine does. `memory_mb` is the resident memory of
the process after listing and after deciding, for a small folder and for the large one. Writes
results/assistant.json; the table in docs/assistant.md is filled from it.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from PIL import Image

from wanderlearn.bench.measure import measured_on
from wanderlearn.pictures.glyphs import draw_alphabet
from wanderlearn.results import fill, markdown_table, write_result

ROOT = Path(__file__).parents[1]
CONFIG: dict[str, Any] = {
    "pictures": 100_000,
    "few": 1000,
    "folders": 100,
    "decisions": 300,
    "starts": 3,
    "weights": "cpm-omniglot",
}


class Assistant:
    """`wander serve` as a process, and a client as the page is one."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.begun = time.perf_counter()
        code = "from wanderlearn.cli import main; main()"
        command = [sys.executable, "-c", code, "serve", str(folder), "--state", str(state), "--port", "0",
                   "--weights", str(CONFIG["weights"])]  # fmt: skip
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self.process.stdout is not None
        found = re.match(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", self.process.stdout.readline().decode())
        assert found is not None, "it did not start"
        self.headers = {"authorization": f"Bearer {found[2]}", "content-type": "application/json"}
        self.connection = HTTPConnection("127.0.0.1", int(found[1]))

    def get(self, path: str) -> bytes:
        self.connection.request("GET", path, headers=self.headers)
        return self._read()

    def post(self, name: str, **fields: Any) -> Any:
        self.connection.request("POST", f"/api/{name}", json.dumps(fields), self.headers)
        return json.loads(self._read())

    def _read(self) -> bytes:
        answer = self.connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
        return body

    def json(self, path: str) -> Any:
        return json.loads(self.get(path))

    def since(self) -> float:
        return time.perf_counter() - self.begun

    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]

    def cpu(self) -> float:
        """Seconds of computing so far: what the rest of the machine is doing has no part in it."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


def make_folder(folder: Path, pictures: int, folders: int) -> Path:
    """So many drawings in so many folders: 2,000 different ones, the rest hard links to them."""
    drawings = draw_alphabet(1001, 100).reshape(-1, 28, 28)
    originals = folder.with_name(folder.name + "-originals")
    originals.mkdir()
    for n, drawing in enumerate(drawings):
        Image.fromarray(255 - drawing).save(originals / f"{n}.png")
    order = np.random.default_rng(0).integers(0, len(drawings), pictures)
    for n, which in enumerate(order):
        inside = folder / f"box-{n * folders // pictures:03}"
        inside.mkdir(parents=True, exist_ok=True)
        os.link(originals / f"{which}.png", inside / f"{n:06}-{which // 20}.png")
    return folder


def first_page(assistant: Assistant) -> dict[str, float]:
    """Seconds from the start of the process until there is something to see, and until there is a guess."""
    found = {"address_seconds": assistant.since()}
    for path in ("/", "/static/main.js", "/static/base.css", "/api/state"):
        assistant.get(path)
    while (look := assistant.json("/api/look"))["picture"] is None:
        time.sleep(0.005)
    assistant.get(f"/picture/{look['picture']['id']}")
    found["first_page_seconds"] = assistant.since()
    found["first_page_cpu_seconds"] = assistant.cpu()
    while assistant.json("/api/look")["answer"] is None:
        time.sleep(0.02)
    found["first_guess_seconds"] = assistant.since()
    return found


def decide(assistant: Assistant, times: int) -> list[float]:
    """Milliseconds of a decision together with the next picture, one after another."""
    look, took = assistant.json("/api/look"), []
    for _ in range(times):
        picture = look["picture"]
        label = re.search(r"-(\d+)\.png$", picture["name"])[1]  # type: ignore[index]
        begun = time.perf_counter()
        look = assistant.post("decide", picture=picture["id"], label=label, new=True, seen=picture["entry"])[
            "look"
        ]
        assistant.get(f"/picture/{look['picture']['id']}")
        took.append(1000 * (time.perf_counter() - begun))
    return took


def listed(assistant: Assistant) -> float:
    while assistant.json("/api/state")["listing"]:
        time.sleep(0.05)
    return assistant.since()


def spread(took: list[float]) -> dict[str, float]:
    return {
        "median": float(np.percentile(took, 50)),
        "p95": float(np.percentile(took, 95)),
        "most": max(took),
    }


def measure(folder: Path, states: Path, starts: int, decisions: int) -> dict[str, Any]:
    """All figures of one folder; the first page is the median of several first starts."""
    pages: list[dict[str, float]] = []
    while_listing: list[float] = []
    for n in range(starts):
        state = states / f"{folder.name}-{n}"
        assistant = Assistant(folder, state)
        try:
            pages.append(first_page(assistant))
            while assistant.json("/api/state")["listing"] and len(while_listing) < 100:
                while_listing += decide(assistant, 5)
            seconds = listed(assistant)
            after_listing = assistant.memory()
            if n < starts - 1:
                continue
            before = assistant.cpu()
            took = decide(assistant, decisions)
            next_cpu = 1000 * (assistant.cpu() - before) / decisions
            after_deciding = assistant.memory()
        finally:
            assistant.stop()
    again = Assistant(folder, state)
    try:
        reopened = first_page(again)
    finally:
        again.stop()
    return {
        **{name: median(page[name] for page in pages) for name in pages[0]},
        "listed_seconds": seconds,
        "reopened_first_page_seconds": reopened["first_page_seconds"],
        "next_ms": spread(took),
        "next_cpu_ms": next_cpu,
        "next_while_listing_ms": spread(while_listing) if while_listing else None,
        "memory_mb": {"after_listing": after_listing, "after_deciding": after_deciding},
    }


def table(result: dict[str, Any]) -> str:
    few, many, config = result["few"], result["many"], result["config"]
    names = {
        "first page with the first picture, s": ("first_page_seconds",),
        "first guess (torch is loaded by then), s": ("first_guess_seconds",),
        "first page when opened again, s": ("reopened_first_page_seconds",),
        "whole folder listed, s": ("listed_seconds",),
        "next picture, median, ms": ("next_ms", "median"),
        "next picture, 95th percentile, ms": ("next_ms", "p95"),
        "memory after listing, MB": ("memory_mb", "after_listing"),
        "memory after deciding, MB": ("memory_mb", "after_deciding"),
    }
    rows = []
    for words, (first, *rest) in names.items():
        values = [one[first][rest[0]] if rest else one[first] for one in (few, many)]
        rows.append([words, *(f"{value:.0f}" if value >= 10 else f"{value:.2f}" for value in values)])
    return markdown_table(["", f"{config['few']:,} pictures", f"{config['pictures']:,} pictures"], rows)


def main() -> None:
    begun = time.time()
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        few = make_folder(here / "few", CONFIG["few"], CONFIG["folders"])
        many = make_folder(here / "many", CONFIG["pictures"], CONFIG["folders"])
        starts, decisions = CONFIG["starts"], CONFIG["decisions"]
        result: dict[str, Any] = {
            "kind": "assistant",
            "config": CONFIG,
            "few": measure(few, here / "states", starts, decisions),
            "many": measure(many, here / "states", starts, decisions),
            "load": os.getloadavg()[0],
            "seconds": time.time() - begun,
            "measured_on": measured_on(),
        }
        shutil.rmtree(here / "states")
    write_result(ROOT / "results" / "assistant.json", result)
    fill(ROOT / "docs" / "assistant.md", "assistant", table(result))
    print(table(result))


if __name__ == "__main__":
    main()
