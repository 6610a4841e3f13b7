"""Rollouts that fail: they are run again, left out of their group, or take it with them; never scored with what was not earned."""

from __future__ import annotations

import asyncio
import statistics
from typing import Any

import pytest

from environments.agent_loop import HermesAgentLoop
from environments.trainer.scoring import UnearnedScore
from pytest_hermes_env.inference import call, fail, say, turn
from tests.environments.plain_env import PlainEnv


class Env(PlainEnv):
    """Rollouts are scored in the order in which they end."""

    scores: Any = (0.0, 1.0, 1.0, 1.0)

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        self.scored = getattr(self, "scored", 0) + 1
        self.tasks = [*getattr(self, "tasks", []), ctx.task_id]
        return self.scores[self.scored - 1]

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        self.evaluation = await self.evaluate_items(["a"])


def failing(times: int, step: Any = None) -> Any:
    """A model whose second request of a rollout fails, so often over all rollouts."""
    left = [times]

    def script(conversation: Any) -> Any:
        if conversation.turn == 0:
            return turn(call("todo"))
        left[0] -= 1
        return (step or fail(500)) if left[0] >= 0 else say("done")

    return script


def collect(make_env: Any, script: Any, env_class: type = Env, **fields: Any) -> Any:
    """Run one group; returns (environment, group)."""

    async def scenario() -> Any:
        settings = {"server_type": "vllm", "enabled_toolsets": ["todo"], "group_size": 4}
        env = make_env(env_class, script=script, **{**settings, **fields})
        group, _ = await env.collect_trajectories("x")
        return env, group

    return asyncio.run(scenario())


def advantages(group: Any) -> list[float]:
    """What Atropos' example trainer makes of the scores."""
    scores = group["scores"]
    mean, deviation = statistics.fmean(scores), statistics.pstdev(scores)
    zero = [override.get("set_advantage_to_zero", False) for override in group["overrides"]]
    return [0.0 if out else (score - mean) / max(deviation, 1e-8) for score, out in zip(scores, zero, strict=True)]


@pytest.mark.parametrize("server_type", ["openai", "vllm", "sglang"])
def test_rollout_whose_model_failed_is_run_again(make_env, cleaned, server_type):
    """In a sandbox of its own; the group is as if nothing had happened, and the retry is counted."""
    env, group = collect(make_env, failing(1), server_type=server_type)

    assert sorted(group["scores"]) == [0.0, 1.0, 1.0, 1.0]
    assert [override["end"] for override in group["overrides"]] == ["finished"] * 4
    assert env._counts == {"train/rollouts_finished": 4, "train/rollouts_model_failed": 1, "train/rollouts_retried": 1}
    assert len(set(env.tasks)) == 4
    assert len(set(cleaned)) == len(cleaned) == 5


def test_group_of_a_rollout_that_fails_again_is_dropped(make_env, caplog):
    """Equal scores stay equal: there is no row with a score that nobody earned. Retries can be switched off."""
    env, group = collect(make_env, failing(1), rollout_retries=0)

    assert group is None
    assert env._counts["train/groups_dropped"] == 1
    assert "A group is not trained: 1 of its 4 rollouts failed (model_failed); counted in train/groups_dropped" in caplog.text


def test_group_goes_on_without_a_failed_rollout(make_env):
    """Its row trains on nothing, its advantage is zero, and the mean of the others is theirs alone."""
    _, group = collect(make_env, failing(1), rollout_retries=0, failed_rollouts="mask")

    (out,) = [row for row, override in enumerate(group["overrides"]) if override.get("left_out")]
    others = [score for row, score in enumerate(group["scores"]) if row != out]
    assert set(group["masks"][out]) == {-100}
    assert advantages(group)[out] == 0.0
    assert statistics.fmean(group["scores"]) == pytest.approx(statistics.fmean(others))
    assert sum(advantages(group)) == pytest.approx(0.0)


