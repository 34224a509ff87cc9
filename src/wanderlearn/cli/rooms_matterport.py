"""`wander rooms matterport`: walks through Matterport3D, where its scans and simulators are."""

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from wanderlearn.cli.output import put_json
from wanderlearn.errors import WanderError

__all__ = ["Matterport"]


@dataclass(frozen=True)
class Matterport:
    """Record walks through Matterport3D, the paper's own homes, in the RoamingRooms file format.

    This needs what cannot be passed on: the scans (https://niessner.github.io/Matterport/, after signing its
    terms of use), and the simulators MatterSim and Habitat-Sim. What is missing is named before anything is
    done. An agent walks in MatterSim, the walk is retraced in Habitat-Sim, and each picture of the mesh is
    laid over its photograph, so that the ids of things come to lie on them (extra: matterport). A recording
    that was stopped or killed goes on where it was when the same command is given again. The files are read
    like those of `wander rooms record`, which needs none of all this.

    Examples:
      wander rooms matterport data/v1 --split train --walks 110 --out my/matterport
      wander rooms matterport data/v1 --split test --scan 17DRP5sb8fy --frames 200
    """

    data: tyro.conf.Positional[Path]
    """Folder of Matterport3D (often v1), with scans, tasks/mp3d and connectivity in it (or see below)."""
    out: Path = Path("matterport")
    """Folder for the recording; the files of a split come into a folder of its name in it."""
    split: Literal["train", "val", "test"] = "train"
    """Which scans: the published split, 60, 10 and 20."""
    scan: tuple[str, ...] = ()
    """Only these scans of the split (default: all)."""
    frames: int = 600
    """Steps of a walk; steps that show no object are left out."""
    walks: int = 1
    """Walks through every scan. The authors' program makes 10,000 in all 90."""
    edge: float = 0.15
    """The middle of an object that is met is not in this part of the frame at each side."""
    any_room: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Objects of other rooms, seen through a door, are met too."""
    unaligned: Literal["drop", "keep"] = "drop"
    """A frame that cannot be aligned is left out, or kept with its ids where they are, as by the authors.
    Either way it is counted."""
    scans: Path | None = None
    """Folder of MatterSim's photographs, a folder for each scan (default: DATA/scans)."""
    meshes: Path | None = None
    """Folder of Habitat's meshes, a folder for each scan (default: DATA/tasks/mp3d)."""
    connectivity: Path | None = None
    """Folder of MatterSim's graphs of viewpoints (default: DATA/connectivity)."""
    json: str | None = None
    """Write what was recorded as JSON to this file, or to standard output for -."""

    def run(self) -> None:
        """Record what is missing."""
        from wanderlearn.rooms.alignment import opencv
        from wanderlearn.rooms.matterport import MatterportConfig, published_scans, record_scans
        from wanderlearn.rooms.recording import counted
        from wanderlearn.rooms.simulators import Matterport as Simulators
        from wanderlearn.rooms.streams import h5_library

        config = MatterportConfig(
            frames=self.frames,
            walks=self.walks,
            edge=self.edge,
            any_room=self.any_room,
            unaligned=self.unaligned,
        )
        scans = published_scans(self.split)
        if unknown := [scan for scan in self.scan if scan not in scans]:
            raise WanderError(
                f"{', '.join(unknown)}: not in the split {self.split}, which is {', '.join(scans)}. "
                "Another split? Choose it with --split."
            )
        scans = [scan for scan in scans if not self.scan or scan in self.scan]
        if not self.data.is_dir():
            raise WanderError(
                f"There is no folder {self.data}. It should hold Matterport3D, which one gets from "
                "https://niessner.github.io/Matterport/ after signing its terms of use. Homes that need no "
                "download: wander rooms record."
            )
        simulators = Simulators(
            self.scans or self.data / "scans",
            self.meshes or self.data / "tasks" / "mp3d",
            self.connectivity or self.data / "connectivity",
        )
        h5_library()
        opencv()
        simulators.check_simulators()
        for scan in scans:
            simulators.check(scan)
        folder = self.out / self.split
        done = record_scans(scans, folder, config, simulators)
        walks = [walked for each in done.values() for walked in each]
        unaligned = sum((Counter(walked.unaligned) for walked in walks), Counter[str]())
        told = {"folder": str(folder), "scans": len(done), **counted(walks), "unaligned": dict(unaligned)}
        put_json(told, self.json)
        reasons = ", ".join(f"{n} {reason}" for reason, n in unaligned.most_common()) or "none"
        print(
            f"{folder}: {told['frames']} frames in {told['files']} files of {told['scans']} scans. "
            f"{told['empty']} steps showed no object, {told['left_out']} frames at the ends of walks were "
            f"too few for a file. Could not be aligned: {unaligned.total()} frames ({reasons}).",
            file=sys.stderr,
        )
