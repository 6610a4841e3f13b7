"""A rollout leaves nothing behind, whichever way it ends."""

from __future__ import annotations

import asyncio
import glob
import itertools
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools import terminal_tool
from tools.process_registry import process_registry

from environments.hermes_base_env import HermesAgentBaseEnv
from environments.sandbox import isolation
from environments.tool_context import ToolContext
from pytest_hermes_env.inference import call, say
from tests.environments.counted_awaits import cancelled_at_await

POOL_THREADS = ("hermes-tool", "asyncio_", "hermes-lsp-loop", "Thread-")
"""Idle threads that outlive a rollout by design: pools, and hermes' reaper, which lives as long as the process."""


class Env(HermesAgentBaseEnv):
    """Items name how the reward ends."""

    async def setup(self) -> None: ...

    async def get_next_item(self) -> Any: ...

    def format_prompt(self, item: Any) -> str:
        if item == "loop raises":
            raise LookupError(item)
        return f"item {item}"

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        self.in_reward.set()
        if item == "reward raises":
            raise LookupError(item)
        if item == "reward waits":
            await asyncio.Event().wait()
        if item == "reward runs":
            ctx.terminal(SLOW.format(mark=self.mark))
        return 1.0

    async def evaluate(self, *args: Any, **kwargs: Any) -> None: ...


SHORT, LONG = f"30.{os.getpid():08d}", f"300.{os.getpid():08d}"
"""How long the sleepers of this test process sleep, in seconds: those of other test processes sleep a little differently."""

SLOW = f"sleep {SHORT}; touch {{mark}}"


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Task ids in the order in which their sandboxes were cleaned up."""
    ids: list[str] = []
    original = ToolContext.cleanup

    def cleanup(self: ToolContext) -> None:
        ids.append(self.task_id)
        original(self)

    monkeypatch.setattr(ToolContext, "cleanup", cleanup)
    return ids


def held() -> dict[str, Any]:
    """All that rollouts can hold: hermes' registers, ours, directories, processes, threads."""
    threads = {thread.name for thread in threading.enumerate() if not thread.name.startswith(POOL_THREADS)}
    return {
        "overrides": set(terminal_tool._task_env_overrides),
        "sessions": set(terminal_tool._active_environments),
        "working directories": set(terminal_tool._session_cwd),
        "running": set(process_registry._running),
        "ours": set(isolation._sandboxes),
        "directories": set(glob.glob("/tmp/hermes-*")) - set(glob.glob("/tmp/hermes-results")),
        "processes": sleeping(),
        "threads": threads - {"MainThread"},
    }


def sleeping(*lengths: str) -> set[str]:
    """Process ids of this test process's sleepers: of these lengths, or of any."""
    lengths = lengths or (SHORT, LONG)
    found = set()
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = Path(path).read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:1] == [b"sleep"] and words[1].decode() in lengths:
            found.add(path.split("/")[2])
    return found


def own(state: dict[str, Any]) -> dict[str, Any]:
    """Leave out directories of other test processes, which come and go."""
    return {**state, "directories": {path for path in state["directories"] if os.path.basename(path) in NAMES}}


NAMES: set[str] = set()


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remember the names of the directories that this process makes."""
    original = isolation.tempfile.mkdtemp

    def mkdtemp(*arguments: Any, **keywords: Any) -> str:
        path = original(*arguments, **keywords)
        NAMES.add(os.path.basename(path))
        return path

    monkeypatch.setattr(isolation.tempfile, "mkdtemp", mkdtemp)
    yield
    NAMES.clear()


def run(make_env: Any, tmp_path: Path, item: str, script: Any, *, cancel_when: Any = None) -> Any:
    """Run one rollout, cancelled when the coroutine ``cancel_when(env)`` returns; returns (before, after, outcome, env)."""

    async def scenario() -> Any:
        env = make_env(Env, script=script, enabled_toolsets=["terminal", "file"], rollout_retries=0)
        env.mark, env.in_reward = tmp_path / "mark", asyncio.Event()
        before = held()
        task = asyncio.ensure_future(env.collect_trajectory(item))
        if cancel_when is not None:
            await cancel_when(env)
            task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        return own(before), own(held()), outcome, env

    return asyncio.run(scenario())


async def until_a_sleeper_runs(_env: Any) -> None:
    """Return as soon as the tool's process is there."""
    async with asyncio.timeout(60):
        while not sleeping(SHORT):
            await asyncio.sleep(0.02)


