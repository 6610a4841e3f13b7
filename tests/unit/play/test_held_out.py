"""One full evaluation, and the others on few of its items, wherever an environment keeps them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import datasets
import pytest

from pytest_hermes_env.play.buffers import picture
from pytest_hermes_env.play.driver import Collector
from pytest_hermes_env.play.held_out import FEW, HeldOut
from pytest_hermes_env.play.journal import EvaluationLogged, LoopStarted, Place, Reward
from pytest_hermes_env.play.scenario import ItemSeen, Scenario

from .bare import HermesAgentBaseEnv
from .small_env import SmallEnv

TRAIN = [{"word": f"train {number}"} for number in range(4)]
HELD_OUT = [{"word": f"held out {number}"} for number in range(6)]


def evaluated(items: list[Any] = HELD_OUT, **fields: Any) -> Scenario:
    """Return the record of an evaluation of these items."""
    rewards = [Reward(value=1.0, error="", injected=False, place=Place(), item=item) for item in items]
    loop = LoopStarted.__new__(LoopStarted)  # only its kind counts
    asked = tuple(ItemSeen(value=item, key=repr(picture(item))) for item in items)
    return Scenario(name="evaluate", events=(loop, *rewards), held_out=asked, **fields)


def learned() -> HeldOut:
    """Return what a full evaluation showed."""
    held_out = HeldOut()
    held_out.learn(evaluated())
    return held_out


class InClass(HermesAgentBaseEnv):
    """Keeps its items on the class."""

    items = HELD_OUT


@pytest.mark.parametrize(
    ("env", "read"),
    [
        (HermesAgentBaseEnv(test=HELD_OUT), lambda env: env.test),
        (HermesAgentBaseEnv(test=tuple(HELD_OUT)), lambda env: list(env.test)),
        (HermesAgentBaseEnv(data=[*TRAIN, *HELD_OUT]), lambda env: env.data[len(TRAIN) :]),
        (HermesAgentBaseEnv(splits={"train": TRAIN, "test": HELD_OUT}), lambda env: env.splits["test"]),
        (HermesAgentBaseEnv(test=datasets.Dataset.from_list(HELD_OUT)), lambda env: list(env.test)),
        (InClass(), lambda env: env.items),
    ],
    ids=["list", "tuple", "slice of all items", "split by name", "data set", "class attribute"],
)
def test_the_items_are_few_wherever_they_are_kept(env: Any, read: Callable[[Any], list[Any]]) -> None:
    """And all of them are there again afterwards."""
    before, attributes = read(env), set(vars(env))
    with learned().few(env):
        few = read(env)

    assert (few, read(env), set(vars(env))) == (HELD_OUT[:FEW], before, attributes)


@pytest.mark.parametrize("is_async", [False, True])
def test_get_eval_items_returns_few(is_async: bool) -> None:
    """A plain function, or a coroutine function."""

    class Plain(HermesAgentBaseEnv):
        def get_eval_items(self) -> Any:
            return list(HELD_OUT)

    class Awaited(HermesAgentBaseEnv):
        async def get_eval_items(self) -> Any:
            return list(HELD_OUT)

    env: Any = Awaited() if is_async else Plain()

    async def items() -> Any:
        found = env.get_eval_items()
        return await found if is_async else found

    with learned().few(env):
        few = asyncio.run(items())

    assert (few, asyncio.run(items())) == (HELD_OUT[:FEW], HELD_OUT)


@pytest.mark.parametrize("shown", [evaluated(error="ValueError: sample larger than population"), Scenario(name="evaluate_few")])
def test_evaluations_that_need_all_items_get_them(shown: Scenario) -> None:
    """One that raises with few, or runs nothing."""
    held_out = learned()
    held_out.check(evaluated(), shown)

    assert not held_out.is_shortened


class Evaluating(SmallEnv):
    """Evaluates its own items, one after the other."""

    sampled = False

    async def setup(self) -> None:
        """Load them."""
        await super().setup()
        self.eval_items = list(HELD_OUT)

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Evaluate all, or as many as a sample has."""
        del args, kwargs
        chosen = random.sample(self.eval_items, len(HELD_OUT)) if self.sampled else self.eval_items
        await self.evaluate_items(chosen)


class Sampling(Evaluating):
    """Cannot do with fewer."""

    sampled = True


def samples(env_class: type) -> dict[str, int]:
    """Return how many samples each evaluation of a class logged."""
    scenarios = Collector(env_class, timeout_s=30).collect(["evaluate", "evaluate_item_fails", "closing"]).scenarios
    return {name: sum(event.samples for event in record.of(EvaluationLogged)) for name, record in scenarios.items()}


def test_only_one_evaluation_gets_all_items() -> None:
    """The others get three, also on the instances of other families."""
    assert samples(Evaluating) == {
        "training_before_evaluate": 0,
        "evaluate": 6,
        "evaluate_few": 3,
        "evaluate_item_fails": 3,
        "closing": 3,
    }


def test_a_sample_of_fixed_size_is_never_made_to_fail() -> None:
    """All evaluations get all items where one with few raises."""
    assert samples(Sampling) == {
        "training_before_evaluate": 0,
        "evaluate": 6,
        "evaluate_few": 6,
        "evaluate_item_fails": 6,
        "closing": 6,
    }
