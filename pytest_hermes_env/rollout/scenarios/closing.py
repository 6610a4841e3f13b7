"""An environment from setup to close; the driver then looks for resources that it, or another instance of the run, leaked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_hermes_env.rollout.scenarios.family import Family

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["FAMILY"]


async def play(stage: Stage) -> None:
    """Set up, train, evaluate, and close."""
    from pytest_hermes_env.rollout.auto_script import brief_policy  # noqa: PLC0415 - loads the mock model

    if not await stage.prepare():
        return
    await stage.fill_buffers()
    await stage.play("closing", stage.env.evaluate, policy=brief_policy)


FAMILY = Family(
    name="closing",
    scenarios={
        "closing": "a group is collected, evaluate() runs, and the environment is closed; then leaked resources are looked for"
    },
    play=play,
)
