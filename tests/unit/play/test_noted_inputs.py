"""Whether a reward looks into the agent's work, and whether it changes its item."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from typing import Any

import pytest

from pytest_hermes_env.play.probing.transcripts import plain
from pytest_hermes_env.play.probing.trial import RewardRunner, watched
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


ITEM = {"name": "a", "tags": ["x", "y"], "deep": {"n": 1}}

CHANGES = {
    "the same value again": lambda item: item.__setitem__("name", "a"),
    "pop": lambda item: item.pop("none", None),
    "a list inside": lambda item: item["tags"].sort(),
    "a dict inside": lambda item: item["deep"].update(n=1),
    "or-assignment": lambda item: item.__ior__({"name": "a"}),
}

READS = {
    "reading": lambda item: (item["name"], item.get("x"), list(item), item["tags"][0], len(item["deep"])),
    "a sorted copy": lambda item: sorted(item["tags"]),
    "a changed copy": lambda item: dict(item).update(name="b"),
    "a changed shallow copy": lambda item: copy.copy(item).update(name="b"),
    "a changed deep copy": lambda item: copy.deepcopy(item)["tags"].append("z"),
    "JSON": json.dumps,
}


@pytest.mark.parametrize("act", CHANGES.values(), ids=CHANGES)
def test_every_change_is_noted(act):
    noted = []

    act(watched(ITEM, lambda: noted.append("changed")))

    assert noted == ["changed"]


@pytest.mark.parametrize("act", READS.values(), ids=READS)
def test_reads_and_copies_are_none(act):
    noted = []

    item = watched(ITEM, lambda: noted.append("changed"))
    act(item)

    assert (noted, item) == ([], ITEM)
