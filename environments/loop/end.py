"""How a rollout ended, and which ends are the model's own doing.

Place in the flow: `HermesAgentLoop` sets the end on its `AgentResult` and in the `RolloutRecord` of the current rollout;
`group_rollouts` runs a rollout again that failed, and `HermesAgentBaseEnv` counts every end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["RolloutEnd", "RolloutRecord", "current_record", "end_of_reply", "end_of_result", "recording"]


class RolloutEnd(StrEnum):
    """The named ends of a rollout."""

    FINISHED = "finished"
    """The model answered without a tool call."""
    TURNS_USED_UP = "turns_used_up"
    """The model still called tools in its last turn."""
    CUT_BY_LENGTH = "cut_by_length"
    """A reply reached the limit of tokens."""
    ABORTED_BY_SERVER = "aborted_by_server"
    """The model server stopped a reply, or did not say how it ended."""
    MODEL_FAILED = "model_failed"
    """The model server raised, or answered with nothing that can be used."""
    TOOL_POOL_FAILED = "tool_pool_failed"
    """No tool could run: no thread, or no sandbox."""
    REWARD_FAILED = "reward_failed"
    """``compute_reward`` raised, or returned no finite number."""
    ENVIRONMENT_FAILED = "environment_failed"
    """Any other step of the environment raised."""

    @property
    def is_failure(self) -> bool:
        """Whether something other than the model ended the rollout, so that it earned no score."""
        return self not in {RolloutEnd.FINISHED, RolloutEnd.TURNS_USED_UP, RolloutEnd.CUT_BY_LENGTH}


_WHOLE = frozenset({"stop", "tool_calls", "function_call", "eos", "eos_token", "end_turn", "stop_sequence", "tool_use"})
_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})

NO_REASON = object()
"""Stands for the reason of a choice that has no such field: a test double."""


def end_of_reply(finish_reason: Any) -> RolloutEnd | None:
    """Return the end that a reply's finish reason causes; None when the reply is whole.

    ``finish_reason`` is text (OpenAI, vLLM), an object with ``type`` (SGLang) or null. A reason that is null or unknown counts as
    aborted: the reply may be incomplete. A value of any other type is a test double's, and the reply is whole.
    """
    if isinstance(finish_reason, Mapping):
        finish_reason = finish_reason.get("type")
    if finish_reason is None:
        return RolloutEnd.ABORTED_BY_SERVER
    if not isinstance(finish_reason, str) or finish_reason.lower() in _WHOLE:
        return None
    return RolloutEnd.CUT_BY_LENGTH if finish_reason.lower() in _CUT else RolloutEnd.ABORTED_BY_SERVER


def end_of_result(result: Any, failure: Exception | None = None) -> RolloutEnd:
    """Return the end of a loop's result. A result of another layer, or of a double, may have no ``end``."""
    end = getattr(result, "end", None)
    if isinstance(end, RolloutEnd):
        return end
    if failure is not None:
        return RolloutEnd.MODEL_FAILED
    return RolloutEnd.FINISHED if getattr(result, "finished_naturally", False) else RolloutEnd.TURNS_USED_UP


@dataclass
class RolloutRecord:
    """What happened in one rollout, across the loops that an environment runs in it."""

    end: RolloutEnd | None = None
    """The end of the last agent loop."""
    results: list[Any] = field(default_factory=list)
    """The result of each agent loop, in order."""
    failure: Exception | None = None
    """The error of the model server or the tool pool that ended the last agent loop early."""
    reward_error: Exception | None = None
    """What ``compute_reward`` raised, or why its value is not a reward."""
    changed_texts: int = 0
    """Texts that had to be made encodable."""
    is_final: bool = False
    """Whether the rollout was already run again as often as configured, and counted."""

    def add(self, attempt: RolloutRecord) -> None:
        """Add what happened in one attempt of this rollout."""
        self.results += attempt.results
        self.failure, self.reward_error = attempt.failure, attempt.reward_error


_record: ContextVar[RolloutRecord | None] = ContextVar("hermes_rollout_record", default=None)


def current_record() -> RolloutRecord:
    """Return the record of the current rollout; outside of one, a record that nobody reads."""
    return _record.get() or RolloutRecord()


@contextmanager
def recording(record: RolloutRecord) -> Iterator[RolloutRecord]:
    """Make ``record`` the current one."""
    token = _record.set(record)
    try:
        yield record
    finally:
        _record.reset(token)
