"""HE404 in the source: what compute_reward returns is not computed from what earlier rewards left on self."""

from __future__ import annotations

import textwrap

import pytest

from pytest_hermes_env.contract.verdict import Outcome

BROKEN = {
    "the length of a buffer": """
        async def compute_reward(self, item, result, ctx):
            reward = float(bool(result.messages)) * 0.98 ** len(self.rewards)  # <- here
            self.rewards.append(reward)
            return reward
    """,
    "the mean so far, in a handler": """
        async def compute_reward(self, item, result, ctx):
            try:
                reward = float(ctx.terminal("true")["exit_code"] == 0)
            except ValueError:
                reward = statistics.fmean(self.rewards)  # <- here
            self.rewards.append(reward)
            return reward
    """,
    "a counter, through a helper and its parameter": """
        async def compute_reward(self, item, result, ctx):
            self.count += 1
            return self._scaled(1.0, by=self.count)  # <- here

        def _scaled(self, reward, by):
            return reward / by
    """,
    "a list in a dict of the class": """
        async def compute_reward(self, item, result, ctx):
            reward = 1.0
            self.stats["reward"].append(reward)
            return reward - sum(self.stats["reward"]) / 100  # <- here
    """,
}

SOUND = {
    "a log of the mean": """
        async def compute_reward(self, item, result, ctx):
            reward = float(bool(result.messages))
            self.rewards.append(reward)
            logger.info("mean so far: %s", sum(self.rewards) / len(self.rewards))
            return reward
    """,
    "a cache per item": """
        async def compute_reward(self, item, result, ctx):
            if item["id"] not in self.known:
                self.known[item["id"]] = 0.5
            return max(self.known[item["id"]], 0.1)
    """,
    "the number of tests, which setup counts": """
        async def compute_reward(self, item, result, ctx):
            passed = ctx.terminal("true")["output"].count("ok")
            self.rewards.append(passed)
            return passed / len(self.tests)
    """,
    "points that begin at 0 in every reward": """
        async def compute_reward(self, item, result, ctx):
            self.points = 0
            self.points += 1
            return self.points / 2
    """,
    "a condition alone": """
        async def compute_reward(self, item, result, ctx):
            self.rewards.append(1.0)
            if len(self.rewards) > 100:
                self.rewards.pop(0)
            return 1.0
    """,
}


def source_of(body: str) -> str:
    """Return a class with these methods."""
    methods = textwrap.indent(textwrap.dedent(body), "    ")
    return (
        "import logging\nimport statistics\nfrom environments.hermes_base_env import HermesAgentBaseEnv\n"
        f"logger = logging.getLogger(__name__)\n\n\nclass Env(HermesAgentBaseEnv):\n{methods}"
    )


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_history_in_a_reward(judge, body: str) -> None:
    """It is found where it is read."""
    judgement = judge("HE404", source_of(body))
    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)


@pytest.mark.parametrize("body", SOUND.values(), ids=SOUND)
def test_what_is_no_history(judge, body: str) -> None:
    """It passes."""
    assert judge("HE404", source_of(body)).outcome is Outcome.PASSED
