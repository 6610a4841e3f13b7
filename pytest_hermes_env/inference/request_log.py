"""What a mock model was asked and what it answered, in the order in which requests came in."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_hermes_env.inference.conversation import Conversation

__all__ = ["Exchange", "Journal", "Kind"]

Kind: TypeAlias = Literal["chat", "judge", "completion", "generate", "score", "models", "health", "unexpected"]


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One request and its answer. No header is kept, so no key is.

    ``conversation`` and ``turn`` (from 0) are None where the request has none. ``response`` is the body: a dict (a list where
    SGLang answers with one), the raw text of `garbage`, or None while the answer is pending and when the client left before it.
    A streamed answer is kept as the completion it adds up to. ``said`` is the turn in words. ``problem`` is set when no script
    covers the request. ``started_s`` and ``ended_s`` are seconds of `time.monotonic`.
    """

    path: str
    kind: Kind
    started_s: float
    request: Mapping[str, object] | None = None
    conversation: Conversation | None = None
    script: str | None = None
    said: str = ""
    status: int | None = None
    response: Mapping[str, object] | Sequence[object] | str | None = None
    problem: str | None = None
    ended_s: float | None = None

    @property
    def turn(self) -> int | None:
        """Which turn of its conversation this was, counted from 0."""
        return None if self.conversation is None else self.conversation.turn


class Journal:
    """Collects exchanges. Safe to use from several threads."""

    def __init__(self) -> None:
        self._entries: list[Exchange] = []
        self._lock = threading.Lock()

    def open(self, exchange: Exchange) -> int:
        """Keep a request that came in; return its number, for `close`."""
        with self._lock:
            self._entries.append(exchange)
            return len(self._entries) - 1

    def close(self, number: int, exchange: Exchange) -> None:
        """Keep the answer to request ``number``."""
        with self._lock:
            self._entries[number] = exchange

    def snapshot(self) -> tuple[Exchange, ...]:
        """Return all exchanges so far, in the order in which the requests came in."""
        with self._lock:
            return tuple(self._entries)
