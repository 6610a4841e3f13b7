"""HE702: training buffers hold after evaluate what they held before."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_hermes_env.contract.verdict import Outcome

APPENDS = """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                self.rewards.append(1.0)
                return 1.0
"""
"""The beginning of an environment whose rewards are kept for training."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A source and what the rule makes of it."""

    name: str
    source: str
    message: str = ""


BROKEN = (
    Case(
        name="compute_reward appends, evaluate calls it",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                self.rewards.append(1.0)
                self.turns += result.turns_used
                return 1.0

            async def evaluate(self):
                for item in self.items:
                    await self.compute_reward(item, None, None)  # <- here
        """,
        message="evaluate calls compute_reward, which changes self.rewards, self.turns of training; nothing restores it",
    ),
    Case(
        name="a text is split, which says nothing about splits of the data",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                score = 1.0 if item["answer"] in self.answer(result).split() else 0.0
                self.rewards.append(score)
                return score

            def answer(self, result): ...

            async def evaluate(self):
                await asyncio.gather(*[self.collect_trajectory(item) for item in self.items])  # <- here
        """,
        message="evaluate calls compute_reward, which changes self.rewards of training; nothing restores it",
    ),
    Case(
        name="a helper on both sides, a dict of lists, an alias",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return self._score(item)

            def _score(self, item):
                metrics = self.metrics
                metrics.setdefault("scores", []).append(1.0)
                metrics["count"] += 1
                return 1.0

            async def evaluate(self):
                return await asyncio.gather(*[self._one(item) for item in self.items])

            async def _one(self, item):
                return self._score(item)  # <- here
        """,
        message="_one calls _score, which changes self.metrics of training; nothing restores it",
    ),
    Case(
        name="put back only when nothing raises",
        source=APPENDS
        + """
            async def evaluate(self):
                saved = list(self.rewards)
                for item in self.items:
                    await self.compute_reward(item, None, None)  # <- here
                self.rewards = saved
        """,
        message="evaluate calls compute_reward, which changes self.rewards of training; not rolled back when evaluation raises",
    ),
    Case(
        name="put back is a second name for the same list",
        source=APPENDS
        + """
            async def evaluate(self):
                saved = self.rewards
                try:
                    for item in self.items:
                        await self.compute_reward(item, None, None)  # <- here
                finally:
                    self.rewards = saved
        """,
        message="evaluate calls compute_reward, which changes self.rewards of training; nothing restores it",
    ),
    Case(
        name="one of two buffers is forgotten",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                self.rewards.append(1.0)
                self.seen.add(item["id"])
                return 1.0

            async def evaluate(self):
                n = len(self.rewards)
                try:
                    await self.compute_reward({}, None, None)  # <- here
                finally:
                    del self.rewards[n:]
        """,
        message="evaluate calls compute_reward, which changes self.seen of training; nothing restores it",
    ),
    Case(
        name="evaluate appends itself",
        source="""
        class Env(HermesAgentBaseEnv):
            async def collect_trajectory(self, item):
                scored = await super().collect_trajectory(item)
                self.rewards.append(scored)
                return scored

            async def evaluate(self):
                for item in self.items:
                    self.rewards.append(item)  # <- here
        """,
        message="evaluate changes self.rewards of training; nothing restores it",
    ),
    Case(
        name="the base's rollouts come back to compute_reward",
        source=APPENDS
        + """
            async def evaluate(self):
                for item in self.items:
                    await self.collect_trajectory(item)  # <- here
        """,
        message="evaluate calls compute_reward, which changes self.rewards of training; nothing restores it",
    ),
    Case(
        name="the buffer is emptied and what training put there is lost",
        source=APPENDS
        + """
            async def evaluate(self):
                try:
                    await self.compute_reward({}, None, None)  # <- here
                finally:
                    self.rewards.clear()  # <- here
        """,
        message="",
    ),
    Case(
        name="evaluation items are drawn from training",
        source="""
        class Env(HermesAgentBaseEnv):
            async def get_next_item(self):
                self.cursor += 1
                return self.items[self.cursor]

            async def evaluate(self):
                item = await self.get_next_item()  # <- here
                return item
        """,
        message="evaluate calls get_next_item, which changes self.cursor of training; nothing restores it",
    ),
)

