"""One group of rollouts, from the item to what the trainer gets."""

from __future__ import annotations

import asyncio
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from environments.hermes_base_env import HermesAgentBaseEnv
from pytest_hermes_env.inference import fail, say, think, turn


class Env(HermesAgentBaseEnv):
    """Items are texts; the reward is what the test says."""

    reward: Any = 1.0

    async def setup(self) -> None: ...

    async def get_next_item(self) -> Any:
        return "item"

    def format_prompt(self, item: Any) -> str:
        return f"item {item}"

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> Any:
        self.asked = [*getattr(self, "asked", []), item]
        if isinstance(self.reward, Exception):
            raise self.reward
        return self.reward

    async def evaluate(self, *args: Any, **kwargs: Any) -> None: ...


def collect(make_env: Any, script: Any, env_class: type = Env, reward: Any = 1.0, **fields: Any) -> Any:
    """Run one group; returns (environment, group, backlog)."""

    async def scenario() -> Any:
        env = make_env(env_class, script=script, **{"enabled_toolsets": ["file"], **fields})
        env.reward = reward
        return env, *(await env.collect_trajectories("x"))

    return asyncio.run(scenario())


def test_group_holds_one_entry_per_rollout(make_env):
    """Tokens, masks, scores and messages: one per rollout, marked as placeholders of chat mode."""
    env, group, backlog = collect(make_env, [turn(think("hm"), say("done"))], group_size=3, system_prompt="be good")

    conversation = [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "item x"},
        {"role": "assistant", "content": "done", "reasoning_content": "hm"},
    ]
    tokens = env.tokenizer.encode("be good\nitem x\ndone")
    assert backlog == []
    assert {name: value for name, value in group.items() if value} == {
        "tokens": [tokens] * 3,
        "masks": [[-100, *tokens[1:]]] * 3,
        "scores": [1.0] * 3,
        "messages": [conversation] * 3,
        "overrides": [{"placeholder_tokens": True, "end": "finished"}] * 3,
        "generation_params": {"temperature": 1.0},
        "group_overrides": {"temperature": 1.0},
    }


def test_silent_model_is_not_rewarded_and_trains_nothing(make_env):
    """When only the prompt came back, the reward is 0.0 without asking for it, and every label is masked."""
    env, group, _ = collect(make_env, [fail(500)], system_prompt="be good")

    assert not hasattr(env, "asked")
    assert group["scores"] == [0.0, 0.0]
    assert [set(mask) for mask in group["masks"]] == [{-100}, {-100}]
    assert [len(mask) for mask in group["masks"]] == [len(tokens) for tokens in group["tokens"]]


@pytest.mark.parametrize(
    "bad",
    [ValueError("broken verifier"), math.nan, math.inf, -math.inf, None, "1.0", [1.0], 10**400],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value)[:8],
)
@pytest.mark.hermes_allow_leftovers
def test_broken_reward_is_scored_zero_and_counted(make_env, caplog, bad):
    """A reward that raises, or is not a finite number, is 0.0, logged once with the place that raised, and counted apart; it trains nothing."""
    env, group, _ = collect(make_env, [say("done")], reward=bad)

    assert (group["scores"], env._reward_errors) == ([0.0, 0.0], 2)
    assert {label for row in group["masks"] for label in row} == {-100}
    assert caplog.text.count("compute_reward failed in rollout") == 1
    assert 'File "' in caplog.text


@pytest.mark.parametrize("good", [0.0, 0, -2.5, np.float32(0.5), Decimal("0.5")])
def test_honest_reward_is_kept_as_a_float(make_env, good):
    """Any finite number is a reward, an honest 0.0 is not an error."""
    env, group, _ = collect(make_env, [say("done")], reward=good)

    assert (group["scores"], env._reward_errors) == ([float(good)] * 2, 0)
    assert {type(score) for score in group["scores"]} == {float}


def test_failing_rollout_cancels_its_siblings_and_waits_for_them(make_env):
    """When one rollout raises, its siblings are cancelled and have ended before the error is seen."""
    ended: list[str] = []

    class Failing(Env):
        async def collect_trajectory(self, item: Any) -> Any:
            first = not hasattr(self, "started")
            self.started = True
            if first:
                await asyncio.sleep(0)
                raise LookupError("no such item")
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append("sibling")

    with pytest.raises(LookupError, match="no such item"):
        collect(make_env, None, env_class=Failing, group_size=3)

    assert ended == ["sibling", "sibling"]


def test_rollout_without_an_item_drops_the_group_and_says_so(make_env, caplog):
    """A group is whole or not there; what rollouts put back is kept."""

    class Half(Env):
        async def collect_trajectory(self, item: Any) -> Any:
            first = not hasattr(self, "started")
            self.started = True
            return (None, ["again"]) if first else await super().collect_trajectory(item)

    _, group, backlog = collect(make_env, [say("done")], env_class=Half)

    assert (group, backlog) == (None, ["again"])
    assert "A group is not trained: 1 of its 2 rollouts returned no item" in caplog.text


def test_reward_of_a_mixin_does_not_stop_other_rollouts(make_env):
    """compute_reward may come from a class that knows nothing of environments; its tool calls let others go on."""
    events: list[str] = []

    class Verifier:
        async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            events.append("begin")
            ctx.terminal("sleep 0.3")
            events.append("end")
            return 1.0

    class Mixed(Verifier, Env):
        pass

    collect(make_env, [say("done")], env_class=Mixed, group_size=3)

    assert events == ["begin"] * 3 + ["end"] * 3


@pytest.mark.hermes_allow_leftovers
def test_synchronous_reward_is_an_error_not_a_crash(make_env):
    """compute_reward must be a coroutine; the group survives one that is not."""

    class Plain(Env):
        def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:  # type: ignore[override]
            return 1.0

    env, group, _ = collect(make_env, [say("done")], env_class=Plain)

    assert (group["scores"], env._reward_errors) == ([0.0, 0.0], 2)
