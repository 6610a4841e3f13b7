"""HE102: what Atropos awaits is async, format_prompt is not, evaluate takes no argument."""

from __future__ import annotations

import pytest

from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of

from ..play.small_env import SmallEnv  # noqa: TID252 - another room has the small environment
from .rule_cases import broken, check, open_, sound

CASES = (
    broken(
        "plain methods",
        """
        class Env(HermesAgentBaseEnv):
            def setup(self):  # <- here
                self.items = []
            def get_next_item(self):  # <- here
                return self.items[0]
            def compute_reward(self, item, result, ctx):  # <- here
                return 1.0
            def evaluate(self):  # <- here
                pass
            def wandb_log(self, metrics=None):  # <- here
                print(metrics)
        """,
        "setup is not async, but it is awaited",
        "get_next_item is not async, but it is awaited",
        "compute_reward is not async, but it is awaited",
        "evaluate is not async, but it is awaited",
        "wandb_log is not async, but it is awaited",
    ),
    broken(
        "a coroutine that is kept",
        """
        class Env(HermesAgentBaseEnv):
            @functools.lru_cache(maxsize=None)
            async def compute_reward(self, item, result, ctx):  # <- here
                return 1.0
        """,
        "compute_reward is a coroutine that @lru_cache keeps: it can be awaited once only, and items that are dicts cannot be keys",
    ),
    broken(
        "coroutines of the layer",
        """
        class Env(HermesAgentBaseEnv):
            async def collect_trajectory(self, item):
                scored, backlog = super().collect_trajectory(item)  # <- here
                return scored, backlog
            async def evaluate(self, *args, **kwargs):
                self.evaluate_items()  # <- here
            async def collect_trajectories(self, item):
                rollouts = [self.collect_trajectory(item) for _ in range(4)]
                return await asyncio.gather(*rollouts)
        """,
        "collect_trajectory calls collect_trajectory without await: the coroutine is not a result: it cannot be unpacked",
        "evaluate calls evaluate_items without await: the coroutine is dropped: nothing of it runs",
    ),
    broken(
        "a coroutine as a condition",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                if self.is_done(ctx):  # <- here
                    return 1.0
                await (self.cached or self.is_done(ctx))
                return 0.5 if not self.is_done(ctx) else 0.0  # <- here
            async def is_done(self, ctx):
                return ctx.terminal("ls")["exit_code"] == 0
        """,
        "compute_reward calls is_done without await: the coroutine is not a result: it is always true",
        "compute_reward calls is_done without await: the coroutine is not a result: it is always true",
    ),
    broken(
        "an async prompt",
        """
        class Env(HermesAgentBaseEnv):
            async def format_prompt(self, item):  # <- here
                return item["q"]
        """,
        "format_prompt is async, but its result is used without an await: the model receives '<coroutine object …>'",
    ),
    broken(
        "generators",
        """
        class Env(HermesAgentBaseEnv):
            async def get_next_item(self):  # <- here
                for item in self.items:
                    yield item
            def format_prompt(self, item):  # <- here
                yield item["q"]
        """,
        "get_next_item is an async generator, which cannot be awaited",
        "format_prompt is a generator; it must return the prompt",
    ),
    broken(
        "evaluate with demands",
        """
        class Env(HermesAgentBaseEnv):
            async def evaluate(self, items, *args, depth, limit=3):  # <- here
                pass
        """,
        "evaluate requires items, depth, but Atropos calls evaluate() without arguments",
    ),
    sound(
        "async where it is awaited",
        """
        class Env(HermesAgentBaseEnv):
            async def setup(self): ...
            async def get_next_item(self): return None
            def format_prompt(self, item): return "x"
            async def compute_reward(self, item, result, ctx): return 1.0
            async def evaluate(self, *args, **kwargs): ...
            async def wandb_log(self, metrics=None): await super().wandb_log(metrics)
        """,
    ),
    sound(
        "plain functions that hand on something to await",
        """
        class Env(HermesAgentBaseEnv):
            def setup(self):
                return self._setup()
            async def _setup(self): ...
            def compute_reward(self, item, result, ctx):
                return asyncio.to_thread(self.score, item)
            def score(self, item): return 1.0
            def wandb_log(self, metrics=None):
                return super().wandb_log(metrics)
        """,
    ),
    sound(
        "inherited, overridden by an async one",
        """
        class Parent(HermesAgentBaseEnv):
            def setup(self): ...

        class Env(Parent):
            @staticmethod
            async def evaluate(*args): ...
            async def setup(self): ...
        """,
    ),
    open_(
        "a decorator that nobody can read",
        """
        from company import awaited

        class Env(HermesAgentBaseEnv):
            @awaited
            def setup(self): ...
        """,
    ),
    open_("a base that cannot be read", "from company import Base\n\nclass Env(Base, HermesAgentBaseEnv): ...\n"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_awaited_is_async(judge, case):
    check(judge, "HE102", case)


def given_a_step(function):
    """Hide what a function requires."""

    async def evaluate(*args, **kwargs):
        return await function(*args, **kwargs)

    return evaluate


def test_what_a_decorator_hides_is_told():
    """Its signature requires nothing: the call does."""

    class Env(SmallEnv):
        @given_a_step
        async def evaluate(self, step):
            """Say nothing."""

    verdict = contract_of(Env, [find_rule("HE102")]).result(find_rule("HE102"))
    (found,) = verdict.findings

    assert found.message.startswith("Atropos calls evaluate() without arguments, which raised TypeError: ")
    assert found.message.endswith("Env.evaluate() missing 1 required positional argument: 'step'")