def test_equal_scores_stay_equal_beside_a_masked_rollout(make_env):
    """Otherwise correct answers of the siblings would get an advantage over a failure of the server."""

    class Equal(Env):
        scores = (0.1,) * 4

    _, group = collect(make_env, failing(1), Equal, rollout_retries=0, failed_rollouts="mask")

    assert group["scores"] == [0.1] * 4


@pytest.mark.parametrize("policy", ["drop_group", "mask"])
def test_group_in_which_all_fail_has_no_label(make_env, policy):
    """Nothing in it is sent."""
    env, group = collect(make_env, failing(99), failed_rollouts=policy)
    sent: list[Any] = []

    async def scenario() -> None:
        env.max_token_len = 4096

        async def send(data: Any) -> None:
            sent.append(data)

        env._send_scored_data_to_api = send
        await env.handle_send_to_api(group)

    asyncio.run(scenario())

    assert {label for row in group["masks"] for label in row} == {-100}
    assert {type(score) for score in group["scores"]} == {UnearnedScore}
    assert not hasattr(env, "scored")
    assert sent == []


# ---------------------------------------------------------------------- rewards


class Broken(Env):
    """The first ``times`` rewards raise."""

    times = 1

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        self.asked = getattr(self, "asked", 0) + 1
        if self.asked <= self.times:
            raise LookupError("no verifier")
        return await super().compute_reward(item, result, ctx)


@pytest.mark.hermes_allow_leftovers
def test_rollout_whose_reward_failed_is_run_again(make_env):
    """By default; a reward that was repeated is no reward error."""
    env, group = collect(make_env, failing(0), Broken)

    assert (sorted(group["scores"]), env._reward_errors) == ([0.0, 1.0, 1.0, 1.0], 0)
    assert (env._counts["train/rollouts_reward_failed"], env._counts["train/rollouts_retried"]) == (1, 1)


@pytest.mark.hermes_allow_leftovers
def test_group_of_a_failed_reward_is_dropped(make_env):
    """At once, also where failed rollouts are masked."""
    env, group = collect(make_env, failing(0), Broken, reward_errors="drop_group", failed_rollouts="mask")

    assert (group, env._reward_errors) == (None, 1)
    assert "train/rollouts_retried" not in env._counts


@pytest.mark.hermes_allow_leftovers
def test_failed_reward_may_be_zero(make_env):
    """As in the former layer, and only where the author asks for it."""
    env, group = collect(make_env, failing(0), Broken, reward_errors="zero")

    assert sorted(group["scores"]) == [0.0, 0.0, 1.0, 1.0]
    assert all(set(masks) != {-100} for masks in group["masks"])
    assert env._reward_errors == 1


# ---------------------------------------------------------------------- environments of other people


class OwnLoop(Env):
    """Runs the loop itself and swallows whatever happens, as environments of the former layer do."""

    async def collect_trajectory(self, item: Any) -> Any:
        self.runs = getattr(self, "runs", 0) + 1
        loop = HermesAgentLoop(self.server, *self._resolve_tools_for_group(), max_turns=3)
        result = await loop.run([{"role": "user", "content": "do it"}])
        score = 1.0 if result.finished_naturally else 0.0
        return {"tokens": [1, 2, 3], "masks": [-100, 2, 3], "scores": score, "messages": result.messages}, []


def test_loop_of_an_override_is_not_scored_when_its_model_failed(make_env):
    """The base class sees how the loop ended: the rollout is run again, and its group dropped."""
    env, group = collect(make_env, failing(1), OwnLoop, server_type="openai")
    dropped, nothing = collect(make_env, failing(2), OwnLoop, server_type="openai", rollout_retries=0)

    assert (group["scores"], env.runs) == ([1.0] * 4, 5)
    assert (nothing, dropped._counts["train/rollouts_model_failed"]) == (None, 2)


def test_loop_of_an_override_is_left_out(make_env):
    """With the tokens that the environment made, and no label."""
    _, group = collect(make_env, failing(1), OwnLoop, server_type="openai", rollout_retries=0, failed_rollouts="mask")

    assert sorted(map(tuple, group["masks"])) == [(-100, -100, -100), *[(-100, 2, 3)] * 3]
    assert group["scores"] == [1.0] * 4