SOUND = (
    Case(
        name="cut back to their length in a finally",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                self.rewards.append(1.0)
                self.count += 1
                return 1.0

            async def evaluate(self):
                n, count = len(self.rewards), self.count
                try:
                    for item in self.items:
                        await self.compute_reward(item, None, None)
                finally:
                    del self.rewards[n:]
                    self.count = count
        """,
    ),
    Case(
        name="copies put back by helpers, a nested function in between",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                self.metrics["scores"].append(1.0)
                self.recent.appendleft(1.0)
                return 1.0

            async def evaluate(self):
                async def one(item):
                    return await self.compute_reward(item, None, None)

                saved = self._snapshot()
                try:
                    await asyncio.gather(*(one(item) for item in self.items))
                finally:
                    self._restore(saved)

            def _snapshot(self):
                return {k: list(v) for k, v in self.metrics.items()}, deque(self.recent)

            def _restore(self, saved):
                metrics, recent = saved
                self.metrics = metrics
                self.recent.clear()
                self.recent.extend(recent)
        """,
    ),
    Case(
        name="a context manager of its own",
        source=APPENDS
        + """
            @contextlib.contextmanager
            def _untouched(self):
                kept = list(self.rewards)
                try:
                    yield
                finally:
                    self.rewards[:] = kept

            async def evaluate(self):
                with self._untouched():
                    await self.compute_reward({}, None, None)
        """,
    ),
    Case(
        name="swapped for an empty one meanwhile",
        source=APPENDS
        + """
            async def evaluate(self):
                saved, self.rewards = self.rewards, []
                try:
                    await self.compute_reward({}, None, None)
                finally:
                    self.rewards = saved
        """,
    ),
    Case(
        name="an exit stack",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                self.rewards.append(1.0)
                self.count += 1
                return 1.0

            async def evaluate(self):
                with contextlib.ExitStack() as stack:
                    stack.callback(setattr, self, "rewards", list(self.rewards))
                    stack.callback(self._reset, self.count)
                    await self.compute_reward({}, None, None)

            def _reset(self, count):
                self.count = count
        """,
    ),
    Case(
        name="bookkeeping stays out of the reward",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return 1.0

            async def collect_trajectory(self, item):
                scored, rest = await super().collect_trajectory(item)
                self.rewards.append(scored["scores"])
                return scored, rest

            async def evaluate(self):
                self.eval_scores = []
                for item in self.items:
                    self.eval_scores.append(await self.compute_reward(item, None, None))
        """,
    ),
    Case(
        name="told by an argument not to record",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return self._score(item, record=True)

            def _score(self, item, *, record=False):
                if record:
                    self.rewards.append(1.0)
                return 1.0

            async def evaluate(self):
                return [self._score(item) for item in self.items]
        """,
    ),
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_buffer_that_evaluation_changes_is_found(judge, case):
    judgement = judge("HE702", case.source)

    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)
    if case.message:
        assert judgement.messages == (case.message,)


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_buffers_that_are_left_or_put_back_pass(judge, case):
    assert judge("HE702", case.source).outcome is Outcome.PASSED, judge("HE702", case.source)


@pytest.mark.parametrize(
    "body",
    [
        "        if not self.evaluating:\n            self.rewards.append(1.0)\n",
        "        if self.quiet:\n            return 1.0\n        self.rewards.append(1.0)\n",
        "        if item.get('split') == 'x':\n            self.rewards.append(1.0)\n",
    ],
    ids=["a flag by its name", "a flag that evaluate sets", "a word in the item"],
)
def test_recording_that_depends_on_a_flag_is_undecided(judge, body):
    source = (
        "class Env(HermesAgentBaseEnv):\n    async def compute_reward(self, item, result, ctx):\n"
        + body
        + "        return 1.0\n"
        "    async def evaluate(self):\n        self.quiet = True\n        await self.compute_reward({}, None, None)\n"
    )

    assert judge("HE702", source).outcome is Outcome.UNDECIDED


def test_names_that_are_computed_leave_it_undecided(judge):
    judgement = judge(
        "HE702",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                self.rewards.append(1.0)

            async def evaluate(self):
                saved = {name: list(getattr(self, name)) for name in self.buffers}
                try:
                    await self.compute_reward({}, None, None)
                finally:
                    for name, value in saved.items():
                        setattr(self, name, value)
        """,
    )

    assert judgement.outcome is Outcome.UNDECIDED


def test_a_class_without_buffers_is_not_concerned(judge):
    judgement = judge(
        "HE702",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                self.judge_cache[item["id"]] = 1.0
                return 1.0

            async def evaluate(self):
                await self.compute_reward({}, None, None)
        """,
    )

    assert (judgement.outcome, judgement.verdict.note) == (Outcome.NOT_APPLICABLE, "training keeps no buffers on self")
