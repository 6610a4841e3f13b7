"""A training group and an evaluation with unusual settings, to see which of them reach the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_hermes_env.rollout.scenario import NOTHING_TO_TRAIN
from pytest_hermes_env.rollout.scenarios.family import Family

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["FAMILY", "SETTINGS"]

SETTINGS: dict[str, Any] = {
    "system_prompt": "You are the keeper of the seventh lighthouse.",
    "max_agent_turns": 11,
    "max_token_length": 1777,
    "extra_body": {"provider": {"order": ["seventh-lighthouse"]}},
}
"""The settings in these scenarios."""


async def play(stage: Stage) -> None:
    """Collect a group, then evaluate."""
    from pytest_hermes_env.rollout.auto_script import brief_policy  # noqa: PLC0415 - loads the mock model

    if not await stage.prepare():
        return
    if stage.item is None:
        stage.skip(NOTHING_TO_TRAIN, "training_with_settings")
    else:
        await stage.collect("training_with_settings", policy=brief_policy)
    await stage.play("evaluate_with_settings", stage.env.evaluate, policy=brief_policy)


FAMILY = Family(
    name="settings",
    scenarios={
        "training_with_settings": "a group is collected under a system prompt, limits and an extra_body that the scenario chooses",
        "evaluate_with_settings": "evaluate() runs under the same settings",
    },
    play=play,
    settings=SETTINGS,
)
