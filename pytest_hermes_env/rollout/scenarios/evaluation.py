"""Evaluations: after training, twice in a row, beside training, with an item that fails, with what raises in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_hermes_env.rollout.scenarios.family import Family

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["FAMILY"]


async def play(stage: Stage) -> None:
    """Fill the buffers, then evaluate in each way."""
    from pytest_hermes_env.rollout.auto_script import brief_policy, failing_in_one  # noqa: PLC0415 - loads the mock model

    if not await stage.prepare():
        return
    env = stage.env
    await stage.fill_buffers()
    await stage.play("evaluate", env.evaluate)

    async def twice() -> None:
        await env.evaluate()
        await env.evaluate()

    await stage.play("evaluate_twice", twice)
    await stage.play("evaluate_item_fails", env.evaluate, policy=failing_in_one(brief_policy))
    await stage.play("evaluate_reward_raises", env.evaluate, policy=brief_policy, fault="reward_raises")
    await stage.play("evaluate_loop_raises", env.evaluate, policy=brief_policy, fault="loop_raises")
    await stage.cancel("evaluate_cancelled", env.evaluate, policy=brief_policy, fault="reward_hangs", is_needed=False)


FAMILY = Family(
    name="evaluation",
    scenarios={
        "evaluate": "evaluate() runs after a training group has filled the buffers",
        "evaluate_twice": "evaluate() runs twice, one after the other",
        "evaluate_item_fails": "evaluate() runs while the model's server fails in one conversation, the first one that begins",
        "evaluate_reward_raises": "evaluate() runs while compute_reward raises",
        "evaluate_loop_raises": "evaluate() runs while the agent loop raises after its rollout",
        "evaluate_cancelled": "evaluate() is cancelled while a reward is being computed",
    },
    play=play,
)
