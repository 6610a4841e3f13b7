"""HE702 on evaluations that training runs beside: what is added meanwhile is there afterwards."""

from __future__ import annotations

import contextvars
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of

from ..play.small_env import SmallEnv  # noqa: TID252 - the small environment is kept in another room


class Recording(SmallEnv):
    """Its reward keeps what it gave, unless a variable of the context says that this is an evaluation."""

    evaluating: contextvars.ContextVar[bool] = contextvars.ContextVar("evaluating", default=False)

    async def setup(self) -> None:
        """Begin without any."""
        await super().setup()
        self.given: Any = []

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Keep the reward."""
        reward = await super().compute_reward(item, result, ctx)
        if not self.evaluating.get():
            self.given.append(reward)
        return reward


class CutsOff(Recording):
    """Rolls back by a length, which is right only as long as nothing else runs."""

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Forget what came after the beginning."""
        length = len(self.given)
        try:
            await super().evaluate(*args, **kwargs)
        finally:
            del self.given[length:]


class Knows(Recording):
    """Knows which rollouts are an evaluation's."""

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Say that this is one."""
        token = self.evaluating.set(True)
        try:
            await super().evaluate(*args, **kwargs)
        finally:
            self.evaluating.reset(token)


class Full(Knows):
    """Keeps the last two rewards only, so that its buffer is full after one group."""

    async def setup(self) -> None:
        """Begin without any."""
        await super().setup()
        self.given = deque(maxlen=2)


class InParts(Knows):
    """Keeps what evaluations gave in the same object, beside what training gave."""

    async def setup(self) -> None:
        """Begin without any."""
        await super().setup()
        self.kept = SimpleNamespace(given=self.given, evaluations=[])

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Count it."""
        await super().evaluate(*args, **kwargs)
        self.kept.evaluations.append(1.0)


def judged(env_class: type) -> Verdict:
    """Return what HE702 concludes."""
    rule = find_rule("HE702")
    return contract_of(env_class, (rule,)).result(rule)


def test_a_roll_back_that_undoes_training_is_a_breach() -> None:
    """The buffer is as it was before, and that is what is wrong: a group was collected meanwhile."""
    result = judged(CutsOff)

    assert result.outcome is Outcome.FAILED
    assert [(finding.scenario, finding.message) for finding in result.findings] == [
        ("evaluate_during_training", "evaluate() discards what training adds to self.given at the same time")
    ]


@pytest.mark.parametrize("env_class", [Knows, Full, InParts])
def test_what_training_adds_beside_an_evaluation_is_kept(env_class: type) -> None:
    """Knowing an evaluation by its context undoes nothing; a buffer that is full cannot grow, which is no loss."""
    result = judged(env_class)

    assert result.findings == ()
    assert result.note.endswith("were unchanged after 4 evaluations, and what training added during one was kept")
