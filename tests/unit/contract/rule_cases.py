"""Cases of rules: a source, the outcome, and the messages at the lines that the source marks."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_hermes_env.contract.judge.verdict import Outcome

MAIN = '\n\nif __name__ == "__main__":\n    Env.cli()\n'


@dataclass(frozen=True, kw_only=True)
class Case:
    """A source and what a rule makes of it: violations at the marked lines, with these messages if there are any."""

    name: str
    source: str
    messages: tuple[str, ...] = ()
    outcome: Outcome = Outcome.PASSED

    def __str__(self) -> str:
        """Return the name, which is the id of the test."""
        return self.name


def broken(name: str, source: str, *messages: str) -> Case:
    """Return a case in which the rule finds these."""
    return Case(name=name, source=source, messages=messages, outcome=Outcome.FAILED)


def sound(name: str, source: str) -> Case:
    """Return a case that passes."""
    return Case(name=name, source=source)


def open_(name: str, source: str) -> Case:
    """Return a case that the source alone cannot decide."""
    return Case(name=name, source=source, outcome=Outcome.UNDECIDED)


def other(name: str, source: str) -> Case:
    """Return a case that the rule does not concern."""
    return Case(name=name, source=source, outcome=Outcome.NOT_APPLICABLE)


def check(judge, rule_id: str, case: Case) -> None:
    """Hold a rule to a case."""
    judgement = judge(rule_id, case.source)

    lines = judgement.marked if case.outcome is Outcome.FAILED else ()
    assert (judgement.outcome, judgement.lines) == (case.outcome, lines)
    assert case.messages in {(), judgement.messages}


GOOD_FILE = """\
import uuid

from atroposlib.envs.server_handling.server_manager import APIServerConfig
from environments.agent_loop import HermesAgentLoop
from environments.hermes_base_env import HermesAgentBaseEnv
from environments.tool_context import ToolContext


class Good(HermesAgentBaseEnv):
    @classmethod
    def config_init(cls):
        return cls.env_config_cls(enabled_toolsets=["file"]), [APIServerConfig()]

    async def setup(self):
        self.items, self.held_out = [{"q": "2 + 2", "a": "4"}], [{"q": "3 + 3", "a": "6"}]

    async def get_next_item(self):
        return self.items[0]

    def format_prompt(self, item):
        return item["q"]

    async def compute_reward(self, item, result, ctx):
        return float(any(item["a"] in (message.get("content") or "") for message in result.messages))

    async def evaluate(self):
        tools, names = self._resolve_tools_for_group()
        ctx = ToolContext(str(uuid.uuid4()))
        try:
            agent = HermesAgentLoop(self.server, tools, names, task_id=ctx.task_id, temperature=0.0)
            reward = await self.compute_reward(self.held_out[0], await agent.run([]), ctx)
        finally:
            ctx.cleanup()
        await self.evaluate_log({"eval/reward": reward}, samples=[{"score": reward}])

    name = "good"


if __name__ == "__main__":
    Good.cli()
"""
"""An environment without findings, as a file of its own."""
