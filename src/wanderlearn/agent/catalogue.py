"""The weights that come with the package, and how an agent begins with them."""

import json
from dataclasses import dataclass
from pathlib import Path

from wanderlearn.agent.agent import Agent
from wanderlearn.agent.inputs import Ink
from wanderlearn.agent.journal import Fsync
from wanderlearn.errors import WanderError
from wanderlearn.files import digest_of, read_json
from wanderlearn.model import load_model
from wanderlearn.shipped import DEFAULT_WEIGHTS, FOLDER, find_weights, shipped_weights
from wanderlearn.tensors import digest_of_tensors, load_tensors

__all__ = ["ShippedWeights", "load", "weights"]


@dataclass(frozen=True)
class ShippedWeights:
    """Weights that come with the package."""

    name: str
    learner: str
    world: str
    """What they were trained in."""
    ap: float
    """Average precision on that world's test split, in percent."""
    licence: str
    sha256: str
    """Of the file."""
    path: Path


def weights() -> dict[str, ShippedWeights]:
    """The weights that come with the package, by name: world, AP on its test split, licence, digest."""
    listed = read_json(FOLDER / "weights.json")
    return {
        name: ShippedWeights(name=name, path=path, **listed[name])
        for name, path in shipped_weights().items()
        if name in listed
    }


def load(
    weights: str | Path = DEFAULT_WEIGHTS,
    *,
    journal: str | Path | None = None,
    fsync: Fsync = "always",
    ink: Ink = "auto",
) -> Agent:
    """An agent that knows nothing yet, with trained weights: shipped ones by name, a run folder, or a file.

    Without a name it is a Wayfarer that was trained on handwritten characters.

    `journal`: a path where the agent is saved at once and keeps a journal, so that a crash loses nothing; if
    an agent with these weights is there already, it is opened and goes on. `fsync`: see `Agent.open`.

    `ink` is for encoders of one channel, trained on bright strokes on black: "dark" inverts every
    picture, "bright" none, "auto" those whose border is more light than dark.
    """
    path = find_weights(str(weights))
    _check_listed(path)
    if "agent" in load_tensors(path)[1]:
        raise WanderError(f"{path} is a saved agent. Use wanderlearn.Agent.open to go on with it.")
    agent = Agent(load_model(path), weights=str(weights), ink=ink)
    if journal is None:
        return agent
    if not Path(journal).exists():
        agent.keep_journal(journal, fsync)
        return agent
    kept = Agent.open(journal, journal=True, fsync=fsync)
    if _digest(kept) != _digest(agent):
        kept.close()
        raise WanderError(
            f"The agent in {journal} lives with other weights ({kept.weights}) than {weights}. "
            "Open it with Agent.open, or choose another path for the new one."
        )
    kept.ink = ink
    return kept


def _check_listed(path: Path) -> None:
    """Weights that came with the package are those that were published."""
    if path.parent != FOLDER:
        return
    known = weights().get(path.stem)
    if known is None or known.sha256 != digest_of(path):
        raise WanderError(
            f"The weights {path.stem} are not those that were published with this version of the package. "
            "Install it again."
        )


def _digest(agent: Agent) -> str:
    model = agent.model
    return digest_of_tensors(model.state_dict(), {"config": json.dumps(repr(model.config))})
