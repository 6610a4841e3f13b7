"""A training group and an evaluation under settings that no environment has by itself, to see which of them reach the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_hermes_env.rollout.scenario_names import SETTINGS
from pytest_hermes_env.rollout.scenarios.family import Family
from pytest_hermes_env.rollout.unavailable import Cause, Unavailable

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["FAMILY"]


async def play(stage: Stage) -> None:
    """Collect a group, then evaluate."""
    from pytest_hermes_env.rollout.auto_script import brief_policy  # noqa: PLC0415 - loads the mock model

    if not await stage.prepare():
        return
    if stage.item is None:
        stage.skip(Unavailable(Cause.NOTHING_TO_TRAIN), "training_with_settings")
    else:
        await stage.collect("training_with_settings", policy=brief_policy)
    await stage.play("evaluate_with_settings", stage.env.evaluate, policy=brief_policy)


FAMILY = Family(
    name="settings",
    scenarios={
        "training_with_settings": "a group is collected under a system prompt, limits and an extra_body of the scenario's own",
        "evaluate_with_settings": "evaluate() runs under the same settings",
    },
    play=play,
    settings=SETTINGS,
)
