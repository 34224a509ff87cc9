"""Real processes on this machine, started by hand (which saves torchrun's own start) or by torchrun."""

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONGEST = 300.0  # seconds; only a deadlock takes so long


def start_together(size: int, *words: str) -> list[tuple[int, str, str]]:
    """Run the worker in so many processes: the code, output and errors of each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.distributed.worker", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
            env=_environment() | shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(size)
    ]  # fmt: skip
    try:
        return [(*process.communicate(timeout=LONGEST), process.returncode)[::-1] for process in processes]
    finally:
        for process in processes:
            process.kill()


def torchrun(size: int, restarts: int, *words: str) -> subprocess.CompletedProcess[str]:
    """The same by torchrun, which starts all again when one ends."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
    command += ["--max-restarts", str(restarts), "-m", "tests.distributed.worker", *words]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=_environment(), timeout=LONGEST, check=False
    )


def _environment() -> dict[str, str]:
    mine = {name: value for name, value in os.environ.items() if not name.startswith("TORCHELASTIC")}
    return mine | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
