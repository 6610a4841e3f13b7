"""The value that ``HermesAgentBaseEnv.agent_rollout`` yields: one run of the agent, with its sandbox still open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from environments.agent_loop import AgentResult
from environments.tool_context import ToolContext

__all__ = ["AgentRollout"]


@dataclass(frozen=True, kw_only=True)
class AgentRollout:
    """One run of the agent on one item. ``ctx`` is its sandbox, which is released when the ``async with`` block ends."""

    item: Any
    prompt: str
    """The user message."""
    result: AgentResult
    ctx: ToolContext
    server: Any
    """The model server that the agent loop talked to."""
    failure: Exception | None = None
    """The error of the model server that ended the loop early; None when every turn was answered."""

    @property
    def task_id(self) -> str:
        """The id of the rollout's session in hermes."""
        return self.ctx.task_id
