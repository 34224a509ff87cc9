"""Fit the calibration of every shipped learner, and measure what its promise is worth on other streams.

    python benchmarks/calibrate.py              all whose weights have changed since, some minutes each
    python benchmarks/calibrate.py NAME ...     only these, in any case
    python benchmarks/calibrate.py --tables     only fill docs/agent.md in, from the results that are there

Writes src/wanderlearn/weights/calibration/NAME.json and results/calibration.json. Learners of Omniglot need
its files (WANDERLEARN_DATA, or `wander data get omniglot`).
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wanderlearn._version import __version__
from wanderlearn.agent import load
from wanderlearn.calibrate import calibrate, live_model
from wanderlearn.calibration import SHIPPED, Calibration
from wanderlearn.errors import WanderError
from wanderlearn.evaluate import gather
from wanderlearn.files import digest_of
from wanderlearn.metrics import Record, naming_confidence, summary
from wanderlearn.model import about_model
from wanderlearn.results import commit, fill, markdown_table, read_result, write_result
from wanderlearn.shipped import shipped_weights
from wanderlearn.worlds import UNLABELED, Roaming, RoamingConfig, draw_manifest, open_pictures

ROOT = Path(__file__).parents[1]
RESULT, PAGE = ROOT / "results" / "calibration.json", ROOT / "docs" / "agent.md"
KIND = "accept-or-ask"
ERRORS = (0.01, 0.02, 0.05)
FITTED, TESTED, SHIFTED, LIVED = 2000, 500, 200, 100  # sequences
SEED = 0
RESAMPLES = 1000
STREAMS = {
    "test": "test split",
    "shuffled": "... shuffled",
    "other-labels": "... with the other labelling",
    "lived": "... where accepted labels are told as they are",
}


def measure(name: str) -> dict[str, Any]:
    """Fit and keep the calibration of shipped weights; what it promises and what comes of it."""
    path = shipped_weights()[name]
    found = _fit(name, path)
    model, semi = live_model(path), bool(about_model(path).get("semi"))
    pictures = open_pictures(found.about["world"], "test")
    streams = {}
    for stream, config, sequences in (
        ("test", RoamingConfig(semi=semi), TESTED),
        ("shuffled", RoamingConfig(semi=semi, shuffle=True), SHIFTED),
        ("other-labels", RoamingConfig(semi=not semi), SHIFTED),
    ):
        print(f"{name}: {STREAMS[stream]}", file=sys.stderr)
        manifest = draw_manifest(Roaming(pictures, config), SEED, sequences)
        record = gather(model, manifest.world(pictures), manifest.sequences, progress=True)
        streams[stream] = {
            "semi": config.semi,
            "shuffle": config.shuffle,
            "sequences": sequences,
            "manifest_sha256": manifest.sha256,
            "accepting": [_accepting(record, found, error) for error in ERRORS],
            "calibration": summary(record)["calibration"],
        }
    streams["lived"] = _lived(name, found, Roaming(pictures, RoamingConfig(semi=semi)))
    return {
        "weights_sha256": found.about["weights_sha256"],
        "world": found.about["world"],
        "semi": semi,
        "delta": found.delta,
        "fitted_on": {"sequences": found.sequences, "manifest_sha256": found.about["manifest_sha256"]},
        "fitted": [_fitted(found, error) for error in ERRORS],
        "streams": streams,
        "version": __version__,
        "commit": commit(),
    }


def _fit(name: str, path: Path) -> Calibration:
    """The calibration in the package, fitted anew if it is of other weights."""
    kept = SHIPPED / f"{name}.json"
    if kept.exists():
        found = Calibration.load(kept)
        if found.about.get("weights_sha256") == digest_of(path) and found.sequences == FITTED:
            return found
    print(f"{name}: fitting", file=sys.stderr)
    found = calibrate(path, sequences=FITTED, progress=True)
    found.save(kept)
    return found


def _fitted(found: Calibration, error: float) -> dict[str, Any]:
    threshold = found.threshold(error)
    if threshold is None:
        return {"promised": error, "threshold": None}
    measured = {"error": found.error_at(threshold), "coverage": found.coverage_at(threshold)}
    return {"promised": error, "threshold": threshold} | measured


def _accepting(record: Record, found: Calibration, error: float) -> dict[str, Any]:
    """What comes of accepting from the threshold on, if the truth is told afterwards."""
    threshold = found.threshold(error)
    if threshold is None:
        return {"promised": error, "threshold": None}
    taken = record.valid & (record.novelty <= 0) & (naming_confidence(record) >= threshold)
    wrong = taken & ~record.correct
    return {"promised": error, "threshold": threshold} | _counted(
        taken.sum(axis=1), wrong.sum(axis=1), record.steps
    )


def _counted(accepted: Any, wrong: Any, meetings: int) -> dict[str, float]:
    """Error and coverage of sequences, with a 95 % interval of the error over sequences."""
    drawn = np.random.default_rng(0).integers(len(accepted), size=(RESAMPLES, len(accepted)))
    errors = wrong[drawn].sum(axis=1) / np.maximum(accepted[drawn].sum(axis=1), 1)
    low, high = np.percentile(errors, [2.5, 97.5])
    return {
        "error": float(wrong.sum() / max(accepted.sum(), 1)),
        "low": float(low),
        "high": float(high),
        "coverage": float(accepted.sum() / meetings),
    }


def _lived(name: str, found: Calibration, world: Roaming) -> dict[str, Any]:
    """What comes of it if the agent is told the accepted label itself, and the truth only when it asks."""
    print(f"{name}: {STREAMS['lived']}", file=sys.stderr)
    fresh = load(name)
    fresh.calibration = found
    met = [world.meetings(SEED, n) for n in range(LIVED)]
    with torch.inference_mode():
        seen = [fresh.model.encoder(world.batch([m]).images[0]).numpy() for m in met]
    accepting: list[dict[str, Any]] = []
    for error in ERRORS:
        if found.threshold(error) is None:
            accepting.append({"promised": error, "threshold": None})
            continue
        accepted, wrong = np.zeros((2, LIVED), dtype=np.int64)
        for n, (m, features) in enumerate(zip(met, seen, strict=True)):
            agent = fresh.many(1)[0]
            for feature, truth, given in zip(features, m.truth.tolist(), m.given.tolist(), strict=True):
                answer = agent.look(feature)
                if agent.accepts(answer, error):
                    accepted[n] += 1
                    wrong[n] += answer.label != truth
                    agent.tell(answer, answer.label)
                else:
                    agent.tell(answer, None if given == UNLABELED else given)
        counted = _counted(accepted, wrong, sum(map(len, met)))
        accepting.append({"promised": error, "threshold": found.threshold(error)} | counted)
    return {"sequences": LIVED, "accepting": accepting}


def tables(result: Path = RESULT, page: Path = PAGE) -> bool:
    """Fill the tables of the page in; True when it changed."""
    learners = read_result(result, KIND)["learners"]
    rows: list[list[object]] = []
    others: list[list[object]] = []
    for name, found in learners.items():
        streams = [found["streams"][stream]["accepting"] for stream in STREAMS]
        for fitted, tested, *shifted in zip(found["fitted"], *streams, strict=True):
            promised = f"{100 * fitted['promised']:.0f} %"
            if fitted["threshold"] is None:
                rows.append([name, promised, *[None] * 5])
                continue
            rows.append(
                [name, promised, f"{fitted['threshold']:.4f}", _percent(fitted["error"]),
                 _percent(fitted["coverage"]), _interval(tested), _percent(tested["coverage"])]
            )  # fmt: skip
            others.append([name, promised, *(_interval(one) for one in shifted)])
    columns = ["weights", "promised", "threshold", "error, fitted", "accepted", "error, test split"]
    any_found = next(iter(learners.values()))
    words = (
        f"Fitted on {any_found['fitted_on']['sequences']} validation sequences of each learner's own world, "
        f"measured on {any_found['streams']['test']['sequences']} test sequences (in brackets 95 % intervals "
        "over sequences). A dash: so little cannot be promised from so many sequences."
    )
    changed = fill(page, "accept", f"{markdown_table([*columns, 'accepted '], rows)}\n\n{words}")
    headings = ["weights", "promised", "shuffled", "labelled otherwise", "accepted labels told"]
    return fill(page, "accept-elsewhere", markdown_table(headings, others)) or changed


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2f} %"


def _interval(found: dict[str, Any]) -> str:
    return f"{_percent(found['error'])} ({100 * found['low']:.2f} to {100 * found['high']:.2f})"


def run(names: list[str]) -> None:
    """Measure these, or all whose weights are other ones than those in the results."""
    shipped = shipped_weights()
    if unknown := set(names) - shipped.keys():
        raise WanderError(f"No such weights are shipped: {', '.join(sorted(unknown))}.")
    before = read_result(RESULT, KIND)["learners"] if RESULT.exists() else {}
    done = {name: found for name, found in before.items() if name in shipped}
    for name, path in shipped.items():
        kept = SHIPPED / f"{name}.json"
        fresh = name in done and kept.exists() and _of(done[name]) == (digest_of(path), FITTED)
        if name in names or not (names or fresh):
            if name in names:
                kept.unlink(missing_ok=True)
            done[name] = measure(name)
        if done != before:
            write_result(RESULT, {"kind": KIND, "learners": {one: done[one] for one in sorted(done)}})
    for left in SHIPPED.glob("*.json"):
        if left.stem not in shipped:
            left.unlink()


def _of(found: dict[str, Any]) -> tuple[str, int]:
    """What a result rests on: weights, and how many sequences they were fitted on."""
    return found["weights_sha256"], found["fitted_on"]["sequences"]


if __name__ == "__main__":
    asked = sys.argv[1:]
    if "--tables" not in asked:
        run(asked)
    tables()
