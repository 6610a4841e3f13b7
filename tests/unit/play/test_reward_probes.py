"""Probing a reward: what is tried, and what is shown of a breach."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from environments.hermes_base_env import HermesAgentBaseEnv
from pytest_hermes_env.play.probing.prober import MOST_WITH_PROGRAMS, probe_reward
from pytest_hermes_env.play.probing.trial import RewardRunner

ITEM = {"q": "2 + 2", "answer": "4"}


def probed(reward):
    """Return what probing a reward function shows; no environment is built."""

    class Env(HermesAgentBaseEnv):
        compute_reward = reward
        setup = get_next_item = evaluate = None

        def format_prompt(self, item):
            return item["q"]

    env = object.__new__(Env)
    env.config = SimpleNamespace(system_prompt=None, max_agent_turns=3)
    env._resolve_tools_for_group = lambda: ([], set())
    return asyncio.run(probe_reward(env, ITEM, lambda: 0))


def text_of(result):
    return result.messages[-1].get("content") or ""


def test_the_smallest_result_that_raises_is_shown():
    async def reward(self, item, result, ctx):
        return 1.0 / len(text_of(result))

    failing = [probe for probe in probed(reward).probes if probe.trial.error]

    smallest = min(failing, key=lambda probe: len(probe.expression))
    assert (smallest.expression, smallest.trial.error) == (
        "agent_result.user('2 + 2').say('')",
        "ZeroDivisionError: float division by zero",
    )


def test_content_of_another_form_is_tried_of_programs_too(monkeypatch):
    """A reward that runs programs, and pays the same for few results, is tried on no more of them, but for this."""
    always = property(lambda _: True, lambda _, value: None)
    monkeypatch.setattr(RewardRunner, "runs_programs", always, raising=False)

    async def reward(self, item, result, ctx):
        self.words = [len(message["content"].split()) for message in result.messages if message.get("content")]
        return 0.0

    probes = probed(reward).probes

    assert len(probes) == MOST_WITH_PROGRAMS + 2
    assert [probe.name for probe in probes if probe.trial.error] == ["content that is a list of parts"]


def test_a_steady_reward_breaks_nothing():
    async def reward(self, item, result, ctx):
        return float(item["answer"] in str(text_of(result)).split())

    probes = probed(reward)

    assert {trial.error for trial in probes.trials} == {""}
    assert {canary.name: canary.reward for canary in probes.canaries if canary.reward} == {"the expected answer": 1.0}
