"""What a benchmark is: a function that yields one pair of numbers, ours and the peer's, for each figure that it declares.

All times are the least of several runs: what else the machine does can only add to them.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Pair = tuple[float | None, float | None]
"""Ours and the peer's. A peer that is not installed is None; so is all that this machine cannot measure."""


@dataclass(frozen=True)
class Figure:
    """One row of the table: what is measured, in which unit, compared with what, and what that means to a user."""

    name: str
    unit: str
    means: str
    peer: str = ""


@dataclass(frozen=True)
class Benchmark:
    """A function and the figures that it measures, in the order in which it yields them."""

    name: str
    room: str
    figures: tuple[Figure, ...]
    measure: Callable[[int], Iterator[Pair]]


REGISTRY: dict[str, Benchmark] = {}


def benchmark(*figures: Figure) -> Callable[[Callable[[int], Iterator[Pair]]], Callable[[int], Iterator[Pair]]]:
    """Register a function that is given how often to repeat a measurement."""

    def register(measure: Callable[[int], Iterator[Pair]]) -> Callable[[int], Iterator[Pair]]:
        room = measure.__module__.rpartition(".")[2]
        REGISTRY[measure.__name__] = Benchmark(measure.__name__, room, figures, measure)
        return measure

    return register


@dataclass
class Spent:
    """Seconds: on the clock, and of this process and of the children that it has waited for."""

    wall: float = 0.0
    cpu: float = 0.0


def _processor() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


@contextlib.contextmanager
def stopwatch() -> Iterator[Spent]:
    """Fill in what the block spent."""
    spent, wall, cpu = Spent(), time.perf_counter(), _processor()
    yield spent
    spent.wall, spent.cpu = time.perf_counter() - wall, _processor() - cpu


def least(runs: list[Spent]) -> Spent:
    """Return the least wall time and the least processor time."""
    return Spent(min(run.wall for run in runs), min(run.cpu for run in runs))


def best(n: int, work: Callable[[], Any]) -> Spent:
    """Return what the quickest of ``n`` runs spent."""
    runs = []
    for _ in range(n):
        with stopwatch() as spent:
            work()
        runs.append(spent)
    return least(runs)


def command(n: int, *words: str, ok: tuple[int, ...] = (0,), **options: Any) -> Spent:
    """Return what the quickest of ``n`` runs of a command spent. One more goes before, which may have bytecode to write."""

    def run() -> None:
        finished = subprocess.run(words, check=False, capture_output=True, text=True, **options)
        if finished.returncode not in ok:
            raise RuntimeError(f"{words} ended with exit code {finished.returncode}:\n{finished.stdout}{finished.stderr}")

    run()
    return best(n, run)
