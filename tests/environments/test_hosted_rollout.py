"""`run_rollout`: one rollout on the caller's model server, whatever an environment overrides; an error is never a score."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from atroposlib.envs.server_handling.server_baseline import APIServerConfig

from environments.agent_loop import HermesAgentLoop
from environments.hermes_base_env import HermesAgentBaseEnv
from environments.loop.end import RolloutEnd
from environments.rollout.hosted import RolloutOutcome
from environments.service.policy_server import MissingJudge, policy_manager
from pytest_hermes_env.inference import MockServer, call, fail, garbage, say

pytestmark = pytest.mark.hermes_allow_leftovers  # the judge is asked by few

JUDGE, POLICY = "0.25", "an answer"


class Env(HermesAgentBaseEnv):
    """The reward is 0.5."""

    async def setup(self) -> None: ...

    async def get_next_item(self) -> Any:
        return {"n": 1}

    def format_prompt(self, item: Any) -> str:
        return f"do {item['n']}"

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        return 0.5

    async def evaluate(self, *args: Any, **kwargs: Any) -> None: ...


def play(
    make_env: Any, cls: type, script: Any = POLICY, *, judge: Any = None, item: Any = None, **fields: Any
) -> RolloutOutcome:
    """Run one rollout of ``cls`` on an endpoint of its own, next to the configured server."""
    settings = {"enabled_toolsets": ["todo"], "group_size": 1, **fields}

    async def scenario() -> RolloutOutcome:
        env = make_env(cls, script=lambda _: say(JUDGE), **settings)
        with MockServer(
            lambda conversation: script(conversation) if callable(script) else script, allow_leftovers=True
        ) as server:
            async with httpx.AsyncClient() as http:
                config = APIServerConfig(base_url=server.base_url, model_name="policy", api_key="k", health_check=False)
                manager = policy_manager(config, http=http, sampling={"temperature": 0.25})
                outcome = await env.run_rollout(item or {"n": 1}, server=manager, judge=judge)
            play.requests = server.request_count  # type: ignore[attr-defined]
        return outcome

    return asyncio.run(scenario())


def last_text(outcome: RolloutOutcome) -> str:
    return outcome.messages[-1]["content"]


def test_a_rollout_runs_on_the_given_server_and_has_its_reward(make_env):
    outcome = play(make_env, Env)

    assert (outcome.end, outcome.reward, outcome.error, outcome.turns) == (RolloutEnd.FINISHED, 0.5, None, 1)
    assert [message["role"] for message in outcome.messages] == ["user", "assistant"]
    assert last_text(outcome) == POLICY


def test_the_class_s_own_collect_trajectory_runs(make_env):
    """What it makes of the score is the reward."""

    class Doubles(Env):
        async def collect_trajectory(self, item: Any) -> Any:
            scored, backlog = await super().collect_trajectory(item)
            return {**scored, "scores": 2 * scored["scores"]}, backlog

    assert play(make_env, Doubles).reward == 1.0


class OldLoop(Env):
    """Builds its loop itself, on self.server and the group's tools, as environments of the old layer do."""

    async def collect_trajectory(self, item: Any) -> Any:
        tools, names = self._current_group_tools
        loop = HermesAgentLoop(server=self.server, tool_schemas=tools, valid_tool_names=names, max_turns=2)
        result = await loop.run([{"role": "user", "content": self.format_prompt(item)}])
        try:
            reward = await self.compute_reward(item, result, None)
        except Exception:  # noqa: BLE001 - the habit of the old layer
            reward = 0.0
        return {"tokens": [1, 2], "masks": [-100, 2], "scores": reward, "messages": result.messages}, []


def test_an_old_environment_s_own_loop_runs_on_the_given_server(make_env):
    outcome = play(make_env, OldLoop)

    assert (outcome.reward, outcome.end, last_text(outcome)) == (0.5, RolloutEnd.FINISHED, POLICY)


def test_a_reward_error_that_an_override_turns_into_zero_is_an_error(make_env):
    class Raises(OldLoop):
        async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            raise LookupError("no verifier")

    outcome = play(make_env, Raises)

    assert (outcome.end, outcome.reward, repr(outcome.error)) == (RolloutEnd.REWARD_FAILED, None, "LookupError('no verifier')")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "1"])
@pytest.mark.parametrize("errors", ["retry", "zero", "drop_group"])
def test_a_reward_that_is_no_number_has_no_reward_whatever_reward_errors_says(make_env, value, errors):
    class Odd(Env):
        async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            return value

    outcome = play(make_env, Odd, reward_errors=errors)

    assert (outcome.end, outcome.reward) == (RolloutEnd.REWARD_FAILED, None)
    assert isinstance(outcome.error, ValueError)


