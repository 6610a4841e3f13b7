"""GENERATED CASES: hypothesis strategies for the parts of rollouts, and a check of reward functions.

Every drawn value could occur in a real rollout, and shrinks to a short, readable one.
"""

from __future__ import annotations

from pytest_hermes_env.strategies.groups import scored_groups
from pytest_hermes_env.strategies.reward_check import check_reward
from pytest_hermes_env.strategies.rollouts import agent_results, messages
from pytest_hermes_env.strategies.scripts import scripts
from pytest_hermes_env.strategies.tools import tool_calls, tool_schemas

__all__ = ["agent_results", "check_reward", "messages", "scored_groups", "scripts", "tool_calls", "tool_schemas"]
