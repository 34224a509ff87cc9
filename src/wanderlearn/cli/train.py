"""`wander train`: train a learner from a preset, any field of which can be changed."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console
from rich.table import Table

from wanderlearn.cli.process import Behind, with_background
from wanderlearn.distributed import Group, joined
from wanderlearn.distributed.compute import Compute, backend_for, choose_device
from wanderlearn.errors import WanderError
from wanderlearn.feature_training import FeaturesConfig
from wanderlearn.learners.vectors import VectorsConfig
from wanderlearn.model import ModelConfig
from wanderlearn.pictures.address import is_address, read_address
from wanderlearn.pictures.encoded import is_named_encoder
from wanderlearn.pictures.glyphs import draw_together
from wanderlearn.places import at_place, encoded_place, merged_place, model_before, model_for
from wanderlearn.presets import (
    ABLATION_PRESETS,
    ALL_PRESETS,
    CONTEXT_PRESETS,
    IMAGENET_PRESETS,
    METHOD_PRESETS,
    PRESETS,
    RESNET_PRESETS,
    ROOMS_PRESETS,
    SCRATCH_PRESETS,
    Preset,
)
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.shipped import find_encoder, find_weights
from wanderlearn.train import Outcome, train
from wanderlearn.worlds import RoamingConfig, open_collection
from wanderlearn.worlds.named import check_fit
from wanderlearn.worlds.world import Process

if TYPE_CHECKING:
    from wanderlearn.pictures.collection import Split
    from wanderlearn.worlds import Collection

__all__ = ["Options", "main"]

INTERRUPTED = 130  # what a shell reports for a command ended by Ctrl-C


@dataclass(frozen=True)
class Options:
    """What may be said after the preset's name."""

    name: str
    """Name of the run; its folder in `--runs`. With a place of yours as the world, its name is added."""
    train: TrainConfig
    pretrain: PretrainConfig
    features: FeaturesConfig
    roaming: Process
    model: ModelConfig
    world: str | None = None
    """Train in another world than the preset's: glyphs, omniglot, or a place of yours: folder:PATH,
    'folder:PATH?size=64,channels=1' (docs/folder.md), imagenet:PATH, features:PATH.npy, rooms:PATH."""
    runs: Path = Path("runs")
    """Where run folders are kept."""
    resume: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Go on with a run that was interrupted. Give the same options as before."""
    shuffle: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Destroy temporal context by shuffling each sequence (the paper's control)."""
    background: Behind | None = None
    """Put textures behind the pictures, one kind for each environment: a spatial cue. As a channel they have
    an encoder beside that of the pictures (default: as in the preset; docs/context.md)."""
    textures: str | None = None
    """Where textures come from: procedural, photos (in WANDERLEARN_DATA), a folder or a .zip."""
    encoder: str | None = None
    """Start with this encoder instead of pretraining one: a run folder, a file of weights, or the name of
    weights that come with the package. The time it took is added to this run's. Or an encoder of your own,
    MODULE:CALLABLE or FILE.py:CALLABLE, from pictures [N, C, H, W] in [-1, 1] to vectors [N, D]: every
    picture goes through it once, and only the learner is trained (docs/folder.md)."""
    start: str | None = None
    """Go on from these weights, encoder and learner: a run folder, a file of weights, or the name of weights
    that come with the package. Perhaps with other labels, or in a world of yours. Their time is added."""
    source: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Folder with the original files (omniglot)."""
    device: str = "cpu"
    """What to compute with: cpu, cuda (under torchrun a GPU for every process), cuda:N, or auto."""


def main(args: list[str]) -> None:
    """Run the command with the words after `wander train`."""
    if not args or args[0] in ("-h", "--help"):
        _overview()
        return
    chosen, *rest = args
    if chosen not in ALL_PRESETS:
        raise WanderError(f"There is no preset {chosen!r}. Choose one of {', '.join(ALL_PRESETS)}.")
    preset = ALL_PRESETS[chosen]
    options = tyro.cli(
        Options,
        prog=f"wander train {chosen}",
        description=f"{preset.about}. Every option below shows this preset's value.",
        args=rest,
        default=Options(
            name=preset.name,
            train=preset.train,
            pretrain=preset.pretrain or PretrainConfig(),
            features=preset.features or FeaturesConfig(),
            roaming=preset.roaming,
            model=ModelConfig(VectorsConfig(), preset.model.learner) if _on_vectors(rest) else preset.model,
        ),
        config=(tyro.conf.AvoidSubcommands,),
    )
    if not any(word == "--name" or word.startswith("--name=") for word in rest):
        options = replace(options, name="")  # then that of the place is added
    with joined(backend_for(options.device)) as group:
        outcome = _train(options, preset, group)
    if group.first:
        _tell(outcome, args)
    elif outcome.status == "interrupted":
        raise SystemExit(INTERRUPTED)


def _train(options: Options, preset: Preset, group: Group) -> Outcome:
    compute = Compute(group, choose_device(options.device, group.local_rank))
    roaming = replace(options.roaming, shuffle=options.roaming.shuffle or options.shuffle)
    roaming = with_background(roaming, options.background, options.textures)
    with group.first_here_before():  # pictures may have to be decoded or encoded, once for every machine
        world, model, name = _where(options, preset)
    preset = Preset(
        name=preset.name,
        world=world,
        roaming=roaming,
        model=model_before(model, roaming.background),
        train=options.train,
        pretrain=options.pretrain if options.pretrain.wanted and _has_weights(model) else None,
        features=options.features if options.features.wanted else None,
    )
    find = partial(_pictures, preset.world, options.source)
    if world == "glyphs":
        draw_together(group)
    if is_address(world):
        with group.first_here_before():
            check_fit(world, [find("train"), find("val")], roaming)
    if options.start is not None and options.encoder is not None:
        raise WanderError("Weights to start with have an encoder of their own: give --start or --encoder.")
    own = options.encoder is None or is_named_encoder(options.encoder)
    encoder = None if own else find_encoder(str(options.encoder))
    start = None if options.start is None else find_weights(options.start)
    folder = options.runs / name
    return train(
        preset,
        folder,
        resume=options.resume,
        encoder=encoder,
        start=start,
        pictures=find,
        compute=compute,
    )


def _on_vectors(args: list[str]) -> bool:
    """Whether these words ask for a world of vectors, or for an encoder that makes one."""
    said = dict(pairwise([*args, ""]))
    said |= dict(word.split("=", 1) for word in args if word.startswith("--") and "=" in word)
    return said.get("--world", "").startswith("features:") or is_named_encoder(said.get("--encoder", ""))


def _has_weights(model: ModelConfig) -> bool:
    """Whether there is an encoder to pretrain."""
    return not isinstance(model.encoder, VectorsConfig)


def _where(options: Options, preset: Preset) -> tuple[str, ModelConfig, str]:
    """The world, the model that takes its pictures, and the name of the run."""
    world = options.world or preset.world
    if not world:
        others = "" if preset.name in IMAGENET_PRESETS else (
            f" The same for worlds that come along: {preset.name.replace('-semi', '')}-glyphs, "
            f"{preset.name.replace('-semi', '')}-omniglot."
        )  # fmt: skip
        raise WanderError(
            f"The preset {preset.name} is for a world of yours: wander train {preset.name} --world "
            f"folder:PATH, where PATH holds a folder per class.{others}"
        )
    own = options.encoder is not None and is_named_encoder(options.encoder)
    if not is_address(world) and not own:
        return world, options.model, options.name or preset.name
    name = options.name
    if is_address(world):
        if preset.name in IMAGENET_PRESETS and isinstance(options.roaming, RoamingConfig):
            world = merged_place(world, options.roaming.environments)
        if not name and options.world is not None:
            name = f"{preset.name}-{read_address(world).name.partition('-')[2]}"
        world = at_place(world, preset.model if own else options.model)
    if own:
        world = encoded_place(world, str(options.encoder), options.source)
    return world, model_for(world, options.model), name or preset.name


def _pictures(world: str, source: Path | None, split: "Split") -> "Collection":
    return open_collection(world, split, source)


def _tell(outcome: Outcome, args: list[str]) -> None:
    best = "no validation yet" if outcome.best_ap is None else f"best validation AP {outcome.best_ap:.2f}"
    spent = f"{outcome.seconds / 60:.1f} minutes"
    if outcome.status == "interrupted":
        again = shlex.join(["wander", "train", *args, *(() if "--resume" in args else ("--resume",))])
        where = f"step {outcome.step} of stage {outcome.stage}"
        print(f"Interrupted after {where} ({spent}, {best}); saved. Go on with:\n  {again}", file=sys.stderr)
        raise SystemExit(INTERRUPTED)
    found = f"{best} (step {outcome.best_step})" if outcome.best_ap is not None else "no validation AP"
    print(f"{outcome.run_dir}: finished after {outcome.step} steps, {spent}, {found}.")


def _line(preset: Preset) -> tuple[str, str]:
    """What to write after `wander train`, and what that does."""
    command, _, what = preset.about.partition(": ")
    return command.removeprefix("wander train "), what


def _overview() -> None:
    console = Console()
    console.print("usage: wander train PRESET [OPTIONS]", highlight=False)
    kinds: list[tuple[str, dict[str, Preset], Callable[[Preset], tuple[str, str]]]] = [
        ("Train a learner from a preset", PRESETS | RESNET_PRESETS | SCRATCH_PRESETS, _line),
        ("The same methods on pictures of yours (docs/folder.md)", METHOD_PRESETS, _line),
        ("The same on natural pictures (docs/imagenet.md)", IMAGENET_PRESETS, _line),
        ("The same on recorded walks through rooms (docs/rooms.md)", ROOMS_PRESETS, _line),
        ("The paper's context experiment (docs/context.md)", CONTEXT_PRESETS, _line),
        (
            "Rows of the paper's ablation tables, the rest as in CPM's preset or ProtoNet's",
            ABLATION_PRESETS,
            lambda preset: (preset.name, preset.about.rpartition(" (")[2].rstrip(")")),
        ),
    ]
    for words, presets, line in kinds:
        console.print(f"\n{words}:\n", highlight=False)
        table = Table(box=None, show_header=False, padding=(0, 2))
        table.add_column(no_wrap=presets is ABLATION_PRESETS)
        for preset in presets.values():
            table.add_row(*line(preset))
        console.print(table)
    console.print(
        "\nAny field of a preset can be changed: wander train cpm-glyphs --train.lr 5e-4 --train.steps 200\n"
        "All of them: wander train cpm-glyphs --help\n"
        "On many processes: the same after `torchrun --standalone --nproc-per-node 2 --no-python` "
        "(docs/scaling.md)",
        highlight=False,
    )
