"""Tools that an environment registers itself are its own code: they answer in the contract as in training."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from environments.agent_loop import AgentResult
from environments.hermes_base_env import HermesAgentEnvConfig
from environments.tool_context import ToolContext
from pytest_hermes_env import call, cases, item_cases, say
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.sandbox.hermes_modules import hermes_module
from pytest_hermes_env.sandbox.seam import ToolSeam

from ..play.small_env import SmallEnv  # noqa: TID252 - another room has the small environment
from .test_around_gold import SumEnv, judged

ADD = {
    "name": "add_numbers",
    "description": "Add two numbers.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}


@pytest.fixture
def adding() -> Iterator[None]:
    """The tool ``add_numbers`` in a toolset of its own."""
    import toolsets
    from tools.registry import registry

    registry.register(
        name="add_numbers", toolset="adding", schema=ADD, handler=lambda args, **_: json.dumps({"sum": args["a"] + args["b"]})
    )
    toolsets.create_custom_toolset(name="adding", description="adds", tools=["add_numbers"])
    yield
    registry.deregister("add_numbers")
    del toolsets.TOOLSETS["adding"]


class AddingEnv(SumEnv):
    """Pays the sum that the tool returned, said again."""

    prompts: ClassVar[str] = "Add {a} and {b} with the tool, and say the sum alone."

    @classmethod
    def config_init(cls) -> Any:
        """With the tool."""
        config, servers = SmallEnv.config_init()
        return HermesAgentEnvConfig(enabled_toolsets=["adding"], max_agent_turns=config.max_agent_turns), servers

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look for the tool's result."""
        total = item["answer"]["total"]
        told = [json.loads(message["content"]) for message in result.messages if message["role"] == "tool"]
        said = [message.get("content") for message in result.messages if message["role"] == "assistant"]
        return float({"sum": total} in told and said[-1] == str(total))


@pytest.mark.usefixtures("adding")
@pytest.mark.parametrize("rule", ["HE412", "HE603"])
def test_an_own_tool_answers(rule: str) -> None:
    """Gold that needs it earns, and rollouts are told apart by what they say: its arguments are no words."""
    gold = item_cases(
        where="*",
        gold=lambda item: [call("add_numbers", a=item["a"], b=item["b"]), say(str(item["answer"]["total"]))],
    )

    verdict = judged(rule, AddingEnv, cases([gold]))

    assert (verdict.outcome, [finding.message for finding in verdict.findings]) == (Outcome.PASSED, [])


@pytest.mark.usefixtures("adding")
def test_a_script_comes_first(make_env: Any, fake_sandbox: Any) -> None:
    """What a test says about the tool counts."""
    fake_sandbox.on_tool("add_numbers", {"sum": 7})
    env = make_env(AddingEnv, script=[call("add_numbers", a=1, b=2), say("7")], in_process=True)

    scored, _ = asyncio.run(env.collect_trajectory({"a": 1, "b": 2, "answer": {"total": 7, "count": 2}}))

    assert scored["scores"] == 1.0


@pytest.mark.usefixtures("adding")
def test_what_was_recorded_is_not_run_again() -> None:
    """The double of a replay answers for the tool, and a fault of a scenario strikes it, as any other."""

    class Recorded:
        """Answers as a cassette does."""

        def call(self, name: str, arguments: dict[str, Any]) -> str:
            """Return what was recorded."""
            return f"recorded {name}"

    with ToolSeam(SimpleNamespace(sandbox_of=lambda _: Recorded())):
        answer = hermes_module("tools.registry").registry.dispatch("add_numbers", {"a": 1, "b": 2}, task_id="t")

    assert answer == "recorded add_numbers"


@pytest.mark.usefixtures("adding")
def test_a_context_without_a_rollout_runs_it_too(tool_context: Any, fake_sandbox: Any) -> None:
    """A reward that calls the tool is tested with it."""
    assert json.loads(tool_context.call_tool("add_numbers", {"a": 1, "b": 2})) == {"sum": 3}
    assert [one.name for one in fake_sandbox.calls] == ["add_numbers"]
