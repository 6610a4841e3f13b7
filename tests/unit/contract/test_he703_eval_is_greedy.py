"""HE703: evaluation samples at temperature 0."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_hermes_env.contract.verdict import Outcome


@dataclass(frozen=True, kw_only=True)
class Case:
    """An environment; the line of a violation ends with the mark."""

    name: str
    source: str


HEAD = """
from functools import partial
from pydantic import Field

WARM = 0.7
COLD = 0


class Config(HermesAgentEnvConfig):
    eval_temperature: float = Field(default=0.0, description="x")
    warm: float = Field(0.4, description="x")


class Env(HermesAgentBaseEnv):
    env_config_cls = Config
"""

BROKEN = (
    Case(
        name="none",
        source="""
    async def evaluate(self):
        await HermesAgentLoop(server=self.server, tool_schemas=self.tools, valid_tool_names=self.names).run([])  # <- here
        """,
    ),
    Case(
        name="by position",
        source="""
    async def evaluate(self):
        await HermesAgentLoop(self.server, self.tools, self.names, 5, "x", 0.2).run([])  # <- here
        """,
    ),
    Case(
        name="a constant of the module, in a helper",
        source="""
    async def evaluate(self):
        await asyncio.gather(*(self.one(item) for item in self.items))

    async def one(self, item):
        agent = HermesAgentLoop(self.server, self.tools, self.names, temperature=WARM)  # <- here
        await agent.run([])
        """,
    ),
    Case(
        name="the temperature of training",
        source="""
    async def evaluate(self):
        agent = HermesAgentLoop(self.server, self.tools, self.names, temperature=self.config.agent_temperature)  # <- here
        await agent.run([])
        """,
    ),
    Case(
        name="a setting",
        source="""
    async def evaluate(self):
        agent = HermesAgentLoop(self.server, self.tools, self.names, temperature=self.config.warm)  # <- here
        await agent.run([])
        """,
    ),
    Case(
        name="given by the caller",
        source="""
    async def evaluate(self):
        for item in self.items:
            await self.one(item, 0.8)  # <- here

    async def one(self, item, temperature=0.0):
        agent = HermesAgentLoop(self.server, self.tools, self.names, temperature=temperature)
        await agent.run([])
        """,
    ),
    Case(
        name="in a dict that is unpacked",
        source="""
    async def evaluate(self):
        settings = {"max_turns": 3, "temperature": 1.0}
        agent = HermesAgentLoop(self.server, self.tools, self.names, **settings)  # <- here
        await agent.run([])
        """,
    ),
    Case(
        name="one of two branches",
        source="""
    async def evaluate(self):
        agent = HermesAgentLoop(self.server, self.tools, self.names, temperature=0.0 if self.fast else 1.0)  # <- here
        await agent.run([])
        """,
    ),
)

SOUND = (
    Case(
        name="a partial",
        source="""
    async def evaluate(self):
        make = partial(HermesAgentLoop, temperature=0.0)
        agent = make(self.server, self.tools, self.names)
        await agent.run([])
        """,
    ),
    Case(
        name="zero by position, in a nested function",
        source="""
    async def evaluate(self):
        async def one(item):
            agent = HermesAgentLoop(self.server, self.tools, self.names, 5, None, 0)
            return await agent.run([])

        await asyncio.gather(*map(one, self.items))
        """,
    ),
    Case(
        name="a setting",
        source="""
    async def evaluate(self):
        config = self.config
        agent = HermesAgentLoop(self.server, self.tools, self.names, temperature=config.eval_temperature)
        await agent.run([])
        """,
    ),
    Case(
        name="a helper that training shares",
        source="""
    async def collect_trajectory(self, item):
        return await self.one(item, self.config.agent_temperature)

    async def evaluate(self):
        for item in self.items:
            await self.one(item, temperature=COLD)

    async def one(self, item, temperature):
        agent = HermesAgentLoop(self.server, self.tools, self.names, temperature=temperature)
        return await agent.run([])
        """,
    ),
    Case(
        name="unpacked beside it",
        source="""
    async def evaluate(self):
        agent = HermesAgentLoop(*self.resolved(), temperature=0.0, **self.settings())
        await agent.run([])
        """,
    ),
    Case(
        name="a dict that is unpacked",
        source="""
    async def evaluate(self):
        settings = dict(max_turns=3, temperature=0.0)
        agent = HermesAgentLoop(self.server, self.tools, self.names, **settings)
        await agent.run([])
        """,
    ),
)

UNDECIDED = (
    Case(
        name="unpacked",
        source="""
    async def evaluate(self):
        agent = HermesAgentLoop(self.server, self.tools, self.names, **self.settings())
        await agent.run([])
        """,
    ),
    Case(
        name="the rollouts of the base class",
        source="""
    async def evaluate(self):
        for item in self.items:
            await self.collect_trajectory(item)
        """,
    ),
    Case(
        name="computed",
        source="""
    async def evaluate(self):
        agent = HermesAgentLoop(self.server, self.tools, self.names, temperature=self.pick())
        await agent.run([])
        """,
    ),
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_evaluation_that_samples_is_found(judge, case):
    judgement = judge("HE703", HEAD + case.source)

    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_greedy_evaluation_passes(judge, case):
    assert judge("HE703", HEAD + case.source).outcome is Outcome.PASSED, judge("HE703", HEAD + case.source)


@pytest.mark.parametrize("case", UNDECIDED, ids=lambda case: case.name)
def test_what_only_running_it_tells_is_undecided(judge, case):
    assert judge("HE703", HEAD + case.source).outcome is Outcome.UNDECIDED


def test_the_finding_says_at_what_temperature(judge):
    messages = [judge("HE703", HEAD + BROKEN[index].source).messages for index in (0, 1, 3)]

    assert messages == [
        ("evaluate builds a HermesAgentLoop without a temperature: it samples at its default, 1.0",),
        ("evaluation samples at temperature 0.2, not greedily",),
        ("evaluation samples at temperature self.config.agent_temperature = 1.0, not greedily",),
    ]
