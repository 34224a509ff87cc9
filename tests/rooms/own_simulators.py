"""Two simulators of our own behind the Protocols of Matterport3D's: one home, two cameras."""

import os
import signal

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

from wanderlearn.rooms import Camera, Home, Renderer
from wanderlearn.rooms.simulators import Scanned, Stand, Way

SIZE = (400, 300)
EDGE = (8, 6)  # columns and rows cut from the second camera's picture at each side: its field is smaller
ASKEW = (0.012, -0.007)  # radians by which it looks beside
FIELD = np.deg2rad(50)  # ways beyond are not in view
SCAN = "r1Q1Z4BcV1o"

Point = tuple[float, float, float]


def to_yaw(heading: float) -> float:
    """Our yaw is from the x axis to the left, theirs from the y axis to the right."""
    return (np.pi / 2 - heading) % (2 * np.pi)


def ways_of(home: Home, here: int, heading: float) -> list[Way]:
    """The ways in view from a viewpoint, nearest to straight ahead first."""
    at = np.array(home.viewpoints[here].position)
    ways = []
    for n in home.viewpoints[here].ways:
        gap = np.array(home.viewpoints[n].position) - at
        turn = (np.arctan2(gap[0], gap[1]) - heading + np.pi) % (2 * np.pi) - np.pi
        if abs(turn) <= FIELD:
            ways.append(Way(f"point{n}", float(turn), float(np.linalg.norm(gap))))
    return sorted(ways, key=lambda way: abs(way.turn))


def scanned(home: Home) -> list[Scanned]:
    return [
        Scanned(
            t.id,
            f"0_{t.room}_{t.id}",
            t.category.replace(" ", "_"),
            f"0_{t.room}",
            home.plan.rooms[t.room].kind,
            (float(t.centre[0]), float(t.centre[1]), float(t.centre[2])),
            (float(t.size[0]), float(t.size[1]), float(t.size[2])),
        )
        for t in home.things
    ]


class OwnSimulators:
    """Both simulators. `dies_at`: the process is killed at this look of the second one."""

    def __init__(
        self, home: Home, dies_at: int | None = None, blind_at: frozenset[int] = frozenset()
    ) -> None:
        self.home, self.dies_at, self.blind_at = home, dies_at, blind_at
        self.first = Renderer(home, *SIZE, light=False)
        wide, high = SIZE[0] + 2 * EDGE[0], SIZE[1] + 2 * EDGE[1]
        self.second = Renderer(home, wide, high, light=False, noise=False)
        self.open = self.looks = self.photographs = 0

    def walker(self, scan: str) -> "OwnWalker":
        assert scan == SCAN
        self._opened()
        return OwnWalker(self)

    def viewer(self, scan: str) -> "OwnViewer":
        assert scan == SCAN
        self._opened()
        return OwnViewer(self)

    def _opened(self) -> None:
        assert self.open == 0, "only one simulator may be open"
        self.open += 1


class OwnWalker:
    def __init__(self, own: OwnSimulators) -> None:
        self.own, self.home = own, own.home

    def viewpoints(self) -> list[str]:
        return [f"point{n}" for n in range(len(self.home.viewpoints))]

    def stand(self, viewpoint: str, heading: float) -> Stand:
        here = int(viewpoint.removeprefix("point"))
        return Stand(self.home.viewpoints[here].position, tuple(ways_of(self.home, here, heading)))

    def picture(self, viewpoint: str, heading: float, elevation: float) -> npt.NDArray[np.uint8]:
        self.own.photographs += 1
        here = int(viewpoint.removeprefix("point"))
        camera = Camera(here, self.home.viewpoints[here].position, to_yaw(heading), elevation)
        return self.own.first.draw(camera).rgb

    def close(self) -> None:
        self.own.open -= 1


class OwnViewer:
    """A camera that looks beside, with a smaller field of view, other colours and less sharp."""

    def __init__(self, own: OwnSimulators) -> None:
        self.own = own

    def things(self) -> list[Scanned]:
        return scanned(self.own.home)

    def look(
        self, position: Point, heading: float, elevation: float
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
        self.own.looks += 1
        if self.own.looks == self.own.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        camera = Camera(0, position, to_yaw(heading) + ASKEW[0], elevation + ASKEW[1])
        frame = self.own.second.draw(camera)
        columns, rows = EDGE
        inside = (slice(rows, -rows), slice(columns, -columns))
        rgb = second_look(frame.rgb[inside])
        if self.own.looks in self.own.blind_at:
            rgb = np.full_like(rgb, 90)
        return rgb, np.ascontiguousarray(frame.ids[inside])

    def close(self) -> None:
        self.own.open -= 1


def second_look(rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The same picture as another sensor would take it."""
    soft = np.asarray(Image.fromarray(np.ascontiguousarray(rgb)).filter(ImageFilter.GaussianBlur(0.8)))
    return np.asarray(np.clip(soft * np.array([0.9, 1.0, 1.05]) + 8, 0, 255)).astype(np.uint8)
