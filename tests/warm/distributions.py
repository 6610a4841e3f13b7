"""Reads the metadata of the installed distributions once: every inner pytest run looks through all of it some thirty times."""

from __future__ import annotations

import functools
import importlib.metadata
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["read_once"]


def read_once() -> None:
    """Let ``importlib.metadata.distributions`` remember what it found: for each value of sys.path, and at each place."""
    real = importlib.metadata.distributions
    at: dict[str, _Once] = {}

    @functools.cache
    def found(path: tuple[str, ...]) -> list[_Once]:
        del path
        return [at.setdefault(str(vars(one).get("_path", one)), _Once(one)) for one in real()]

    def distributions(**given: Any) -> Iterator[Any]:
        return iter(real(**given) if given else found(tuple(sys.path)))

    setattr(importlib.metadata, "distributions", distributions)  # noqa: B010 - mypy refuses the assignment


class _Once:
    """A distribution whose entry points are read once."""

    def __init__(self, distribution: importlib.metadata.Distribution) -> None:
        self._distribution = distribution

    @functools.cached_property
    def entry_points(self) -> Any:
        return self._distribution.entry_points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._distribution, name)
