"""The layer's agent_rollout, as the dynamic halves of the rules see it."""

from __future__ import annotations

import time

from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env.contract.catalogue import find_rule
from pytest_hermes_env.contract.engine import ClassContract

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
    contract = ClassContract(WarmEnv, sandbox="fake", timeout_s=60, rules=lambda: RULES)

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
    assert outcomes["HE703"].findings[0].message == (
        "evaluate calls agent_rollout without a temperature: it samples at agent_temperature = 1.0"
    )
    assert outcomes["HE703"].findings[0].confirmation.startswith("confirmed")
