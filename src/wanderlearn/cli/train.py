"""`wander train`: train a learner from a preset, any field of which can be changed."""

import shlex
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console
from rich.table import Table

from wanderlearn.errors import WanderError
from wanderlearn.feature_training import FeaturesConfig
from wanderlearn.learners.vectors import VectorsConfig
from wanderlearn.model import ModelConfig
from wanderlearn.pictures.address import is_address, read_address
from wanderlearn.places import at_place, model_for
from wanderlearn.presets import ABLATION_PRESETS, METHOD_PRESETS, PRESETS, Preset
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.shipped import find_encoder
from wanderlearn.train import Outcome, train
from wanderlearn.worlds import RoamingConfig, open_pictures
from wanderlearn.worlds.named import check_fit

if TYPE_CHECKING:
    from wanderlearn.pictures.collection import Pictures, Split

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
    roaming: RoamingConfig
    model: ModelConfig
    world: str | None = None
    """Train in another world than the preset's: glyphs, omniglot, or a place of yours: folder:PATH,
    'folder:PATH?size=64,channels=1' (docs/folder.md), imagenet:PATH, features:PATH.npy."""
    runs: Path = Path("runs")
    """Where run folders are kept."""
    resume: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Go on with a run that was interrupted. Give the same options as before."""
    shuffle: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Destroy temporal context by shuffling each sequence (the paper's control)."""
    encoder: str | None = None
    """Start with this encoder instead of pretraining one: a run folder, a file of weights, or the name of
    weights that come with the package. The time it took is added to this run's."""
    source: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Folder with the original files (omniglot)."""


def main(args: list[str]) -> None:
    """Run the command with the words after `wander train`."""
    if not args or args[0] in ("-h", "--help"):
        _overview()
        return
    chosen, *rest = args
    presets = METHOD_PRESETS | PRESETS | ABLATION_PRESETS
    if chosen not in presets:
        raise WanderError(f"There is no preset {chosen!r}. Choose one of {', '.join(presets)}.")
    preset = presets[chosen]
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
            model=preset.model,
        ),
        config=(tyro.conf.AvoidSubcommands,),
    )
    roaming = replace(options.roaming, shuffle=options.roaming.shuffle or options.shuffle)
    world, model, name = _where(options, preset)
    preset = Preset(
        name=preset.name,
        world=world,
        roaming=roaming,
        model=model,
        train=options.train,
        pretrain=options.pretrain if options.pretrain.wanted and _has_weights(model) else None,
        features=options.features if options.features.wanted else None,
    )
    find = partial(_pictures, preset.world, options.source)
    if is_address(world):
        check_fit(world, [find("train"), find("val")], roaming)
    encoder = None if options.encoder is None else find_encoder(options.encoder)
    folder = options.runs / name
    outcome = train(preset, folder, resume=options.resume, encoder=encoder, pictures=find)
    _tell(outcome, args)


def _has_weights(model: ModelConfig) -> bool:
    """Whether there is an encoder to pretrain."""
    return not isinstance(model.encoder, VectorsConfig)


def _where(options: Options, preset: Preset) -> tuple[str, ModelConfig, str]:
    """The world, the model that takes its pictures, and the name of the run."""
    world = options.world or preset.world
    if not world:
        raise WanderError(
            f"The preset {preset.name} is for a world of yours: wander train {preset.name} --world "
            f"folder:PATH, where PATH holds a folder per class. The same for worlds that come along: "
            f"{preset.name.replace('-semi', '')}-glyphs, {preset.name.replace('-semi', '')}-omniglot."
        )
    if not is_address(world):
        return world, options.model, options.name
    named = options.name != preset.name
    name = options.name if named else f"{preset.name}-{read_address(world).name.partition('-')[2]}"
    world = at_place(world, options.model)
    return world, model_for(world, options.model), name


def _pictures(world: str, source: Path | None, split: "Split") -> "Pictures":
    return open_pictures(world, split, source)


def _tell(outcome: Outcome, args: list[str]) -> None:
    best = "no validation yet" if outcome.best_ap is None else f"best validation AP {outcome.best_ap:.2f}"
    spent = f"{outcome.seconds / 60:.1f} minutes"
    if outcome.status == "interrupted":
        again = shlex.join(["wander", "train", *args, *(() if "--resume" in args else ("--resume",))])
        where = f"step {outcome.step} of stage {outcome.stage}"
        print(f"Interrupted after {where} ({spent}, {best}); saved. Go on with:\n  {again}", file=sys.stderr)
        raise SystemExit(INTERRUPTED)
    print(
        f"{outcome.run_dir}: finished after {outcome.step} steps, {spent}, {best} (step {outcome.best_step})."
    )


def _overview() -> None:
    console = Console()
    console.print("usage: wander train PRESET [OPTIONS]\n\nTrain a learner from a preset:\n", highlight=False)
    table = Table(box=None, show_header=False, padding=(0, 2))
    for preset in PRESETS.values():
        table.add_row(preset.name, preset.about.partition(": ")[2])
    console.print(table)
    console.print("\nThe same methods on pictures of yours (docs/folder.md):\n", highlight=False)
    table = Table(box=None, show_header=False, padding=(0, 2))
    for preset in METHOD_PRESETS.values():
        table.add_row(f"{preset.name} --world folder:PATH", preset.about.partition(": ")[2])
    console.print(table)
    console.print(
        "\nRows of the paper's ablation tables, the rest as in CPM's preset or ProtoNet's:\n", highlight=False
    )
    table = Table(box=None, show_header=False, padding=(0, 2))
    table.add_column(no_wrap=True)
    for preset in ABLATION_PRESETS.values():
        table.add_row(preset.name, preset.about.rpartition(" (")[2].rstrip(")"))
    console.print(table)
    console.print(
        "\nAny field of a preset can be changed: wander train cpm-glyphs --train.lr 5e-4 --train.steps 200\n"
        "All of them: wander train cpm-glyphs --help",
        highlight=False,
    )
