"""What every part of Wayfarer is worth: each switched off, beside CPM and Online ProtoNet, on one encoder.

    python benchmarks/wayfarer_tries.py                    all rows that are missing, some minutes each
    python benchmarks/wayfarer_tries.py --ideas            what was tried beyond and not kept, instead
    python benchmarks/wayfarer_tries.py --world glyphs     on the embedded world (no download)
    python benchmarks/wayfarer_tries.py --only "no nearest" --steps 250
    python benchmarks/wayfarer_tries.py --tables           only fill docs/wayfarer.md in

The encoder stays as it is: `--encoder` names a run folder, a file of weights, or one that comes with the
package. Writes results/wayfarer-tries.json (of ideas: wayfarer-ideas.json) after every row.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wanderlearn.configs import to_json
from wanderlearn.evaluate import gather
from wanderlearn.feature_training import FeaturesConfig, FeatureTraining
from wanderlearn.files import digest_of
from wanderlearn.learners.wayfarer import SWITCHES, WayfarerConfig
from wanderlearn.metrics import summary
from wanderlearn.model import LearnerConfig, ModelConfig, build, take_encoder
from wanderlearn.optimiser import Optimiser
from wanderlearn.presets import PRESETS
from wanderlearn.results import commit, fill, markdown_table, read_result, write_result
from wanderlearn.schedule import rate_factor
from wanderlearn.shipped import find_encoder
from wanderlearn.worlds import RoamingConfig, draw_manifest, open_pictures, world_of
from wanderlearn.worlds.families import with_families
from wayfarer_ideas import IDEAS

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results", ROOT / "docs" / "wayfarer.md"
KIND = "wayfarer-tries"
SHOTS = (1, 3)
ENCODERS = {"omniglot": "omniglot", "glyphs": "cpm-glyphs"}  # that come with the package


def rows(world: str, ideas: bool) -> dict[str, LearnerConfig]:
    """What is compared, by name."""
    ours = WayfarerConfig(dropout=0.25)
    if ideas:
        return dict.fromkeys(["Wayfarer", *IDEAS], ours)
    found: dict[str, LearnerConfig] = {
        "Online ProtoNet": PRESETS[f"protonet-{world}"].model.learner,
        "CPM": PRESETS[f"cpm-{world}"].model.learner,
        "Wayfarer": ours,
    }
    return found | {f"no {switch}": replace(ours, **{switch: False}) for switch in SWITCHES}


def stage_of(name: str, semi: bool, options: argparse.Namespace, weights: Path) -> FeatureTraining:
    """One row before its first step, to be trained on features as Wayfarer's preset says."""
    preset = PRESETS[f"wayfarer-{options.world}"]
    torch.manual_seed(options.seed)
    model = build(ModelConfig(preset.model.encoder, rows(options.world, options.ideas)[name]))
    take_encoder(weights, model)
    idea, stage = IDEAS.get(name), FeatureTraining
    if idea is not None and issubclass(idea, FeatureTraining):
        stage = idea
    elif idea is not None and isinstance(model.config.learner, WayfarerConfig):
        model.learner = idea(model.config.learner)
    budget = replace(preset.features or FeaturesConfig(), steps=options.steps, copies=options.copies)
    world = world_of(open_pictures(options.world, "train"), replace(preset.roaming, semi=semi))
    return stage(model, world, budget, replace(preset.train, seed=options.seed))


