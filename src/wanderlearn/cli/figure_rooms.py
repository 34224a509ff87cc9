"""`wander figure rooms-walk`: a walk through recorded rooms as a learner lives through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import tyro

from wanderlearn.cli.figure_options import FigureSetting, at_least
from wanderlearn.errors import WanderError

if TYPE_CHECKING:
    from wanderlearn.figures.learners import Loaded
    from wanderlearn.rooms.sightings import Sightings

__all__ = ["RoomsWalk"]


@dataclass(frozen=True)
class RoomsWalk(FigureSetting):
    """A walk through rooms: what is met is bright, beside it what a learner said and what it was told.

    Examples:
      wander figure rooms-walk runs/cpm-rooms-small
      wander figure rooms-walk runs/cpm-rooms-small-semi --sequence 3 --start 20 --out walk.pdf
    """

    learner: tyro.conf.Positional[str] = "runs/cpm-rooms-small"
    """A run folder or a .safetensors file, trained on recorded walks."""
    sequence: int = 0
    """Which sequence of the seed."""
    start: int = 0
    """The first meeting that is shown."""
    meetings: int = 20
    """How many meetings are shown."""
    across: int = 5
    """Meetings in a row."""

    def run(self) -> None:
        """Answer, draw."""
        from wanderlearn.figures.answers import said
        from wanderlearn.figures.learners import load_learners
        from wanderlearn.figures.walk import Shown, draw_walk
        from wanderlearn.worlds import NEW, UNLABELED

        at_least(0, sequence=self.sequence, start=self.start)
        at_least(1, meetings=self.meetings, across=self.across)
        path, learners = self.path("rooms-walk"), load_learners([self.learner])
        pictures = self._as_recorded(learners)
        world = self.open(learners, semi=self.is_semi(learners))
        m = world.meetings(self.seed, self.sequence)
        if self.start >= len(m):
            raise WanderError(f"--start must be below {len(m)}, which is how many meetings there are.")
        found = said(learners[0].model, world, m)
        end = min(self.start + self.meetings, len(m))
        shown = Shown(m, found.answer.astype(np.int64), self.start, end)
        right, count = int(found.right[self.start : end].sum()), end - self.start
        labels = "few labels" if world.config.semi else "all labels"
        title = (
            f"{learners[0].name}, {self.where(world)}, {labels}: meetings {self.start + 1} to {end} of "
            f"{len(m)}, {right} of {count} right"
        )
        draw_walk(path, pictures, shown, title, self.across)
        numbers = {
            "world": world.pictures.name,
            "semi": world.config.semi,
            "sequence": m.index,
            "start": self.start,
            "right": right,
            "meetings": [
                {
                    "thing": pictures.class_names[int(pictures.class_of[m.picture[t]])],
                    "told": None if m.given[t] == UNLABELED else int(m.given[t]) + 1,
                    "right_answer": "new" if m.target[t] == NEW else int(m.target[t]) + 1,
                    "answer": "new" if found.answer[t] == NEW else int(found.answer[t]) + 1,
                    "novelty": round(float(found.novelty[t]), 4),
                }
                for t in range(self.start, end)
            ],
        }
        self.finish("rooms-walk", path, learners, numbers)

    def _as_recorded(self, learners: list[Loaded]) -> Sightings:
        """The frames at the size they were recorded in, whatever the learner sees of them."""
        from wanderlearn.pictures.address import read_address
        from wanderlearn.rooms.sightings import Sightings
        from wanderlearn.worlds import open_collection
        from wanderlearn.worlds.named import is_rooms

        name = str(self.world or learners[0].about.get("world"))
        if not is_rooms(name):
            raise WanderError(
                f"{self.learner} was trained in {name}, not in rooms. Train one first: wander train "
                "cpm-rooms-small --world rooms:PATH."
            )
        found = open_collection(str(read_address(name).with_options(size=None)), self.split)
        assert isinstance(found, Sightings)
        return found
