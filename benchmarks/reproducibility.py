"""Write REPRODUCIBILITY.md: every row of the paper's tables, ours beside it, and what it takes to repeat it.

    python benchmarks/reproducibility.py

Measures nothing: all of it comes from results/, the presets and the paper's figures. What is below the paper
or has not been run says so.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import chdir
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from wanderlearn.configs import differences, from_json, to_json
from wanderlearn.errors import WanderError
from wanderlearn.files import digest_of, writing
from wanderlearn.paper import LEARNERS, METHOD_NAMES, SETTINGS, TABLES, Setting
from wanderlearn.presets import GOES_ON_FROM, PRESETS, RESNET_PRESETS, SCRATCH_PRESETS, Preset
from wanderlearn.report.ablations import TABLES as ABLATION_TABLES
from wanderlearn.report.ablations import AblationTables, read_ablation_tables
from wanderlearn.report.forgetting import read_forgetting_table
from wanderlearn.report.methods import WORDS, MethodTable, Ours, Seeds, read_method_table, seeds_of
from wanderlearn.report.pairs import pairs_markdown
from wanderlearn.report.parts import parts_markdown
from wanderlearn.results import load_results, markdown_table
from wanderlearn.shipped import find_encoder

ROOT = Path(__file__).parents[1]
RESULTS, DOCUMENT = ROOT / "results", ROOT / "REPRODUCIBILITY.md"
PAPER_SEQUENCES: Final = 2000
TITLES: Final = {name: title for name, (title, _, _) in ABLATION_TABLES.items()}
SHOWN_CHANGES: Final = 4
BEGUN: Final = ("encoder", "start")  # what a run began with, beside its settings
# Settings that change how a run goes, not what comes of it.
NO_MATTER: Final = {"train.threads", "train.workers", "train.tensorboard", "train.checkpoint_minutes"}
HEAD: Final = """# Reproducibility

Every row of the paper's RoamingOmniglot tables, ours beside the paper's, and what it takes to repeat it. \
Written by `python benchmarks/reproducibility.py` from the files in `results/`; nothing is typed by hand. \
What is below the paper, and what has not been run, says so."""
MEANING: Final = """## What the figures mean

- **AP**: average precision in percent of saying the right class while saying "known", over all steps of all \
test sequences, ranked by novelty; errors of class lower it too.
- **difference**: our AP minus the paper's, in percentage points. The interval is the 95 % interval of our \
AP over resampled test sequences, the paper's figure taken as exact; other seeds of training are not in it.
- **seeds**: mean ± standard deviation of AP over seeds of training (how many); the row is the first seed.
- **recipe**: the stages of training and their budgets, as the result's own config has them.
- **seconds**: wall clock of training on the machine it ran on, all stages and validation included.
- **commit**, **manifest**, **weights**: the code it was evaluated with, the test sequences and the weights, \
by the first twelve digits of their digests.
- **forgetting**: accuracy on known classes after so many labels, by steps since the class was last met, \
labelled or not.
- **ablations**: semi-supervised AP on validation sequences, which have fewer classes and are easier."""
HOW: Final = """## How to repeat it

```
pip install -e .
wander data get omniglot                     # or --from DIR with the two published zips
wander train cpm-omniglot --encoder omniglot # any training command of the tables
wander evaluate runs/cpm-omniglot --json results/cpm-omniglot.json
wander train cpm-omniglot --encoder omniglot --train.seed 1 --name cpm-omniglot-seed1
wander evaluate runs/cpm-omniglot-seed1 --json results/cpm-omniglot-seed1.json
python benchmarks/omniglot.py lstm-omniglot  # a row with --start: trains what it goes on from, too
wander table omniglot                        # also with --forgetting and --ablations
python benchmarks/reproducibility.py         # writes this page again
```

