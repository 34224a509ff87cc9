"""The adapters to MatterSim and Habitat-Sim, with modules that behave as the documentation of those says."""

import json
import math
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rooms.own_simulators import SCAN, scanned, to_yaw, ways_of
from wanderlearn.cli import main
from wanderlearn.errors import WanderError
from wanderlearn.rooms import Camera, Home, Renderer
from wanderlearn.rooms.reading import RoomsFile, recorded_files
from wanderlearn.rooms.simulators import HabitatViewer, MatterSimWalker, rotation
from wanderlearn.rooms.streams import h5_library

Vector = np.ndarray[Any, np.dtype[np.float64]]


def turned(q: list[float], v: list[float]) -> Vector:
    """A vector turned by a quaternion (x, y, z, w), by the formula with cross products."""
    axis, w = np.array(q[:3]), q[3]
    return np.asarray(np.array(v) + 2 * np.cross(axis, np.cross(axis, v) + w * np.array(v)))


@given(st.floats(0, 2 * math.pi), st.floats(-1, 1))
def test_the_rotation_looks_where_the_heading_says(heading: float, elevation: float) -> None:
    """Heading 0 is along MatterSim's y, which is Habitat's -z; to the right is positive; up is up."""
    q = rotation(heading, elevation)
    assert np.linalg.norm(q) == pytest.approx(1)
    ahead = turned(q, [0, 0, -1])  # Habitat's camera looks along -z
    x, y, up = ahead[0], -ahead[2], ahead[1]
    wanted = (
        math.sin(heading) * math.cos(elevation), math.cos(heading) * math.cos(elevation), math.sin(elevation)
    )  # fmt: skip
    assert (x, y, up) == pytest.approx(wanted, abs=1e-9)
    assert turned(q, [1, 0, 0])[1] == pytest.approx(0, abs=1e-9)  # the horizon is level


class MatterSimLike(ModuleType):
    """A module as MatterSim: batches of one, BGR, heading from the y axis; the first picture is black."""

    def __init__(self, home: Home, renderer: Renderer) -> None:
        super().__init__("MatterSim")
        self.opened: list[Any] = []
        module = self

        class Simulator:
            def __init__(self) -> None:
                self.told: dict[str, Any] = {}
                self.closed, self.ready = False, False
                self.number = len(module.opened)
                module.opened.append(self)

            def __getattr__(self, name: str) -> Any:
                assert name.startswith("set")
                assert not self.ready
                return lambda *values: self.told.update({name: values})

            def initialize(self) -> None:
                self.ready = True

            def newEpisode(self, scans: Any, points: Any, headings: Any, elevations: Any) -> None:  # noqa: N802
                assert self.ready
                assert scans == [SCAN]
                self.at = int(points[0].removeprefix("point")), headings[0], elevations[0]

            def getState(self) -> list[Any]:  # noqa: N802
                here, heading, elevation = self.at
                place = SimpleNamespace(**dict(zip("xyz", home.viewpoints[here].position, strict=True)))
                ways = [
                    SimpleNamespace(viewpointId=w.viewpoint, rel_heading=w.turn, rel_distance=w.distance)
                    for w in ways_of(home, here, heading)
                ]
                rgb = np.zeros((600, 800, 3), np.uint8)
                if self.told["setRenderingEnabled"] == (True,) and self.number > 1:
                    position = home.viewpoints[here].position
                    rgb = renderer.draw(Camera(here, position, to_yaw(heading), elevation)).rgb
                return [
                    SimpleNamespace(rgb=rgb[..., ::-1], location=place, navigableLocations=[place, *ways])
                ]

            def close(self) -> None:
                self.closed = True

        self.Simulator = Simulator