@pytest.mark.parametrize(
    ("script", "end"),
    [
        (fail(400, "no"), RolloutEnd.MODEL_FAILED),
        (
            garbage('{"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": []}'),
            RolloutEnd.MODEL_FAILED,
        ),
        (
            garbage(
                '{"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": '
                '[{"index": 0, "finish_reason": null, "message": {"role": "assistant", "content": "h"}}]}'
            ),
            RolloutEnd.ABORTED_BY_SERVER,
        ),
    ],
)
@pytest.mark.parametrize("cls", [Env, OldLoop])
def test_a_model_that_fails_is_asked_once_and_earns_nothing(make_env, cls, script, end):
    """The engine has seen the turns of the first attempt: a second would be trained as part of it."""
    outcome = play(make_env, cls, script, rollout_retries=3)

    assert (outcome.end, outcome.reward, play.requests) == (end, None, 1)  # type: ignore[attr-defined]
    assert outcome.error is not None


def test_an_environment_that_raises_has_its_error(make_env):
    class Raises(Env):
        async def collect_trajectory(self, item: Any) -> Any:
            raise LookupError("no file")

    outcome = play(make_env, Raises)

    assert (outcome.end, outcome.reward, repr(outcome.error)) == (
        RolloutEnd.ENVIRONMENT_FAILED,
        None,
        "LookupError('no file')",
    )


# ---------------------------------------------------------------------- groups


class Group(Env):
    """Overrides the group, as most environments do."""

    async def collect_trajectories(self, item: Any) -> Any:
        group: dict[str, Any] = {"tokens": [], "masks": [], "scores": [], "messages": []}
        for _ in range(self.config.group_size):
            scored, _ = await self.collect_trajectory(item)
            for name, values in group.items():
                values.append(scored[name])
        group["scores"] = [score + 0.25 for score in group["scores"]]
        return (group if self.config.group_size else None), []


def test_an_overridden_group_runs_as_a_group_of_one(make_env):
    outcome = play(make_env, Group)

    assert (outcome.reward, last_text(outcome)) == (0.75, POLICY)


def test_an_overridden_group_requires_size_one(make_env):
    with pytest.raises(
        ValueError, match="Group overrides collect_trajectories, so that run_rollout requires group_size 1, not 4"
    ):
        play(make_env, Group, group_size=4)


def test_a_group_of_several_rows_is_an_error(make_env):
    class Two(Env):
        async def collect_trajectories(self, item: Any) -> Any:
            return {"tokens": [[1], [1]], "masks": [[1], [1]], "scores": [1.0, 0.0]}, []

    outcome = play(make_env, Two)

    assert outcome.reward is None
    assert "returned 2 rollouts for group_size 1" in str(outcome.error)


# ---------------------------------------------------------------------- judges


class Judged(Env):
    """The judge's answer is the reward; words are compared when it fails, as judged environments do."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        try:
            answer = await self.server.chat_completion(messages=[{"role": "user", "content": "grade"}], n=1)
        except Exception:  # noqa: BLE001 - as judged environments do
            return 0.125
        return float(answer.choices[0].message.content)


@pytest.mark.parametrize("cls", [Judged, type("OldJudged", (Judged, OldLoop), {})])
def test_the_judge_is_the_configured_server_and_never_the_policy(make_env, cls):
    outcome = play(make_env, cls)

    assert (outcome.reward, play.requests) == (float(JUDGE), 1)  # type: ignore[attr-defined]


def test_a_missing_judge_is_an_error_even_where_the_environment_falls_back(make_env):
    outcome = play(make_env, Judged, judge=MissingJudge())

    assert (outcome.end, outcome.reward) == (RolloutEnd.REWARD_FAILED, None)
    assert "--judge-base-url" in str(outcome.error)


def test_tool_errors_and_turns_of_all_loops_are_counted(make_env):
    class Twice(Env):
        async def collect_trajectory(self, item: Any) -> Any:
            await super().collect_trajectory(item)
            return await super().collect_trajectory(item)

    def script(conversation: Any) -> Any:
        from pytest_hermes_env.inference import unoffered

        return unoffered(call("nope")) if conversation.turn == 0 else say("done")

    outcome = play(make_env, Twice, script)

    assert (outcome.turns, [error.tool_name for error in outcome.tool_errors]) == (4, ["nope", "nope"])