Test sequences are a function of world, split, seed and number: the same digest of the manifest is the same \
sequences. A run whose budget is in steps is a function of its settings and seed, to the bit on one thread; \
a budget in minutes gets as far as the machine does. The encoder `omniglot` comes with the package, and \
`python benchmarks/omniglot_encoders.py` makes it again; without `--encoder` one is pretrained by names."""


def document(results: Path = RESULTS) -> str:
    """The whole page. Its commands name the folder of results as one has it in the checkout."""
    with chdir(results.parent):
        return _document(Path(results.name))


def _document(results: Path) -> str:
    found = load_results(results, "evaluation")
    omniglot, glyphs = (read_method_table(results, world) for world in ("omniglot", "glyphs"))
    forgetting, ablations = read_forgetting_table(results, "omniglot"), read_ablation_tables(results)
    parts = [
        HEAD,
        "## RoamingOmniglot",
        _count(omniglot),
        _order(omniglot),
        _table(omniglot, found),
        *(f"**Warning.** {warning}" for warning in omniglot.warnings),
        "## On the same sequences",
        "By how much one learner's AP is above another's, by a paired bootstrap over the test sequences. "
        "The last columns are of what was told once or three times and last met 51 to 100 meetings ago: how "
        "many percent more of it is named.",
        pairs_markdown(results, "omniglot", "omniglot-resnet"),
        _context(omniglot),
        "## What the recipe is worth",
        "The authors' own way, sequences from the first step on with nothing pretrained, for as long as "
        "there was time: mind seconds and steps. These two shared their cores with another run, so their "
        "seconds are worth less than others'. Those of the recipe count the encoder that all rows share.",
        _scratch(omniglot, found),
        "## A stronger encoder",
        "The same pictures, the same recipe, and a small ResNet-12 in the place of Conv4-64.",
        _resnet(found),
        "## Forgetting",
        parts_markdown(forgetting.parts(), forgetting.warnings),
        "## Ablations",
        "All rows start with the same encoder and have the same short budget (`python "
        "benchmarks/ablations.py`), shorter than the main table's: ours are to be compared with each other.",
        parts_markdown(ablations.parts(), ablations.warnings),
        _agreement(ablations),
        _commands(ablations.missing),
        "## The embedded world",
        "RoamingOmniglot's sequences of glyphs that are drawn by the package itself: no download. "
        "The paper does not have it.",
        _table(glyphs, found),
        *(f"**Warning.** {warning}" for warning in glyphs.warnings),
        HOW,
        _environment(found),
        MEANING,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _count(table: MethodTable) -> str:
    """How much of the table there is, in a sentence."""
    pairs = [
        (ours.ap, figures.ap)
        for learner, settings in table.ours.items()
        for setting, ours in settings.items()
        if ours is not None and ours.ap is not None and (figures := table.paper(learner, setting))
    ]
    rows = len(LEARNERS) * len(SETTINGS)
    reached = sum(ours >= paper for ours, paper in pairs)
    if not pairs:
        return f"None of the {rows} rows has been run yet."
    return (
        f"{len(pairs)} of {rows} rows have been run: {reached} at or above the paper's AP, "
        f"{len(pairs) - reached} below."
    )


def _order(table: MethodTable) -> str:
    """The methods by their AP, here and in the paper."""
    said = []
    for setting in SETTINGS:
        ours = {name: row.ap for name in LEARNERS if (row := table.ours[name][setting]) and row.ap}
        theirs = {name: printed.ap for name in ours if (printed := table.paper(name, setting)) and printed.ap}
        if not ours:
            continue
        here, there = (
            " > ".join(LEARNERS[name] for name in sorted(ap, key=lambda name: -ap[name]))
            for ap in (ours, theirs)
        )
        said.append(f"- {WORDS[setting]}, from best to worst: {here}; in the paper: {there}.")
    return "\n".join(said)


def _agreement(ablations: AblationTables) -> str:
    """How many pairs of rows are in the paper's order, and which are not."""
    said = []
    for table, rows in ablations.tables.items():
        run = [(row.name, row.ap, row.paper_ap) for row in rows if row.ap is not None]
        pairs = list(combinations(run, 2))
        against = [
            f"{other} is {'above' if ours > before else 'below'} {one}"
            for (one, before, printed), (other, ours, theirs) in pairs
            if (ours - before) * (theirs - printed) < 0
        ]
        not_so = f"; not so: {', '.join(against)}" if against else ""
        agree = f"of {len(pairs)} pairs of rows {len(pairs) - len(against)} are in the paper's order"
        said += [f"- {TITLES[table]}: {agree}{not_so}."] if pairs else []
    return "\n".join(said)


def _context(table: MethodTable) -> str:
    """What context is worth, CPM over Online ProtoNet, here and in the paper."""
    said = []
    for setting in SETTINGS:
        ours = [table.ours[learner][setting] for learner in ("protonet", "cpm")]
        theirs = [table.paper(learner, setting) for learner in ("protonet", "cpm")]
        if not all(row is not None and row.ap is not None for row in (*ours, *theirs)):
            continue
        (plain, context), (printed, with_context) = (
            [row.ap for row in pair if row is not None and row.ap is not None] for pair in (ours, theirs)
        )
        taken, theirs_taken = ((b - a) / (100 - a) for a, b in ((plain, context), (printed, with_context)))
        more = plain - printed > context - with_context
        gained = ": the gap is smaller because the recipe gave Online ProtoNet more" if more else ""
        said.append(
            f"- {WORDS[setting]}: CPM is {context - plain:.2f} above Online ProtoNet, in the paper "
            f"{with_context - printed:.2f}. Over the paper's rows ours are {plain - printed:+.2f} for Online "
            f"ProtoNet and {context - with_context:+.2f} for CPM{gained}. Of what Online ProtoNet lacks CPM "
            f"gains {taken:.0%}, in the paper {theirs_taken:.0%}."
        )
    return "\n".join(said)


