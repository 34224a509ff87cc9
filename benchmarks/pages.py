"""Write all pages anew that count results of every world: README's table, docs/methods/, REPRODUCIBILITY.md.

    python benchmarks/pages.py

Measures nothing. The scripts that make rows of tables call it when they are done.
"""

import subprocess
import sys
from pathlib import Path

from wanderlearn.report.overview import overview
from wanderlearn.results import fill

ROOT = Path(__file__).parents[1]


def main() -> None:
    fill(ROOT / "README.md", "worlds-results", overview(ROOT / "results"))
    for script in ("method_pages.py", "reproducibility.py"):
        subprocess.run([sys.executable, str(ROOT / "benchmarks" / script)], check=True)


if __name__ == "__main__":
    main()
