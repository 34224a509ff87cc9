"""Rows that are compared on the same test sequences: what context is worth, and what our learner is."""

import math
from pathlib import Path
from typing import Any, Final

from wanderlearn.answers import LONG_AGO
from wanderlearn.results import load_results, markdown_table, read_result, seeded

__all__ = ["in_words", "pairs_markdown", "pairs_of", "result_of"]

LEARNERS: Final = (("cpm", "protonet"), ("wayfarer", "protonet"), ("wayfarer", "cpm"))
CLOSE: Final = 1e-6


def pairs_of(rows: str) -> list[tuple[str, str]]:
    """The pairs among rows of one kind: omniglot, omniglot-resnet (a stronger encoder), rooms-small, ..."""
    ends = (f"{rows}{few}" for few in ("", "-semi"))
    return [(f"{one}-{end}", f"{other}-{end}") for end in ends for one, other in LEARNERS]


def result_of(one: str, other: str) -> str:
    """The name of the file that keeps a comparison."""
    return f"{one}-over-{other}.json"


def in_words(found: dict[str, Any], digits: int = 2) -> str:
    """The difference of a comparison, with its interval; nothing, if it could not be measured."""
    if found["low"] is None:
        return ""
    difference, low, high = (f"{found[name]:+.{digits}f}" for name in ("difference", "low", "high"))
    return f"{difference} ({low} to {high})"


def pairs_markdown(results: Path, *kinds: str) -> str:
    """A table of the comparisons that there are, of the rows as they are now; of all seeds, by the means."""
    found = load_results(results, "evaluation")
    ap = {path.removesuffix(".json"): one["metrics"]["ap"] for path, one in found.items()}

    def mean(name: str, seeds: list[int]) -> float:
        each = [ap.get(seeded(Path(name), seed).name) for seed in seeds]
        there = [value for value in each if value is not None]
        return math.fsum(there) / len(there) if len(there) == len(seeds) else math.nan

    rows: list[list[object]] = []
    for one, other in (pair for kind in kinds for pair in pairs_of(kind)):
        path = results / result_of(one, other)
        if not path.exists():
            continue
        compared = read_result(path, "comparison")
        seeds = compared.get("seeds", [0])
        sides = ((compared["first"], mean(one, seeds)), (compared["second"], mean(other, seeds)))
        if all(abs(then - now) < CLOSE for then, now in sides):
            beside = {each["metric"]: in_words(each, 1) for each in compared.get("long_ago", [])}
            differences = (in_words(compared), *(beside.get(m) or None for m in LONG_AGO))
            rows.append([f"`{one}`", f"`{other}`", len(seeds), *differences])
    if not rows:
        return "None has been compared yet."
    return markdown_table(["row", "over", "seeds", "difference of AP, 95 % interval", *LONG_AGO], rows)