class OwnGroups(Env):
    """Joins items by hand, without overrides."""

    async def collect_trajectories(self, item: Any) -> Any:
        made = await asyncio.gather(*[self.collect_trajectory(item) for _ in range(self.config.group_size)])
        items = [scored for scored, _ in made]
        return {name: [one[name] for one in items] for name in ("tokens", "masks", "scores", "inference_logprobs")}, []


def send(env: Any, group: Any) -> list[Any]:
    """Return what goes to the trainer."""
    sent: list[Any] = []

    async def scenario() -> None:
        env.max_token_len = 4096

        async def keep(data: Any) -> None:
            sent.extend(data if isinstance(data, list) else [data])

        env._send_scored_data_to_api = keep
        await env.handle_send_to_api(group)

    asyncio.run(scenario())
    return sent


def test_group_by_hand_with_a_failed_rollout_is_not_sent(make_env):
    """Its score says that nobody earned it."""
    env, group = collect(make_env, failing(1), OwnGroups, rollout_retries=0)

    assert send(env, group) == []
    assert env._counts["train/groups_not_sent"] == 1


def test_group_by_hand_goes_on_without_a_failed_rollout(make_env):
    """What is sent has the mean of the others in its place."""
    env, group = collect(make_env, failing(1), OwnGroups, rollout_retries=0, failed_rollouts="mask")

    (sent,) = send(env, group)

    (out,) = [row for row, override in enumerate(sent["overrides"]) if override.get("set_advantage_to_zero")]
    assert sent["scores"][out] == pytest.approx(2 / 3)
    assert len(sent["scores"]) == 4


@pytest.mark.parametrize("score", [None, float("nan"), float("inf"), "high"])
def test_group_without_a_number_as_score_is_not_sent(make_env, score):
    """A single NaN makes every advantage of its group NaN, and run-api could not return the batch."""

    class Nobody(Env): ...

    env, group = collect(make_env, failing(0), Nobody)
    group["scores"][1] = score

    assert send(env, group) == []
    assert env._counts["train/groups_without_score"] == 1


def test_what_atropos_drops_is_counted(make_env):
    """Groups of equal scores, and groups of another size than the configured one."""
    env, group = collect(make_env, failing(0))
    few = {name: column[:3] if isinstance(column, list) else column for name, column in group.items()}

    assert send(env, {**group, "scores": [1.0] * 4}) == send(env, few) == []
    assert (env._counts["train/groups_of_equal_scores"], env._counts["train/groups_of_wrong_size"]) == (1, 1)


def test_exception_of_an_override_without_a_loop_is_not_repeated(make_env):
    """It is the environment's own business; the error leaves the group."""

    class Raises(Env):
        async def collect_trajectory(self, item: Any) -> Any:
            self.runs = getattr(self, "runs", 0) + 1
            raise LookupError("no such item")

    with pytest.raises(LookupError, match="no such item"):
        collect(make_env, None, Raises, group_size=1)


def test_exception_of_an_override_is_left_out_where_failed_rollouts_are_masked(make_env):
    """Its row is the start of a sibling's prompt, without a label."""

    class RaisesOnce(OwnLoop):
        async def collect_trajectory(self, item: Any) -> Any:
            self.started = getattr(self, "started", 0) + 1
            if self.started == 1:
                raise LookupError("no such item")
            return await super().collect_trajectory(item)

    env, group = collect(make_env, failing(0), RaisesOnce, server_type="openai", failed_rollouts="mask")

    assert (group["tokens"][0], group["masks"][0], group["scores"]) == ([1, 2], [-100, -100], [1.0] * 4)
    assert [message["role"] for message in group["messages"][0]] == ["user"]
    assert (env.started, env._counts["train/rollouts_environment_failed"]) == (4, 1)


# ---------------------------------------------------------------------- evaluation
