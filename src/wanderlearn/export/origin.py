"""Where weights came from, as text for the metadata of an exported file."""

from pathlib import Path

from wanderlearn.agent.catalogue import weights as listed_weights
from wanderlearn.files import digest_of
from wanderlearn.model import about_model

__all__ = ["origin_of"]

UNSAID = "not stated"


def origin_of(path: Path) -> dict[str, str]:
    """Name, digest, world and licence of a file of weights. No path: it would be of this machine only."""
    about = about_model(path)
    digest = digest_of(path)
    shipped = next((each for each in listed_weights().values() if each.sha256 == digest), None)
    return {
        "weights": shipped.name if shipped else str(about.get("preset") or path.stem),
        "weights_sha256": digest,
        "world": str(about.get("world") or (shipped.world if shipped else UNSAID)),
        "licence": shipped.licence if shipped else str(about.get("licence") or UNSAID),
    }
