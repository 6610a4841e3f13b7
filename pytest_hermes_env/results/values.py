"""The history of a built rollout, as frozen values. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DEFAULT_USER = "…"
"""The user message of a result without one."""

DEFAULT_TOOLS = frozenset({"patch", "process", "read_file", "search_files", "terminal", "write_file"})
"""The tools of hermes' ``terminal`` and ``file`` toolsets; the answer to an unknown tool lists them by default."""


End = Literal["server_error", "turn_limit", "cut_by_length", "aborted"]
INCOMPLETE = frozenset({"cut_by_length", "aborted"})
"""Ends of a rollout whose last reply is incomplete: none of its calls ran."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """An exception that a tool raised. ``source`` is Python source for one with the same name and text."""

    type_name: str
    message: str
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The result of a tool: text (written from an object if ``is_json``), or a failure."""

    text: str = ""
    is_json: bool = False
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One tool call. ``arguments`` is the JSON text in the message. Only ``valid`` calls run and need an answer."""

    kind: Literal["valid", "unknown", "bad"]
    tool: str
    arguments: str
    answer: Answer | None = None

    @property
    def is_pending(self) -> bool:
        """Whether the tool runs and has no result yet."""
        return self.kind == "valid" and self.answer is None


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One assistant message and the results of its calls; without calls it ended the loop."""

    thought: str | None = None
    text: str | None = None
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """A rollout, or its beginning.

    ``thought`` belongs to the next turn; ``joins``: the next call belongs to the last turn. ``offered``: the tools of the rollout,
    None if they were not set.
    """

    system: str | None = None
    users: tuple[str, ...] = ()
    turns: tuple[Turn, ...] = ()
    end: End | None = None
    thought: str | None = None
    joins: bool = False
    offered: frozenset[str] | None = None

    @property
    def last(self) -> Turn | None:
        """The last turn."""
        return self.turns[-1] if self.turns else None

    @property
    def is_answered(self) -> bool:
        """Whether the last turn is an answer: it is whole and has no calls, so it ended the loop."""
        return self.last is not None and not self.last.calls and self.end not in INCOMPLETE

    @property
    def pending(self) -> tuple[Call, ...]:
        """The calls of the last turn that need results."""
        if self.last is None or self.end in INCOMPLETE:
            return ()
        return tuple(call for call in self.last.calls if call.is_pending)

    @property
    def is_complete(self) -> bool:
        """Whether every call has a result and every reasoning a turn."""
        return not self.pending and self.thought is None and not self.joins

    def tools(self) -> list[str]:
        """Return the tools of the rollout, sorted: those that were set, or the default ones and all that are called."""
        if self.offered is not None:
            return sorted(self.offered)
        return sorted((DEFAULT_TOOLS | self.called("valid", "bad")) - self.called("unknown"))

    def called(self, *kinds: str) -> frozenset[str]:
        """Return the tool names in calls of these kinds."""
        return frozenset(call.tool for turn in self.turns for call in turn.calls if call.kind in kinds)