def _table(table: MethodTable, found: Mapping[str, dict[str, Any]]) -> str:
    paper, seeds = table.world in TABLES, any(map(table.has_seeds, SETTINGS))
    columns = ["method", "labels", *(["AP, paper"] if paper else []), "AP"]
    columns += ["difference, 95 % interval" if paper else "95 % interval", *(["seeds"] if seeds else [])]
    columns += ["recipe", "training command", "seconds", "commit", "manifest", "weights", "note"]
    rows: list[list[object]] = []
    for learner, words in LEARNERS.items():
        for setting in SETTINGS:
            ours, name = table.ours[learner][setting], f"{learner}-{table.world}{SETTINGS[setting]}"
            figures = table.paper(learner, setting)
            printed = figures.ap if figures else None
            row: list[object] = [words, WORDS[setting], *([f"{printed:.2f}"] if printed is not None else [])]
            row += [_ap(ours), _interval(ours, printed), *([seeds_of(ours)] if seeds else [])]
            config = ((found.get(f"{name}.json") or {}).get("train") or {}).get("config")
            row += [ours and ours.recipe, f"`wander train {name}{_begins(name, config)}`", _seconds(ours)]
            row += [_commit(ours), *(_short(ours, key) for key in ("manifest_sha256", "weights_sha256"))]
            rows.append([*row, _note(table, learner, setting, printed, config)])
    return markdown_table(columns, rows)


def _begins(name: str, config: Mapping[str, Any] | None) -> str:
    """What a training command says of where the run began."""
    if config is not None and "start" in config and name in GOES_ON_FROM:
        before, *changes = GOES_ON_FROM[name]
        return " ".join([f" --start runs/{before}", *changes])
    return " --encoder omniglot" if (config or {}).get("encoder") == _shipped() else ""


def _scratch(table: MethodTable, found: Mapping[str, dict[str, Any]]) -> str:
    """Rows with and without the recipe beside each other."""
    columns = ["method", "AP by the recipe", "seconds", "AP from scratch", "seconds", "steps", "command"]
    rows: list[list[object]] = []
    for name in SCRATCH_PRESETS:
        learner = name.partition("-")[0]
        ours, plain = table.ours[learner]["supervised"], found.get(f"{name}.json") or {}
        trained = plain.get("train") or {}
        value = (plain.get("metrics") or {}).get("ap")
        row = [LEARNERS[learner], _ap(ours), _seconds(ours), None if value is None else f"{value:.2f}"]
        seconds, steps = trained.get("seconds"), trained.get("steps")
        row += [seconds and f"{seconds:,.0f}", steps and f"{steps:,}", f"`wander train {name}`"]
        rows.append([*row])
    return markdown_table(columns, rows)


def _resnet(found: Mapping[str, dict[str, Any]]) -> str:
    """Rows with another encoder, beside those of the same learner with Conv4-64."""
    encoders = {"Conv4-64": "", "ResNet-12": "-resnet"}
    columns = ["method", "labels", *(f"AP, {name}" for name in encoders), "seeds, ResNet-12"]
    columns += [*(f"parameters, {name}" for name in encoders), "note"]
    rows: list[list[object]] = []
    for preset in RESNET_PRESETS.values():
        learner = preset.name.partition("-")[0]
        setting: Setting = "semi" if preset.roaming.semi else "supervised"
        both = [
            found.get(f"{learner}-omniglot{end}{SETTINGS[setting]}.json") or {} for end in encoders.values()
        ]
        aps = [(one.get("metrics") or {}).get("ap") for one in both]
        row: list[object] = [METHOD_NAMES[learner], WORDS[setting]]
        row += [None if ap is None else f"{ap:.2f}" for ap in aps]
        further = (f for f in found if re.fullmatch(rf"{preset.name}-seed[1-9]\d*\.json", f))
        of_seeds = [ap for ap in (aps[1], *(found[f]["metrics"]["ap"] for f in further)) if ap is not None]
        seeds = Seeds.among(of_seeds)
        row += [seeds and seeds.in_words()]
        row += [one.get("parameters") and f"{one['parameters']:,}" for one in both]
        config = (both[1].get("train") or {}).get("config")
        rows.append([*row, None if config is None else _others_now(list(changed(config, preset)))])
    return markdown_table(columns, rows)


def _ap(ours: Ours | None) -> str | None:
    return None if ours is None or ours.ap is None else f"{ours.ap:.2f}"


def _interval(ours: Ours | None, paper: float | None) -> str | None:
    """Of the difference from the paper's AP, or where there is none of AP itself."""
    if ours is None or ours.ap is None:
        return None
    between = ours.ap_interval
    if paper is None:
        return f"{between['low']:.2f} to {between['high']:.2f}" if between else None
    ends = f" ({between['low'] - paper:+.2f} to {between['high'] - paper:+.2f})" if between else ""
    return f"{ours.ap - paper:+.2f}{ends}"


