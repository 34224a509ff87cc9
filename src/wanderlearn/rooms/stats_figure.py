"""The statistics of a recording as one figure, after the paper's two."""

from pathlib import Path
from typing import Any

from wanderlearn.figures.style import BLUE, PAGE, VERMILION, canvas, note, save, title
from wanderlearn.paper import ROOMS_STATISTICS

__all__ = ["draw_statistics"]


def draw_statistics(path: Path, numbers: dict[str, Any]) -> None:
    """Instances of each category, how soon a thing is met again, objects in a frame, and two long tails."""
    with canvas(PAGE, 5.2) as figure:
        grid = figure.add_gridspec(2, 6)
        axes = figure.add_subplot(grid[0, :3])
        instances = numbers["instances_of_category"]
        axes.bar(range(len(instances)), list(instances.values()), color=BLUE)
        axes.set_xticks(range(len(instances)), list(instances), rotation=60, ha="right", fontsize=6)
        axes.set_ylabel("instances")
        title(axes, "Instances of each category")

        axes = figure.add_subplot(grid[0, 3:])
        waits, meetings = numbers["waits"], max(1, numbers["meetings"])
        axes.bar(range(len(waits)), [100 * n / meetings for n in waits.values()], color=BLUE)
        axes.set_xticks(range(len(waits)), list(waits), rotation=60, ha="right", fontsize=6)
        axes.plot([-0.5, 0.5], [ROOMS_STATISTICS["same_next"]] * 2, color=VERMILION)
        axes.set(xlabel="meetings until the same instance comes again", ylabel="% of meetings")
        title(
            axes,
            "When it is met again",
            f"line: {ROOMS_STATISTICS['same_next']:.0f} % in the paper's next frame",
        )

        axes = figure.add_subplot(grid[1, :2])
        by = numbers["frames_by_objects"]
        axes.bar([int(n) for n in by], list(by.values()), color=BLUE)
        axes.set(xlabel="objects", ylabel="frames")
        title(axes, "Objects in a frame")

        for column, name, words in (
            (2, "meetings_per_instance", "Instances"),
            (4, "meetings_per_viewpoint", "Viewpoints"),
        ):
            axes = figure.add_subplot(grid[1, column : column + 2])
            falling = numbers[name]["falling"]
            axes.plot(range(1, len(falling) + 1), falling, color=BLUE)
            axes.set(xlabel="from most to least met", ylabel="meetings", ylim=(0, None))
            title(axes, f"Long tail: {words.lower()}")
        views = numbers["viewpoints_per_100"]
        note(
            figure,
            f"Homes: {numbers['worlds']}, {numbers['frames']} frames, {numbers['meetings']} meetings of "
            f"{numbers['instances']} instances. Viewpoints per 100 meetings: "
            f"{'too few meetings' if views is None else f'{views:.1f}'} "
            f"(paper, in Matterport3D: {ROOMS_STATISTICS['viewpoints_per_100']:.0f}).",
        )
        save(path, figure)
