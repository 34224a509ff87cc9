"""The two simulators of Matterport3D: what the recorder needs of them, and thin adapters to the real ones.

MatterSim shows photographs from fixed viewpoints, Habitat-Sim a mesh with the instance of every pixel from
anywhere. Here both have one way to say where one is: x, y and up in metres, the heading in radians from the y
axis to the right, the elevation in radians upward. That is MatterSim's own.

The adapters were written from the simulators' documentation. They have not been run with the real ones.
"""

import importlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from wanderlearn.errors import WanderError
from wanderlearn.files import read_json

__all__ = [
    "SIZE",
    "HabitatViewer",
    "MatterSimWalker",
    "Matterport",
    "Scanned",
    "Simulators",
    "Stand",
    "Viewer",
    "Walker",
    "Way",
    "rotation",
]

SIZE: Final = (800, 600)  # width and height
WALKER_FIELD: Final = 100.0  # degrees; of which MatterSim is told 3/4 as the vertical field of view
VIEWER_FIELD: Final = 90.0  # degrees, horizontally

TERMS: Final = (
    "The scans come from https://niessner.github.io/Matterport/ after its terms of use have been signed."
)
FILES: Final = (
    "Its download script fetches photographs with --type matterport_skybox_images and meshes with "
    "--task habitat; the graphs of viewpoints are in the folder connectivity of "
    "https://github.com/peteanderson80/Matterport3DSimulator."
)

Point = tuple[float, float, float]
Colours = npt.NDArray[np.uint8]
Ids = npt.NDArray[np.int32]


class Way(NamedTuple):
    """A viewpoint one can go to."""

    viewpoint: str
    turn: float  # radians from straight ahead, to the right positive
    distance: float  # metres


class Stand(NamedTuple):
    """Where a viewpoint is, and where one can go from it: the ways that are in view."""

    position: Point
    ways: tuple[Way, ...]


class Scanned(NamedTuple):
    """A thing in a scan. Its id is what pictures of ids have where it is seen."""

    id: int
    name: str  # storey, region and id
    category: str
    region: str  # "" where it is not known
    region_name: str
    centre: Point
    size: Point


class Walker(Protocol):
    """A simulator of viewpoints: photographs, and which viewpoint leads to which."""

    def viewpoints(self) -> list[str]:
        """Where one may stand, always in the same order."""
        ...

    def stand(self, viewpoint: str, heading: float) -> Stand:
        """Where that is and where one can go, looking this way."""
        ...

    def picture(self, viewpoint: str, heading: float, elevation: float) -> Colours:
        """What is seen, [H, W, 3] RGB."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Viewer(Protocol):
    """A simulator of positions: pictures of a mesh and of the instances in it."""

    def things(self) -> list[Scanned]:
        """Everything that has an id."""
        ...

    def look(self, position: Point, heading: float, elevation: float) -> tuple[Colours, Ids]:
        """What is seen, [H, W, 3] RGB, and the id of the thing at every pixel [H, W]."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Simulators(Protocol):
    """Both simulators, for any scan. Only one of them is open at a time: both want the graphics card."""

    def walker(self, scan: str) -> Walker:
        """The simulator of viewpoints in a scan."""
        ...

    def viewer(self, scan: str) -> Viewer:
        """The simulator of positions in a scan."""
        ...


class Matterport:
    """MatterSim and Habitat-Sim over Matterport3D's files."""

    def __init__(self, scans: Path, meshes: Path, connectivity: Path) -> None:
        self.scans, self.meshes, self.connectivity = scans, meshes, connectivity

    def check(self, scan: str) -> None:
        """Say what is missing for a scan, if anything is."""
        needed = {
            self.scans / scan / "matterport_skybox_images": "MatterSim's photographs",
            self.connectivity / f"{scan}_connectivity.json": "MatterSim's graph of viewpoints",
            self.meshes / scan / f"{scan}.glb": "Habitat's mesh",
            self.meshes / scan / f"{scan}.house": "Habitat's list of things",
            self.meshes / scan / f"{scan}_semantic.ply": "Habitat's instances",
        }
        for path, what in needed.items():
            if not path.exists():
                raise WanderError(
                    f"{path} is missing ({what} of the scan {scan}). {TERMS} {FILES} If you have some "
                    "of the scans, name them with --scan."
                )

    def check_simulators(self) -> None:
        """Say how to get what is not installed, if anything is not."""
        _mattersim()
        _habitat()

    def walker(self, scan: str) -> Walker:
        """MatterSim in a scan."""
        return MatterSimWalker(scan, self.scans, self.connectivity)

    def viewer(self, scan: str) -> Viewer:
        """Habitat-Sim in a scan."""
        return HabitatViewer(scan, self.meshes)


