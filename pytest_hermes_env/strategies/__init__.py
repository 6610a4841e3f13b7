"""GENERATED CASES: a hypothesis strategy for the results of rollouts, and a check of reward functions.

Every drawn result could come from a real rollout, and shrinks to a short, readable one.
"""

from __future__ import annotations

import warnings
from typing import Any

from pytest_hermes_env.strategies import rollouts
from pytest_hermes_env.strategies.reward_check import check_reward
from pytest_hermes_env.strategies.rollouts import agent_results

__all__ = ["agent_results", "check_reward"]

_WAYS_OUT = {
    "messages": "use agent_results(...).map(lambda result: result.messages)",
    "tool_calls": "take the calls out of the messages of agent_results(tools)",
    "scored_groups": "let an environment make them: `await env.collect_trajectories(item)`, with the fixture make_env",
    "scripts": "write a Script, or a function of the conversation, which answers any number of turns",
    "tool_schemas": "draw from a list of schemas: hypothesis.strategies.sampled_from([...])",
}


def __getattr__(name: str) -> Any:
    if name not in _WAYS_OUT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not hasattr(rollouts, name):
        raise AttributeError(f"pytest_hermes_env.strategies.{name} was removed: {_WAYS_OUT[name]}.")
    warnings.warn(f"{__name__}.{name} will be removed in the next release: {_WAYS_OUT[name]}", DeprecationWarning, stacklevel=2)
    return getattr(rollouts, name)
