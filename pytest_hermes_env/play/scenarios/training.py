"""Training groups: without failures, while something is broken, with a judge that fails, and cancelled at three points."""

from __future__ import annotations

import json

from pytest_hermes_env.inference.steps import fail, say, think
from pytest_hermes_env.play.auto_script import (
    brief_policy,
    cut_policy,
    drifting,
    failing_later_policy,
    failing_policy,
    numbered_policy,
    silent_policy,
    with_judge,
)
from pytest_hermes_env.play.probing.reward_constants import reward_constants
from pytest_hermes_env.play.scenario import Cause, Unavailable
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.stage import Stage, configure


@family(
    {
        "setup": "setup() is called and the first training item is taken",
        "happy": "a group is collected while the model uses every tool once and then answers",
        "silent": "a group is collected while the model answers at once, without a tool",
        "unequal_rewards": "a group is collected while compute_reward returns 1 and 0 in turn, and no two answers are equal",
        "rising_rewards": "as unequal_rewards, with 0 and 1 in turn",
        "drifting": "token mode: as happy, and the model samples ids that differ from those its text would be encoded to",
    },
    first=("setup",),
)
async def healthy_groups(stage: Stage) -> None:
    """Collect one group after the other."""
    await stage.collect("happy")
    await stage.collect("silent", policy=silent_policy)
    await stage.collect("unequal_rewards", policy=numbered_policy(), fault="rewards_fall")
    await stage.collect("rising_rewards", policy=numbered_policy(), fault="rewards_rise")
    if stage.has_tokens:
        await stage.collect("drifting", policy=drifting(stage.thorough))
    else:
        stage.skip(Unavailable(Cause.CHAT_MODE), "drifting")


@family(
    {
        "with_tokens": "chat mode: a group is collected in token mode, where config_init names a vllm or sglang server and the class has "
        "a method of its own that makes items or groups",
    },
    first=(),
    has_tokens=True,
)
async def groups_with_tokens(stage: Stage) -> None:
    """Collect one group as it will be collected in training."""
    await stage.collect("with_tokens")


@family(
    {
        "speechless": "a group is collected while the model's server fails every request",
        "server_error_later": "a group is collected while the model's server fails from the second request of a rollout on",
        "tool_error": "a group is collected while every tool answers with an error and exit code 1, the verifier's calls, too",
        "sandbox_lost": "as silent, and every method of the reward's ToolContext raises",
        "reward_raises": "a group is collected while compute_reward raises",
        "cut_short": "token mode: a group is collected while the limit of tokens cuts the model's answers",
    },
    first=(),
)
async def failing_groups(stage: Stage) -> None:
    """Break one thing after the other: the model's server, the tools, the reward."""
    await stage.collect("speechless", policy=failing_policy)
    await stage.collect("server_error_later", policy=failing_later_policy)
    await stage.collect("tool_error", fault="tools_fail")
    await stage.collect("sandbox_lost", policy=silent_policy, fault="sandbox_lost")
    configure(stage.env, reward_errors="retry", truncated_turns="mask")
    await stage.collect("reward_raises", policy=brief_policy, fault="reward_raises")
    if not stage.has_tokens:
        stage.skip(Unavailable(Cause.CHAT_MODE), "cut_short")
    elif not hasattr(stage.env.config, "truncated_turns"):
        stage.skip(Unavailable(Cause.OTHER_LAYER, "truncated_turns"), "cut_short")
    else:
        await stage.collect("cut_short", policy=cut_policy)


@family(
    {
        "garbage_judge": "a group is collected while the judge answers with text that contains no score",
        "null_judge": "a group is collected while the judge answers with JSON whose values are null",
        "wordless_judge": "a group is collected while the judge's answers have no text",
        "failing_judge": "a group is collected while every request to the judge fails",
    }
)
async def judged_groups(stage: Stage) -> None:
    """Check whether there is a judge, which gets requests without tools; then let it fail in four ways."""
    asked = len(stage.mock.journal)
    await stage.collect("judge_answers", policy=brief_policy)
    talks = [exchange.conversation for exchange in stage.mock.journal[asked:]]
    if not any(talk is not None and not talk.tools for talk in talks):
        stage.skip(Unavailable(Cause.NO_JUDGE))
        return
    await stage.collect("garbage_judge", policy=with_judge(brief_policy, say("I would rather talk about the weather.")))
    keys = reward_constants(type(stage.env), type(stage.env).compute_reward).texts
    await stage.collect("null_judge", policy=with_judge(brief_policy, say(json.dumps(dict.fromkeys(keys)))))
    await stage.collect("wordless_judge", policy=with_judge(brief_policy, think("I cannot decide.")))
    await stage.collect("failing_judge", policy=with_judge(brief_policy, fail(500)))


@family(
    {
        "cancelled_in_loop": "a group is cancelled when the agent loop of a rollout has used a tool and is about to return",
        "cancelled_in_tool": "a group is cancelled while a tool of the agent is running",
        "cancelled_in_reward": "a group is cancelled while a reward is being computed",
    },
    first=(),
)
async def cancelled_groups(stage: Stage) -> None:
    """Cancel one group after the other."""

    def group() -> object:
        return stage.env.collect_trajectories(stage.item)

    await stage.cancel("cancelled_in_loop", group, policy=brief_policy, fault="loop_hangs")
    await stage.cancel("cancelled_in_tool", group, policy=brief_policy, fault="tool_hangs")
    await stage.cancel("cancelled_in_reward", group, policy=brief_policy, fault="reward_hangs")
