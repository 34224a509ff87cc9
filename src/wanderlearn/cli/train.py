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
from wanderlearn.model import ModelConfig
from wanderlearn.presets import ABLATION_PRESETS, PRESETS, Preset
from wanderlearn.pretrain import PretrainConfig
from wanderlearn.sequence_training import TrainConfig
from wanderlearn.shipped import find_encoder
from wanderlearn.train import Outcome, train
from wanderlearn.worlds import RoamingConfig, open_pictures

if TYPE_CHECKING:
    from wanderlearn.pictures.collection import Pictures, Split

__all__ = ["Options", "main"]

INTERRUPTED = 130  # what a shell reports for a command ended by Ctrl-C


@dataclass(frozen=True)
class Options:
    """What may be said after the preset's name."""

    name: str
    """Name of the run; its folder in `--runs`."""
    train: TrainConfig
    pretrain: PretrainConfig
    features: FeaturesConfig
    roaming: RoamingConfig
    model: ModelConfig
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
    presets = PRESETS | ABLATION_PRESETS
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
    preset = Preset(
        name=preset.name,
        world=preset.world,
        roaming=roaming,
        model=options.model,
        train=options.train,
        pretrain=options.pretrain if options.pretrain.wanted else None,
        features=options.features if options.features.wanted else None,
    )
    find = partial(_pictures, preset.world, options.source)
    encoder = None if options.encoder is None else find_encoder(options.encoder)
    folder = options.runs / options.name
    outcome = train(preset, folder, resume=options.resume, encoder=encoder, pictures=find)
    _tell(outcome, args)


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
