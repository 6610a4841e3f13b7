"""Training groups as they should go: with tools, without, and in ids that drift."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_hermes_env.rollout.scenarios.family import Family
from pytest_hermes_env.rollout.unavailable import Cause, Unavailable

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["FAMILY"]


async def play(stage: Stage) -> None:
    """Set up, then collect one group after the other."""
    from pytest_hermes_env.rollout.auto_script import drifting, silent_policy  # noqa: PLC0415 - loads the mock model

    if not await stage.prepare_item():
        return
    await stage.collect("happy")
    await stage.collect("silent", policy=silent_policy)
    if stage.has_tokens:
        await stage.collect("drifting", policy=drifting(stage.thorough))
    else:
        stage.skip(Unavailable(Cause.CHAT_MODE), "drifting")


FAMILY = Family(
    name="training",
    scenarios={
        "setup": "setup() is called and the first training item is taken",
        "happy": "a group is collected while the model uses every tool once and then answers",
        "silent": "a group is collected while the model answers at once, without a tool",
        "drifting": "token mode: as happy, and the model samples ids that its own text would not be encoded to",
    },
    play=play,
)
