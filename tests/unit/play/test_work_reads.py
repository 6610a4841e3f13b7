"""Whether a reward looks into the agent's work."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from pytest_hermes_env.play.probing.transcripts import plain
from pytest_hermes_env.play.probing.trial import RewardRunner
from pytest_hermes_env.results import agent_result

WORK = plain(
    agent_result.user("Count to three.").call("terminal", command="seq 3").returns({"output": "1 2 3", "exit_code": 0}).say("3")
)


class Env:
    """Its rewards; each is 0.0, because nothing that it looks for is there."""

    state: dict[str, float]

    async def of_the_prompt(self, item: Any, result: Any, ctx: Any) -> float:
        """Look at messages of the wrong role, count calls, and look at how the rollout ended."""
        texts = [message["content"] for message in result.messages if message["role"] == "user"]
        calls = sum(len(message.get("tool_calls") or []) for message in result.messages)
        return float("done" in texts and calls > 1 and result.finished_naturally)

    async def of_another_key(self, item: Any, result: Any, ctx: Any) -> float:
        """Misspell the key."""
        return float(any(message.get("contents") for message in result.messages))

    async def of_the_answer(self, item: Any, result: Any, ctx: Any) -> float:
        """Look at the last answer."""
        return float((result.messages[-1]["content"] or "") == "done")

    async def of_a_pattern(self, item: Any, result: Any, ctx: Any) -> float:
        """Give the answer to a function written in C, and catch what it raises."""
        return float(bool(re.search("done", result.messages[-1]["content"])))

    async def of_parts(self, item: Any, result: Any, ctx: Any) -> float:
        """Ask for the type first."""
        return float(any(isinstance(message.get("content"), list) for message in result.messages))

    async def of_calls(self, item: Any, result: Any, ctx: Any) -> float:
        """Look at the arguments of the calls."""
        calls = [call for message in result.messages for call in message.get("tool_calls") or []]
        return float(any(json.loads(call["function"]["arguments"]).get("done") for call in calls))

    async def of_the_sandbox(self, item: Any, result: Any, ctx: Any) -> float:
        """Look for a file."""
        return float(ctx.terminal("cat done.txt")["exit_code"] == 0)

    async def of_its_state(self, item: Any, result: Any, ctx: Any) -> float:
        """Look at what tools of its own noted for the rollout."""
        return {"another": 1.0}.get(ctx.task_id, 0.0)


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("of_the_prompt", False),
        ("of_another_key", False),
        ("of_the_answer", True),
        ("of_a_pattern", True),
        ("of_parts", True),
        ("of_calls", True),
        ("of_the_sandbox", True),
        ("of_its_state", True),
    ],
)
def test_reads_of_work_are_noted(name: str, reads: bool) -> None:
    """Also those that fail, and those of the sandbox."""
    env = type("Env", (Env,), {"compute_reward": getattr(Env, name)})()
    runner = RewardRunner(env, {}, asked=lambda: 0)

    assert asyncio.run(runner.reads_work(WORK)) is reads
    assert WORK.messages[-1]["content"] == "3"
