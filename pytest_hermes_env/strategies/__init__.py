"""GENERATED CASES: a hypothesis strategy for the results of rollouts, and a check of reward functions.

Every drawn result could come from a real rollout, and shrinks to a short, readable one.
"""

from pytest_hermes_env.strategies.reward_check import check_reward
from pytest_hermes_env.strategies.rollouts import agent_results

__all__ = ["agent_results", "check_reward"]
