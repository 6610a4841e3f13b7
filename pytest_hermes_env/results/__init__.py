"""WHAT A ROLLOUT LEAVES: builders of AgentResult, for tests without a model.

`agent_result` is the empty builder: ``agent_result.call("terminal", command="ls").returns({...}).say("42")``.
"""

from __future__ import annotations

from pytest_hermes_env.results.builder import Result, agent_result

__all__ = ["Result", "agent_result"]
