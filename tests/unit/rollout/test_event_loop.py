"""The loop of the scenarios goes on, whatever an environment does to it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import re
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pytest_hermes_env.rollout import event_loop
from pytest_hermes_env.rollout.event_loop import BLOCKED_S, ScenarioLoop, _Step
from pytest_hermes_env.rollout.journal import Blocked, Journal, Place, current_journal, recording
from pytest_hermes_env.rollout.raised import Hung

HERE = Place(path="env.py", line=3, function="evaluate")
ELSEWHERE = Place(path="env.py", line=9, function="other")


def played(work: Callable[[], Awaitable[Any]], *, hang_s: float = 60.0) -> Any:
    """Run a coroutine function, guarded; no line is the environment's."""
    results: list[Any] = []

    async def main() -> None:
        results.append(await work())

    with asyncio.Runner(loop_factory=lambda: ScenarioLoop(lambda _: None, hang_s)) as runner:
        loop: Any = runner.get_loop()
        runner.run(loop.guarded(main()))
    return results[0]


def test_system_exit_of_a_task_stays_in_the_task() -> None:
    """It would end the event loop, and with it all other families."""

    async def work() -> str:
        async def leave() -> None:
            sys.exit(3)

        task = asyncio.ensure_future(leave())
        await asyncio.wait({task})
        return repr(task.exception())

    assert played(work) == "SystemExit(3)"


def test_system_exit_of_a_callback_does_not_end_the_loop() -> None:
    """The loop goes on with what is ready."""

    async def work() -> str:
        asyncio.get_running_loop().call_soon(sys.exit, 3)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "went on"

    assert played(work) == "went on"


def test_stopping_the_loop_fails_where_it_is_tried() -> None:
    """A stopped loop would end the run with this error; only the end of the scenarios stops it."""

    async def work() -> str:
        with pytest.raises(RuntimeError, match="Event loop stopped before Future completed"):
            asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return "went on"

    assert played(work) == "went on"


def test_an_environment_meets_only_its_own_tasks() -> None:
    """One that cancels every other task, or awaits it, would end the run or wait forever."""

    async def work() -> str:
        with recording(Journal()):
            own = asyncio.create_task(asyncio.sleep(60))
        others = asyncio.all_tasks()
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        return str(others == {own} and own.cancelled())

    assert played(work) == "True"


def test_code_that_never_returns_is_interrupted() -> None:
    """`Hung` is raised into it, and nothing that catches Exception holds it back."""

    async def work() -> str:
        try:
            while True:
                with contextlib.suppress(Exception):
                    sum(range(100))
        except Hung:
            return "interrupted"

    assert played(work, hang_s=0.05) == "interrupted"


def test_tasks_belong_to_the_journal_that_is_current_at_their_start() -> None:
    """What a scenario leaves running can be waited for."""

    async def work() -> tuple[int, int]:
        async def nothing() -> None:
            await asyncio.sleep(0)

        with recording() as journal:
            inside = asyncio.ensure_future(nothing())
        outside = asyncio.ensure_future(nothing())
        found = len(journal.tasks & {inside}), len(journal.tasks & {outside})
        await asyncio.gather(inside, outside)
        return found

    assert played(work) == (1, 0)


@pytest.mark.parametrize(
    ("samples", "waits", "expected"),
    [
        ([HERE, HERE, ELSEWHERE], 12, [Blocked(seconds=0.12, place=HERE)]),
        ([HERE], 0, []),
        ([], 12, []),
    ],
    ids=["long", "short", "not the environment's"],
)
def test_a_long_step_is_recorded_at_its_most_frequent_place(
    monkeypatch: pytest.MonkeyPatch, samples: list[Place], waits: int, expected: list[Blocked]
) -> None:
    """Seconds are those in which the thread waited or computed; a step that is none of the environment's is not recorded."""
    monkeypatch.setattr(event_loop.time, "thread_time", lambda: 0.0)
    journal = Journal()

    async def work() -> None:
        loop: Any = asyncio.get_running_loop()

        def step() -> None:
            loop.running.seen += samples
            loop.running.waited += waits

        with recording(journal):
            loop.call_soon(step)
        await asyncio.sleep(0)

    played(work)

    assert [event for event in journal.events if isinstance(event, Blocked)] == expected
    assert event_loop.SAMPLE_S * 12 >= BLOCKED_S


