"""The layer's agent_rollout, as the dynamic halves of the rules see it."""

from __future__ import annotations

import inspect
import time
from contextlib import AsyncExitStack

import pytest

from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of

RULES = [find_rule(word) for word in ("HE203", "HE601", "HE701", "HE703", "HE704", "HE705", "HE707")]


class WarmEnv(TerminalTestEnv):
    """Evaluates on training items, at the temperature of training, and ends with the first item that fails."""

    async def get_eval_items(self):
        """Return training items."""
        return self.train_items

    async def evaluate(self, *args, **kwargs):
        """Evaluate by hand."""
        samples, start = [], time.time()
        for item in await self.get_eval_items():
            async with self.agent_rollout(item) as rollout:
                samples.append({"score": await self.compute_reward(item, rollout.result, rollout.ctx)})
        await self.evaluate_log(metrics={"eval/items": len(samples)}, samples=samples, start_time=start, end_time=time.time())


def test_an_evaluation_by_agent_rollout_is_judged_by_what_it_does():
    """The layer releases the sandbox and keeps the settings; items, temperature and errors are the environment's."""
    contract = contract_of(WarmEnv, RULES)

    outcomes = {rule.id: contract.result(rule) for rule in RULES}

    assert {name: result.outcome.value for name, result in outcomes.items()} == {
        "HE203": "failed",
        "HE601": "passed",
        "HE701": "passed",
        "HE703": "failed",
        "HE704": "passed",
        "HE705": "passed",
        "HE707": "failed",
    } | ({} if outcomes["HE601"].outcome.value == "passed" else {"HE601": "not applicable"})
    assert outcomes["HE703"].findings[0].message == "an agent loop of evaluate() sampled at temperature 1.0"


def line_of(method, text):
    """Return the file and line where a method has that text."""
    lines, first = inspect.getsourcelines(method)
    return __file__, first + next(number for number, line in enumerate(lines) if text in line)


def played(env_class, *rules):
    """Return the findings of the dynamic halves of rules, by rule."""
    found = [find_rule(word) for word in rules]
    contract = contract_of(env_class, found)
    return {rule.id: rule.dynamic(contract.evidence).findings for rule in found}


class MisspeltEnv(TerminalTestEnv):
    """Its score fails for every item."""

    async def evaluate(self, *args, **kwargs):
        """Evaluate with a score of its own."""
        await self.evaluate_items(score=self.graded)

    async def graded(self, rollout):
        """Read a field that no item has."""
        return rollout.item["anser"]


class NoneEnv(MisspeltEnv):
    """Its score returns nothing."""

    async def graded(self, rollout):
        """Forget the return."""


class CaughtEnv(MisspeltEnv):
    """Catches every error of its own evaluation."""

    async def evaluate(self, *args, **kwargs):
        """Log what was caught as samples."""
        samples = []
        for item in await self.get_eval_items():
            try:
                async with self.agent_rollout(item, temperature=0.0) as rollout:
                    samples.append({"score": await self.graded(rollout)})
            except KeyError as error:
                samples.append({"score": 0.0, "error": repr(error)})
        await self.evaluate_log(metrics={"eval/items": len(samples)}, samples=samples)


@pytest.mark.parametrize(
    ("env_class", "error"),
    [
        (MisspeltEnv, "KeyError: 'anser'"),
        (NoneEnv, "ValueError: score must return a number, got NoneType 'None'"),
        (CaughtEnv, "KeyError('anser')"),
    ],
)
def test_an_evaluation_that_scores_nothing_fails(env_class, error):
    """Its samples and metrics are logged, and say that every item failed."""
    (finding,) = played(env_class, "HE705")["HE705"]

    assert finding.message == f"evaluate() scored none of its 3 items: {error}"


class StackEnv(TerminalTestEnv):
    """Enters its rollouts on a stack that nobody closes."""

    async def setup(self):
        """Make the stack."""
        await super().setup()
        self.stack = AsyncExitStack()

    async def evaluate(self, *args, **kwargs):
        """Evaluate by hand."""
        samples = []
        for item in await self.get_eval_items():
            rollout = await self.stack.enter_async_context(self.agent_rollout(item, temperature=0.0))
            samples.append({"score": await self.compute_reward(item, rollout.result, rollout.ctx)})
        await self.evaluate_log(metrics={"eval/items": len(samples)}, samples=samples)


class HeldEnv(StackEnv):
    """Enters its rollouts by hand, and keeps them."""

    async def evaluate(self, *args, **kwargs):
        """Evaluate by hand."""
        self.held = [self.agent_rollout(item, temperature=0.0) for item in await self.get_eval_items()]
        rollouts = [await entered.__aenter__() for entered in self.held]
        await self.evaluate_log(metrics={"eval/items": len(rollouts)}, samples=[{"score": 1.0} for _ in rollouts])


@pytest.mark.parametrize(("env_class", "text"), [(StackEnv, "enter_async_context"), (HeldEnv, "__aenter__")])
def test_an_agent_rollout_that_is_never_left_leaks(env_class, text):
    """The layer opened its sandbox, and the environment's code holds it."""
    (finding,) = played(env_class, "HE601")["HE601"]

    assert finding.message == "the sandbox of the agent_rollout entered here was never released"
    assert (finding.path, finding.line) == line_of(env_class.evaluate, text)


class WarmItemsEnv(TerminalTestEnv):
    """Evaluates through the layer, at another temperature and with fewer turns than training."""

    async def evaluate(self, *args, **kwargs):
        """Evaluate."""
        await self.evaluate_items(temperature=1.0, max_turns=2)


def test_findings_about_evaluate_items_are_at_its_call():
    """Its rollouts run in tasks of their own, which whoever runs the event loop did not start."""
    findings = played(WarmItemsEnv, "HE703", "HE704")

    places = [(finding.path, finding.line) for rule in findings for finding in findings[rule]]
    assert places == [line_of(WarmItemsEnv.evaluate, "evaluate_items")] * 2


class LateEnv(TerminalTestEnv):
    """Collects its rollouts, and scores them when their sandboxes are gone."""

    async def evaluate(self, *args, **kwargs):
        """Evaluate by hand."""
        rollouts = []
        for item in await self.get_eval_items():
            async with self.agent_rollout(item, temperature=0.0) as rollout:
                rollouts.append(rollout)
        scores = [await self.compute_reward(each.item, each.result, each.ctx) for each in rollouts]
        await self.evaluate_log(metrics={"eval/items": len(scores)}, samples=[{"score": score} for score in scores])


def test_rewards_after_the_block_fail():
    """The context of the rollout is closed, and says so."""
    findings = played(LateEnv, "HE403")["HE403"]

    assert any("ContextClosedError" in finding.message for finding in findings)
