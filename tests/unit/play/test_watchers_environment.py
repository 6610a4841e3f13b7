"""Rewards, items and evaluations of one instance are recorded, and a reward fails or hangs where the scenario asks for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_hermes_env.play.faults import Fault, Faults, InjectedFault
from pytest_hermes_env.play.journal import EvaluationLogged, ItemScored, Journal, Reward, current_rollout, recording
from pytest_hermes_env.play.watchers.environment import watching_environment

from .bare import AgentResult, HermesAgentBaseEnv, ToolContext, bare_layer
from .small_env import line_of

MESSAGE = {"role": "assistant", "content": "red"}


def rewarded(env: Any, fault: Fault = "none", **faults: Any) -> tuple[list[Any], list[Any]]:
    """Return what one reward gave or raised, and the events."""
    outcomes: list[Any] = []

    async def main() -> None:
        try:
            outcomes.append(await env.compute_reward({"word": "red"}, AgentResult(messages=[dict(MESSAGE)]), ToolContext("t")))
        except Exception as error:  # noqa: BLE001 - compared by the test
            outcomes.append(error)

    journal = Journal(faults=Faults(fault=fault, **faults))
    with watching_environment(env, bare_layer()), recording(journal):
        asyncio.run(main())
    return outcomes, journal.events


class Good(HermesAgentBaseEnv):
    """Changes its item."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Pay for the word."""
        del ctx
        item["seen"] = True
        self.rollout = current_rollout.get()
        return float(result.messages[-1]["content"] == item["word"])


def test_a_reward_is_recorded_with_its_inputs() -> None:
    """As they were before, with the names of those that it changed."""
    env = Good()

    outcomes, (event,) = rewarded(env)

    assert isinstance(event, Reward)
    assert (outcomes, event.value, event.error, event.injected) == ([1.0], 1.0, "", False)
    assert (event.item, event.messages, event.changed, event.task_id) == ({"word": "red"}, (MESSAGE,), ("item",), "t")
    assert (event.place.function, env.rollout) == ("compute_reward", ("t", "reward"))


class Broken(HermesAgentBaseEnv):
    """Raises in its reward."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Divide by nothing."""
        del item, result, ctx
        return 1 / len([])


def test_an_error_of_a_reward_is_recorded_at_its_line() -> None:
    """And raised further."""
    outcomes, (event,) = rewarded(Broken())

    assert [type(outcome) for outcome in outcomes] == [ZeroDivisionError]
    assert (event.value, event.error, event.injected) == (None, "ZeroDivisionError: division by zero", False)
    assert event.place.line == line_of(Broken.compute_reward, "len([])")


def test_a_reward_without_async_is_recorded_too() -> None:
    """HE301 judges it; the watcher must not stand in the way."""

    class Plain(HermesAgentBaseEnv):
        def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:  # type: ignore[override]
            del item, result, ctx
            return 0.25

    outcomes, (event,) = rewarded(Plain())

    assert (outcomes, event.value) == ([0.25], 0.25)


def test_a_reward_fails_where_the_scenario_asks_for_it() -> None:
    """The environment's own method is not called, and the event says that the failure is injected."""
    env = Good()

    (error,), (event,) = rewarded(env, "reward_raises")

    assert isinstance(error, InjectedFault)
    assert (event.error, event.injected, hasattr(env, "rollout")) == (
        "the reward failed, as this scenario requires",
        True,
        False,
    )


def test_every_end_of_a_reward_is_looked_at() -> None:
    """Also that of one that raises."""
    looks: list[str] = []
    rewarded(Good(), look=lambda: looks.append("look"))
    rewarded(Broken(), look=lambda: looks.append("look"))

    assert looks == ["look", "look"]


def test_a_reward_hangs_until_it_is_cancelled() -> None:
    """The scenario learns that it was reached; there is no value to record."""

    async def main() -> None:
        task = asyncio.ensure_future(env.compute_reward({}, AgentResult(), ToolContext("t")))
        await faults.reached.wait()
        task.cancel()
        await asyncio.wait({task})

    env, faults = Good(), Faults(fault="reward_hangs")
    journal = Journal(faults=faults)
    with watching_environment(env, bare_layer()), recording(journal):
        asyncio.run(main())

    assert journal.events == []


def test_items_and_evaluations_are_recorded() -> None:
    """Metrics as they were then, wherever they stand among the arguments."""

    async def main() -> None:
        await env.collect_trajectory({})
        metrics = {"eval/reward": 1.0}
        await env.evaluate_log(metrics, samples=[1, 2])
        metrics.clear()

    env = HermesAgentBaseEnv()
    with watching_environment(env, bare_layer()), recording() as journal:
        asyncio.run(main())

    assert journal.events == [
        ItemScored(tokens=(1, 2), masks=(-100, 2), logprobs=None, score=1.0),
        EvaluationLogged(metrics={"eval/reward": 1.0}, samples=2),
    ]


@pytest.mark.parametrize("outcome", [None, (None, []), ([], [])])
def test_a_trajectory_without_an_item_is_none(outcome: Any) -> None:
    """What the environment returns is handed on, whatever it is."""

    class Env(HermesAgentBaseEnv):
        async def collect_trajectory(self, item: Any) -> Any:
            del item
            return outcome

    env = Env()
    with watching_environment(env, bare_layer()), recording() as journal:
        returned = asyncio.run(env.collect_trajectory({}))

    assert (returned, journal.events) == (outcome, [])


def test_the_instance_is_as_before_at_the_end() -> None:
    """Its methods are those of its class."""
    env = Good()
    with watching_environment(env, bare_layer()):
        inside = set(vars(env))

    assert (inside, set(vars(env))) == ({"compute_reward", "evaluate_log", "collect_trajectory"}, set())
