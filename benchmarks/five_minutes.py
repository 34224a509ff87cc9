"""Five minutes on the embedded world for LSTM, DNC, OML-U and OML-U++: do they learn at all?

    python benchmarks/five_minutes.py

Each is trained by its preset, shortened, on one core, then compared on the same 2,000 test sequences with
itself before training and with guessing (a paired bootstrap over sequences). Writes results/NAME-glyphs.json,
results/glyphs-learned.json and the table of docs/training.md. What is there already (runs, results) is not
done again: delete it to start over.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wanderlearn import Answers
from wanderlearn.answers import SavedAnswers, compare, read_answers, write_answers
from wanderlearn.evaluate import evaluate_with_answers
from wanderlearn.files import write_json
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED
from wanderlearn.learners.lstm import told_before
from wanderlearn.model import build
from wanderlearn.presets import PRESETS
from wanderlearn.results import commit, fill, markdown_table, read_result
from wanderlearn.worlds import draw_manifest, open_world

ROOT = Path(__file__).parent.parent
RUNS, RESULTS = ROOT / "runs", ROOT / "results"
WANDER = [sys.executable, "-c", "from wanderlearn.cli import main; main()"]
LEARNERS = {"lstm": "LSTM", "dnc": "DNC", "oml-u": "OML-U", "oml-u-plus": "OML-U++"}
MINUTES, SEQUENCES = 5, 2000
# The paper found that the DNC needs an encoder that was trained before, with a prototypical network. Five
# minutes are too short to do that as well, so these two start with the one that comes with the package.
ENCODERS = {"lstm": "protonet-glyphs", "dnc": "protonet-glyphs"}
COLUMNS = ("learner", "AP", "untrained", "guessing", "over untrained", "over guessing", "steps on sequences")


class Guessing(nn.Module):
    """Says "new" or one of the names told so far, by the throw of a die."""

    def forward(self, images: Tensor, given: Tensor, valid: Tensor, slots: int) -> Answers:
        told = told_before(given, slots)  # [B, T, K]
        novelty = torch.randn(given.shape)
        return Answers(
            torch.where(told, torch.randn(told.shape), UNUSED),
            torch.where(told.any(-1), novelty, CERTAINLY_NEW),
        )


def main() -> None:
    for name in LEARNERS:
        _train(f"{name}-glyphs")
    world = open_world("glyphs", "test", PRESETS["lstm-glyphs"].roaming)
    manifest = draw_manifest(world, 0, SEQUENCES)

    def answers(name: str, model: nn.Module) -> SavedAnswers:
        path = RUNS / "untrained" / f"{name}.npz"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.manual_seed(0)
            write_answers(path, evaluate_with_answers(model, world, manifest, progress=True)[1])
        return read_answers(path)

    guessed = answers("guessing", Guessing())
    found: dict[str, Any] = {}
    rows = []
    for name, words in LEARNERS.items():
        preset = PRESETS[f"{name}-glyphs"]
        torch.manual_seed(preset.train.seed)
        before, after = answers(name, build(preset.model)), read_answers(RUNS / preset.name / "answers.npz")
        found[name] = {
            "over_untrained": compare(after, before, "ap"),
            "over_guessing": compare(after, guessed, "ap"),
        }
        train = read_result(RESULTS / f"{preset.name}.json", "evaluation")["train"]
        over, above = found[name]["over_untrained"], found[name]["over_guessing"]
        figures = [f"{value:.1f}" for value in (over["first"], over["second"], above["second"])]
        rows.append((words, *figures, _interval(over), _interval(above), train["steps"]))
    write_json(
        RESULTS / "glyphs-learned.json",
        {
            "format": 1,
            "kind": "comparison",
            "commit": commit(),
            "minutes": MINUTES,
            "manifest_sha256": manifest.sha256,
            "ap": found,
        },
    )
    words = (
        f"{MINUTES} minutes in all on one core, AP on {SEQUENCES:,} test sequences of glyphs; "
        "intervals are 95 %, by a paired bootstrap over sequences, one seed of training (`python "
        "benchmarks/five_minutes.py`). LSTM and DNC start with the encoder of the shipped `protonet-glyphs`, "
        "whose ten minutes are not counted; OML-U and OML-U++ start from scratch:"
    )
    fill(ROOT / "docs/training.md", "five-minutes", f"{words}\n\n{markdown_table(COLUMNS, rows)}")


def _train(name: str) -> None:
    run, result = RUNS / name, RESULTS / f"{name}.json"
    if result.exists() and (run / "answers.npz").exists():
        return
    resume = ["--resume"] * run.exists()
    preset, encoder = PRESETS[name], ENCODERS.get(name.removesuffix("-glyphs"))
    minutes = ["--train.minutes", str(MINUTES)]
    if preset.features:  # most of it on features, and little of it on looking how far it got
        minutes = ["--features.minutes", f"{0.84 * MINUTES:g}", "--train.minutes", f"{0.16 * MINUTES:g}"]
        minutes += ["--train.validate-every", "1000", "--train.validate-sequences", "60"]
    given = ["--encoder", encoder] if encoder else []
    _wander("train", name, "--runs", str(RUNS), *minutes, *given, *resume)
    _wander("evaluate", str(run), "--json", str(result), "--answers", str(run / "answers.npz"))


def _wander(*words: str) -> None:
    subprocess.run([*WANDER, *words], env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True)


def _interval(over: dict[str, Any]) -> str:
    return f"{over['difference']:+.1f} ({over['low']:+.1f} to {over['high']:+.1f})"


if __name__ == "__main__":
    main()
