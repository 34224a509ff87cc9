"""Result files, and the tables made from them: a number in a document is generated, never typed."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from wanderlearn.errors import WanderError
from wanderlearn.files import read_json, write_json, writing

__all__ = [
    "FORMAT",
    "commit",
    "fill",
    "load_results",
    "markdown_table",
    "read_result",
    "seeded",
    "write_result",
]

FORMAT: Final = 1


def commit(folder: Path | None = None) -> str | None:
    """The git commit of the checkout that `folder` (this package) belongs to, or None where it is in none.

    "+dirty" is added when a file of the folder differs from that commit. A folder that merely lies inside
    somebody else's checkout, such as an installed package in a virtual environment, has no commit.
    """
    folder = Path(__file__).parent if folder is None else folder
    if not _git(folder, "ls-files", "--", "."):
        return None
    head = _git(folder, "rev-parse", "HEAD")
    if not head:
        return None
    return head + ("+dirty" if _git(folder, "status", "--porcelain", "--", ".") else "")


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says, or None where there is no git, no checkout or no commit."""
    try:
        # Without a lock: asking must not get in the way of a commit under way.
        # Without git's own variables: in a hook they would point to another checkout.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, env=clean)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def write_result(path: Path, result: dict[str, Any]) -> None:
    """Write one result as JSON, atomically. It must say its `kind`; the format is added."""
    if not isinstance(result.get("kind"), str):
        raise ValueError("a result must say its kind")
    write_json(path, {"format": FORMAT} | result)


def read_result(path: Path, kind: str | None = None) -> dict[str, Any]:
    """Read a result, and refuse what is none, is of a later format or of another kind."""
    value = read_json(path)
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise WanderError(f"{path} is not a result: it does not say its kind.")
    if value.get("format") != FORMAT:
        raise WanderError(f"{path} has result format {value.get('format')}; this version reads {FORMAT}.")
    if kind is not None and value["kind"] != kind:
        raise WanderError(f"{path} is a result of kind {value['kind']!r}, but {kind!r} is needed here.")
    return value


def load_results(folder: Path, kind: str | None = None) -> dict[str, dict[str, Any]]:
    """All results under a folder (of one kind, if given) by their path in it, in the order of the paths.

    JSON files that are no results (configurations, say) are passed over; a broken one is an error.
    """
    if not folder.is_dir():
        raise WanderError(f"There is no folder {folder} to read results from.")
    found = {}
    for path in sorted(folder.rglob("*.json")):
        value = read_json(path)
        if isinstance(value, dict) and "kind" in value and kind in (None, value["kind"]):
            found[path.relative_to(folder).as_posix()] = read_result(path)
    return found


def seeded(path: Path, seed: int) -> Path:
    """The run or the result of a row that was trained with this seed: others than 0 end in -seedN."""
    return path.with_name(f"{path.stem}-seed{seed}{path.suffix}") if seed else path


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A markdown table, numbers to the right.

    Floats are shown with three significant digits, None as a dash; a figure that needs another form comes
    as text.
    """
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f"every row needs {len(columns)} cells")
    text = [list(map(_cell, row)) for row in rows]
    right = [bool(rows) and all(_is_figure(row[n]) for row in rows) for n in range(len(columns))]
    width = [max([3, len(column), *(len(row[n]) for row in text)]) for n, column in enumerate(columns)]

    def line(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, width, right, strict=True))
        return f"| {' | '.join(padded)} |"

    rule = ["-" * (w - 1) + ":" if r else "-" * w for w, r in zip(width, right, strict=True)]
    return "\n".join([line(columns), line(rule), *map(line, text)])


def _is_figure(value: object) -> bool:
    if isinstance(value, str):
        return value[:1].isdigit() or (value[:1] in "+-." and value[1:2].isdigit())
    return value is None or isinstance(value, int | float)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")
    return str(value).replace("|", "\\|")


def fill(path: Path, marker: str, text: str) -> bool:
    """Put `text` between `<!-- marker:begin -->` and `<!-- marker:end -->` of a document.

    True when the document changed. The rest of it is left as it is, to the byte.
    """
    begin, end = f"<!-- {marker}:begin -->", f"<!-- {marker}:end -->"
    try:
        with path.open(encoding="utf-8", newline="") as file:
            before = file.read()
    except OSError as error:
        raise WanderError(f"Cannot read {path}: {error.strerror or error}.") from error
    if before.count(begin) != 1 or before.count(end) != 1 or before.index(begin) > before.index(end):
        raise WanderError(f"{path} needs exactly one {begin} and after it one {end} to be filled in.")
    head, rest = before.split(begin)
    after = f"{head}{begin}\n{text.strip()}\n{end}{rest.split(end)[1]}"
    if after == before:
        return False
    with writing(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        file.write(after)
    return True
