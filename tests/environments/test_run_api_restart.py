"""`serve` outlives run-api: it registers again, and what was not acknowledged arrives once."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import aiohttp
import pytest

from environments.hermes_base_env import HermesAgentBaseEnv
from environments.trainer.run_api_link import RunApiLink
from pytest_hermes_env.inference import say

SETTINGS = {"script": [say("done")], "enabled_toolsets": ["todo"], "server_type": "vllm"}


class Env(HermesAgentBaseEnv):
    name = "lasting"

    async def setup(self) -> None:
        self.numbers, self.rewards = itertools.count(), itertools.count()

    async def get_next_item(self) -> Any:
        return {"number": next(self.numbers)}

    def format_prompt(self, item: Any) -> str:
        return f"do {item['number']}"

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        return float(next(self.rewards))

    async def evaluate(self, *args: Any, **kwargs: Any) -> None: ...


async def registered(make_env: Any, run_api: Any, trainer: Any, env_class: type = Env, **fields: Any) -> Any:
    await asyncio.to_thread(trainer.register)
    env = make_env(env_class, rollout_server_url=run_api.url, **SETTINGS, **fields)
    await env.setup()
    await env.register_env()
    await env.get_server_info()
    await env.get_status()
    return env


async def rollouts(env: Any) -> None:
    """Run one group, as a worker of `serve` does."""
    env.running_items["u"] = {"item": await env.get_next_item()}
    await env.handle_env("u")


def scores(run_api: Any) -> list[list[float]]:
    return [sorted(group["scores"]) for group in run_api.queue]


def test_what_was_not_acknowledged_is_sent_again_once(make_env, run_api, trainer, monkeypatch):
    """Two groups end while run-api is down: both arrive at the new one, under the new number, in their order, and are counted."""
    monkeypatch.setattr("environments.trainer.run_api_link.PAUSE_S", 0.01)

    async def scenario() -> Any:
        env = await registered(make_env, run_api, trainer)
        await rollouts(env)
        run_api.stop()
        await rollouts(env)
        await rollouts(env)
        waiting = asyncio.ensure_future(env.get_status())
        await asyncio.sleep(0.05)  # it asks a run-api that is down
        run_api.start()
        await asyncio.to_thread(trainer.register)
        await waiting
        await env.get_status()
        return env

    env = asyncio.run(scenario())

    assert scores(run_api) == [[2.0, 3.0], [4.0, 5.0]]
    assert [one["real_name"] for one in run_api.envs] == ["lasting_0"]
    assert {group["env_id"] for group in run_api.queue} == {0}
    assert env._counts["train/run_api_restarts"] == 1


@pytest.mark.hermes_allow_leftovers
def test_number_that_another_environment_got_is_not_ours(make_env, run_api, trainer):
    """After the restart another environment registers first: ours notices, and takes a number of its own."""

    async def scenario() -> Any:
        env = await registered(make_env, run_api, trainer)
        run_api.stop()
        await rollouts(env)
        run_api.start()
        await asyncio.to_thread(trainer.register)
        other = make_env(Env, rollout_server_url=run_api.url, **SETTINGS)
        await other.register_env()
        await env.get_status()
        return env, other

    env, other = asyncio.run(scenario())

    assert (other.env_id, env.env_id, [group["env_id"] for group in run_api.queue]) == (0, 1, [1])


def test_nothing_is_sent_before_the_trainer_is_back(make_env, run_api, trainer):
    """A group that reaches an empty run-api would break it: it is kept."""

    async def scenario() -> Any:
        env = await registered(make_env, run_api, trainer)
        run_api.restart()
        await rollouts(env)
        kept = scores(run_api)
        await asyncio.to_thread(trainer.register)
        await env.get_status()
        return kept

    assert asyncio.run(scenario()) == []
    assert scores(run_api) == [[0.0, 1.0]]
    assert trainer.pull() is not None


@pytest.mark.parametrize("arrives", [True, False])
def test_lost_answer_does_not_send_twice(make_env, run_api, trainer, monkeypatch, arrives):
    """The connection breaks after, or before, run-api has the group: it is there once."""
    real = RunApiLink._post
    breaks = iter([True])

    async def post(self: Any, payload: Any) -> int:
        if not next(breaks, False):
            return await real(self, payload)
        if arrives:
            await real(self, payload)
        raise aiohttp.ServerDisconnectedError

    monkeypatch.setattr(RunApiLink, "_post", post)

    async def scenario() -> Any:
        env = await registered(make_env, run_api, trainer)
        await rollouts(env)
        await env.get_status()
        await rollouts(env)
        return env

    env = asyncio.run(scenario())

    assert scores(run_api) == [[0.0, 1.0], [2.0, 3.0]]
    assert env._counts["train/deliveries_sent_again"] == (0 if arrives else 1)


def test_lost_answer_that_nobody_can_check_is_counted(make_env, run_api, trainer, monkeypatch):
    """Another environment's group came last: ours may have arrived, and is not sent again."""
    real = RunApiLink._post

    async def post(self: Any, payload: Any) -> int:
        await real(self, payload)
        raise aiohttp.ServerDisconnectedError

    async def scenario() -> Any:
        env = await registered(make_env, run_api, trainer)
        other = make_env(Env, rollout_server_url=run_api.url, **SETTINGS)
        await other.setup()
        await other.register_env()
        await other.get_server_info()
        with monkeypatch.context() as broken:
            broken.setattr(RunApiLink, "_post", post)
            await rollouts(env)
        other.rewards = itertools.count(100)
        await rollouts(other)
        await env.get_status()
        return env

    env = asyncio.run(scenario())

    assert scores(run_api) == [[0.0, 1.0], [100.0, 101.0]]
    assert env._counts["train/deliveries_unknown"] == 1


