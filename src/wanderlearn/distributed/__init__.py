"""One run on many processes: the same command under `torchrun`, with the same numbers (docs/scaling.md).

torchrun starts the processes and says in the environment who each of them is; `joined` reads that and gives
the `Group`. A process that was started alone is a group of one, which costs nothing.
"""

from wanderlearn.distributed.group import ALONE, Group
from wanderlearn.distributed.start import joined, launched, rank_here, restarted

__all__ = ["ALONE", "Group", "joined", "launched", "rank_here", "restarted"]
