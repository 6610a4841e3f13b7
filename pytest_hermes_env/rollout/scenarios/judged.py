"""Training groups whose judge fails. A judge is asked where the environment puts a question without tools to its server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_hermes_env.rollout.scenarios.family import Family
from pytest_hermes_env.rollout.unavailable import Cause, Unavailable

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["FAMILY"]


async def play(stage: Stage) -> None:
    """See whether there is a judge, then let it fail in two ways."""
    from pytest_hermes_env.inference.steps import fail, say  # noqa: PLC0415
    from pytest_hermes_env.rollout.auto_script import brief_policy, with_judge  # noqa: PLC0415 - loads the mock model

    if not await stage.prepare_item():
        return
    healthy = await stage.collect("judge_answers", policy=brief_policy)
    if not healthy.judge_questions:
        stage.skip(Unavailable(Cause.NO_JUDGE))
        return
    await stage.collect("garbage_judge", policy=with_judge(brief_policy, say("I would rather talk about the weather.")))
    await stage.collect("failing_judge", policy=with_judge(brief_policy, fail(500)))


FAMILY = Family(
    name="judged",
    scenarios={
        "garbage_judge": "a group is collected while the judge answers with text that holds no score",
        "failing_judge": "a group is collected while every question to the judge fails",
    },
    play=play,
)
