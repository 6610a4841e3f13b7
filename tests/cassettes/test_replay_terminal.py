"""TerminalTestEnv on its cassettes: the rewards are the expected ones, without a real server or sandbox."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from environments.terminal_test_env.terminal_test_env import TASKS, TerminalTestEnv
from pytest_hermes_env import call, say

GREETING = TASKS[0]
WHOLE = GREETING["content"]


@pytest.fixture
def rollouts() -> dict[str, list[Any]]:
    """A good one, one that writes too much, one that writes nothing, and one that fixes its mistake."""
    write = {"path": GREETING["path"]}
    return {
        "I write the file.": [call("write_file", content=WHOLE, **write), say("The file is there.")],
        "I add a title.": [call("write_file", content=f"Greeting\n{WHOLE}", **write), say("It has a title, too.")],
        "I look first.": [call("terminal", command="ls"), say("There is nothing to do.")],
        "I try.": [
            call("write_file", content="Hello", **write),
            call("patch", mode="replace", old_string="Hello", new_string=WHOLE, **write),
            say("Mended."),
        ],
    }


@pytest.mark.parametrize(
    "server_type",
    [
        pytest.param(None, id="chat", marks=pytest.mark.hermes_cassette("terminal_test_env/chat")),
        pytest.param("vllm", id="token", marks=pytest.mark.hermes_cassette("terminal_test_env/token")),
    ],
)
def test_a_group_has_its_recorded_scores(make_env, fake_sandbox, recorded_server, server_type, nothing_real):
    """Each rollout of a group gets its recorded answers, tool results and reward, in order, in chat mode and in token mode."""
    env = make_env(TerminalTestEnv, server=recorded_server, server_type=server_type, group_size=4)

    async def collect() -> Any:
        await env.setup()
        group, _ = await env.collect_trajectories(await env.get_next_item())
        return group

    group = asyncio.run(collect())

    assert group["scores"] == [1.0, 0.5, 0.0, 1.0]
    assert [sum(message["role"] == "assistant" for message in messages) for messages in group["messages"]] == [2, 2, 2, 3]
    assert nothing_real() == []