class MatterSimWalker:
    """MatterSim, the Matterport3D Simulator, in one scan."""

    def __init__(self, scan: str, scans: Path, connectivity: Path) -> None:
        self.scan, self.scans, self.connectivity = scan, scans, connectivity
        self._module = _mattersim()
        self._graph = self._open(drawing=False)
        self._camera: Any = None

    def _open(self, *, drawing: bool) -> Any:
        width, height = SIZE
        simulator = self._module.Simulator()
        simulator.setDatasetPath(str(self.scans))
        simulator.setNavGraphPath(str(self.connectivity))
        simulator.setCameraResolution(width, height)
        # As the authors do: 75 degrees upright, and so 91.3 across, which nearly is Habitat's field of view.
        simulator.setCameraVFOV(math.radians(WALKER_FIELD * height / width))
        simulator.setRenderingEnabled(drawing)
        simulator.setBatchSize(1)
        simulator.initialize()
        return simulator

    def viewpoints(self) -> list[str]:
        """The viewpoints that MatterSim includes, in the order of the graph's file."""
        path = self.connectivity / f"{self.scan}_connectivity.json"
        nodes = read_json(path)
        try:
            return [str(node["image_id"]) for node in nodes if node["included"]]
        except (KeyError, TypeError) as error:
            raise WanderError(f"{path} is not a graph of viewpoints: {error}. Fetch it again.") from error

    def stand(self, viewpoint: str, heading: float) -> Stand:
        """Where that is and where one can go, looking this way."""
        state = self._state(self._graph, viewpoint, heading, 0.0)
        ways = [
            Way(str(to.viewpointId), float(to.rel_heading), float(to.rel_distance))
            for to in state.navigableLocations[1:]  # the first is to stay
        ]
        here = state.location
        return Stand((float(here.x), float(here.y), float(here.z)), tuple(ways))

    def picture(self, viewpoint: str, heading: float, elevation: float) -> Colours:
        """What is seen. Now and then MatterSim gives a black picture: then it is opened anew, once."""
        for _ in range(2):
            if self._camera is None:
                self._camera = self._open(drawing=True)
            bgr = np.array(self._state(self._camera, viewpoint, heading, elevation).rgb)
            if bgr.any():
                break
            self._camera.close()
            self._camera = None
        return np.ascontiguousarray(bgr[..., 2::-1])

    def _state(self, simulator: Any, viewpoint: str, heading: float, elevation: float) -> Any:
        simulator.newEpisode([self.scan], [viewpoint], [heading], [elevation])
        return simulator.getState()[0]

    def close(self) -> None:
        """Let go of everything."""
        for simulator in (self._graph, self._camera):
            if simulator is not None:
                simulator.close()


class HabitatViewer:
    """Habitat-Sim in one scan. Its own y points up and its z back, ours are z up and y ahead."""

    def __init__(self, scan: str, meshes: Path) -> None:
        self._module = habitat = _habitat()
        settings = habitat.SimulatorConfiguration()
        settings.scene_id = str(meshes / scan / f"{scan}.glb")
        dataset = meshes / "mp3d.scene_dataset_config.json"
        if dataset.exists():
            settings.scene_dataset_config_file = str(dataset)
        settings.enable_physics = False
        agent = habitat.agent.AgentConfiguration()
        agent.sensor_specifications = [
            self._sensor("rgb", habitat.SensorType.COLOR), self._sensor("ids", habitat.SensorType.SEMANTIC)
        ]  # fmt: skip
        self._simulator = habitat.Simulator(habitat.Configuration(settings, [agent]))
        if not self.things():
            self.close()
            raise WanderError(
                f"Habitat-Sim found no things in {settings.scene_id}. Are {scan}.house and "
                f"{scan}_semantic.ply beside it, from the same download?"
            )

    def _sensor(self, name: str, kind: Any) -> Any:
        width, height = SIZE
        sensor = self._module.CameraSensorSpec()
        sensor.uuid, sensor.sensor_type = name, kind
        sensor.resolution, sensor.position, sensor.hfov = [height, width], [0.0, 0.0, 0.0], VIEWER_FIELD
        return sensor

    def things(self) -> list[Scanned]:
        """Everything that has an id."""
        return list(_scanned(self._simulator.semantic_scene.objects))

    def look(self, position: Point, heading: float, elevation: float) -> tuple[Colours, Ids]:
        """What is seen, and the id of the thing at every pixel."""
        x, y, up = position
        state = self._module.AgentState()
        state.position, state.rotation = np.array([x, up, -y]), rotation(heading, elevation)
        self._simulator.get_agent(0).set_state(state)
        seen = self._simulator.get_sensor_observations()
        return np.ascontiguousarray(seen["rgb"][..., :3]), np.asarray(seen["ids"]).astype(np.int32)

    def close(self) -> None:
        """Let go of everything."""
        self._simulator.close()


def rotation(heading: float, elevation: float) -> list[float]:
    """Habitat's quaternion (x, y, z, w): from looking along -z, up by the elevation, right by the heading."""
    a, b = -heading / 2, elevation / 2
    return [
        math.cos(a) * math.sin(b), math.sin(a) * math.cos(b),
        -math.sin(a) * math.sin(b), math.cos(a) * math.cos(b),
    ]  # fmt: skip


def _scanned(objects: Any) -> Iterator[Scanned]:
    for thing in objects:
        if thing is None or thing.category is None:
            continue
        region, box = thing.region, thing.aabb
        kind = None if region is None else region.category
        # Habitat-Sim from 0.3 on has methods where it had arrays.
        centre = box.center() if callable(box.center) else box.center
        size = box.sizes if hasattr(box, "sizes") else box.size()
        yield Scanned(
            int(thing.id.split("_")[-1]),
            thing.id,
            thing.category.name(),
            "" if region is None else region.id,
            "" if kind is None else kind.name(),
            (float(centre[0]), -float(centre[2]), float(centre[1])),
            (float(size[0]), float(size[2]), float(size[1])),
        )


def _mattersim() -> Any:
    return _simulator(
        "MatterSim",
        "Build it as https://github.com/peteanderson80/Matterport3DSimulator says and put its folder build "
        "on PYTHONPATH",
    )


def _habitat() -> Any:
    return _simulator(
        "habitat_sim",
        "conda install habitat-sim headless -c conda-forge -c aihabitat, or build it as "
        "https://github.com/facebookresearch/habitat-sim says",
    )


def _simulator(name: str, how: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:  # not there, or built for another Python
        raise WanderError(
            f"Walks through Matterport3D need the simulator {name}, which cannot be imported ({error}). "
            f"{how}. {TERMS} Homes that need neither: wander rooms record."
        ) from error
