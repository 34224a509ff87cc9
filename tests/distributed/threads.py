"""A group whose processes are threads of this one: quick, for what does not depend on real processes."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

from wanderlearn.distributed import Group

T = TypeVar("T")


class Board:
    """Where every thread puts what it has, and sees what all have."""

    def __init__(self, size: int) -> None:
        self.places: list[Any] = [None] * size
        self.wait = threading.Barrier(size, timeout=60)

    def show(self, rank: int, value: Any) -> list[Any]:
        self.places[rank] = value
        self.wait.wait()
        seen = list(self.places)
        self.wait.wait()
        return seen


@dataclass(frozen=True)
class ThreadGroup(Group):
    """As `Group`, by a board instead of messages."""

    board: Board = field(default_factory=lambda: Board(1))

    def sum(self, tensor: Tensor) -> Tensor:
        seen: list[Tensor] = self.board.show(self.rank, tensor.detach().clone())
        return torch.stack(seen).sum(0)

    def gather_bytes(self, data: bytes) -> list[bytes]:
        return self.board.show(self.rank, data)

    def spread(self, tensor: Tensor) -> None:
        tensor.detach().copy_(self.board.show(self.rank, tensor.detach().clone())[0])


def together(size: int, work: Callable[[Group], T]) -> list[T]:
    """What every member of a group of threads makes of the work, by rank."""
    board = Board(size)
    results: list[Any] = [None] * size
    problems: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = work(ThreadGroup(rank, size, rank, board))
        except BaseException as error:
            problems.append(error)
            board.wait.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for problem in problems:
        if not isinstance(problem, threading.BrokenBarrierError):
            raise problem
    assert not problems, problems
    return results
