"""Rewards, items and evaluations of one instance are recorded, and a reward fails or hangs where the scenario asks for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_hermes_env.play.faults import Fault, Faults, InjectedFault
from pytest_hermes_env.play.journal import EvaluationLogged, ItemScored, Journal, current_rollout, recording
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
