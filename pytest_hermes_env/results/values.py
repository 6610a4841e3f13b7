"""What a builder was told: frozen values, from which everything else is computed. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["DEFAULT_TOOLS", "DEFAULT_USER", "Answer", "Call", "Failure", "Story", "Turn"]

DEFAULT_USER = "…"
"""The user message of a result that was given none."""

DEFAULT_TOOLS = frozenset({"patch", "process", "read_file", "search_files", "terminal", "write_file"})
"""What hermes' ``terminal`` and ``file`` toolsets offer; an unknown tool is told these names unless others were named."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """An exception that a tool raised. ``shown`` is Python source that makes one with the same name and text."""

    type_name: str
    message: str
    shown: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a tool gave: text, written from an object when ``is_json``; or a failure."""

    text: str = ""
    is_json: bool = False
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One tool call. ``arguments`` is JSON text as the history keeps it. Only ``valid`` calls run, and need an answer."""

    kind: Literal["valid", "unknown", "bad"]
    tool: str
    arguments: str
    answer: Answer | None = None

    @property
    def is_unanswered(self) -> bool:
        """Whether a tool runs and its result is not known yet."""
        return self.kind == "valid" and self.answer is None


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One assistant message and the answers to its calls; without calls it ended the loop."""

    thought: str | None = None
    text: str | None = None
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """A whole rollout, or its beginning.

    ``thought`` waits for its turn; ``joins`` says that the next call belongs to the last turn. ``offered`` are the tools of
    the rollout, None when they were not named. ``tokenizer`` is what nodes are made with.
    """

    system: str | None = None
    users: tuple[str, ...] = ()
    turns: tuple[Turn, ...] = ()
    end: Literal["server_error", "turn_limit"] | None = None
    thought: str | None = None
    joins: bool = False
    offered: frozenset[str] | None = None
    tokenizer: Any = None

    @property
    def last(self) -> Turn | None:
        """The turn that was told last."""
        return self.turns[-1] if self.turns else None

    @property
    def is_answered(self) -> bool:
        """Whether the last turn is an answer: it has no call, so that the loop ended with it."""
        return self.last is not None and not self.last.calls

    @property
    def unanswered(self) -> tuple[Call, ...]:
        """Calls of the last turn whose results are not known yet."""
        return tuple(call for call in self.last.calls if call.is_unanswered) if self.last is not None else ()

    @property
    def is_whole(self) -> bool:
        """Whether every call has its answer and every thought its turn."""
        return not self.unanswered and self.thought is None and not self.joins

    def tools(self) -> list[str]:
        """Return the tools of the rollout, sorted: those that were named, or the usual ones and all that are called."""
        if self.offered is not None:
            return sorted(self.offered)
        return sorted((DEFAULT_TOOLS | self.called("valid", "bad")) - self.called("unknown"))

    def called(self, *kinds: str) -> frozenset[str]:
        """Return the names in calls of these kinds."""
        return frozenset(call.tool for turn in self.turns for call in turn.calls if call.kind in kinds)
