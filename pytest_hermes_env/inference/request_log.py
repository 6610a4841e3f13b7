"""One entry in the log of a mock model: a request with its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_hermes_env.inference.conversation import Conversation

__all__ = ["Exchange", "Kind"]

Kind: TypeAlias = Literal["chat", "judge", "completion", "generate", "score", "models", "health", "unexpected"]


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One request and its answer, without headers, and so without API keys.

    ``conversation`` and ``turn`` (from 0) are None for requests that belong to no conversation. ``response`` is the body: a dict
    (a list where SGLang answers with one), the raw text of `garbage`, or None while the answer is pending and if the client
    disconnected before it. A streamed answer is stored as the completion that its chunks add up to. ``said`` describes the turn.
    ``problem`` is set if no script covers the request. ``started_s`` and ``ended_s`` are seconds of `time.monotonic`.
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
        """The turn of the conversation that this request asked for, counted from 0."""
        return None if self.conversation is None else self.conversation.turn