@pytest.mark.parametrize(("status", "attempts"), [(422, 1), (500, 3)])
def test_refused_group_is_counted_and_does_not_block(make_env, run_api, trainer, monkeypatch, status, attempts):
    """A group that run-api does not take is given up; the next one arrives."""
    real, answers = RunApiLink._post, itertools.chain([status] * attempts)

    async def post(self: Any, payload: Any) -> int:
        answer = next(answers, None)
        return await real(self, payload) if answer is None else answer

    monkeypatch.setattr(RunApiLink, "_post", post)

    async def scenario() -> Any:
        env = await registered(make_env, run_api, trainer)
        await rollouts(env)
        await env.get_status()
        await env.get_status()
        await rollouts(env)
        return env

    env = asyncio.run(scenario())

    assert scores(run_api) == [[2.0, 3.0]]
    assert env._counts["train/deliveries_refused"] == 1


@pytest.mark.parametrize("kind", ["rate_limited", "reset", "cut", "broken_json"])
@pytest.mark.parametrize("where", ["GET /status-env", "POST /scored_data"])
def test_group_arrives_once_whatever_breaks_once(make_env, run_api, trainer, fault_plan, where, kind):
    """A busy, restarting or broken run-api, or a proxy before it: the group is kept, or known to have arrived."""

    async def scenario() -> Any:
        env = await registered(make_env, run_api, trainer)
        fault_plan.on("run_api", kind, where=where, times=1)
        await rollouts(env)
        await env.get_status()
        await rollouts(env)
        return env

    env = asyncio.run(scenario())

    assert scores(run_api) == [[0.0, 1.0], [2.0, 3.0]]
    failed = where == "POST /scored_data" and kind != "broken_json"  # the link does not read that answer
    assert env._counts["train/deliveries_failed"] == failed


def test_waiting_for_run_api_ends(make_env, run_api, trainer, monkeypatch):
    """After `run_api_timeout`, with an error that names the address and what is lost."""
    monkeypatch.setattr("environments.trainer.run_api_link.PAUSE_S", 0.01)

    async def scenario() -> None:
        env = await registered(make_env, run_api, trainer, run_api_timeout=0.05)
        run_api.stop()
        await rollouts(env)
        await env.get_status()

    with pytest.raises(ConnectionError, match=r"run-api does not answer at http.*1 deliveries are lost"):
        asyncio.run(scenario())


def test_training_goes_on_after_a_restart(make_env, run_api, train_steps):
    """The whole loop: the trainer registers again, then the environment, and no group arrives twice."""

    class Restarted(Env):
        groups = 0

        async def postprocess_histories(self, trajectories: Any) -> Any:
            self.groups += 1
            if self.groups == 2:
                await asyncio.to_thread(run_api.restart)
            return trajectories

    env = make_env(Restarted, **SETTINGS, max_num_workers=1, min_items_sent_before_logging=10**6)

    steps = asyncio.run(train_steps(env, steps=4))

    pulled = [tuple(row.score for row in step.rows) for step in steps]
    assert len(set(pulled)) == len(pulled) == 4
    assert env._counts["train/run_api_restarts"] == 1
