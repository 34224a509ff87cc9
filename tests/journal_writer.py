"""A program for `test_agent_journal`: meets one thing after another until somebody kills it.

Every change that was made is acknowledged by a line in a file; the changes are those of `change`.
"""

import os
import sys

from tests.live_agents import agent_of, feature
from wanderlearn import Agent


def change(agent: Agent, n: int) -> None:
    """The n-th change, the same for everybody who comes here after the n - 1 before it."""
    labels = agent.labels
    if n % 11 == 7 and labels:
        agent.forget(labels[n % len(labels)])
    elif n % 13 == 5 and len(labels) > 1:
        agent.merge(labels[0], labels[-1])
    elif n % 17 == 9 and labels:
        agent.rename(labels[0], f"renamed {n}")
    elif n % 7 == 6:
        agent.undo()
    else:
        agent.tell(agent.look(feature(n)), None if n % 3 == 0 else f"class {n % 5}")


def main(path: str, acknowledged: str, kind: str, fsync: str) -> None:
    agent = agent_of(kind)
    agent.keep_journal(path, int(fsync) if fsync.isdigit() else fsync)  # type: ignore[arg-type]
    out = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    n = 0
    while True:
        change(agent, n)
        n += 1
        os.write(out, b"x")
        if n % 10 == 0:
            agent.save()


if __name__ == "__main__":
    main(*sys.argv[1:])
