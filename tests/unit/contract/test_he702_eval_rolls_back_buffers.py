"""HE702: training buffers hold after evaluate what they held before. The source shows what nobody restores."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, sound

APPENDS = """
class Env(HermesAgentBaseEnv):
    async def compute_reward(self, item, result, ctx):
        self.rewards.append(1.0)
        self.metrics["turns"].append(2)
        return 1.0
"""
FORGOTTEN = "which changes self.metrics, self.rewards of training; nothing restores it"

CASES = (
    broken(
        "evaluate calls compute_reward",
        APPENDS
        + """
    async def evaluate(self):
        for item in self.items:
            await self.compute_reward(item, None, None)  # <- here
""",
        f"evaluate calls compute_reward, {FORGOTTEN}",
    ),
    broken(
        "the base's rollouts come back to compute_reward",
        APPENDS
        + """
    async def evaluate(self):
        await self._all()

    async def _all(self):
        await asyncio.gather(*[self.collect_trajectory(item) for item in self.items])  # <- here
""",
        f"_all calls collect_trajectory, {FORGOTTEN}",
    ),
    broken(
        "evaluate_items",
        APPENDS + "\n    async def evaluate(self):\n        await self.evaluate_items()  # <- here\n",
        f"evaluate calls evaluate_items, {FORGOTTEN}",
    ),
    broken(
        "evaluate_items with no score of its own",
        APPENDS + "\n    async def evaluate(self):\n        await self.evaluate_items(score=None)  # <- here\n",
        f"evaluate calls evaluate_items, {FORGOTTEN}",
    ),
    sound(
        "evaluate_items with a score of its own",
        APPENDS + "\n    async def evaluate(self):\n        await self.evaluate_items(self.held_out, score=self.score_of)\n",
    ),
    sound(
        "put back in a helper",
        APPENDS
        + """
    async def evaluate(self):
        kept = list(self.rewards), dict(self.metrics)
        try:
            await self.evaluate_items()
        finally:
            self._restore(*kept)

    def _restore(self, rewards, metrics):
        self.rewards, self.metrics = rewards, metrics
""",
    ),
    *(
        sound(
            f"recording that depends on something: {condition}",
            "class Env(HermesAgentBaseEnv):\n    async def compute_reward(self, item, result, ctx):\n"
            f"        {condition}\n        return 1.0\n"
            "    async def evaluate(self):\n        await self.compute_reward({}, None, None)\n",
        )
        for condition in (
            "if not EVALUATING.get(): self.rewards.append(1.0)",
            "if self.quiet: return 1.0\n        self.rewards.append(1.0)",
        )
    ),
    sound(
        "bookkeeping stays out of the reward",
        """
class Env(HermesAgentBaseEnv):
    async def compute_reward(self, item, result, ctx):
        return 1.0

    async def collect_trajectory(self, item):
        scored, rest = await super().collect_trajectory(item)
        self.rewards.append(scored["scores"])
        return scored, rest

    async def evaluate(self):
        self.eval_scores = [await self.compute_reward(item, None, None) for item in self.items]
""",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_buffer_that_evaluation_fills_and_nobody_restores_is_found(judge, case):
    check(judge, "HE702", case)
