"""The pool that tools run in."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from environments import agent_loop
from environments.agent_loop import resize_tool_pool, run_in_tool_pool
from environments.sandbox import nonblocking_calls

place = contextvars.ContextVar("place", default="nowhere")


@pytest.fixture(autouse=True)
def own_pool(monkeypatch):
    """Leave the pool of other tests alone."""
    import concurrent.futures

    pool = concurrent.futures.ThreadPoolExecutor(2)
    monkeypatch.setattr(agent_loop, "_tool_executor", pool)
    yield
    pool.shutdown(wait=True)


def test_resizing_replaces_the_pool_and_keeps_running_work():
    """Work that runs or waits in the old pool is finished there."""
    go, results = threading.Event(), []
    old = agent_loop._tool_executor
    running = [old.submit(lambda number=number: go.wait(10) and results.append(number)) for number in range(4)]

    resize_tool_pool(5)
    go.set()
    for work in running:
        work.result(10)

    assert sorted(results) == [0, 1, 2, 3]
    assert agent_loop._tool_executor is not old
    assert agent_loop._tool_executor._max_workers == 5
    with pytest.raises(RuntimeError, match="after shutdown"):
        old.submit(print)
    agent_loop._tool_executor.shutdown()


def test_cancelled_call_that_has_not_begun_never_begins():
    """A call that waits for a thread is dropped with its rollout."""
    ran: list[str] = []
    busy, go = threading.Barrier(3), threading.Event()

    def block() -> None:
        busy.wait(10)
        go.wait(10)

    async def scenario() -> None:
        blockers = [agent_loop._tool_executor.submit(block) for _ in range(2)]
        busy.wait(10)
        waiting = asyncio.ensure_future(run_in_tool_pool(ran.append, "late"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        go.set()
        for blocker in blockers:
            blocker.result(10)
        await run_in_tool_pool(ran.append, "next")

    asyncio.run(scenario())

    assert ran == ["next"]


def test_cancelled_call_is_interrupted_and_waited_for():
    """The running tool sees hermes' interrupt; the cancellation goes on only when the tool has stopped."""
    from tools.interrupt import is_interrupted

    seen: list[str] = []
    began = threading.Event()

    def tool() -> None:
        began.set()
        while not is_interrupted():
            pass
        seen.append("stopped")

    async def scenario() -> list[str]:
        task = asyncio.ensure_future(run_in_tool_pool(tool))
        while not began.is_set():
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return [*seen, "cancelled" if task.cancelled() else "done"]

    assert asyncio.run(scenario()) == ["stopped", "cancelled"]


def test_tool_that_ignores_the_interrupt_is_left_with_a_warning(monkeypatch, caplog):
    """A tool that does not stop cannot hold a cancelled rollout for ever."""
    monkeypatch.setattr(nonblocking_calls, "INTERRUPT_GRACE_S", 0.05)
    began, go = threading.Event(), threading.Event()

    def tool() -> None:
        began.set()
        go.wait(10)
        raise OSError("nobody sees this")

    async def scenario() -> bool:
        task = asyncio.ensure_future(run_in_tool_pool(tool))
        while not began.is_set():
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        go.set()
        return task.cancelled()

    assert asyncio.run(scenario())
    assert "did not stop within 0.05 s" in caplog.text


def test_tool_that_ends_the_process_is_an_error():
    """SystemExit would end the event loop, and all rollouts with it."""

    async def scenario() -> str:
        with pytest.raises(RuntimeError) as error:
            await run_in_tool_pool(sys.exit, 3)
        return str(error.value)

    assert asyncio.run(scenario()) == "SystemExit: 3"


def test_process_ends_without_a_tool_that_hangs():
    """With its own code; one without such a tool ends as ever."""
    program = """
import asyncio, sys, threading
from environments.agent_loop import run_in_tool_pool
from environments.sandbox import nonblocking_calls
nonblocking_calls.INTERRUPT_GRACE_S = 0.05
async def scenario():
    task = asyncio.ensure_future(run_in_tool_pool(threading.Event().wait))
    await asyncio.sleep(0.2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    nonblocking_calls.end_despite_hanging_calls(7, 0.1)
asyncio.run(scenario())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)

    assert ended.returncode == 7
    assert "1 tools hang" in ended.stderr
