"""Who plays scenarios says which one begins; who listens shows it.

Place in the flow: `driver` opens `playing` around a collection, `stage` tells `begins`; the plugin's progress line listens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Played:
    """A collection under way: scenarios that have begun, of ``total`` that are needed, and the last of them."""

    subject: str
    total: int
    begun: int = 0
    scenario: str = ""
    family: str = ""
    """The first scenario of the family that it belongs to."""


Listener = Callable[[Played | None], None]
"""Hears of each scenario that begins, and None when the collection has ended."""

_listener: ContextVar[Listener | None] = ContextVar("hermes_env_progress_listener", default=None)
_played: ContextVar[Played | None] = ContextVar("hermes_env_progress", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Tell ``listener``, if there is one, of the collections in this block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def playing(subject: str, total: int) -> Iterator[None]:
    """Play the ``total`` scenarios of a class in this block."""
    listener = _listener.get()
    if listener is None:
        yield
        return
    token = _played.set(Played(subject, total))
    try:
        yield
    finally:
        _played.reset(token)
        listener(None)


def begins(scenario: str, family: str) -> None:
    """Tell that a scenario of a family begins."""
    listener, played = _listener.get(), _played.get()
    if listener is not None and played is not None:
        played.begun += 1
        played.scenario, played.family = scenario, family
        listener(played)
