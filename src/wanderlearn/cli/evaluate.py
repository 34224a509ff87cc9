"""`wander evaluate`: score a trained learner on sequences it has never seen."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from wanderlearn.cli.output import put_json
from wanderlearn.cli.process import Behind, ProcessOptions, with_background
from wanderlearn.errors import WanderError

if TYPE_CHECKING:
    from wanderlearn.distributed import Group
    from wanderlearn.evaluate import Origin
    from wanderlearn.model import Model
    from wanderlearn.worlds import Manifest, World

__all__ = ["Command"]

DEFAULT_SEQUENCES = 2000
OFFLINE = "offline-lr"  # the learner of a result with --offline


@dataclass(frozen=True)
class Command:
    """Score a trained learner on sequences it has never seen.

    Without --world, --semi and --supervised, on the kind of world it was trained in. The result of a run
    folder is also written into that folder, as result-WORLD-SPLIT.json. Under torchrun the processes share
    the sequences, and the figures are the same (docs/scaling.md).

    Examples:
      wander evaluate runs/cpm-omniglot
      wander evaluate cpm-glyphs --sequences 200 --json -
      wander evaluate runs/mine --answers mine.npz
      wander evaluate runs/other --compare mine.npz
      wander evaluate protonet-glyphs --offline --sequences 200
      wander evaluate runs/protonet-mine --world folder:my/pictures --sequences 200
      wander evaluate runs/cpm-mine --world 'folder:other?size=64' --encoder mine.py:encode
    """

    learner: tyro.conf.Positional[str]
    """A run folder (its best weights), a .safetensors file, or the name of weights in the package."""
    world: str | None = None
    """glyphs, omniglot or a place of yours such as folder:PATH or rooms:PATH (default: where it was
    trained)."""
    split: str = "test"
    """train, val or test."""
    sequences: int | None = None
    """How many sequences (default: 2000; of walks through rooms one pass over all of them)."""
    semi: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Hide most labels of frequent classes (default: as it was trained)."""
    supervised: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Tell every label (default: as it was trained)."""
    shuffle: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Destroy temporal context by shuffling each sequence (the paper's control)."""
    background: Behind | None = None
    """What lies behind the pictures: none, textures as a channel, or as an overlay (default: as it was
    trained; docs/context.md)."""
    textures: str | None = None
    """Where textures come from: procedural, photos, a folder or a .zip (default: as it was trained)."""
    seed: int = 0
    """Sequence i of a seed is always the same."""
    offline: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Judge the features instead: replace the learner by offline logistic regression, which sees the whole
    sequence (the paper's upper reference)."""
    manifest: Path | None = None
    """Evaluate on the sequences of this file; world, split, labels, number and seed are then the file's."""
    batch_size: int = 16
    """Sequences at a time; it changes the time, not the figures."""
    json: str | None = None
    """Write the result as JSON to this file, or to standard output for -."""
    answers: Path | None = None
    """Write the raw answers to this .npz file, to compare another learner with later."""
    compare: Path | None = None
    """Compare with these answers of another learner to the same sequences (paired bootstrap)."""
    encoder: str | None = None
    """Encode the pictures of --world by an encoder of your own first, MODULE:CALLABLE or FILE.py:CALLABLE, as
    in training (what a run was trained on, it finds without)."""
    source: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Folder with the original files (omniglot)."""
    device: str = "cpu"
    """What to compute with: cpu, cuda (under torchrun a GPU for every process), cuda:N, or auto."""
    roaming: ProcessOptions = field(default_factory=ProcessOptions)

    def run(self) -> None:
        """Load, evaluate, show."""
        self._check()
        from wanderlearn.distributed import joined
        from wanderlearn.distributed.compute import backend_for

        with joined(backend_for(self.device)) as group:
            self._evaluate(group)

    def _evaluate(self, group: Group) -> None:
        from wanderlearn.answers import METRICS, compare, read_answers, write_answers
        from wanderlearn.distributed.compute import choose_device
        from wanderlearn.evaluate import evaluate_with_answers, gather, offline_reference
        from wanderlearn.model import about_model, load_model
        from wanderlearn.pictures.glyphs import draw_together
        from wanderlearn.progress import track
        from wanderlearn.results import write_result
        from wanderlearn.shipped import find_weights

        weights = find_weights(self.learner)
        run = Path(self.learner) if Path(self.learner).is_dir() else None
        model, about = load_model(weights), about_model(weights)
        origin = _origin(model, about, run, weights)
        if self.offline:
            model, origin = offline_reference(model), replace(origin, learner=OFFLINE)
        model.to(choose_device(self.device, group.local_rank))
        other = None if self.compare is None else read_answers(self.compare)
        if (self.world or about.get("world")) == "glyphs" and self.manifest is None:
            draw_together(group)
        with group.first_here_before():  # pictures may have to be decoded once for every machine
            world, manifest = self._sequences(model, about)
        if not group.first:  # one counts, shows and writes
            gather(model, world, manifest.sequences, self.batch_size, group=group)
            return
        result, answers = evaluate_with_answers(
            model, world, manifest, self.batch_size, origin=origin, progress=True, group=group
        )
        if self.offline:
            answers = replace(answers, name=_whose(result))
        if other is not None:
            result["compared"] = [
                compare(answers, other, metric) for metric in track(METRICS, "resampling", len(METRICS))
            ]
        if self.answers is not None:
            write_answers(self.answers, answers)
        if run is not None:
            kind = "-semi" * manifest.config.semi + "-shuffle" * manifest.config.shuffle
            kind += "-offline" * self.offline + "-transductive" * ("transductive" in result)
            kept = run / f"result-{manifest.pictures}-{manifest.split}{kind}.json"
            write_result(kept, result)
            print(f"written to {kept}", file=sys.stderr)
        put_json(result, self.json)
        if self.json != "-":
            _show(result)

    def _check(self) -> None:
        for name in ("sequences", "batch_size"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise WanderError(
                    f"--{name.replace('_', '-')} must be at least 1, not {getattr(self, name)}."
                )
        if not 0 <= self.seed < 2**63:
            raise WanderError(f"--seed must be between 0 and 2^63 - 1, not {self.seed}.")
        if self.semi and self.supervised:
            raise WanderError("--semi hides labels and --supervised tells all of them: choose one.")
        if self.answers is not None and self.answers.suffix != ".npz":
            raise WanderError(f"Answers go into a file that ends in .npz, not {self.answers.name}.")

    def _sequences(self, model: Model, about: dict[str, Any]) -> tuple[World, Manifest]:
        """What to evaluate on: the manifest, or what the options and the weights themselves say."""
        from wanderlearn.pictures.address import is_address
        from wanderlearn.places import at_place, check_seen, place_process, trained_background
        from wanderlearn.worlds import (
            RoamingConfig,
            draw_manifest,
            open_collection,
            open_world,
            read_manifest,
        )
        from wanderlearn.worlds.named import default_process

        trained = about.get("world")
        if self.manifest is not None:
            manifest = read_manifest(self.manifest)
            where = self.world or manifest.pictures
            if self.world is None and isinstance(trained, str) and is_address(trained):
                where = trained
            if is_address(where):
                where = at_place(where, model.config)
            elif self.world not in (None, manifest.pictures):
                raise WanderError(
                    f"{self.manifest} is a manifest of {manifest.pictures}, not of {self.world}."
                )
            pictures = open_collection(where, manifest.split, self.source)
            check_seen(model.config, pictures, manifest.config.background)
            return manifest.world(pictures), manifest
        name = self._encoded(model) or self.world or trained
        if not isinstance(name, str):
            raise WanderError(
                f"{self.learner} does not say which world it was trained in. Name one with --world."
            )
        base = default_process(name)
        if is_address(name):
            name, base = at_place(name, model.config), place_process(name, about)
        semi = self.semi or (bool(about.get("semi")) and not self.supervised)
        config = replace(self.roaming.applied(base), semi=semi, shuffle=self.shuffle)
        if isinstance(config, RoamingConfig):
            config = replace(config, background=trained_background(about))
        config = with_background(config, self.background, self.textures)
        world = open_world(name, self.split, config, self.source)
        check_seen(model.config, world.pictures, config.background)
        usual: int = getattr(world, "once", DEFAULT_SEQUENCES)
        return world, draw_manifest(world, self.seed, usual if self.sequences is None else self.sequences)

    def _encoded(self, model: Model) -> str | None:
        """The vectors of --world by --encoder."""
        if self.encoder is None:
            return None
        from wanderlearn.learners.vectors import VectorsConfig
        from wanderlearn.pictures.address import is_address, read_address
        from wanderlearn.places import encoded_place

        if self.world is None:
            raise WanderError("--encoder needs --world: whose pictures should it see?")
        if not isinstance(model.config.encoder, VectorsConfig):
            raise WanderError(
                f"{self.learner} has an encoder of its own and takes no other's vectors. Train a learner on "
                "them first: wander train cpm --world folder:PATH --encoder MODULE:CALLABLE."
            )
        place = str(read_address(self.world).with_absolute_path()) if is_address(self.world) else self.world
        return encoded_place(place, self.encoder, self.source)


def _whose(result: dict[str, Any]) -> str:
    """Whose result it is, for a reader."""
    if result["learner"] != OFFLINE:
        return str(result["preset"] or result["learner"])
    return OFFLINE + (f" on the features of {result['preset']}" if result["preset"] else "")


def _origin(model: Model, about: dict[str, Any], run: Path | None, weights: Path) -> Origin:
    """What is known of where the model came from: from the weights, and from the run around them."""
    from wanderlearn.checkpoint import progress_of
    from wanderlearn.configs import kind_of
    from wanderlearn.evaluate import Origin
    from wanderlearn.files import digest_of, read_json
    from wanderlearn.pictures.address import is_address, read_address

    train: dict[str, Any] = {name: about[name] for name in ("seed", "step", "validation_ap") if name in about}
    if run is not None and (progress := progress_of(run)):
        train |= {"seconds": progress.get("total_seconds"), "steps": progress.get("step")}
    if run is not None and (config := run / "config.json").exists():
        train["config"] = told = read_json(config)
        if is_address(str(told.get("world"))):
            told["world"] = str(read_address(told["world"]).without_folders())
    return Origin(
        preset=about.get("preset"),
        learner=kind_of(type(model.config.learner)),
        weights_sha256=digest_of(weights),
        train=train or None,
    )


def _show(result: dict[str, Any]) -> None:
    metrics, console = result["metrics"], Console(highlight=False)
    labels = "few labels" if result["semi"] else "all labels"
    shuffled = ", shuffled" if result["shuffle"] else ""
    shuffled += ", transductive" if "transductive" in result else ""
    console.print(
        f"[bold]{_whose(result)}[/bold] on {result['sequences']} sequences of "
        f"{result['world']}/{result['split']}, {labels}{shuffled} (manifest {result['manifest_sha256'][:12]})"
    )
    table = Table(box=None, show_header=False)
    interval = metrics["ap_interval"]
    within = f" ({interval['low']:.2f} to {interval['high']:.2f})" if interval else ""
    table.add_row("AP (95 % interval over sequences)" if interval else "AP", _figure(metrics["ap"]) + within)
    table.add_row("AP-joint", _figure(metrics["ap_joint"]))
    for shot in metrics["shots"]["labelled"]:
        error = "" if shot["standard_error"] is None else f" ± {shot['standard_error']:.2f}"
        table.add_row(f"{shot['shots']}-shot accuracy", _figure(shot["mean"]) + error)
    for words, value in _trust(metrics["calibration"]):
        table.add_row(words, value)
    table.add_row("seconds per sequence", f"{result['seconds_per_sequence']:.4f}")
    table.add_row("parameters", f"{result['parameters']:,}")
    console.print(table)
    console.print(_forgetting(metrics["forgetting"]["appearance"]))
    if "compared" in result:
        console.print(_compared(result["compared"]))


def _trust(found: dict[str, Any]) -> list[tuple[str, str]]:
    """How far confidences can be trusted, in words and figures."""
    rows = [
        ("calibration error of naming", _figure(found["naming_error"])),
        ("calibration error of new", _figure(found["new_error"])),
        ("area of risk over coverage (beyond best)",
         f"{_figure(found['aurc'])} ({_figure(found['excess_aurc'])})"),
    ]  # fmt: skip
    rows += [
        (f"labels accepted with {cell['risk']:g} % wrong", _figure(cell["coverage"]))
        for cell in found["coverage_at_risk"]
    ]
    return rows


def _forgetting(cells: list[dict[str, Any]]) -> Table:
    """Accuracy by how long ago the class was last met, one column per number of labels before."""
    table = Table(box=None, title="accuracy by steps since the class was last met", title_justify="left")
    shots = sorted({cell["shots"] for cell in cells})
    table.add_column("steps")
    for n in shots:
        table.add_column(f"{n}-shot", justify="right")
    for first, last in dict.fromkeys((cell["first"], cell["last"]) for cell in cells):
        row = [cell for cell in cells if cell["first"] == first]
        table.add_row(f"{first}-{last}", *(_figure(cell["accuracy"]) for cell in row))
    return table


def _compared(found: list[dict[str, Any]]) -> Table:
    table = Table(box=None, title=f"against {found[0]['against']}, percentage points", title_justify="left")
    for column in ("", "this", "other", "difference", "95 % interval"):
        table.add_column(column, justify="right" if column else "left")
    for row in found:
        interval = "-" if row["low"] is None else f"{row['low']:+.2f} to {row['high']:+.2f}"
        difference = "-" if row["difference"] is None else f"{row['difference']:+.2f}"
        table.add_row(row["metric"], _figure(row["first"]), _figure(row["second"]), difference, interval)
    return table


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