class HabitatLike(ModuleType):
    """A module as Habitat-Sim: y up, RGBA, quaternions with w last."""

    def __init__(self, home: Home, renderer: Renderer, *, things: bool = True) -> None:
        super().__init__("habitat_sim")
        self.agent = SimpleNamespace(AgentConfiguration=SimpleNamespace)
        self.SimulatorConfiguration = self.CameraSensorSpec = self.AgentState = SimpleNamespace
        self.Configuration = lambda settings, agents: (settings, agents)
        self.SensorType = SimpleNamespace(COLOR="colour", SEMANTIC="semantic")
        self.opened: list[Any] = []
        module = self

        class Simulator:
            def __init__(self, configuration: Any) -> None:
                settings, (agent,) = configuration
                assert settings.scene_id.endswith(f"{SCAN}/{SCAN}.glb")
                for sensor in agent.sensor_specifications:
                    assert (sensor.resolution, sensor.hfov) == ([600, 800], 90.0)
                self.sensors = {s.sensor_type: s.uuid for s in agent.sensor_specifications}
                listed = [habitat_object(thing) for thing in scanned(home)] if things else []
                self.semantic_scene = SimpleNamespace(objects=[None, *listed])
                self.closed = False
                self.state: Any = None
                module.opened.append(self)

            def get_agent(self, number: int) -> Any:
                assert number == 0
                return SimpleNamespace(set_state=lambda state: setattr(self, "state", state))

            def get_sensor_observations(self) -> dict[str, Any]:
                x, y, z = self.state.position
                ahead = turned(self.state.rotation, [0, 0, -1])
                yaw, pitch = math.atan2(-ahead[2], ahead[0]), math.asin(ahead[1])
                frame = renderer.draw(Camera(0, (x, -z, y), yaw % (2 * math.pi), pitch))
                alpha = np.full((600, 800, 1), 255, np.uint8)
                pictures = {
                    "colour": np.concatenate([frame.rgb, alpha], 2),
                    "semantic": frame.ids.astype("u4"),
                }
                return {self.sensors[kind]: picture for kind, picture in pictures.items()}

            def close(self) -> None:
                self.closed = True

        self.Simulator = Simulator


def habitat_object(thing: Any) -> Any:
    """As Habitat tells a thing: y up, names by calling."""
    (x, y, z), (wide, deep, high) = thing.centre, thing.size
    region = SimpleNamespace(id=thing.region, category=SimpleNamespace(name=lambda: thing.region_name))
    return SimpleNamespace(
        id=thing.name,
        category=SimpleNamespace(name=lambda: thing.category),
        region=region,
        aabb=SimpleNamespace(center=np.array([x, z, -y]), sizes=np.array([wide, high, deep])),
    )


@pytest.fixture(scope="module")
def large(home: Home) -> Renderer:
    return Renderer(home, 800, 600, samples=1, light=False)


@pytest.fixture
def data(home: Home, tmp_path: Path) -> Path:
    """A folder that looks like Matterport3D with one scan."""
    root = tmp_path / "v1"
    (root / "scans" / SCAN / "matterport_skybox_images").mkdir(parents=True)
    mesh = root / "tasks" / "mp3d" / SCAN
    mesh.mkdir(parents=True)
    for name in (f"{SCAN}.glb", f"{SCAN}.house", f"{SCAN}_semantic.ply"):
        (mesh / name).touch()
    (root / "connectivity").mkdir()
    nodes = [{"image_id": f"point{n}", "included": True} for n in range(len(home.viewpoints))]
    nodes.insert(2, {"image_id": "left out", "included": False})
    (root / "connectivity" / f"{SCAN}_connectivity.json").write_text(json.dumps(nodes))
    return root


@pytest.fixture
def modules(
    home: Home, large: Renderer, monkeypatch: pytest.MonkeyPatch
) -> tuple[MatterSimLike, HabitatLike]:
    matter, habitat = MatterSimLike(home, large), HabitatLike(home, large)
    monkeypatch.setitem(sys.modules, "MatterSim", matter)
    monkeypatch.setitem(sys.modules, "habitat_sim", habitat)
    return matter, habitat


def test_both_adapters_see_the_same_from_one_place(
    home: Home, large: Renderer, data: Path, modules: tuple[MatterSimLike, HabitatLike]
) -> None:
    matter, habitat = modules
    walker = MatterSimWalker(SCAN, data / "scans", data / "connectivity")
    assert walker.viewpoints() == [f"point{n}" for n in range(len(home.viewpoints))]
    stand = walker.stand("point1", 1.0)
    assert stand.position == pytest.approx(home.viewpoints[1].position)
    assert list(stand.ways) == ways_of(home, 1, 1.0)
    photograph = walker.picture("point1", 1.0, 0.05)
    walker.close()
    graph, black, camera = matter.opened
    assert graph.told["setRenderingEnabled"] == (False,)
    assert camera.told["setCameraVFOV"] == (pytest.approx(math.radians(75)),)
    assert camera.told["setDatasetPath"] == (str(data / "scans"),)
    assert all(simulator.closed for simulator in (graph, black, camera))
    viewer = HabitatViewer(SCAN, data / "tasks" / "mp3d")
    for thing, wanted in zip(viewer.things(), scanned(home), strict=True):
        assert thing.centre == pytest.approx(wanted.centre)
        assert thing.size == pytest.approx(wanted.size)
        assert thing._replace(centre=(0, 0, 0), size=(0, 0, 0)) == wanted._replace(
            centre=(0, 0, 0), size=(0, 0, 0)
        )
    rgb, ids = viewer.look(stand.position, 1.0, 0.05)
    viewer.close()
    truth = large.draw(Camera(1, home.viewpoints[1].position, to_yaw(1.0), 0.05))
    assert (photograph == truth.rgb).all()
    assert (ids == truth.ids).mean() > 0.999  # angles come back from the quaternion with rounding
    assert np.abs(rgb.astype(int) - truth.rgb).mean() < 8  # another grain
    assert habitat.opened[0].closed