WORK = [call("terminal", command="echo 1 > a.txt; pwd"), call("terminal", command=f"sleep {LONG}", background=True), say("ok")]


@pytest.mark.parametrize(("item", "kind"), [("success", tuple), ("reward raises", tuple), ("loop raises", LookupError)])
@pytest.mark.hermes_allow_leftovers
def test_nothing_is_left_when_a_rollout_ends(make_env, tmp_path, closed, item, kind):
    """Success, an exception in the reward, one in the loop: cleaned up exactly once, background processes included."""
    before, after, outcome, _ = run(make_env, tmp_path, item, WORK)

    assert isinstance(outcome, kind)
    assert len(closed) == 1
    assert after == before


@pytest.mark.hermes_allow_leftovers
def test_nothing_is_left_when_the_model_is_cancelled(make_env, tmp_path, closed):
    """Cancelled while the model is being waited for."""
    from pytest_hermes_env.inference import hang, turn

    earlier = set(terminal_tool._active_environments)

    async def asked_twice(env: Any) -> None:
        while not set(terminal_tool._active_environments) - earlier:
            await asyncio.sleep(0.02)

    script = [call("terminal", command="echo 1 > a.txt"), turn(hang(60), say("late"))]

    before, after, outcome, _ = run(make_env, tmp_path, "success", script, cancel_when=asked_twice)

    assert isinstance(outcome, asyncio.CancelledError)
    assert len(closed) == 1
    assert after == before


@pytest.mark.hermes_allow_leftovers
def test_cancelled_tool_is_killed_and_its_side_effect_never_happens(make_env, tmp_path, closed):
    """Cancelled in a tool: the process is gone when the cancellation is through, and what stood after it does not run."""
    script = [call("terminal", command=SLOW.format(mark=tmp_path / "mark")), say("done")]

    before, after, outcome, env = run(make_env, tmp_path, "success", script, cancel_when=until_a_sleeper_runs)

    assert isinstance(outcome, asyncio.CancelledError)
    assert len(closed) == 1
    assert after == before
    assert not env.mark.exists()
    assert not env.in_reward.is_set()


@pytest.mark.parametrize("item", ["reward waits", "reward runs"])
def test_nothing_is_left_when_the_reward_is_cancelled(make_env, tmp_path, closed, item):
    """Cancelled in the reward, while it awaits something or while it runs a tool."""

    async def in_reward(env: Any) -> None:
        await env.in_reward.wait()
        if item == "reward runs":
            await until_a_sleeper_runs(env)

    before, after, outcome, env = run(make_env, tmp_path, item, WORK, cancel_when=in_reward)

    assert isinstance(outcome, asyncio.CancelledError)
    assert len(closed) == 1
    assert after == before
    assert not env.mark.exists()


async def cancelled_at(env: Any, at: int) -> tuple[Any, Any]:
    """Run a group that is cancelled at an await; return the cancellation or the group, and what is left of its tasks."""
    env.in_reward = asyncio.Event()
    try:
        outcome: Any = await cancelled_at_await(at, env.collect_trajectories("success"))
    except asyncio.CancelledError as error:
        outcome = error
    await asyncio.sleep(0)
    return outcome, asyncio.all_tasks() - {asyncio.current_task()}


@pytest.mark.hermes_allow_leftovers
@pytest.mark.parametrize(("mode", "first"), [("openai", 1), ("vllm", 2)])
def test_group_that_is_cancelled_at_any_await_leaves_nothing(make_env, closed, mode, first, pytestconfig):
    """No sandbox, no task, no process, no count: at every third await of a group of two rollouts with real tools, or at each."""
    awaits = itertools.count(1) if pytestconfig.getoption("all_rules") else itertools.count(first, 3)
    env = make_env(Env, script=WORK, server_type=mode, enabled_toolsets=["terminal", "file"])
    before = own(held())

    for at in awaits:
        outcome, tasks = asyncio.run(cancelled_at(env, at))

        assert (tasks, own(held())) == (set(), before), f"left by a cancellation at await {at}"
        assert len(closed) == len(set(closed))
        wrong = {name: number for name, number in env._counts.items() if name != "train/rollouts_finished"}
        assert (wrong, env._reward_errors, env._tool_error_buffer) == ({}, 0, [])
        if not isinstance(outcome, asyncio.CancelledError):
            break

    assert at > 20
    assert outcome[0]["scores"] == [1.0, 1.0]
