"""The record of one scenario: what was called, opened, cleaned, logged, in the order in which it happened.

`recording` makes a journal the current one; the observers write into whichever is current, so that tasks and threads of one
scenario share its journal and no other's.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Cleaned",
    "ContextOpened",
    "EvaluationLogged",
    "Event",
    "ItemScored",
    "Journal",
    "LoopEnded",
    "LoopStarted",
    "Place",
    "Reward",
    "UnknownRead",
    "current_journal",
    "recording",
]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A line of source, from 1; an empty path means that it is not known."""

    path: str = ""
    line: int = 0
    function: str = ""


@dataclass(frozen=True, kw_only=True)
class ContextOpened:
    """A ToolContext was built, at ``place``; ``number`` tells contexts of one task apart.

    ``by_layer`` is whether the layer built it for itself, and ``place`` is only where the layer was called.
    """

    number: int
    task_id: str
    by_layer: bool
    place: Place


@dataclass(frozen=True, kw_only=True)
class Cleaned:
    """The ToolContext ``number`` was cleaned up."""

    number: int
    task_id: str


@dataclass(frozen=True, kw_only=True)
class LoopStarted:
    """An agent loop began; ``tools`` are the names that it offers to the model. ``by_layer`` as in `ContextOpened`."""

    task_id: str
    by_layer: bool
    tools: tuple[str, ...]
    temperature: float | None
    max_turns: int | None
    place: Place


@dataclass(frozen=True, kw_only=True)
class LoopEnded:
    """An agent loop came back; ``error`` is what it raised, if anything."""

    task_id: str
    turns_used: int
    error: str


@dataclass(frozen=True, kw_only=True)
class Reward:
    """compute_reward came back with ``value``, or raised ``error``; ``injected`` when the scenario made it fail."""

    value: Any
    error: str
    injected: bool
    place: Place


@dataclass(frozen=True, kw_only=True)
class UnknownRead:
    """compute_reward read something that AgentResult does not have."""

    name: str
    guarded: bool
    place: Place


@dataclass(frozen=True, kw_only=True)
class EvaluationLogged:
    """evaluate_log was awaited."""

    metrics: dict[str, Any]
    samples: int


@dataclass(frozen=True, kw_only=True)
class ItemScored:
    """collect_trajectory gave a scored item; ``tokens [T]``, ``masks [T]`` and ``logprobs [T]`` as they were then.

    ``logprobs`` is None when the item has no ``inference_logprobs``. ``score`` is the item's ``scores``.
    """

    tokens: tuple[int, ...]
    masks: tuple[int, ...]
    logprobs: tuple[float | None, ...] | None = None
    score: Any = None


Event = ContextOpened | Cleaned | LoopStarted | LoopEnded | Reward | UnknownRead | EvaluationLogged | ItemScored


@dataclass
class Journal:
    """Events of one scenario, appended from any thread."""

    events: list[Event] = field(default_factory=list)
    tool_calls: list[Any] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _contexts: int = 0

    def add(self, event: Event) -> None:
        """Append one event."""
        with self._lock:
            self.events.append(event)

    def next_number(self) -> int:
        """Return the number of the next ToolContext."""
        with self._lock:
            self._contexts += 1
            return self._contexts


current_journal: ContextVar[Journal | None] = ContextVar("hermes_env_journal", default=None)


@contextlib.contextmanager
def recording() -> Iterator[Journal]:
    """Make a new journal the current one while the context lasts."""
    journal = Journal()
    token = current_journal.set(journal)
    try:
        yield journal
    finally:
        current_journal.reset(token)
