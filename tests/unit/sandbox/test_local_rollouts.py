"""Whole rollouts of the real layer work in the local sandbox, and do not meet."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from environments.hermes_base_env import HermesAgentBaseEnv
from environments.sandbox.isolation import sandbox_directory
from pytest_hermes_env.inference import call, say


class Env(HermesAgentBaseEnv):
    """Rewards note what the rollout left."""

    async def setup(self) -> None: ...

    async def get_next_item(self) -> Any: ...

    def format_prompt(self, item: Any) -> str:
        return str(item)

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        directory = sandbox_directory(ctx.task_id)
        self.seen.append((directory, ctx.terminal("cat note.txt; echo $HOME")["output"].split("\n"), ctx.read_file("note.txt")))
        return 1.0

    async def evaluate(self, *args: Any, **kwargs: Any) -> None: ...


def collect(make_env: Any, script: Any, **fields: Any) -> tuple[Any, Any]:
    """Run one group; returns the environment and its scored group."""

    async def scenario() -> Any:
        env = make_env(Env, script=script, enabled_toolsets=["terminal", "file"], group_size=3, **fields)
        env.seen = []
        scored, _ = await env.collect_trajectories("item")
        return env, scored

    return asyncio.run(scenario())


def test_rollouts_of_the_layer_work_in_the_sandbox(make_env, local_sandbox):
    """Each in a directory of its own there, of which nothing is left."""
    script = [
        call("terminal", command="basename $PWD > note.txt"),
        call("terminal", command="sleep 300.5", background=True),
        say("ok"),
    ]

    env, scored = collect(make_env, script)

    directories = [directory for directory, _, _ in env.seen]
    assert scored["scores"] == [1.0] * 3
    assert [Path(directory).parent for directory in directories] == [local_sandbox.temporary] * 3
    assert [said for _, said, _ in env.seen] == [[os.path.basename(place), str(local_sandbox.home)] for place in directories]
    assert [read["content"] for _, _, read in env.seen] == [f"{os.path.basename(place)}\n" for place in directories]
    assert len(set(directories)) == 3
    assert os.listdir(local_sandbox.temporary) == []


def test_tool_that_nobody_scripted_fails_the_test_although_the_loop_goes_on(make_env, local_sandbox):
    """The agent is told of an error; the test is, too."""
    from pytest_hermes_env.errors import UnexpectedToolCall

    script = [call("terminal", command="echo x > note.txt"), call("web_search", query="x"), say("ok")]
    local_sandbox.on_tool("web_extract", {}, optional=True)

    async def scenario() -> Any:
        env = make_env(Env, script=script, enabled_toolsets=["terminal", "file", "web"], group_size=1)
        env.seen = []
        await env.collect_trajectories("item")

    asyncio.run(scenario())
    with pytest.raises(UnexpectedToolCall) as raised:
        local_sandbox.verify()
    local_sandbox.scripted = type(local_sandbox.scripted)()  # what was refused is settled: the fixture need not say it again

    assert str(raised.value).startswith("the sandbox was asked for the tool `web_search`, which is not scripted.")
