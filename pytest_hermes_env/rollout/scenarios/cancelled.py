"""Training groups that are cancelled at three points: after the agent's work, in a tool, in the reward."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_hermes_env.rollout.scenarios.family import Family

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["FAMILY"]


async def play(stage: Stage) -> None:
    """Cancel one group after the other."""
    from pytest_hermes_env.rollout.auto_script import brief_policy  # noqa: PLC0415 - loads the mock model

    if not await stage.prepare_item():
        return

    def group() -> object:
        return stage.env.collect_trajectories(stage.item)

    await stage.cancel("cancelled_in_loop", group, policy=brief_policy, fault="loop_hangs")
    await stage.cancel("cancelled_in_tool", group, policy=brief_policy, fault="tool_hangs")
    await stage.cancel("cancelled_in_reward", group, policy=brief_policy, fault="reward_hangs")


FAMILY = Family(
    name="cancelled",
    scenarios={
        "cancelled_in_loop": "a group is cancelled when the agent loop of a rollout has used a tool and is about to return",
        "cancelled_in_tool": "a group is cancelled while a tool of the agent is running",
        "cancelled_in_reward": "a group is cancelled while a reward is being computed",
    },
    play=play,
)
