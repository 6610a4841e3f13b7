"""HE101: the five methods exist, own or inherited."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_hermes_env.contract.verdict import Outcome


@dataclass(frozen=True, kw_only=True)
class Case:
    """A source and what the rule makes of it."""

    name: str
    source: str


BROKEN = (
    Case(
        name="evaluate forgotten",
        source="""
        class Env(HermesAgentBaseEnv):  # <- here
            async def setup(self): ...
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...
        """,
    ),
    Case(
        name="a misspelt name",
        source="""
        class Env(HermesAgentBaseEnv[HermesAgentEnvConfig]):  # <- here
            async def setup(self): ...
            async def get_next_items(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...
            async def evaluate(self): ...
        """,
    ),
    Case(
        name="a method at module level",
        source="""
        import environments.hermes_base_env as base

        async def setup(self): ...

        class Env(base.HermesAgentBaseEnv):  # <- here
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...
            async def evaluate(self): ...
        """,
    ),
    Case(
        name="a mixin that comes after the base, which hides it",
        source="""
        class Rest:
            async def setup(self): ...
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...

        class Env(HermesAgentBaseEnv, Rest):  # <- here
            async def evaluate(self): ...
        """,
    ),
    Case(
        name="inherited from an environment that lacks it too",
        source="""
        Base = HermesAgentBaseEnv

        class Half(Base):
            async def setup(self): ...
            async def get_next_item(self): ...

        class Env(Half):  # <- here
            def format_prompt(self, item): ...
            async def evaluate(self): ...
        """,
    ),
)

SOUND = (
    Case(
        name="all own",
        source="""
        class Env(HermesAgentBaseEnv):
            async def setup(self): ...
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...
            async def evaluate(self): ...
        """,
    ),
    Case(
        name="inherited from another environment",
        source="""
        class Parent(HermesAgentBaseEnv):
            async def setup(self): ...
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...
            async def evaluate(self): ...

        class Env(Parent):
            name = "child"
        """,
    ),
    Case(
        name="from a mixin, under an if, and by assignment",
        source="""
        class Rest:
            async def setup(self): ...
            async def get_next_item(self): ...
            async def _evaluate(self): ...

        class Env(Rest, HermesAgentBaseEnv):
            if True:
                def format_prompt(self, item): ...
            else:
                def format_prompt(self, item, more=None): ...
            async def compute_reward(self, item, result, ctx): ...
            evaluate = Rest._evaluate
        """,
    ),
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_missing_method_is_found_at_the_class(judge, case):
    judgement = judge("HE101", case.source)

    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_methods_may_come_from_anywhere_that_can_be_read(judge, case):
    assert judge("HE101", case.source).outcome is Outcome.PASSED


def test_one_finding_names_all_that_is_missing(judge):
    judgement = judge("HE101", "class Env(HermesAgentBaseEnv):\n    def format_prompt(self, item): ...\n")

    assert judgement.messages == ("setup, get_next_item, compute_reward, evaluate are missing",)


def test_a_base_that_cannot_be_read_leaves_it_undecided(judge):
    judgement = judge("HE101", "from company import Tools\n\nclass Env(Tools, HermesAgentBaseEnv):\n    pass\n")

    assert judgement.outcome is Outcome.UNDECIDED
    assert "company.Tools" in judgement.verdict.note