def _seconds(ours: Ours | None) -> str | None:
    return None if ours is None or ours.seconds is None else f"{ours.seconds:,.0f}"


def _commit(ours: Ours | None) -> str | None:
    if ours is None or ours.commit is None:
        return None
    digest, plus, dirty = ours.commit.partition("+")
    return f"`{digest[:12]}{plus}{dirty}`"


@cache
def _shipped() -> str:
    """The digest of the encoder for Omniglot that comes with the package."""
    return digest_of(find_encoder("omniglot"))


def _short(ours: Ours | None, key: str) -> str | None:
    digest = None if ours is None else getattr(ours, key)
    return digest and f"`{digest[:12]}`"


def _note(
    table: MethodTable, learner: str, setting: Setting, paper: float | None, config: dict[str, Any] | None
) -> str:
    """What a reader must know before trusting the row, from the data alone."""
    name, ours = f"{learner}-{table.world}{SETTINGS[setting]}", table.ours[learner][setting]
    if ours is None:
        how = next(command for command in table.missing if command.startswith(f"wander train {name} "))
        return f"not run: `{how}`"
    notes = []
    if ours.ap is None:
        notes.append("AP could not be measured")
    elif paper is not None:
        notes.append(_against(ours.ap, ours.ap_interval, paper))
    if ours.sequences != PAPER_SEQUENCES:
        notes.append(f"on {ours.sequences:,} test sequences, not {PAPER_SEQUENCES:,}")
    if ours.commit is not None and "+dirty" in ours.commit:
        notes.append("made from a working copy that differed from its commit")
    if config is not None and config.get("encoder", _shipped()) != _shipped():
        notes.append("started with an earlier encoder than the package has now")
    said = GOES_ON_FROM.get(name, ())  # in the command
    other = [] if config is None else [o for o in changed(config, PRESETS[name]) if f"--{o}" not in said]
    if other:
        notes.append(_others_now(other))
    return "; ".join(notes)


def _others_now(changes: list[str]) -> str:
    """That a preset is not what it was when the row was run; nothing, if it is."""
    more = f" and {len(changes) - SHOWN_CHANGES} more" if len(changes) > SHOWN_CHANGES else ""
    said = f"the preset's settings are others now: {', '.join(changes[:SHOWN_CHANGES])}{more}"
    return said if changes else ""


def _against(ap: float, interval: Mapping[str, float] | None, paper: float) -> str:
    gap = ap - paper
    said = f"below by {-gap:.2f}" if gap < 0 else f"above by {gap:.2f}"
    if interval and interval["low"] <= paper <= interval["high"]:
        said += ", within the interval"
    return said


MOVED: Final = {"returning", "balance"}
"""Settings that once held for the stage on features alone."""


def changed(config: Mapping[str, Any], preset: Preset) -> Iterator[str]:
    """The settings of a run that its preset no longer has."""
    own = {name: value for name, value in config.items() if name not in ("pictures", *BEGUN)}
    features, train = dict(own.get("features") or {}), dict(own.get("train") or {})
    for name in MOVED & features.keys():
        train.setdefault(name, features.pop(name))
    own |= {"features": features or None, "train": train}
    try:
        then = to_json(from_json(Preset, own))
    except WanderError:
        yield "settings this version does not know"
        return
    for name, _, _ in differences(then, to_json(preset)):
        # A run that was given its encoder did no pretraining of its own.
        taken = any(key in config for key in BEGUN) and name.split(".")[0] == "pretrain"
        if name not in NO_MATTER and not taken:
            yield name


def _commands(commands: tuple[str, ...]) -> str:
    if not commands:
        return ""
    return "What is missing is filled by\n\n```\n" + "\n".join(commands) + "\n```"


def _environment(found: Mapping[str, dict[str, Any]]) -> str:
    """What the evaluations were made with, as far as they say."""
    lines = ["## Environment", ""]
    for key, words in (("python", "Python"), ("torch", "torch"), ("version", "wanderlearn")):
        counted = Counter(result.get(key) for result in found.values())
        said = [f"{words} {value} ({n} results)" for value, n in sorted(counted.items(), key=str) if value]
        if silent := counted[None]:
            said.append(f"{'' if said else words + ' '}not recorded in {silent} results")
        lines += [f"- {', '.join(said)}"] if said else []
    return "\n".join(lines) if len(lines) > 2 else ""


def write(results: Path = RESULTS, to: Path = DOCUMENT) -> None:
    """Write the page."""
    with writing(to) as part:
        part.write_text(document(results), encoding="utf-8")


if __name__ == "__main__":
    write()
