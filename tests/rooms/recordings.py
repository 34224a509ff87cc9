"""Small recordings for tests, and what is in them."""

import json
from pathlib import Path

from wanderlearn.rooms import Home, Renderer
from wanderlearn.rooms.recording import RecordConfig, begin, record_world

TINY = RecordConfig(frames=72, width=40, height=30, per_file=8, light=False)


def record_tiny(folder: Path, home: Home, config: RecordConfig = TINY) -> Path:
    """A recording of one home that is already built."""
    folder.mkdir(parents=True, exist_ok=True)
    begin(folder, config)

    def world(seed: int, config: RecordConfig) -> tuple[Home, Renderer]:
        assert seed == home.seed
        return home, Renderer(home, config.width, config.height, light=False)

    record_world(home.seed, folder, config, world=world)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the lock."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


def annotations_of(path: Path) -> Path:
    return path.with_name(path.name.replace("__imgs.h5", "__annotations.json"))


def change_annotations(path: Path, change: object) -> None:
    """Write the JSON of a file again after `change(frames)`."""
    frames = json.loads(annotations_of(path).read_text())
    assert callable(change)
    annotations_of(path).write_text(json.dumps(change(frames)))
