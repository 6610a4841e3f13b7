"""The log of a mock model: requests with their answers, of which it keeps the latest."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_hermes_env.inference.conversation import Conversation
    from pytest_hermes_env.inference.steps import Turn

JOURNAL_LIMIT = 1000
"""How many exchanges a log keeps by default."""

Kind: TypeAlias = Literal["chat", "judge", "completion", "generate", "score", "models", "health", "unexpected"]


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One request and its answer, without headers, and so without API keys.

    ``conversation`` and ``turn`` (from 0) are None for requests that belong to no conversation. ``response`` is the body: a dict
    (a list where SGLang answers with one), the raw text of `garbage`, or None while the answer is pending and if the client
    disconnected before it. A streamed answer is stored as the completion that its chunks add up to. ``answer`` is the scripted turn.
    ``problem`` is set if no script covers the request. ``started_s`` and ``ended_s`` are seconds of `time.monotonic`.
    """

    path: str
    kind: Kind
    started_s: float
    request: Mapping[str, object] | None = None
    conversation: Conversation | None = None
    script: str | None = None
    answer: Turn | None = None
    status: int | None = None
    response: Mapping[str, object] | Sequence[object] | str | None = None
    problem: str | None = None
    ended_s: float | None = None

    @property
    def said(self) -> str:
        """A description of the scripted turn; empty without one."""
        return "" if self.answer is None else str(self.answer)

    @property
    def turn(self) -> int | None:
        """The turn of the conversation that this request asked for, counted from 0."""
        return None if self.conversation is None else self.conversation.turn


class RequestLog:
    """Keeps the latest ``limit`` exchanges, all of them if it is None. Safe to use from several threads.

    An exchange is numbered from 0 as its request arrives, and replaced once it is answered.
    """

    def __init__(self, limit: int | None = JOURNAL_LIMIT) -> None:
        self._kept: deque[Exchange] = deque(maxlen=limit)
        self._lock = threading.Lock()
        self.count = 0

    def add(self, exchange: Exchange) -> int:
        """Append an exchange and return its number."""
        with self._lock:
            self._kept.append(exchange)
            self.count += 1
            return self.count - 1

    def replace(self, number: int, exchange: Exchange) -> None:
        """Replace the exchange of that number, unless it is forgotten."""
        with self._lock:
            place = number - (self.count - len(self._kept))
            if place >= 0:
                self._kept[place] = exchange

    def kept(self) -> tuple[Exchange, ...]:
        """Return the kept exchanges, in the order in which their requests arrived."""
        with self._lock:
            return tuple(self._kept)

    def emptied(self) -> RequestLog:
        """Return a new log with the same limit."""
        return RequestLog(self._kept.maxlen)
