"""What the paper counts of its rooms, counted in a recording: how often, how soon again, from where.

Only the JSON files are read. The paper calls an object in a picture a frame. Its text takes one object of
each picture, its program all of them one after the other; so what comes next is counted in three ways.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from wanderlearn.rooms.reading import Seen, read_annotations, recorded_files, scene_of

__all__ = ["READINGS", "WAITS", "count_rooms", "rooms_statistics"]

HUNDRED: Final = 100  # meetings that viewpoints are counted in
WAITS: Final = (1, 2, 5, 10, 20, 50, 100)  # meetings until the same instance comes again, up to
READINGS: Final = {
    "same_next": "every object of a picture is a meeting, in random order",
    "same_next_one_object": "one object of each picture, at random",
    "same_next_picture": "an object of a picture is met in the next picture too",
}

Walk = tuple[str, list[tuple[Seen, ...]]]  # a scene, and what is met in each picture


def rooms_statistics(folder: Path | str, seed: int = 0) -> dict[str, Any]:
    """The statistics of all files in a folder."""
    paths = recorded_files(folder)
    return count_rooms(((scene_of(path), read_annotations(path)) for path in paths), seed)


def count_rooms(files: Iterable[Walk], seed: int = 0) -> dict[str, Any]:
    """The statistics of files; `seed` is that of the order of the objects of a picture."""
    r = np.random.default_rng(seed)
    scenes, counts = set[str](), Counter[str]()
    category: dict[tuple[str, int], str] = {}
    per_instance, per_viewpoint = Counter[tuple[str, int]](), Counter[tuple[str, str]]()
    per_picture, waits, windows = Counter[int](), Counter[int | None](), list[int]()
    for scene, pictures in files:
        scenes.add(scene)
        counts["files"] += 1
        counts["frames"] += len(pictures)
        per_picture.update(len(met) for met in pictures)
        order = [[met[i] for i in r.permutation(len(met))] for met in pictures]
        meetings = [seen for met in order for seen in met]
        for seen in meetings:
            category[scene, seen.id] = seen.category
            per_instance[scene, seen.id] += 1
            per_viewpoint[scene, seen.viewpoint] += 1
        ids = [seen.id for seen in meetings]
        waits.update(_waits(ids))
        for name, pairs in _next(ids, order, pictures).items():
            counts[name] += sum(same for same in pairs)
            counts[f"{name}_of"] += len(pairs)
        views = [seen.viewpoint for seen in meetings]
        starts = range(0, len(views) - HUNDRED + 1, HUNDRED)
        windows += [len(set(views[start : start + HUNDRED])) for start in starts]
    met_again = sum(n for wait, n in waits.items() if wait is not None)
    instances = Counter(category.values())
    of_category = Counter[str]()
    for instance, n in per_instance.items():
        of_category[category[instance]] += n
    meetings_in_all = sum(per_instance.values())
    return {
        "worlds": len(scenes),
        "files": counts["files"],
        "frames": counts["frames"],
        "meetings": meetings_in_all,
        "instances": len(category),
        "categories": len(instances),
        **{name: _percent(counts[name], counts[f"{name}_of"]) for name in READINGS},
        "met_again": _percent(met_again, meetings_in_all),
        "viewpoints_per_100": float(np.mean(windows)) if windows else None,
        "objects_per_frame": meetings_in_all / counts["frames"] if counts["frames"] else None,
        "meetings_per_instance": _tail(per_instance.values()),
        "meetings_per_viewpoint": _tail(per_viewpoint.values()),
        "instances_of_category": dict(instances.most_common()),
        "meetings_of_category": dict(of_category.most_common()),
        "frames_by_objects": {str(n): per_picture[n] for n in sorted(per_picture)},
        "waits": _binned(waits),
    }


def _next(ids: list[int], order: list[list[Seen]], pictures: list[tuple[Seen, ...]]) -> dict[str, list[bool]]:
    """For each reading, whether what comes next is the same, for everything that has a next."""
    one = [met[0].id for met in order if met]
    present = [{seen.id for seen in met} for met in pictures]
    return {
        "same_next": [a == b for a, b in pairwise(ids)],
        "same_next_one_object": [a == b for a, b in pairwise(one)],
        "same_next_picture": [id in b for a, b in pairwise(present) for id in sorted(a)],
    }


def _waits(ids: Sequence[int]) -> list[int | None]:
    """For each meeting how many later the same instance is met again, None if it is not."""
    next_at, waits = dict[int, int](), list[int | None]()
    for at in range(len(ids) - 1, -1, -1):
        later = next_at.get(ids[at])
        waits.append(None if later is None else later - at)
        next_at[ids[at]] = at
    return waits[::-1]


def _binned(waits: Counter[int | None]) -> dict[str, int]:
    binned, low = dict[str, int](), 1
    for high in WAITS:
        name = str(high) if low == high else f"{low}-{high}"
        binned[name] = sum(n for wait, n in waits.items() if wait is not None and low <= wait <= high)
        low = high + 1
    binned[f"over {WAITS[-1]}"] = sum(n for wait, n in waits.items() if wait is not None and wait >= low)
    binned["not again"] = waits[None]
    return binned


def _tail(counts: Iterable[int]) -> dict[str, Any]:
    """How a few have most: all counts falling, the median, and the share of the first tenth in percent."""
    falling = sorted(counts, reverse=True)
    first = falling[: max(1, len(falling) // 10)]
    return {
        "median": float(np.median(falling)) if falling else None,
        "most": falling[0] if falling else None,
        "share_of_first_tenth": _percent(sum(first), sum(falling)),
        "falling": falling,
    }


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None
