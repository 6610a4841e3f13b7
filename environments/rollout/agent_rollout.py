"""The value that ``HermesAgentBaseEnv.agent_rollout`` yields: one run of the agent, with its sandbox still open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from environments.agent_loop import AgentResult
from environments.loop.end import RolloutEnd, end_of_result
from environments.tool_context import ToolContext


@dataclass(frozen=True, kw_only=True)
class AgentRollout:
    """One run of the agent on one item. ``ctx`` is its sandbox, which is released when the ``async with`` block ends; then it raises."""

    item: Any
    prompt: str
    """The user message."""
    result: AgentResult
    ctx: ToolContext
    server: Any
    """The model server that the agent loop talked to."""
    failure: Exception | None = None
    """The error of the model server, or of the tool pool, that ended the loop early; None when every turn was answered."""
    generation_params: Mapping[str, Any] = field(default_factory=dict)
    """The sampling parameters of the agent's requests, as the trainer reads them."""

    @property
    def end(self) -> RolloutEnd:
        """How the agent's run ended."""
        return end_of_result(self.result, self.failure)

    @property
    def task_id(self) -> str:
        """The id of the rollout's session in hermes."""
        return self.ctx.task_id
