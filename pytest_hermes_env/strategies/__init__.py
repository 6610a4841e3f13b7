"""GENERATED CASES: hypothesis strategies of what rollouts are made of, and a check of reward functions on them.

Everything that is drawn could have happened, and shrinks to something short that can be read.
"""

from __future__ import annotations

from pytest_hermes_env.strategies.groups import scored_groups
from pytest_hermes_env.strategies.reward_check import check_reward
from pytest_hermes_env.strategies.rollouts import agent_results, messages
from pytest_hermes_env.strategies.scripts import scripts
from pytest_hermes_env.strategies.tools import tool_calls, tool_schemas

__all__ = ["agent_results", "check_reward", "messages", "scored_groups", "scripts", "tool_calls", "tool_schemas"]
