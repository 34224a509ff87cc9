"""Where a command's JSON goes: a file, or standard output for `-`."""

import json
import sys
from pathlib import Path
from typing import Any

from wanderlearn.files import write_json

__all__ = ["put_json"]


def put_json(value: Any, to: str | None) -> None:
    """Write `value` to the file `to`, to standard output for "-", nowhere for None."""
    if to == "-":
        json.dump(value, sys.stdout, indent=2, allow_nan=False)
        print()
    elif to is not None:
        write_json(Path(to), value)
