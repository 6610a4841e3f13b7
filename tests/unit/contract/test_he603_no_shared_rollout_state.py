"""HE603: what belongs to one rollout is kept in that rollout."""

from __future__ import annotations

import pytest

from pytest_hermes_env.contract.verdict import Outcome

ENV = "import os\nimport subprocess\nfrom time import sleep\n\nCURRENT = None\n\nclass Env(HermesAgentBaseEnv):\n"

BROKEN = (
    """
    def format_prompt(self, item):
        self.current = item  # <- here
        return "x"

    async def compute_reward(self, item, result, ctx):
        return self.current["score"]
    """,
    """
    async def collect_trajectory(self, item):
        answer = item["answer"]
        self.answer = answer  # <- here
        scored = await super().collect_trajectory(item)
        return scored if self.answer else None
    """,
    """
    async def compute_reward(self, item, result, ctx):
        global CURRENT
        CURRENT = item["id"]  # <- here
        return 1.0
    """,
    """
    async def compute_reward(self, item, result, ctx):
        os.environ["ITEM"] = item["id"]  # <- here
        os.chdir("/tmp")  # <- here
        return 1.0
    """,
    """
    async def compute_reward(self, item, result, ctx):
        return float(len(self._words(result)))

    def _words(self, result, words=[], *, seen=set()):
        words.append(result.turns_used)  # <- here
        seen |= {result.turns_used}  # <- here
        return words
    """,
    """
    async def collect_trajectories(self, item):
        self._note(item)
        return await super().collect_trajectories(item)

    def _note(self, item):
        self.item = item  # <- here

    async def compute_reward(self, item, result, ctx):
        return self._score()

    def _score(self):
        return float(self.item["score"])
    """,
)

SOUND = (
    """
    async def compute_reward(self, item, result, ctx):
        self.rewards.append(item["score"])
        return 1.0
    """,
    """
    async def collect_trajectory(self, item):
        scored, backlog = await super().collect_trajectory(item)
        self.last_score = scored["scores"]
        return scored, backlog
    """,
    """
    async def compute_reward(self, item, result, ctx):
        if self.client is None:
            self.client = object()
        return float(bool(self.client))
    """,
    """
    async def compute_reward(self, item, result, ctx):
        self.by_task[ctx.task_id] = item
        await asyncio.sleep(0)
        return float(self.by_task.pop(ctx.task_id)["score"])
    """,
)


@pytest.mark.parametrize("body", BROKEN)
def test_what_rollouts_keep_where_others_see_it_is_found(judge, body):
    judgement = judge("HE603", ENV + body)

    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)


@pytest.mark.parametrize("body", SOUND)
def test_what_stays_in_its_rollout_or_is_only_added_to_passes(judge, body):
    assert judge("HE603", ENV + body).outcome is Outcome.PASSED
