"""Measure everything docs/performance.md speaks of, and fill its tables in.

python benchmarks/performance.py             measure (some minutes on an idle machine), then fill in
python benchmarks/performance.py --tables    only fill in, from the results that are there
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from torch import Tensor

from wanderlearn.cli.bench import BENCHES
from wanderlearn.model import build
from wanderlearn.presets import METHODS, PRESETS
from wanderlearn.results import fill, markdown_table, read_result

OWN_PAGE = ("rooms", "distributed")  # docs/rooms.md, docs/scaling.md
SHOWN = tuple(name for name in BENCHES if name not in OWN_PAGE)
ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results", ROOT / "docs" / "performance.md"
OTHERS = METHODS[1:]  # all but CPM, which is always measured
BY_CLASS = ("cpm", "protonet", "wayfarer")  # others keep examples or clusters, or as much whatever they met
NAMES = {
    "length": "meetings T",
    "classes": "class slots K",
    "batch": "sequences B",
    "features": "feature width D",
}


def measure() -> None:
    """Every benchmark in a process of its own: none inherits another's memory or warm caches."""
    for name in SHOWN:
        print(f"measuring {name}", file=sys.stderr)
        more = ["--learner", *OTHERS] if name == "train" else []
        _python("-c", "from wanderlearn.cli import main; main()", "bench", name, *more,
                "--json", str(RESULTS / f"bench-{name}.json"))  # fmt: skip
    for script in ("step_profile", "cost_growth"):
        print(f"measuring {script}", file=sys.stderr)
        _python(str(ROOT / "benchmarks" / f"{script}.py"))


def tables(results: Path = RESULTS, page: Path = PAGE) -> None:
    """Fill every table of the page in from the results."""
    bench = {name: read_result(results / f"bench-{name}.json", "bench") for name in SHOWN}
    fill(page, "measured-on", _measured_on(bench["train"]["measured_on"]))
    fill(page, "overview", _overview(bench))
    fill(page, "learners", _learners(bench["train"]))
    fill(page, "step-profile", _profile(read_result(results / "step-profile.json", "step-profile")["parts"]))
    fill(page, "cost-growth", _growth(read_result(results / "cost-growth.json", "cost-growth")))
    fill(page, "meeting", _meeting(bench["step"]))


def _measured_on(machine: dict[str, Any]) -> str:
    commit, *dirty = (machine["commit"] or "").split("+")
    where = f"{machine['threads']} threads on {machine['cores']} cores ({machine['instructions']})"
    what = f"torch {machine['torch']}, wanderlearn {machine['version']}"
    at = f" at commit `{commit[:12]}`{' with changes' if dirty else ''}" if commit else ""
    return f"Measured with {where}, {what}{at}."


def _overview(bench: dict[str, dict[str, Any]]) -> str:
    sampler, encoder, train = bench["sampler"], bench["encoder"], bench["train"]
    evaluate, step, agent = bench["evaluate"], bench["step"], bench["agent"]
    rows = [
        ["sequences drawn per second, one core", sampler["sequences_per_second"], "800 or more"],
        ["... with pictures", sampler["sequences_with_pictures_per_second"], "250 or more"],
        ["encoder: pictures trained on per second", encoder["pictures_per_second"], ""],
        ["encoder: over its plain definition", encoder["speedup"], ""],
        ["training step over encoder, all labels", train["step_over_encoder"], ""],
        ["training step over encoder, few labels", train["step_over_encoder_semi"], ""],
        ["peak memory while training, GB", train["peak_memory_gb"], ""],
        ["sequences evaluated per second", evaluate["sequences_per_second"], ""],
        ["evaluation over encoder, all labels", evaluate["evaluation_over_encoder"], ""],
        ["evaluation over encoder, few labels", evaluate["evaluation_over_encoder_semi"], ""],
        ["one live meeting over encoder, 50 classes", step["meeting_over_encoder"], "1.5 or less"],
        ["exponent of a meeting's cost in classes", step["growth_exponent"], "about 1 or less"],
        ["an agent's look and tell over encoder, 50 classes", agent["meeting_over_encoder"], "1.5 or less"],
        ["... over its encoder with folded weights", agent["meeting_over_frozen_encoder"], ""],
        *(
            [["... of a Wayfarer, 50 classes", agent["wayfarer"]["meeting_over_encoder"], "2 or less"]]
            if "wayfarer" in agent  # a result may be older
            else []
        ),
        ["... at 100,000 classes, milliseconds", agent["ms_at_100000_classes"], "20 or less"],
        ["... without a label", agent["unlabelled_ms_at_100000_classes"], ""],
    ]
    return markdown_table(["what", "measured", "wanted"], rows)


def _learners(train: dict[str, Any]) -> str:
    rows = []
    for name in ("cpm", *(name for name in OTHERS if name in train)):  # a newer one may not be measured yet
        figures = train if name == "cpm" else train[name]
        ratios = [figures["step_over_encoder"], figures["step_over_encoder_semi"]]
        rows.append([name, figures["encoder_seconds"], *ratios, *_sizes(name)])
    columns = ["learner", "encoder alone, s", "step / encoder", "few labels", "parameters", "bytes per class"]
    return markdown_table(columns, rows)


def _sizes(name: str) -> list[object]:
    """The learner's own parameters, and what its memory grows by with a class."""
    learner: Any = build(PRESETS[f"{name}-omniglot"].model).learner
    few, more = (_bytes(learner.begin(1, slots)) for slots in (49, 50))
    grows = more - few if name in BY_CLASS else None
    return [f"{sum(p.numel() for p in learner.parameters()):,}", grows]


def _bytes(state: object) -> int:
    if isinstance(state, Tensor):
        return state.numel() * state.element_size()
    return sum(map(_bytes, state)) if isinstance(state, tuple) else 0


def _profile(parts: dict[str, dict[str, float]]) -> str:
    told, hidden = parts["told"], parts["hidden"]
    shares = [sum(part.values()) for part in (told, hidden)]
    rows: list[list[object]] = [
        [name, told[name], f"{100 * told[name] / shares[0]:.1f} %",
         hidden[name], f"{100 * hidden[name] / shares[1]:.1f} %"]
        for name in told
    ]  # fmt: skip
    rows.append(["all", shares[0], "100 %", shares[1], "100 %"])
    return markdown_table(["part", "all labels, s", "share", "few labels, s", "share "], rows)


def _growth(found: dict[str, Any]) -> str:
    rows: list[list[object]] = []
    for axis, growth in found["axes"].items():
        for setting, words in (("told", "all"), ("hidden", "few")):
            sizes = ", ".join(str(row["size"]) for row in growth["seconds"])
            seconds = ", ".join(f"{row[setting]:.3f}" for row in growth["seconds"])
            rows.append([NAMES[axis], words, sizes, seconds, f"{growth['exponent'][setting]:.2f}"])
    base = ", ".join(f"{NAMES[axis]} = {size}" for axis, size in found["base"].items())
    table = markdown_table(["axis", "labels", "sizes", "seconds", "exponent"], rows)
    return f"{table}\n\nWhere an axis is not varied: {base}."


def _meeting(step: dict[str, Any]) -> str:
    rows = [
        [int(classes), 1000 * whole, 1000 * step["growth_learner"][classes]]
        for classes, whole in step["growth"].items()
    ]
    return markdown_table(["classes", "one meeting, ms", "without the encoder, ms"], rows)


def _python(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=sys.stderr)


if __name__ == "__main__":
    if "--tables" not in sys.argv[1:]:
        measure()
    tables()
