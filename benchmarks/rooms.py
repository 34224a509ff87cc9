"""The rows of the table of rooms, one after the other, on walks that are recorded first.

    python benchmarks/rooms.py                           protonet, cpm and wayfarer, both settings
    python benchmarks/rooms.py cpm-rooms-small           this row only
    python benchmarks/rooms.py --walks DIR --threads 1 --seed 1
    python benchmarks/rooms.py --tables                  only fill docs/rooms.md in
    python benchmarks/rooms.py --runs DIR --results DIR --sequences 5 -- --pretrain.minutes 0.2

What it runs, once and then for every row:

    wander rooms record --out rooms --worlds 60 --split train          also val (10 homes) and test (20)
    wander train protonet-rooms-small --name encoder-rooms-small ...   the encoder all rows start with
    wander train ROW --world rooms:rooms?size=120 --name ROW --encoder runs/encoder-rooms-small
    wander evaluate runs/ROW --sequences 200 --json results/ROW.json --answers runs/ROW/answers.npz

The encoder learns from frames of 60 x 80, which costs a quarter; all that comes after sees them as they were
recorded. Homes of testing are none of training. What was recorded, trained or tested is not done again, and
what was interrupted goes on: delete a result to start over. Words after -- go to every `wander train`. By the
presets the encoder takes 25 minutes and a row some minutes more, most of them to make the features it learns
from; testing takes minutes.
"""

import argparse
import sys
from pathlib import Path

from wanderlearn.paper import ROOMS_STATISTICS
from wanderlearn.presets import ROOMS_PRESETS
from wanderlearn.report.forgetting import read_forgetting_table
from wanderlearn.report.methods import markdown, read_method_table
from wanderlearn.report.pairs import pairs_markdown, pairs_of, result_of
from wanderlearn.report.parts import parts_markdown
from wanderlearn.results import commit, fill, markdown_table, read_result, seeded, write_result
from wanderlearn.rooms.stats import READINGS, rooms_statistics
from wanderlearn.table_rows import compared, pages, pretrained, tested, trained, wander

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results", ROOT / "docs" / "rooms.md"
ALL = [name for name in ROOMS_PRESETS if "-small" in name]
ROWS = [f"{learner}-rooms-small{end}" for end in ("", "-semi") for learner in ("protonet", "cpm", "wayfarer")]
SMALL, ENCODER, STATISTICS = "rooms-small", "encoder-rooms-small", "rooms-walks.json"
ROWS_OF_FRAMES = 120  # as they were recorded
SHOWN = ("worlds", "files", "frames", "meetings", "instances", "categories", *READINGS, "viewpoints_per_100")
SHOWN += ("objects_per_frame",)


def main() -> None:
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("rows", nargs="*", metavar="PRESET", help=f"of {', '.join(ALL)}")
    asked.add_argument("--walks", type=Path, default=Path("rooms"), help="where walks are or will be")
    asked.add_argument("--homes", type=int, nargs=3, default=[60, 10, 20], help="to train, validate, test in")
    asked.add_argument("--frames", type=int, default=600, help="of a walk")
    asked.add_argument("--processes", type=int, default=2, help="that record")
    asked.add_argument("--runs", type=Path, default=ROOT / "runs", help="where run folders are kept")
    asked.add_argument("--results", type=Path, default=RESULTS, help="where results are written")
    asked.add_argument("--encoder", help="a run folder or a file of weights, instead of pretraining one")
    asked.add_argument("--seed", type=int, default=0, help="of training; others than 0 end in -seedN")
    asked.add_argument("--threads", type=int, default=0, help="to train with; 0 for as many as torch chooses")
    asked.add_argument("--sequences", type=int, default=200, help="to test on: several from every walk")
    asked.add_argument("--tables", action="store_true", help="record and train nothing")
    words = asked.parse_args(sys.argv[1:at])
    if unknown := set(words.rows) - set(ALL):
        asked.error(f"there is no row {', '.join(sorted(unknown))}")
    if not words.tables:
        record(words)
        extra = ["--train.threads", str(words.threads), *sys.argv[at + 1 :]]
        extra += ["--train.seed", str(words.seed)] * bool(words.seed)
        for name in words.rows or ROWS:
            row(name, words, extra)
        for one, other in pairs_of(SMALL):
            compared(words.runs / one, words.runs / other, words.results / result_of(one, other))
    if words.results == RESULTS:
        tables()
        pages(ROOT)


def record(words: argparse.Namespace) -> None:
    """Record what is missing, and count it."""
    for split, homes in zip(("train", "val", "test"), words.homes, strict=True):
        options = ["--worlds", str(homes), "--frames", str(words.frames), "--split", split]
        options += ["--out", str(words.walks), "--processes", str(words.processes)]
        wander("rooms", "record", *options)
    words.results.mkdir(parents=True, exist_ok=True)
    counted = rooms_statistics(words.walks)
    numbers = {name: counted[name] for name in SHOWN}
    about = {"kind": "rooms-statistics", "homes": words.homes, "steps": words.frames, "commit": commit()}
    write_result(words.results / STATISTICS, about | {"walks": numbers})


def row(name: str, words: argparse.Namespace, extra: list[str]) -> None:
    """Train and evaluate one row, unless its result is there."""
    run, result = (seeded(x, words.seed) for x in (words.runs / name, words.results / f"{name}.json"))
    if result.exists():
        return
    place, first = f"rooms:{words.walks}", seeded(words.runs / ENCODER, words.seed)
    encoder = words.encoder or str(pretrained("protonet-rooms-small", first, "--world", place, *extra))
    trained(name, run, "--world", f"{place}?size={ROWS_OF_FRAMES}", *extra, "--encoder", encoder)
    tested(run, result, "--sequences", str(words.sequences))


def recorded(results: Path) -> str:
    """What was recorded, beside what the paper says of its own recording."""
    numbers = read_result(results / STATISTICS, "rooms-statistics")["walks"]
    rows = []
    for name in SHOWN:
        paper = ROOMS_STATISTICS.get("same_next" if name in READINGS else name)
        words = f"same instance next, %: {READINGS[name]}" if name in READINGS else name.replace("_", " ")
        rows.append([words, numbers[name], paper])
    return markdown_table(["", "here", "paper (Matterport3D)"], rows)


def tables(results: Path = RESULTS, page: Path = PAGE) -> None:
    """Fill docs/rooms.md in."""
    there = (results / STATISTICS).exists()
    fill(page, "rooms-recorded", recorded(results) if there else "Nothing yet.")
    fill(page, "rooms-table", markdown(read_method_table(results, "rooms")))
    fill(page, "rooms-pairs", pairs_markdown(results, SMALL))
    forgetting = read_forgetting_table(results, "rooms")
    fill(page, "rooms-forgetting", parts_markdown(forgetting.parts(), forgetting.warnings))


if __name__ == "__main__":
    main()