def measure(
    name: str, semi: bool, options: argparse.Namespace, weights: Path, kept: list[Tensor]
) -> dict[str, Any]:
    """Train one row on the features of the training pictures, and score it on validation sequences.

    The first finds `kept` empty and leaves the features there, for the others.
    """
    stage = stage_of(name, semi, options, weights)
    model, budget = stage.model, stage.config
    if kept:
        stage.features = kept[0]  # the same for every row
    kept[:] = [stage.features]
    optimiser = Optimiser(stage.tensors(), budget)
    model.train()
    start = time.process_time()
    for step in range(options.steps):
        torch.manual_seed(options.seed + step)
        factor = rate_factor(budget.schedule, step / options.steps, step, budget.warmup)
        optimiser.step(stage.losses(step)["loss"], factor)
    seconds = time.process_time() - start
    roaming = replace(PRESETS[f"wayfarer-{options.world}"].roaming, semi=semi)
    assert isinstance(roaming, RoamingConfig)
    val = world_of(with_families(open_pictures(options.world, "val"), roaming), roaming)
    manifest = draw_manifest(val, options.seed, options.sequences)
    metrics = summary(gather(model, val, manifest.sequences))
    shots = {entry["shots"]: entry["mean"] for entry in metrics["shots"]["labelled"]}
    return {
        "name": name,
        "semi": semi,
        "world": options.world,
        "learner": to_json(model.config.learner),
        "features": to_json(budget),
        "parameters": sum(p.numel() for p in model.learner.parameters()),
        "steps": options.steps,
        "copies": options.copies,
        "seed": options.seed,
        "cpu_seconds": seconds,
        "encoder_sha256": digest_of(weights),
        "sequences": options.sequences,
        "manifest_sha256": manifest.sha256,
        "ap": metrics["ap"],
        **{f"{n}_shot": shots[n] for n in SHOTS},
        "commit": commit(),
    }


def table(found: list[dict[str, Any]]) -> str:
    """The rows, both settings side by side, for the page."""
    by = {(row["name"], row["semi"]): row for row in found}
    columns = ["learner", "parameters", "AP", "1-shot", "3-shot", "AP, few labels", "1-shot", "3-shot"]
    lines: list[list[object]] = []
    for name in dict.fromkeys(row["name"] for row in found):
        both = [by.get((name, semi)) for semi in (False, True)]
        size = next(row["parameters"] for row in both if row)
        figures = [
            None if row is None else f"{row[key]:.2f}" for row in both for key in ("ap", "1_shot", "3_shot")
        ]
        lines.append([name, f"{size:,}", *figures])
    spans = {(row["world"], row["steps"], row["sequences"]) for row in found}
    said = "; ".join(
        f"{world}, {steps:,} steps, {sequences:,} sequences" for world, steps, sequences in sorted(spans)
    )
    return f"{markdown_table(columns, lines)}\n\n{said[0].upper()}{said[1:]}."


def main() -> None:
    """Measure what is missing, and fill the page in."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--world", default="omniglot")
    parser.add_argument("--encoder", help="whose features: a run folder, a file, or a shipped name")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--copies", type=int, default=2)
    parser.add_argument("--sequences", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="rows to measure, also again")
    parser.add_argument("--ideas", action="store_true", help="what was not kept, instead")
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    block = "ideas" if options.ideas else "tries"
    result = RESULTS / f"wayfarer-{block}.json"
    found = read_result(result, KIND)["rows"] if result.exists() else []
    wanted = [] if options.tables else (options.only or list(rows(options.world, options.ideas)))
    # Where every label is told there is nothing to credit.
    both = [
        (name, semi)
        for semi in (False, True)
        for name in wanted
        if semi or name not in ("no late_credit", "no unnamed")
    ]
    known = {(row["name"], row["semi"]) for row in found}
    todo = both if options.only else [one for one in both if one not in known]
    weights = find_encoder(options.encoder or ENCODERS[options.world])
    kept: list[Tensor] = []
    for name, semi in todo:
        row = measure(name, semi, options, weights, kept)
        print(f"{name}, {'few' if semi else 'all'} labels: AP {row['ap']:.2f}", file=sys.stderr)
        found = [old for old in found if (old["name"], old["semi"]) != (name, semi)] + [row]
        write_result(result, {"kind": KIND, "rows": found})
    if found:
        fill(PAGE, block, table(found))


if __name__ == "__main__":
    main()
