"""HE701: evaluate drives a HermesAgentLoop with tools."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_hermes_env.contract.verdict import Outcome


@dataclass(frozen=True, kw_only=True)
class Case:
    """A source and what the rule makes of it."""

    name: str
    source: str
    message: str = ""


ONE_TURN = "evaluate calls the model through chat_completion, one turn without tools, and runs no HermesAgentLoop"

BROKEN = (
    Case(
        name="one chat completion",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                for item in self.items:
                    answer = await self.server.chat_completion(messages=[], n=1)  # <- here
                    print(answer)
        """,
        message=ONE_TURN,
    ),
    Case(
        name="chat completions in a helper",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self, *args, **kwargs):
                server = self.server
                scores = await asyncio.gather(*(self._ask(server, item) for item in self.items))
                await self.evaluate_log(metrics={"eval/mean": sum(scores)})

            async def _ask(self, server, item):
                answer = await server.chat_completion(messages=[])  # <- here
                return float(bool(answer))
        """,
        message=ONE_TURN,
    ),
    Case(
        name="pass",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self, *args):  # <- here
                pass
        """,
        message="evaluate is a stub: it evaluates nothing",
    ),
    Case(
        name="a log line and a constant",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):  # <- here
                '''Evaluate.'''
                logger.info("evaluation is done elsewhere")
                return {"eval/accuracy": 0.0}
        """,
        message="evaluate is a stub: it evaluates nothing",
    ),
    Case(
        name="not implemented, inherited from a parent",
        source="""
        class Parent(HermesAgentBaseEnv):
            async def evaluate(self):  # <- here
                raise NotImplementedError("later")

        class Env(Parent):
            name = "child"
        """,
        message="evaluate is a stub: it evaluates nothing",
    ),
)

SOUND = (
    Case(
        name="a loop in evaluate",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                tools, names = self._resolve_tools_for_group()
                agent = HermesAgentLoop(server=self.server, tool_schemas=tools, valid_tool_names=names)
                result = await agent.run([])
                await self.evaluate_log(metrics={"eval/turns": result.turns_used})
        """,
    ),
    Case(
        name="an imported name, a chained run, in a nested function",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                from environments.agent_loop import HermesAgentLoop as Loop

                async def one(item):
                    return await Loop(self.server, self.tools, self.names).run([item])

                return await asyncio.gather(*map(one, self.items))
        """,
    ),
    Case(
        name="the rollouts of the base class",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                for item in self.items:
                    await self.collect_trajectories(item)

            async def collect_trajectories(self, item):
                return await super().collect_trajectories(item)
        """,
    ),
    Case(
        name="an inherited evaluate, a loop made by an overridden helper, a judge beside it",
        source="""
        class Parent(HermesAgentBaseEnv):
            async def evaluate(self):
                for item in self.items:
                    agent = self.make_agent(item)
                    result = await asyncio.wait_for(agent.run([]), 60)
                    await self.server.chat_completion(messages=result.messages)

        class Env(Parent):
            loop_class = HermesAgentLoop

            def make_agent(self, item):
                return self.loop_class(server=self.server, tool_schemas=[item["tool"]])
        """,
    ),
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_an_evaluation_without_an_agent_is_found(judge, case):
    judgement = judge("HE701", case.source)

    assert (judgement.lines, judgement.messages) == (judgement.marked, (case.message,))


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_an_evaluation_with_an_agent_passes(judge, case):
    assert judge("HE701", case.source).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "source",
    [
        "from company import run_eval\n\nclass Env(HermesAgentBaseEnv):\n    async def evaluate(self):\n"
        "        await run_eval(self, self.items)\n",
        "from company import Runner\n\nclass Env(HermesAgentBaseEnv):\n    async def evaluate(self):\n"
        "        await Runner(server=self.server).go()\n",
        "from company import Base\n\nclass Env(Base, HermesAgentBaseEnv):\n    pass\n",
        "from company import Base\n\nclass Env(Base, HermesAgentBaseEnv):\n    async def evaluate(self):\n"
        "        return await super().evaluate()\n",
    ],
    ids=["a function", "an object", "an inherited method", "super"],
)
def test_an_evaluation_by_code_that_cannot_be_read_is_undecided(judge, source):
    assert judge("HE701", source).outcome is Outcome.UNDECIDED
