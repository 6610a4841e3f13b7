"""The fixtures run_api, trainer and train_steps, and what of Atropos' BaseEnv an environment may override, in a real training loop."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from typing import Any

import pytest

from environments.hermes_base_env import HermesAgentBaseEnv
from pytest_hermes_env.errors import BadBatch, NoBatch
from pytest_hermes_env.inference import call, hang, say
from pytest_hermes_env.inference.conversation import Conversation

SCRIPT = [call("todo"), say("done")]


class CountingEnv(HermesAgentBaseEnv):
    """Items are numbers; each rollout has a reward of its own."""

    name = "counting"

    async def setup(self) -> None:
        self.numbers, self.rewards = itertools.count(), itertools.count()
        self.calls: Counter[str] = Counter()

    async def get_next_item(self) -> Any:
        return {"number": next(self.numbers)}

    def format_prompt(self, item: Any) -> str:
        return f"do {item['number']}"

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        return 1.0 / (1 + next(self.rewards))

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        self.calls["evaluate"] += 1


SETTINGS = {"script": SCRIPT, "enabled_toolsets": ["todo"], "server_type": "vllm"}


def test_three_steps_in_this_process(make_env, train_steps, run_api):
    """Each step is a checked batch of one group; the environment is registered under its name; its setting is restored."""
    env = make_env(CountingEnv, **SETTINGS)
    before = env.config.rollout_server_url

    steps = asyncio.run(train_steps(env, steps=3))

    assert [(step.number, len(step.rows)) for step in steps] == [(1, 2), (2, 2), (3, 2)]
    assert all(row.trained > 1 for step in steps for row in step.rows)
    assert [one["real_name"] for one in run_api.envs] == ["counting_0"]
    assert env.config.rollout_server_url == before
    assert all(worker.done() for worker in env.workers)


def test_without_the_fixture_a_run_api_is_started(make_env):
    """The public function needs nothing else; a group may be a part of a batch."""
    from pytest_hermes_env import train_steps

    steps = asyncio.run(train_steps(make_env(CountingEnv, **SETTINGS), steps=2, batch_size=4))

    assert [(len(step.batch), len(step.rows)) for step in steps] == [(2, 4), (2, 4)]


def test_nothing_of_another_test_is_left(run_api, trainer):
    """run-api starts empty, and again after a restart, at the same address."""
    trainer.register()
    assert (run_api.envs, run_api.queue, trainer.poll()) == ([], [], None)

    url = run_api.url
    run_api.restart()
    assert (run_api.url, trainer._ask("/info")) == (url, {"batch_size": -1, "max_token_len": -1})


def test_chat_mode_is_refused_where_it_is_not_asked_for(make_env, train_steps):
    """Placeholders are for tests of the data flow only."""
    env = make_env(CountingEnv, script=SCRIPT, enabled_toolsets=["todo"])

    with pytest.raises(BadBatch, match="placeholders"):
        asyncio.run(train_steps(env, steps=1, allow_placeholders=False))


@pytest.mark.hermes_allow_leftovers
def test_serve_that_ends_too_early_is_no_timeout(make_env, train_steps):
    """The message names the setting."""
    env = make_env(CountingEnv, **SETTINGS, total_steps=-5)

    with pytest.raises(NoBatch, match="raise total_steps"):
        asyncio.run(train_steps(env, steps=3))


@pytest.mark.hermes_allow_leftovers
def test_what_serve_raises_is_raised(make_env, train_steps):
    """An environment that cannot be set up has no steps."""

    class Broken(CountingEnv):
        async def setup(self) -> None:
            raise RuntimeError("no items")

    with pytest.raises(RuntimeError, match="no items"):
        asyncio.run(train_steps(make_env(Broken, **SETTINGS)))


# ---------------------------------------------------------------------- what an environment may override


def test_histories_are_postprocessed_before_they_are_sent(make_env, train_steps):
    """What `postprocess_histories` returns is what the trainer gets; None is not sent; several groups are all sent."""

    class Post(CountingEnv):
        async def postprocess_histories(self, trajectories: Any) -> Any:
            self.calls["post"] += 1
            if self.calls["post"] == 1:
                return None
            changed = {**trajectories, "scores": [2.0, 3.0]}
            return [changed, {**changed, "scores": [4.0, 5.0]}] if self.calls["post"] == 2 else changed

    env = make_env(Post, **SETTINGS, max_num_workers=1)

    steps = asyncio.run(train_steps(env, steps=3))

    scores = sorted(tuple(row.score for row in step.rows) for step in steps)
    assert set(scores) == {(2.0, 3.0), (4.0, 5.0)}


def test_group_that_cannot_be_postprocessed_is_counted_once(make_env, train_steps):
    """atroposlib logs it and goes on; an override that calls the one of its base counts it once."""

    class Base(CountingEnv):
        async def postprocess_histories(self, trajectories: Any) -> Any:
            self.calls["post"] += 1
            if self.calls["post"] == 1:
                raise LookupError("no history")
            return trajectories

    class Post(Base):
        async def postprocess_histories(self, trajectories: Any) -> Any:
            return await super().postprocess_histories(trajectories)

    env = make_env(Post, **SETTINGS, max_num_workers=1, min_items_sent_before_logging=10**6)

    asyncio.run(train_steps(env, steps=1))

    assert env._counts["train/groups_dropped"] == 1


def test_cleanup_follows_every_group(make_env, train_steps):
    """Also one whose items could not be collected."""

    class Cleaning(CountingEnv):
        async def collect_trajectories(self, item: Any) -> Any:
            self.calls["collected"] += 1
            if item["number"] == 0:
                raise RuntimeError("no group")
            return await super().collect_trajectories(item)

        async def cleanup(self) -> None:
            self.calls["cleaned"] += 1

    env = make_env(Cleaning, **SETTINGS, max_num_workers=1)

    asyncio.run(train_steps(env, steps=2))

    assert env.calls["cleaned"] >= 3
    assert 0 <= env.calls["collected"] - env.calls["cleaned"] <= 1


def test_worker_that_takes_too_long_is_cancelled(make_env, train_steps):
    """Its rollouts end, its sandbox is released, and other items go on."""
    released: list[str] = []
    ended: list[str] = []

    def script(conversation: Conversation) -> Any:
        is_first = "do 0" in json.dumps(conversation.messages)
        return hang(60) if is_first else SCRIPT[min(conversation.turn, 1)]

    class Slow(CountingEnv):
        async def collect_trajectories(self, item: Any) -> Any:
            try:
                return await super().collect_trajectories(item)
            except asyncio.CancelledError:
                released.append(f"{item['number']}")
                raise

        async def cleanup(self) -> None:
            ended.append("one")

    env = make_env(
        Slow,
        script=script,
        enabled_toolsets=["todo"],
        max_num_workers=2,
        worker_timeout=0.3,
        min_items_sent_before_logging=10**6,
    )

    async def until_released() -> None:
        serve = asyncio.ensure_future(train_steps(env, steps=10_000))
        while "0" not in released or not ended:
            await asyncio.sleep(0.01)
        serve.cancel()
        await asyncio.gather(serve, return_exceptions=True)

    asyncio.run(asyncio.wait_for(until_released(), 60))

    assert "0" in released
    assert env._counts["train/groups_timed_out"] >= 1
