"""Shares many small pieces of work out among forks of this process; what they read stays shared, only results travel.

Place in the flow: `check` checks hundreds of classes on all processors. A fork that fails costs time, never a result: its share is
done here instead.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

ENOUGH = 40
"""Pieces below which a fork costs more than it saves."""


def shared_out(work: Callable[[int], T], count: int, processes: int) -> list[T]:
    """Return ``work(0)`` to ``work(count - 1)``, in order; each share of the indices is done by one process."""
    if processes < 2 or count < ENOUGH or not hasattr(os, "fork"):  # noqa: PLR2004 - one process is this one
        return [work(index) for index in range(count)]
    shares = [range(start, count, processes) for start in range(processes)]
    forks = [_fork(work, share) for share in shares[1:]]
    done = {index: work(index) for index in shares[0]}
    for share, (child, pipe) in zip(shares[1:], forks, strict=True):
        results: list[T] = _results_of(child, pipe)
        done.update(zip(share, results if len(results) == len(share) else map(work, share), strict=True))
    return [done[index] for index in range(count)]


def _fork(work: Callable[[int], T], share: range) -> tuple[int, int]:
    """Start a fork on ``share`` and return its process id and the end of the pipe that its results come from."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    code = 1
    try:
        with os.fdopen(writing, "wb") as file:
            pickle.dump([work(index) for index in share], file)
        code = 0
    finally:
        os._exit(code)


def _results_of(child: int, pipe: int) -> list[T]:
    """Return a fork's results, or nothing when it failed."""
    with os.fdopen(pipe, "rb") as file:
        data = file.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(data) if status == 0 else []  # noqa: S301 - written by our own fork
