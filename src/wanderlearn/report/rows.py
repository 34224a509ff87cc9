"""Which result file is which row of a table, and why a file of that name may be none.

A row of RoamingImageNet is of whatever natural pictures it was trained on, by the authors' preset or by the
small one: `cpm-imagenet.json` if it is there, else `cpm-imagenet-small.json`. So is a row of RoamingRooms, of
whatever walks.
"""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from wanderlearn.paper import METHOD_NAMES, SETTINGS, Setting

__all__ = [
    "ELSEWHERE",
    "WORLDS",
    "command",
    "further_seeds",
    "objection",
    "row_name",
    "row_of",
    "table_worlds",
    "wrong_world",
]

WORLDS: Final = ("omniglot", "glyphs")
"""The worlds that have names and a table; the paper has only the first."""
ELSEWHERE: Final = {"imagenet": "tiered-ImageNet", "rooms": "Matterport3D"}
"""Tables of pictures or walks wherever they lie: what the paper's figures beside them were measured on."""
SIZES: Final = ("", "-small")
KINDS: Final = {"imagenet": ("imagenet-", "folder-"), "rooms": ("rooms-",)}  # how names of collections begin


def table_worlds() -> tuple[str, ...]:
    """All that there is a table of."""
    return (*WORLDS, *ELSEWHERE)


def row_name(results: Mapping[str, Any], learner: str, world: str, setting: Setting) -> str:
    """The name of a method's row: of the presets it may come from, the first whose result is there."""
    end = SETTINGS[setting]
    names = [f"{learner}-{world}{size}{end}" for size in (SIZES if world in ELSEWHERE else SIZES[:1])]
    return next((name for name in names if f"{name}.json" in results), names[-1])


def command(preset: str, folder: Path) -> str:
    """What trains a preset and leaves its result where the table looks for it."""
    result = shlex.quote((folder / f"{preset}.json").as_posix())
    kind = next((world for world in ELSEWHERE if f"-{world}" in preset), None)
    where = f" --world {kind}:PATH --name {preset}" if kind else ""
    return f"wander train {preset}{where} && wander evaluate runs/{preset} --json {result}"


def row_of(
    results: Mapping[str, dict[str, Any]],
    folder: Path,
    learner: str,
    world: str,
    setting: Setting,
    warnings: list[str],
) -> dict[str, Any] | None:
    """The result that is a method's row, or None; why a file of its name is none is added to the warnings."""
    name = row_name(results, learner, world, setting)
    if (result := results.get(f"{name}.json")) is None:
        return None
    if wrong := objection(result, name, learner, world, setting):
        warnings.append(f"{folder / name}.json is passed over: {wrong}.")
        return None
    return result


def further_seeds(
    results: Mapping[str, dict[str, Any]],
    folder: Path,
    learner: str,
    world: str,
    setting: Setting,
    warnings: list[str],
) -> dict[str, dict[str, Any]]:
    """The results of a row's further seeds, by file; what only looks like one is added to the warnings."""
    name = row_name(results, learner, world, setting)
    manifest, seed_file = results[f"{name}.json"].get("manifest_sha256"), rf"{name}-seed([1-9]\d*)\.json"
    named = {int(found[1]): file for file in results if (found := re.fullmatch(seed_file, file))}
    kept = {}
    for seed, file in sorted(named.items()):
        result = results[file]
        trained = (result.get("train") or {}).get("seed", seed)
        wrong = objection(result, name, learner, world, setting)
        if wrong is None and result.get("manifest_sha256") != manifest:
            wrong = f"it was not tested on the sequences of {name}.json"
        if wrong is None and trained != seed:
            wrong = f"it was trained from seed {trained}, not {seed}"
        if wrong is None and (result.get("metrics") or {}).get("ap") is None:
            wrong = "it has no AP"
        if wrong is None:
            kept[file] = result
        else:
            warnings.append(f"{folder / file} is passed over: {wrong}.")
    return kept


def wrong_world(result: Mapping[str, Any], world: str, split: str, *, semi: bool) -> str | None:
    """How the sequences of a result are not those wanted, or None."""
    found = result.get("world")
    if world in ELSEWHERE and isinstance(found, str) and found.startswith(KINDS[world]):
        found = world
    wanted = {"world": world, "split": split, "semi": semi, "shuffle": False}
    for key, value in wanted.items():
        if (found if key == "world" else result.get(key)) != value:
            return f"its {key} is {result.get(key)!r}, not {value!r}"
    return None


def objection(result: Mapping[str, Any], name: str, learner: str, world: str, setting: Setting) -> str | None:
    """Why a result is not what its name says, or None if it is."""
    if wrong := wrong_world(result, world, "test", semi=setting == "semi"):
        return wrong
    if "transductive" in result:
        return "it is transductive: its features were made in the light of what was met later"
    preset, kind = result.get("preset"), result.get("learner")
    if preset is not None and preset != name:
        return f"it was trained by the preset {preset}, not {name}"
    if kind in METHOD_NAMES and kind != learner:
        return f"its learner is {kind}, not {learner}"
    return None