@pytest.mark.parametrize(("tells_states", "expected"), [(True, [Blocked(seconds=0.14, place=HERE)]), (False, [])])
def test_a_computation_counts_once_where_waits_are_not_told(
    monkeypatch: pytest.MonkeyPatch, tells_states: bool, expected: list[Blocked]
) -> None:
    """On other systems than Linux, each sample of a step is a wait: its 70 ms are not 140."""
    times = iter([0.0, 0.07])
    monkeypatch.setattr(event_loop, "TELLS_STATES", tells_states)
    journal = Journal()

    async def work() -> None:
        loop: Any = asyncio.get_running_loop()

        def step() -> None:
            loop.running.seen.append(HERE)
            loop.running.waited += 7

        with recording(journal):
            handle = _Step(step, (), loop, contextvars.copy_context())
        monkeypatch.setattr(event_loop.time, "thread_time", lambda: next(times))
        handle._run()
        monkeypatch.undo()

    played(work)

    assert [event for event in journal.events if isinstance(event, Blocked)] == expected


def test_a_step_knows_its_journal_by_its_context() -> None:
    """The journal that is current while the step runs may be another one."""

    async def work() -> list[Journal | None]:
        loop: Any = asyncio.get_running_loop()
        with recording() as journal:
            handle = loop.call_soon(lambda: None)
        assert isinstance(handle, _Step)
        return [current_journal.get(), None if handle._context.get(current_journal) is journal else journal]

    assert played(work) == [None, None]


@pytest.mark.skipif(not hasattr(signal, "SIGRTMAX"), reason="the platform has no signals of its own choice")
def test_code_that_waits_in_c_is_interrupted() -> None:
    """A sleep, a lock or a subprocess that never returns would hold up the whole run."""

    async def work() -> str:
        try:
            threading.Event().wait()
        except Hung:
            return "interrupted"
        return "returned"

    assert played(work, hang_s=0.05) == "interrupted"


def test_a_pattern_that_backtracks_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps the GIL, so no other thread of Python's can interrupt it."""
    monkeypatch.setattr(event_loop, "TICK_S", 0.1)

    async def work() -> str:
        try:
            re.match("(a+)+$", "a" * 60 + "b")
        except Hung:
            return "interrupted"
        return "matched"

    assert played(work, hang_s=0.05) == "interrupted"


def test_a_call_in_a_thread_that_never_returns_does_not_keep_the_loop_from_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread is a daemon, and the loop waits a few seconds for it."""
    monkeypatch.setattr(event_loop, "THREADS_S", 0.01)
    released = threading.Event()

    async def work() -> bool:
        call = asyncio.ensure_future(asyncio.to_thread(released.wait))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        threads = [thread for thread in threading.enumerate() if thread.name == "hermes-env-call"]
        call.cancel()
        return all(thread.daemon for thread in threads) and bool(threads)

    assert played(work)
    released.set()


def test_a_task_that_catches_every_cancellation_does_not_keep_the_loop_from_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio would wait for it forever."""
    monkeypatch.setattr(event_loop, "CANCELLED_S", 0.01)
    released: list[bool] = []

    async def stubborn() -> None:
        while not released:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
                await asyncio.sleep(3600)

    async def work() -> str:
        tasks.append(asyncio.ensure_future(stubborn()))
        await asyncio.sleep(0)
        return "ended"

    tasks: list[asyncio.Task[None]] = []

    assert played(work) == "ended"
    assert not tasks[0].done()

    released.append(True)
    tasks[0]._log_destroy_pending = False  # type: ignore[attr-defined]
    tasks[0].get_coro().close()
