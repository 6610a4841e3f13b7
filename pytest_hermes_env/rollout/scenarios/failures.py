"""Training groups while something is broken: the tools, the model's server, the reward."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.rollout.scenarios.family import Family

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["FAMILY"]

TURNS = 3
"""The largest number of turns in `max_turns`, where the configuration allows more."""


async def play(stage: Stage) -> None:
    """Break one thing after the other."""
    from pytest_hermes_env.rollout.auto_script import (  # noqa: PLC0415 - loads the mock model
        brief_policy,
        choiceless_policy,
        endless_policy,
        failing_later_policy,
        failing_policy,
    )

    if not await stage.prepare_item():
        return
    await stage.collect("speechless", policy=failing_policy)
    await stage.collect("server_error_later", policy=failing_later_policy)
    await stage.collect("empty_choices", policy=choiceless_policy)
    await stage.collect("tool_error", fault="tools_fail")
    with _few_turns(stage.env.config):
        await stage.collect("max_turns", policy=endless_policy)
    await stage.collect("reward_raises", policy=brief_policy, fault="reward_raises")


@contextlib.contextmanager
def _few_turns(config: Any) -> Iterator[None]:
    """Lower the limit of turns while the context lasts."""
    limit = getattr(config, "max_agent_turns", None)
    if isinstance(limit, int) and limit > TURNS:
        config.max_agent_turns = TURNS
    try:
        yield
    finally:
        if isinstance(limit, int):
            config.max_agent_turns = limit


FAMILY = Family(
    name="failures",
    scenarios={
        "speechless": "a group is collected while the model's server fails every request",
        "server_error_later": "a group is collected while the model's server fails from the second request of a rollout on",
        "empty_choices": "a group is collected while the model's server answers without choices",
        "tool_error": "a group is collected while every tool answers with an error and exit code 1, the verifier's calls, too",
        "max_turns": "a group is collected while the model calls a tool in every turn until its turns, at most three, are used up",
        "reward_raises": "a group is collected while compute_reward raises",
    },
    play=play,
)
