"""A hundred rollouts at once do not meet, and leave nothing."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from tools import file_tools, terminal_tool
from tools.process_registry import process_registry

from environments import agent_loop
from environments.hermes_base_env import HermesAgentBaseEnv
from environments.sandbox import isolation
from environments.sandbox.isolation import sandbox_directory
from pytest_hermes_env.inference import call, say, turn

LONG_S = 120
"""No rollout waits longer for the others, in seconds: a rollout that fails before its reward would let them wait for ever."""

REAPER = "(_cleanup_thread_worker)"
"""hermes' thread that ends idle sessions; the first terminal starts it, for as long as the process lives."""

WORK = "NAME={name}; export NAME; echo $NAME > name.txt; mkdir -p in/$NAME; cd in/$NAME; echo $NAME > here.txt"
ENDS = "echo {name} in $PWD"
SLEEPER = f"sleep 300.{os.getpid()}"
STAYS = f"setsid -f {SLEEPER}; cd /; exec {SLEEPER}"
"""Leaves one process in the rollout's directory that is in no list, and one elsewhere that is in hermes'."""


class Env(HermesAgentBaseEnv):
    """Rewards look around in each sandbox, at a moment when all the others are alive, too."""

    async def setup(self) -> None: ...

    async def get_next_item(self) -> Any: ...

    def format_prompt(self, item: Any) -> str:
        return str(item)

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        await self.everybody.wait()
        self.seen[item] = {
            "directory": sandbox_directory(ctx.task_id),
            "terminal": ctx.terminal("echo $NAME; pwd; cat here.txt ../../name.txt; ls ../..")["output"].split(),
            "file": ctx.read_file("here.txt")["content"],
            "processes": processes_of(ctx),
        }
        await self.everybody.wait()
        return 1.0

    async def evaluate(self, *args: Any, **kwargs: Any) -> None: ...


def policy(conversation: Any) -> Any:
    """Work in the first turn, start processes in the second."""
    name = conversation.first_user
    turns = (
        call("terminal", command=WORK.format(name=name)),
        turn(
            call("terminal", command=ENDS.format(name=name), background=True),
            call("terminal", command=STAYS, background=True),
        ),
    )
    return turns[conversation.turn] if conversation.turn < len(turns) else say("done")


def processes_of(ctx: Any) -> set[tuple[str, str]]:
    """The rollout's background processes, each with the last line that it said, or as running."""
    listed = json.loads(ctx.call_tool("process", {"action": "list"}))["processes"]
    found = set()
    for process in listed:
        if process["command"] == STAYS:
            found.add((process["command"], process["status"]))
        else:
            ended = json.loads(ctx.call_tool("process", {"action": "wait", "session_id": process["session_id"]}))
            found.add((process["command"], ended["output"].strip().splitlines()[-1]))
    return found


def held() -> dict[str, Any]:
    """All that rollouts can hold in hermes' registers and in ours."""
    return {
        "overrides": set(terminal_tool._task_env_overrides),
        "sessions": set(terminal_tool._active_environments),
        "locks": set(terminal_tool._creation_locks),
        "activity": set(terminal_tool._last_activity),
        "working directories": set(terminal_tool._session_cwd),
        "running": set(process_registry._running),
        "ended": set(process_registry._finished),
        "consumed": set(process_registry._completion_consumed),
        "polled": set(process_registry._poll_observed),
        "file operations": set(file_tools._file_ops_cache),
        "reads": set(file_tools._read_tracker),
        "ours": set(isolation._sandboxes),
    }


def living_in(directories: set[str]) -> list[str]:
    """Command lines of processes that work in one of the directories, or are this test's sleepers."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                place, line = os.readlink(entry / "cwd"), (entry / "cmdline").read_bytes()
            except OSError:
                continue
            words = line.decode(errors="replace").rstrip("\0").replace("\0", " ")
            if words == SLEEPER or any(place.startswith(directory) for directory in directories):
                found.append(words)
    return found


def expected(name: str, directory: str) -> dict[str, Any]:
    """What a rollout sees that meets no other."""
    place = f"{directory}/in/{name}"
    return {
        "directory": directory,
        "terminal": [name, place, name, name, "in", "name.txt"],
        "file": f"{name}\n",
        "processes": {(ENDS.format(name=name), f"{name} in {place}"), (STAYS, "running")},
    }


@pytest.fixture(autouse=True)
def _own_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the pool of other tests alone."""
    monkeypatch.setattr(agent_loop, "_tool_executor", concurrent.futures.ThreadPoolExecutor(1))


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are found by their directory, on Linux")
def test_rollouts_do_not_meet_and_leave_nothing(make_env, monkeypatch, pytestconfig):
    """Files, variables, directories and background processes of thirty, or a hundred, are each rollout's own, and gone afterwards."""
    many = 100 if pytestconfig.getoption("all_rules") else 30
    monkeypatch.setenv("TERMINAL_ENV", "local")
    names = [f"rollout-{number}" for number in range(many)]
    before, threads = held(), set(threading.enumerate())

    async def scenario() -> Any:
        env = make_env(Env, script=policy, in_process=True, enabled_toolsets=["terminal", "file"], tool_pool_size=many + 28)
        env.everybody, env.seen = asyncio.Barrier(many), {}
        async with asyncio.timeout(LONG_S):
            outcomes = await asyncio.gather(*(env.collect_trajectory(name) for name in names))
        return env.seen, [scored["scores"] for scored, _ in outcomes]

    seen, scores = asyncio.run(scenario())
    agent_loop._tool_executor.shutdown()

    directories = {name: found["directory"] for name, found in seen.items()}
    assert seen == {name: expected(name, directories[name]) for name in names}
    assert len(set(directories.values())) == many
    assert scores == [1.0] * many
    assert held() == before
    assert living_in(set(directories.values())) == []
    assert [directory for directory in directories.values() if os.path.exists(directory)] == []
    assert [thread.name for thread in set(threading.enumerate()) - threads if REAPER not in thread.name] == []