def test_a_mesh_without_instances_is_refused_in_words(
    home: Home, large: Renderer, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    habitat = HabitatLike(home, large, things=False)
    monkeypatch.setitem(sys.modules, "habitat_sim", habitat)
    with pytest.raises(WanderError, match=rf"found no things .*{SCAN}\.house"):
        HabitatViewer(SCAN, data / "tasks" / "mp3d")
    assert habitat.opened[0].closed


def test_the_command_records_and_counts(
    home: Home,
    data: Path,
    tmp_path: Path,
    modules: tuple[MatterSimLike, HabitatLike],
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    words = ["rooms", "matterport", str(data), "--scan", SCAN, "--out", str(out), "--json", "-"]
    main([*words, "--frames", "8", "--any-room", "--edge", "0"])
    heard = capsys.readouterr()
    told = json.loads(heard.out)
    assert "Could not be aligned" in heard.err
    assert told["steps"] == 8
    frames = [frame for path in recorded_files(out) for frame in RoomsFile(path)]
    assert told["frames"] == len(frames) >= 4
    assert told["frames"] + told["empty"] + told["left_out"] + sum(told["unaligned"].values()) == 8
    assert frames[0].rgb.shape == (120, 160, 3)
    categories = {thing.id: thing.category for thing in scanned(home)}
    assert all(seen.category == categories[seen.id] for frame in frames for seen in frame.objects)
    assert all(simulator.closed for module in modules for simulator in module.opened)


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(["rooms", "matterport", *words])
    assert exit_.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("MatterSim", "peteanderson80/Matterport3DSimulator"),
        ("habitat_sim", "conda install habitat-sim"),
        ("cv2", "wanderlearn[matterport]"),
        ("h5py", "wanderlearn[rooms]"),
    ],
)
def test_what_is_not_installed_is_named(
    module: str,
    sentence: str,
    data: Path,
    tmp_path: Path,
    modules: tuple[MatterSimLike, HabitatLike],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    h5_library()
    monkeypatch.setitem(sys.modules, module, None)
    said = refused([str(data), "--scan", SCAN, "--out", str(tmp_path / "none")], capsys)
    assert sentence in said
    assert not (tmp_path / "none").exists()


def test_what_is_missing_of_the_data_is_named(
    data: Path, tmp_path: Path, modules: tuple[MatterSimLike, HabitatLike], capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "none")]
    assert "signing its terms of use" in refused([str(tmp_path / "nowhere"), *out], capsys)
    said = refused([str(data), "--split", "val", "--scan", SCAN, *out], capsys)
    assert f"{SCAN}: not in the split val" in said
    said = refused([str(data), *out], capsys)
    assert "matterport_skybox_images is missing" in said  # of the scan that comes after ours
    assert "name them with --scan" in said
    (data / "tasks" / "mp3d" / SCAN / f"{SCAN}_semantic.ply").unlink()
    said = refused([str(data), "--scan", SCAN, *out], capsys)
    assert "_semantic.ply is missing (Habitat's instances" in said
    assert not (tmp_path / "none").exists()


def test_a_broken_graph_is_a_sentence(data: Path, modules: tuple[MatterSimLike, HabitatLike]) -> None:
    (data / "connectivity" / f"{SCAN}_connectivity.json").write_text('[{"image_id": "a"}]')
    with pytest.raises(WanderError, match=r"is not a graph of viewpoints: 'included'"):
        MatterSimWalker(SCAN, data / "scans", data / "connectivity").viewpoints()
