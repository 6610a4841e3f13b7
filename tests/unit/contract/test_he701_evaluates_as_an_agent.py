"""HE701: evaluate drives a HermesAgentLoop with tools."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, open_, sound

ONE_TURN = "evaluate calls the model through chat_completion, one turn without tools, and runs no HermesAgentLoop"

CASES = (
    broken(
        "one chat completion",
        """
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                for item in self.items:
                    answer = await self.server.chat_completion(messages=[], n=1)  # <- here
                    print(answer)
        """,
        ONE_TURN,
    ),
    broken(
        "chat completions in a helper",
        """
        class Env(HermesAgentBaseEnv):
            async def evaluate(self, *args, **kwargs):
                server = self.server
                scores = await asyncio.gather(*(self._ask(server, item) for item in self.items))
                await self.evaluate_log(metrics={"eval/mean": sum(scores)})

            async def _ask(self, server, item):
                answer = await server.chat_completion(messages=[])  # <- here
                return float(bool(answer))
        """,
        ONE_TURN,
    ),
    broken(
        "pass",
        """
        class Env(HermesAgentBaseEnv):
            async def evaluate(self, *args):  # <- here
                pass
        """,
        "evaluate is a stub: it evaluates nothing",
    ),
    broken(
        "a log line and a constant",
        """
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):  # <- here
                '''Evaluate.'''
                logger.info("evaluation is done elsewhere")
                return {"eval/accuracy": 0.0}
        """,
        "evaluate is a stub: it evaluates nothing",
    ),
    broken(
        "not implemented, inherited from a parent",
        """
        class Parent(HermesAgentBaseEnv):
            async def evaluate(self):  # <- here
                raise NotImplementedError("later")

        class Env(Parent):
            name = "child"
        """,
        "evaluate is a stub: it evaluates nothing",
    ),
    sound(
        "a loop in evaluate",
        """
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                tools, names = self._resolve_tools_for_group()
                agent = HermesAgentLoop(server=self.server, tool_schemas=tools, valid_tool_names=names)
                result = await agent.run([])
                await self.evaluate_log(metrics={"eval/turns": result.turns_used})
        """,
    ),
    sound(
        "an imported name, a chained run, in a nested function",
        """
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                from environments.agent_loop import HermesAgentLoop as Loop

                async def one(item):
                    return await Loop(self.server, self.tools, self.names).run([item])

                return await asyncio.gather(*map(one, self.items))
        """,
    ),
    sound(
        "the rollouts of the base class",
        """
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                for item in self.items:
                    await self.collect_trajectories(item)

            async def collect_trajectories(self, item):
                return await super().collect_trajectories(item)
        """,
    ),
    sound(
        "an inherited evaluate, a loop made by an overridden helper, a judge beside it",
        """
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
    open_(
        "a function that cannot be read",
        "from company import run_eval\n\nclass Env(HermesAgentBaseEnv):\n    async def evaluate(self):\n"
        "        await run_eval(self, self.items)\n",
    ),
    open_(
        "an object that cannot be read",
        "from company import Runner\n\nclass Env(HermesAgentBaseEnv):\n    async def evaluate(self):\n"
        "        await Runner(server=self.server).go()\n",
    ),
    open_(
        "an inherited method that cannot be read",
        "from company import Base\n\nclass Env(Base, HermesAgentBaseEnv):\n    pass\n",
    ),
    open_(
        "super that cannot be read",
        "from company import Base\n\nclass Env(Base, HermesAgentBaseEnv):\n    async def evaluate(self):\n"
        "        return await super().evaluate()\n",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_evaluation_runs_an_agent(judge, case):
    check(judge, "HE701", case)
